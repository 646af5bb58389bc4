"""Reports of NVIDIA Nsight Systems, exported as SQLite (``nsys export --type sqlite``).

Tables that are read, times in nanoseconds:

- ``NVTX_EVENTS``: ranges of threads (``eventType`` 59, push and pop); the name is ``text``, or the
  entry ``textId`` of ``StringIds``. A range that is named after a vertex is one run of it;
- ``CUPTI_ACTIVITY_KIND_RUNTIME``: calls on the host, with ``globalTid``, ``correlationId``;
- ``CUPTI_ACTIVITY_KIND_KERNEL``, and ``…_MEMCPY``, ``…_MEMSET`` if present: work on a device. The
  call of the same ``correlationId`` launched it, in the process ``globalPid`` if that is there.

A vertex takes the sum of what was launched in its range. The file is opened for reading only; views
and virtual tables are not read, and every table, text and query has a limit.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from optpart.base.errors import FaultsOf, InputError
from optpart.interop.formats.profile import Launched, Profile, Range, check_flat
from optpart.interop.formats.sqlite import guard
from optpart.problem.rational import shown

_PUSH_POP = 59
#: The lower bits of a ``globalTid`` are those of the thread, the others those of the process.
_THREAD = 2**24
_MOST_BYTES = 2**34
_MOST_ROWS = 5_000_000
_MOST_TEXT = 2**20
_MOST_TEXTS = 2**28
#: Millions of instructions of the virtual machine before a query is ended.
_CALLS = 20_000
_WORK = (
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET",
)


def read(path: str | Path, names: Collection[str]) -> Profile:
    """Read a report; every fault is an :class:`InputError` with the file and the table.

    Parameters
    ----------
    names : collection of str
        Those of the vertices.
    """
    with FaultsOf(path):
        try:
            if Path(path).stat().st_size > _MOST_BYTES:
                raise InputError("", "is longer than 16 GiB", "profile fewer runs")
            uri = f"file:{quote(str(Path(path).absolute()))}?mode=ro"
            with closing(sqlite3.connect(uri, uri=True)) as database:
                guard(database, text=_MOST_TEXT, calls=_CALLS)
                return _read(database, set(names))
        except sqlite3.Error as error:
            raise InputError("", f"cannot be read ({error})", "export it with nsys again") from None
        except UnicodeDecodeError:  # in the definition of a table
            raise InputError("", "not UTF-8 text", "export it with nsys again") from None
        except OSError as error:
            raise InputError(
                "", f"cannot be read ({error.strerror})", "name a readable file"
            ) from None


def _read(database: sqlite3.Connection, names: set[str]) -> Profile:
    ranges, unmatched = _ranges(database, names)
    for of_thread in ranges.values():
        check_flat(of_thread)
    calls: dict[int, list[tuple[int, int]]] = {}
    for thread, correlation, start in _rows(
        database, "CUPTI_ACTIVITY_KIND_RUNTIME", ("globalTid", "correlationId", "start")
    ):
        calls.setdefault(correlation, []).append((thread, start))
    launched = Launched(ranges)
    devices: set[int] = set()
    for table in _WORK:
        if table != _WORK[0] and not _columns(database, table):
            continue
        for start, end, device, correlation, process in _rows(
            database, table, ("start", "end", "deviceId", "correlationId"), ("globalPid",)
        ):
            if end < start:
                raise InputError(table, f"ends at {end}, before {start}", "export it again")
            if not (process is None or isinstance(process, int)):
                raise InputError(table, f"globalPid is {shown(process)}", "export it again")
            devices.add(device)
            launches = [
                call
                for call in calls.get(correlation, ())
                if process is None or call[0] // _THREAD == process // _THREAD
            ]
            launched.add(launches[0] if len(launches) == 1 else None, end - start)
    times, remarks = launched.times("trace CUDA and NVTX together", "have no launch of their own")
    if len(devices) > 1:
        listed = ", ".join(map(str, sorted(devices)[:8]))
        raise InputError(_WORK[0], f"work on devices {listed}", "profile one device at a time")
    return Profile(
        {name: tuple(found) for name, found in sorted(times.items())},
        unmatched=tuple(sorted(unmatched)),
        remarks=tuple(remarks),
    )


def _ranges(
    database: sqlite3.Connection, names: set[str]
) -> tuple[dict[int, list[Range]], set[str]]:
    """Return the ranges of vertices by thread, and the names of all other ones."""
    texts: dict[int, str] = {}
    if _columns(database, "StringIds"):
        texts = {
            key: value
            for key, value in _rows(database, "StringIds", ("id",), ("value",))
            if isinstance(value, str)
        }
    found: dict[int, list[Range]] = {}
    unmatched = set()
    for thread, start, end, text, text_id, kind in _rows(
        database, "NVTX_EVENTS", ("globalTid", "start"), ("end", "text", "textId", "eventType")
    ):
        if kind not in (None, _PUSH_POP) or not isinstance(end, int):
            continue  # a mark, a range across threads, or one that was never closed
        name = text if isinstance(text, str) and text else texts.get(text_id)
        if name is None:
            continue
        if end < start:
            raise InputError(
                "NVTX_EVENTS", f"{shown(name)} ends before it starts", "export it again"
            )
        if name in names:
            found.setdefault(thread, []).append(Range(start, end, name))
        else:
            unmatched.add(name)
    return found, unmatched


def _columns(database: sqlite3.Connection, table: str) -> list[str]:
    """Return the columns of an ordinary table; none if there is no such table."""
    ordinary = database.execute(
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND name = ?", (table,)
    ).fetchone()
    if ordinary is None:
        return []
    return [row[1] for row in database.execute(f"PRAGMA table_info({table})")]


def _rows(
    database: sqlite3.Connection,
    table: str,
    needed: tuple[str, ...],
    optional: tuple[str, ...] = (),
) -> list[tuple[Any, ...]]:
    """Read columns of a table: whole numbers of those needed, ``None`` for others missing."""
    present = _columns(database, table)
    if not present:
        raise InputError("", f"no table {table}", "export a report with CUDA and NVTX traces")
    missing = [column for column in needed if column not in present]
    if missing:
        raise InputError(table, f"no column {missing[0]}", "export it with a recent nsys")
    chosen = [f'"{c}"' if c in present else "NULL" for c in (*needed, *optional)]
    rows = []
    text = 0
    for row in database.execute(f"SELECT {', '.join(chosen)} FROM {table}"):
        for column, value in zip(needed, row, strict=False):
            if not isinstance(value, int):
                raise InputError(table, f"{column} is {shown(value)}", "export it again")
        # Damaged tables can show one long text many times.
        text += sum(len(value) for value in row if isinstance(value, str | bytes))
        rows.append(row)
        if len(rows) > _MOST_ROWS or text > _MOST_TEXTS:
            raise InputError(table, f"too long ({len(rows):,} rows)", "profile fewer runs")
    return rows
