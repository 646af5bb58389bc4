"""Steps that commands share before they work on an instance."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optpart.problem.instance import Instance


def open_instance(file: str) -> Instance:
    """Read an instance file or, if there is no such file, the library instance of that name."""
    from optpart.api import load

    return load(file)


def announce_compilation() -> None:
    """Tell the user, once, that the program is compiling."""
    from optpart.kernels.compiled import announce_compilation as announce

    announce()
