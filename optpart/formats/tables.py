"""CSV tables with a fixed header; every fault names its line."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from optpart.errors import InputError, UnsupportedError
from optpart.files import read_text


def read_rows(path: str | Path, columns: Sequence[str]) -> list[tuple[str, dict[str, str]]]:
    """Read a table.

    Parameters
    ----------
    columns : sequence of str
        The header that the file must have.

    Returns
    -------
    list of (str, dict)
        Place (``line 3``) and fields by column of each row; blank lines are skipped.

    Raises
    ------
    InputError
        If the file is not CSV or has another header, or a row has too few or too many fields. The
        caller adds the file.
    """
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    rows = []
    header = ",".join(columns)
    try:
        found = ",".join(name.strip() for name in next(reader, []))
        if found != header:
            raise InputError("line 1", f"the header is {found!r}", f"write {header}")
        for row in reader:
            place = f"line {reader.line_num}"
            if row and len(row) != len(columns):
                raise InputError(place, f"{len(row)} fields", f"give {len(columns)}: {header}")
            if row:
                rows.append((place, dict(zip(columns, row, strict=True))))
    except csv.Error as error:
        raise InputError(
            f"line {reader.line_num}", f"is not CSV ({error})", "give comma-separated values"
        ) from None
    return rows


def dumps(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table that :func:`read_rows` can read (RFC 4180)."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(columns)
    for row in rows:
        for column, field in zip(columns, row, strict=True):
            if len(field) > csv.field_size_limit():
                raise UnsupportedError(
                    column,
                    f"a field of {len(field)} characters is too long for CSV",
                    "use the native format",
                )
        writer.writerow(row)
    return text.getvalue()


def entries(field: str) -> list[str]:
    """Split a field such as ``3; 4;5``; an empty one has no entries."""
    return [entry.strip() for entry in field.split(";")] if field.strip() else []
