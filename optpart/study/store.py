"""Finished runs in a file, so that a killed sweep continues where it stopped."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from optpart.errors import InputError
from optpart.formats import result as result_format
from optpart.formats.json import parse_json
from optpart.solution.result import Result
from optpart.study.arrival import rebuild
from optpart.study.run import Key, Run

#: The application id in the header of our files: "optp".
APPLICATION = 0x6F707470
VERSION = 1

_TABLE = """
CREATE TABLE run (
    instance_sha256 TEXT NOT NULL, method TEXT NOT NULL, seed INTEGER NOT NULL,
    seconds REAL NOT NULL, workers INTEGER NOT NULL, deterministic REAL NOT NULL,
    optpart TEXT NOT NULL, document TEXT NOT NULL,
    PRIMARY KEY (instance_sha256, method, seed, seconds, workers, deterministic, optpart)
)
"""
# Read as bytes: text that cannot be decoded costs one row, not the whole file.
_KEYED = " AND ".join(f"{name} = ?" for name in Key._fields)
_FIND = f"SELECT CAST(document AS BLOB) FROM run WHERE {_KEYED}"
_ADD = f"INSERT OR REPLACE INTO run VALUES ({', '.join('?' for _ in range(len(Key._fields) + 1))})"


class RowError(InputError):
    """One row of a store cannot be used."""


class Store:
    """A SQLite file with one row per finished run: its key, and its result document.

    A row is on disk before :meth:`add` returns. Several sweeps may use one file at a time.

    Parameters
    ----------
    path : str or Path
        Created if it does not exist.

    Raises
    ------
    InputError
        Here and in every method: if the file is not a store, is damaged, or cannot be written.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        with self._faults():
            # Absolute, because SQLite gives some names, such as ":memory:", a special meaning.
            self._database = sqlite3.connect(
                self._path.absolute(), timeout=30.0, isolation_level=None
            )
        try:
            with self._faults():
                self._prepare()
        except InputError:
            self._database.close()
            raise

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def get(self, run: Run) -> Result | None:
        """Return the stored result of a run, verified again; ``None`` if there is none.

        Raises
        ------
        RowError
            If the row of this run is damaged or false; other rows may be valid.
        """
        with self._faults():
            row = self._database.execute(_FIND, run.key).fetchone()
        if row is None:
            return None
        try:
            result = rebuild(parse_json(_decoded(row[0])), run.instance)
            for place, kept, asked in (
                ("method", result.method, run.method),
                ("seed", result.seed, run.seed),
            ):
                if kept != asked:
                    raise InputError(place, f"{kept!r} in a row of {asked!r}", "run it again")
        except InputError as error:
            place = f"{run.instance.name}, {run.method}, seed {run.seed}"
            if error.place:
                place += f": {error.place}"
            raise RowError(place, error.problem, error.remedy, str(self._path)) from None
        return result

    def add(self, run: Run, result: Result) -> None:
        """Store the result of a run."""
        document = json.dumps(result_format.to_dict(result))
        with self._faults():
            self._database.execute(_ADD, (*run.key, document))

    def documents(self) -> Iterator[tuple[Key, str]]:
        """Yield the key and the document of every row, in the order in which they were added.

        Raises
        ------
        RowError
            If a document is not text.
        """
        keys = ", ".join(Key._fields)
        with self._faults():
            rows = self._database.execute(
                f"SELECT {keys}, CAST(document AS BLOB) FROM run ORDER BY rowid"
            ).fetchall()
        for *fields, document in rows:
            try:
                yield Key(*fields), _decoded(document)
            except InputError as error:
                raise RowError("", error.problem, error.remedy, str(self._path)) from None

    def _prepare(self) -> None:
        """Create the table in a new file; refuse any other file that is not a store."""
        found = self._pragma("application_id"), self._pragma("user_version")
        if found == (0, 0) and not self._database.execute("SELECT 1 FROM sqlite_master").fetchone():
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.executescript(
                f"BEGIN IMMEDIATE; {_TABLE}; PRAGMA application_id = {APPLICATION};"
                f"PRAGMA user_version = {VERSION}; COMMIT"
            )
        elif found != (APPLICATION, VERSION):
            raise self._refusal("not a store of this version of optpart")
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute(_FIND, Key("", "", 0, 0.0, 0, 0.0, ""))
        # Refuse a read-only file now, not after the first run.
        self._database.executescript("BEGIN IMMEDIATE; ROLLBACK")

    def _pragma(self, name: str) -> Any:
        return self._database.execute(f"PRAGMA {name}").fetchone()[0]

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeError, OverflowError) as error:
            raise self._refusal(f"cannot be used as a store ({error})") from None

    def _refusal(self, problem: str) -> InputError:
        return InputError(
            "",
            problem,
            "name a new file, or one that 'optpart gap --store' created",
            str(self._path),
        )


def _decoded(document: object) -> str:
    try:
        return document.decode() if isinstance(document, bytes) else ""
    except UnicodeError:
        raise InputError("", "not text", "run it again") from None
