"""The table of formats, and the detection of a file's format."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optpart.errors import FaultsOf, InputError
from optpart.files import read_text

if TYPE_CHECKING:
    from optpart.problem.instance import Instance


@dataclass(frozen=True)
class Format:
    """A row of the table: a format of files that hold an instance.

    Attributes
    ----------
    name : str
    summary : str
        One line of help.
    module : str
        The module that reads the format; see :meth:`load`.
    suffixes : tuple of str
        Suffixes that only this format has, in lower case, with the dot.
    distinctive : bool
        Whether ``sniff`` accepts no other format, so that it takes precedence.
    needs_devices : bool
        Whether files have no devices of their own.
    """

    name: str
    summary: str
    module: str
    suffixes: tuple[str, ...] = ()
    distinctive: bool = False
    needs_devices: bool = False

    def load(self) -> Any:
        """Return the module, which has some of these functions.

        ``read``
            Reads a path; with ``needs_devices``, also takes their number.
        ``sniff``, optional
            Returns whether the text of a file without suffix or with ``.txt`` looks like this
            format; with ``from_dict``, whether an object in a ``.json`` file without the key
            ``format`` does.
        ``from_dict``, optional
            Builds an instance from a parsed JSON document and a name.
        """
        return import_module(self.module)


_ROWS = (
    Format("native", "instances as optpart writes them", "optpart.formats.native"),
    Format("gxl", "task graphs of the University of Auckland", "optpart.formats.gxl", (".gxl",)),
    Format("jsplib", "classical job shops of OR-Library", "optpart.formats.jsplib", (".jsp",)),
    Format("fjs", "flexible job shops", "optpart.formats.fjs", (".fjs",)),
    Format(
        "santiago",
        "task graphs on unrelated machines by Santiago et al.",
        "optpart.formats.santiago",
        distinctive=True,
    ),
    Format("moirai", "model graphs with measured times by Moirai", "optpart.formats.moirai"),
    Format(
        "dnn-partitioning",
        "model graphs by Tarnawski et al.",
        "optpart.formats.dnn_partitioning",
        distinctive=True,
    ),
    Format(
        "stg",
        "task graphs of the Standard Task Graph Set",
        "optpart.formats.stg",
        (".stg",),
        needs_devices=True,
    ),
)

#: The formats that :func:`read_instance` reads, by name.
FORMATS = {row.name: row for row in _ROWS}

#: Suffixes for which the content decides.
_TEXTS = ("", ".txt")

_IMPORTED = {
    ".pb": "a TensorFlow graph has neither devices nor costs",
    ".pbtxt": "a TensorFlow graph has neither devices nor costs",
    ".csv": "a table is only part of an instance",
    ".toml": "a cluster is only part of an instance",
}


def read_instance(
    path: str | Path, format: str | None = None, devices: int | None = None
) -> Instance:
    """Read an instance from a file in any of the formats.

    Parameters
    ----------
    format : str, optional
        One of :data:`FORMATS`. By default, the suffix decides: ``.gxl``, ``.stg``, ``.fjs`` or
        ``.jsp``; for ``.json``, ``.txt`` and files without a suffix, the content does.
    devices : int, optional
        For task graphs of the Standard Task Graph Set, which have none of their own.

    Raises
    ------
    InputError
        If the file is faulty, of no known format or of several, or contains only part of an
        instance.
    """
    if Path(path).suffix.lower() == ".json" and format is None:
        _need_no_devices(path, devices)
        return _read_json(path)
    found = _format(path, format)
    if not found.needs_devices:
        _need_no_devices(path, devices)
        return _read(found, path)
    if devices is None:
        raise InputError(
            "",
            f"{found.summary} have no devices of their own",
            "give their number with 'optpart import --devices'",
            str(path),
        )
    return _read(found, path, devices)


def _need_no_devices(path: str | Path, devices: int | None) -> None:
    if devices is not None:
        raise InputError("devices", "given, but the file has its own", "omit them", str(path))


def _format(path: str | Path, name: str | None) -> Format:
    """Return the format with the given name, else by the suffix, else by the content."""
    if name is not None:
        if name not in FORMATS:
            known = ", ".join(FORMATS)
            raise InputError("format", f"unknown {name!r}", f"choose one of {known}", str(path))
        return FORMATS[name]
    suffix = Path(path).suffix.lower()
    by_suffix = {each: row for row in FORMATS.values() for each in row.suffixes}
    if suffix in by_suffix:
        return by_suffix[suffix]
    if suffix in _TEXTS:
        return _format_of_text(path)
    if suffix in _IMPORTED:
        raise InputError(
            "",
            _IMPORTED[suffix],
            "turn it into an instance with 'optpart import'",
            str(path),
        )
    raise InputError(
        "",
        f"unknown suffix {suffix!r}",
        f"use {', '.join(('.json', *by_suffix, '.txt'))}, or name the format with "
        "'optpart import --format'",
        str(path),
    )


def _read_json(path: str | Path) -> Instance:
    """Read one of the formats in JSON, parsed once; their keys tell them apart."""
    from optpart.formats.json import parse_json  # the command line needs the table alone

    with FaultsOf(path):
        document = parse_json(read_text(path))
        if isinstance(document, dict) and "format" not in document:
            found = _sniffed(_sniffing(json=True), document, path)
            if found is not None:
                instance: Instance = found.load().from_dict(document, Path(path).stem)
                return instance
        native: Instance = FORMATS["native"].load().from_dict(document)
        return native


def _format_of_text(path: str | Path) -> Format:
    found = _sniffed(_sniffing(json=False), read_text(path), path)
    if found is None:
        raise InputError(
            "",
            "is in no known format",
            "name the format with 'optpart import --format'",
            str(path),
        )
    return found


def _sniffing(*, json: bool) -> list[Format]:
    """Return the formats that look at documents in JSON, or at other texts."""
    rows = [row for row in FORMATS.values() if hasattr(row.load(), "sniff")]
    return [row for row in rows if hasattr(row.load(), "from_dict") is json]


def _read(row: Format, path: str | Path, *devices: int) -> Instance:
    instance: Instance = row.load().read(path, *devices)
    return instance


def _sniffed(rows: list[Format], content: Any, path: str | Path) -> Format | None:
    """Return the format that the content looks like; of several, the only one that reads it."""
    alike = [row for row in rows if row.load().sniff(content)]
    alike = [row for row in alike if row.distinctive] or alike
    if len(alike) < 2:
        return alike[0] if alike else None
    readable = []
    for row in alike:
        with suppress(InputError):
            _read(row, path, *([1] if row.needs_devices else []))
            readable.append(row)
    if len(readable) > 1:
        raise InputError(
            "",
            f"can be read both as {' and as '.join(row.name for row in readable)}",
            "name the format with 'optpart import --format'",
            str(path),
        )
    return (readable or alike)[0]
