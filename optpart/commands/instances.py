"""What commands do with an instance before they work on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optpart.problem.instance import Instance


def open_instance(file: str) -> Instance:
    """Read an instance file or, where there is none of that name, an instance of the library."""
    from optpart.api import load

    return load(file)


def announce_compilation() -> None:
    """Say so, once, when the user waits for compilation."""
    from optpart.kernels.compiled import announce_compilation as announce

    announce()
