"""Which reader a file is for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from optpart.errors import FaultsOf, InputError
from optpart.files import read_text
from optpart.formats import dnn_partitioning, fjs, gxl, jsplib, moirai, native, santiago, stg
from optpart.formats.json import parse_json
from optpart.formats.parsing import lines
from optpart.problem.instance import Instance

_Reader = Callable[[str | Path], Instance]

#: Readers of files that hold all of an instance, by the name of the format.
_READERS: dict[str, _Reader] = {
    "native": native.read,
    "gxl": gxl.read,
    "jsplib": jsplib.read,
    "fjs": fjs.read,
    "santiago": santiago.read,
    "moirai": moirai.read,
    "dnn-partitioning": dnn_partitioning.read,
}

#: The formats that :func:`read_instance` takes by name.
FORMATS = (*_READERS, "stg")

_SUFFIXES = {".gxl": "gxl", ".stg": "stg", ".fjs": "fjs", ".jsp": "jsplib"}

#: Of these the content decides.
_TEXTS = ("", ".txt")

_IMPORTED = {
    ".pb": "a TensorFlow graph has neither devices nor costs",
    ".pbtxt": "a TensorFlow graph has neither devices nor costs",
    ".csv": "a table is only a part of an instance",
    ".toml": "a cluster alone is no instance",
}


def read_instance(
    path: str | Path, format: str | None = None, devices: int | None = None
) -> Instance:
    """Read an instance from a file, by its format.

    Parameters
    ----------
    format : str, optional
        One of :data:`FORMATS`. Without it, the suffix decides: ``.gxl``, ``.stg``, ``.fjs`` or
        ``.jsp``; for ``.json``, ``.txt`` and files without a suffix, the content does.
    devices : int, optional
        For task graphs of the Standard Task Graph Set, which have none of their own.

    Raises
    ------
    InputError
        If the file is faulty, of no known format or of several, or holds only a part of an
        instance.
    """
    reader = _reader(path, format)
    if reader is None:
        if devices is None:
            raise InputError(
                "",
                "a task graph of the Standard Task Graph Set has no devices",
                "say how many with 'optpart import --devices'",
                str(path),
            )
        return stg.read(path, devices)
    if devices is not None:
        raise InputError("devices", "given, but the file has its own", "leave them out", str(path))
    return reader(path)


def _reader(path: str | Path, format: str | None) -> _Reader | None:
    """Return the reader of a file; ``None`` for the one that must be told the devices."""
    suffix = Path(path).suffix.lower()
    if format is not None:
        if format not in FORMATS:
            known = ", ".join(FORMATS)
            raise InputError("format", f"unknown {format!r}", f"choose of {known}", str(path))
        return _READERS.get(format)
    if suffix in _SUFFIXES:
        return _READERS.get(_SUFFIXES[suffix])
    if suffix == ".json":
        return _read_json
    if suffix in _TEXTS:
        return _reader_of_text(path)
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
        f"give {', '.join(('.json', *_SUFFIXES, '.txt'))}, or say which format it is with "
        "'optpart import --format'",
        str(path),
    )


def _read_json(path: str | Path) -> Instance:
    """Read one of the formats in JSON; their keys tell them apart."""
    with FaultsOf(path):
        return _from_dict(parse_json(read_text(path)), Path(path).stem)


def _from_dict(document: Any, name: str) -> Instance:
    if isinstance(document, dict) and "format" not in document:
        if "maxFPGAs" in document:
            return dnn_partitioning.from_dict(document, name)
        if "capacity" in document:
            return moirai.from_dict(document, name)
    return native.from_dict(document)


def _reader_of_text(path: str | Path) -> _Reader | None:
    """Tell by how many counts the first line has, or by a section."""
    text = read_text(path)
    if any(line.strip() == "#tasks" for line in text.split("\n")):
        return santiago.read
    first = next(iter(lines(text)), None)
    if first is not None and first.fields[0].isdecimal():
        if len(first.fields) == 1:
            return None
        if len(first.fields) == 2:
            return _reader_of_job_shop(path)
        if len(first.fields) == 3:
            return fjs.read
    raise InputError(
        "",
        "of no format that is known",
        "say which it is with 'optpart import --format'",
        str(path),
    )


def _reader_of_job_shop(path: str | Path) -> _Reader:
    """Tell the two job shops apart, which may both begin with two counts, by what can be read."""
    readable = []
    for reader in (jsplib.read, fjs.read):
        with suppress(InputError):
            reader(path)
            readable.append(reader)
    if len(readable) > 1:
        raise InputError(
            "",
            "can be read both as jsplib and as fjs",
            "say which it is with 'optpart import --format'",
            str(path),
        )
    return readable[0] if readable else jsplib.read
