"""Which reader a file is for."""

from __future__ import annotations

from pathlib import Path

from optpart.errors import InputError
from optpart.formats import gxl, native
from optpart.instance import Instance

_READERS = {".json": native.read, ".gxl": gxl.read}

_IMPORTED = {
    ".pb": "a TensorFlow graph has neither devices nor costs",
    ".pbtxt": "a TensorFlow graph has neither devices nor costs",
    ".csv": "a table is only a part of an instance",
    ".toml": "a cluster alone is no instance",
}


def read_instance(path: str | Path) -> Instance:
    """Read an instance from a file that holds all of it, by its suffix.

    Raises
    ------
    InputError
        If the file is faulty, or holds only a part of an instance.
    """
    suffix = Path(path).suffix.lower()
    if suffix in _READERS:
        return _READERS[suffix](path)
    if suffix in _IMPORTED:
        raise InputError(
            "",
            _IMPORTED[suffix],
            "make an instance of it with 'optpart import'",
            str(path),
        )
    raise InputError(
        "",
        f"unknown suffix {suffix!r}",
        f"give an instance as {' or '.join(_READERS)}, or use 'optpart import'",
        str(path),
    )
