"""CSV tables with a fixed header; every fault names its line."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from optpart.base.errors import InputError, UnsupportedError
from optpart.base.files import read_text
from optpart.base.languages import from_csv, to_csv


def read_rows(path: str | Path, columns: Sequence[str]) -> list[tuple[str, dict[str, str]]]:
    """Read a table with a given header, as :func:`read_table` does; fields are by column."""
    _, rows = read_table(path, columns)
    return [(place, dict(zip(columns, row, strict=True))) for place, row in rows]


def read_table(
    path: str | Path, columns: Sequence[str] | None = None
) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Read a table.

    Parameters
    ----------
    columns : sequence of str, optional
        The header that the file must have; any, if not given.

    Returns
    -------
    header : list of str
        Without blanks around the names; empty for an empty file.
    rows : list of (str, list of str)
        Place (``line 3``) and fields, as many as the header has; blank lines are left out.

    Raises
    ------
    InputError
        If the file is not CSV or has another header, or a row has too few or too many fields. The
        caller adds the file.
    """
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    rows = []
    try:
        header = [from_csv(name).strip() for name in next(reader, [])]
        if columns is not None and header != list(columns):
            raise InputError(
                "line 1", f"the header is {','.join(header)!r}", f"write {','.join(columns)}"
            )
        for row in reader:
            place = f"line {reader.line_num}"
            if row and len(row) != len(header):
                raise InputError(
                    place, f"{len(row)} fields", f"give {len(header)}: {','.join(header)}"
                )
            if row:
                rows.append((place, [from_csv(cell) for cell in row]))
    except csv.Error as error:
        raise InputError(
            f"line {reader.line_num}", f"is not CSV ({error})", "give comma-separated values"
        ) from None
    return header, rows


def dumps(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table that :func:`read_rows` can read (RFC 4180)."""
    written: list[Sequence[str]] = [columns]
    for row in rows:
        for column, field in zip(columns, row, strict=True):
            if len(field) > csv.field_size_limit():
                raise UnsupportedError(
                    column,
                    f"a field of {len(field)} characters is too long for CSV",
                    "use the native format",
                )
        written.append(row)
    return to_csv(written, end="\r\n")


def entries(field: str) -> list[str]:
    """Split a field such as ``3; 4;5``; an empty one has no entries."""
    return [entry.strip() for entry in field.split(";")] if field.strip() else []
