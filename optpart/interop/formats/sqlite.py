"""SQLite files from anybody: limits under which reading them ends."""

from __future__ import annotations

import sqlite3
from pathlib import Path

_MAGIC = b"SQLite format 3\0"

#: Virtual machine instructions per call of the watch.
_INSTRUCTIONS = 1_000_000


def sniff(head: bytes) -> bool:
    """Return whether a file begins as an SQLite database does."""
    return head.startswith(_MAGIC)


def is_database(path: str | Path) -> bool:
    """Return whether a readable file is an SQLite database, by its first bytes."""
    try:
        with open(path, "rb") as stream:
            return sniff(stream.read(len(_MAGIC)))
    except OSError:
        return False


def guard(database: sqlite3.Connection, *, text: int, calls: int) -> None:
    """Limit what a database may ask for, whatever its schema and its pages say.

    Parameters
    ----------
    text : int
        Most bytes of a text.
    calls : int
        Millions of instructions after which a query is ended, over all queries of the connection.
    """
    done = 0

    def watch() -> int:
        nonlocal done
        done += 1
        return int(done > calls)

    database.set_progress_handler(watch, _INSTRUCTIONS)
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, text)
    database.execute("PRAGMA trusted_schema = OFF")
    database.execute("PRAGMA cell_size_check = ON")
