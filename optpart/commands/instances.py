"""What commands do with an instance before they work on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from optpart.errors import InputError

if TYPE_CHECKING:
    from optpart.problem.instance import Instance


def open_instance(file: str) -> Instance:
    """Read an instance file or, where there is none of that name, an instance of the library."""
    from optpart.formats.detect import read_instance
    from optpart.study import library

    if not Path(file).exists():
        if file in library.index() or file in library.unreadable():
            return library.load(file)
        raise InputError(
            "", "no such file", "name a file, or an instance of 'optpart gap --list'", file
        )
    return read_instance(file)


def announce_compilation() -> None:
    """Say so, once, when the user waits for compilation."""
    from optpart.kernels.compiled import announce_compilation as announce

    announce()
