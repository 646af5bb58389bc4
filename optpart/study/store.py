"""Finished runs in a file, so that a killed sweep continues where it stopped."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from optpart.base.errors import InputError
from optpart.base.files import Kind, begins, check_target
from optpart.interop.formats import result as result_format
from optpart.interop.formats.json import parse_json
from optpart.interop.formats.sqlite import guard
from optpart.problem.rational import shown
from optpart.solution.result import Result, only_claimed
from optpart.study.arrival import rebuild
from optpart.study.run import Key, Run

#: The application id in the header of our files: "optp".
APPLICATION = 0x6F707470
VERSION = 3

#: By the id, or of a single page: new files have no tables.
KIND = Kind(
    "a store of 'optpart gap --store'",
    begins(
        rb"(?s)SQLite format 3\0"
        rb"(?:.{52}" + APPLICATION.to_bytes(4) + rb"|.{12}\0\0\0[\0\1].{36}\0\0\0\0)"
    ),
)

#: Columns of the key that are no texts.
_TYPES = {
    "seed": "INTEGER", "seconds": "REAL", "workers": "INTEGER", "deterministic": "REAL",
    "memory": "INTEGER",
}  # fmt: skip
#: The code of the last sweep with each method.
_LATEST = """
CREATE TABLE latest (
    method TEXT NOT NULL, optpart TEXT NOT NULL, code TEXT NOT NULL,
    PRIMARY KEY (method, optpart)
)
"""
#: What stands for columns that versions before this one did not have. Version 1 did not know the
#: code of its runs: they fit no other. Before version 3, runs with a limit of memory were not kept.
_ADDED = (("code", 2, "''"), ("memory", 3, "0"))


def _runs(version: int = VERSION) -> str:
    """Return the statement that creates the runs of a store of some version."""
    absent = {name for name, since, _ in _ADDED if version < since}
    names = [name for name in Key._fields if name not in absent]
    columns = ", ".join(f"{name} {_TYPES.get(name, 'TEXT')} NOT NULL" for name in names)
    return f"CREATE TABLE run ({columns}, document TEXT NOT NULL, PRIMARY KEY ({', '.join(names)}))"


def _are(names: Iterable[str]) -> str:
    return " AND ".join(f"{name} = ?" for name in names)


#: The part of a key that a user asks for, whatever code answers.
_ASKED = Key._fields.index("optpart")
# Read as bytes: text that cannot be decoded costs one row, not the whole file.
_FIND = f"SELECT CAST(document AS BLOB) FROM run WHERE {_are(Key._fields)}"
_FIND_ROW = f"SELECT 1 FROM run WHERE {_are(Key._fields)}"
_FIND_ANY = f"SELECT 1 FROM run WHERE {_are(Key._fields[:_ASKED])}"
_VALUES = ", ".join("?" for _ in range(len(Key._fields) + 1))
_ADD = f"INSERT INTO run VALUES ({_VALUES}) ON CONFLICT DO NOTHING"
_REPLACE = f"INSERT OR REPLACE INTO run VALUES ({_VALUES})"

#: Seconds to wait for other processes, which write for a moment only.
_PATIENCE = 30.0
#: Most bytes of a document. Larger files are not checked whole when they are opened: every row that
#: is used is verified.
_MOST_TEXT = 2**29
_CHECKED_WHOLE = 2**26
#: Millions of instructions of the virtual machine that all queries of a connection may take.
_CALLS = 20_000
_OTHER = "name one that 'optpart gap --store' created"


def _columns(version: int) -> str:
    """Return the columns of the key in a store of some version, with what stands for others."""
    absent = {name: value for name, since, value in _ADDED if version < since}
    return ", ".join(absent.get(name, name) for name in Key._fields)


def _changes(version: int) -> list[str]:
    """Return the statements that make a store of a new file (version 0) or an older store."""
    if not version:
        return [_runs(), _LATEST]
    taken = f"INSERT INTO run SELECT {_columns(version)}, document FROM old_run ORDER BY rowid"
    changes = ["ALTER TABLE run RENAME TO old_run", _runs(), taken, "DROP TABLE old_run"]
    return changes if version > 1 else [*changes, _LATEST]


class RowError(InputError):
    """One row of a store cannot be used."""


class Store:
    """A SQLite file with one row per finished run: its key, and its result document.

    A row is on disk before :meth:`add` returns. Several sweeps may use one file at a time: if two
    have done the same run, the result that came first stays. Rows are never removed, and only
    invalid ones are replaced, or those of which the same sweep has proven more.

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
            if os.path.exists(self._path) and not os.path.isfile(self._path):
                what = "a folder" if os.path.isdir(self._path) else "not a regular file"
                raise self._refusal(f"cannot be used as a store (is {what})")
            if os.path.exists(self._path):  # SQLite might change even what it cannot use
                check_target(self._path, KIND, forcible=False)
            # Absolute, because SQLite gives some names, such as ":memory:", a special meaning.
            self._database = sqlite3.connect(
                self._path.absolute(), timeout=_PATIENCE, isolation_level=None
            )
        try:
            with self._faults():
                guard(self._database, text=_MOST_TEXT, calls=_CALLS)
                self._prepare()
        except BaseException:
            self._database.close()
            raise

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def get(self, run: Run) -> Result | None:
        """Return the stored result of a run; ``None`` if there is none.

        Its schedule is verified again; its proofs are claims of the file, in which anybody can
        write.

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
            result = only_claimed(result, str(self._path), run.key.code)
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
        """Store the result of a run, unless there is a valid one."""
        row = (*run.key, json.dumps(result_format.to_dict(result)))
        with self._faults():
            added = self._database.execute(_ADD, row).rowcount
        if not added:
            try:
                self.get(run)
            except RowError:
                with self._faults():
                    self._database.execute(_REPLACE, row)

    def replace(self, run: Run, result: Result) -> None:
        """Store the result of a run in place of the one that there is, of which more is proven."""
        with self._faults():
            row = (*run.key, json.dumps(result_format.to_dict(result)))
            self._database.execute(_REPLACE, row)

    def begin(self, runs: Iterable[Run]) -> int:
        """Note the code of a sweep, which reports are about from now on.

        Returns
        -------
        int
            The number of runs that are stored, but were made by other code.
        """
        keys = [run.key for run in runs]
        latest = {(key.method, key.optpart): key.code for key in keys}
        with self._faults(), self._transaction():
            rows = [(*of, code) for of, code in latest.items()]
            self._database.executemany("INSERT OR REPLACE INTO latest VALUES (?, ?, ?)", rows)
            return sum(
                self._database.execute(_FIND_ROW, key).fetchone() is None
                and self._database.execute(_FIND_ANY, key[:_ASKED]).fetchone() is not None
                for key in keys
            )

    def _prepare(self) -> None:
        """Create the tables in a new file; refuse any other file that is not a store."""
        with self._transaction("DEFERRED"):  # one state of the header while another process writes
            found = self._version()
        if found and os.path.getsize(self._path) <= _CHECKED_WHOLE:
            damage = self._pragma("quick_check(1)")
            if damage != "ok":
                raise self._refusal(f"is damaged ({damage})")
        self._pragma("journal_mode = WAL")
        # Refuse a read-only file now, not after the first run.
        with self._transaction():
            found = self._version()  # again: another process may have been faster
            if found != VERSION:
                for statement in _changes(found):
                    self._database.execute(statement)
                self._database.execute(f"PRAGMA application_id = {APPLICATION}")
                self._database.execute(f"PRAGMA user_version = {VERSION}")

    def _version(self) -> int:
        """Return the version of a store, 0 for an empty file; refuse any other file."""
        found = self._pragma("application_id"), self._pragma("user_version")
        if found == (0, 0) and not self._database.execute("SELECT 1 FROM sqlite_master").fetchone():
            return 0
        if fault := _fault_of(self._database, *found):
            raise self._refusal(fault)
        return int(found[1])

    def _pragma(self, name: str) -> Any:
        return self._database.execute(f"PRAGMA {name}").fetchone()[0]

    @contextmanager
    def _transaction(self, kind: Literal["DEFERRED", "IMMEDIATE"] = "IMMEDIATE") -> Iterator[None]:
        self._database.execute(f"BEGIN {kind}")
        try:
            yield
            self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:  # some faults have ended it
                self._database.execute("ROLLBACK")
            raise

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, ValueError, OverflowError) as error:
            raise self._refusal(f"cannot be used as a store ({_said(error, self._path)})") from None

    def _refusal(self, problem: str) -> InputError:
        return InputError(
            "",
            problem,
            "name a new file, or one that 'optpart gap --store' created",
            str(self._path),
        )


class Row(NamedTuple):
    """A run as it is stored.

    Attributes
    ----------
    is_latest : bool
        Whether it was made by the code of the last sweep with this method.
    """

    key: Key
    document: bytes
    is_latest: bool


def read_rows(path: str | Path, instance: str | None = None) -> Iterator[Row]:
    """Yield the rows of a store, which is not changed, in the order in which they were added.

    Parameters
    ----------
    instance : str, optional
        The sha256 of an instance: only its rows are read.

    Raises
    ------
    InputError
        If the file is not a store, or is damaged.
    """
    with _reading(path) as (database, version):
        latest = {}
        if version > 1:
            found = database.execute("SELECT method, optpart, code FROM latest")
            latest = {(method, optpart): code for method, optpart, code in found}
        of_one = "" if instance is None else "WHERE instance_sha256 = ?"
        last = None
        for row, *fields, document in database.execute(
            f"SELECT rowid, {_columns(version)}, CAST(document AS BLOB) FROM run {of_one} "
            "ORDER BY rowid",
            () if instance is None else (instance,),
        ):
            if last is not None and row <= last:  # pages that lead to one another
                raise InputError("", "is damaged (its rows are not in order)", _OTHER)
            last = row
            key = Key(*fields)
            is_latest = latest.get((key.method, key.optpart), key.code) == key.code
            yield Row(key, document, is_latest)


def instances_of(path: str | Path) -> Iterator[tuple[str, bytes]]:
    """Yield the sha256 of every instance of a store, with the document of one of its runs.

    Raises
    ------
    InputError
        If the file is not a store, or is damaged.
    """
    following = (
        "SELECT instance_sha256, CAST(document AS BLOB) FROM run WHERE instance_sha256 > ? "
        "ORDER BY instance_sha256 LIMIT 1"
    )
    with _reading(path) as (database, _):
        found = database.execute(following, ("",)).fetchone()
        while found is not None:
            yield found
            found = database.execute(following, found[:1]).fetchone()


def has_more_than(path: str | Path, most: int, instance: str | None = None) -> bool:
    """Return whether a store has more than so many rows, without counting all."""
    of_one = "" if instance is None else "WHERE instance_sha256 = ?"
    counted = f"SELECT count(*) FROM (SELECT 1 FROM run {of_one} LIMIT ?)"
    with _reading(path) as (database, _):
        asked = (most + 1,) if instance is None else (instance, most + 1)
        return bool(database.execute(counted, asked).fetchone()[0] > most)


@contextmanager
def _reading(path: str | Path) -> Iterator[tuple[sqlite3.Connection, int]]:
    """Open a store for reading only, in one state of the whole file; return its version."""
    place = Path(path).absolute()
    try:
        try:
            opened = _opened(f"{place.as_uri()}?mode=ro")
        except sqlite3.OperationalError:
            # In a folder where nothing can be created, SQLite reads only what nobody writes.
            if place.with_name(f"{place.name}-wal").exists():
                raise
            opened = _opened(f"{place.as_uri()}?mode=ro&immutable=1")
        with closing(opened[0]):
            yield opened
    except (sqlite3.Error, OSError, ValueError) as error:
        said = _said(error, place)
        raise InputError("", f"cannot be read as a store ({said})", _OTHER, str(path)) from None
    except InputError as error:
        raise error.within(str(path)) from None


def _opened(uri: str) -> tuple[sqlite3.Connection, int]:
    database = sqlite3.connect(uri, uri=True, timeout=_PATIENCE)
    try:
        guard(database, text=_MOST_TEXT, calls=_CALLS)
        database.execute("BEGIN")  # one state of the whole file while another process writes
        application, version = (
            database.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("application_id", "user_version")
        )
        if fault := _fault_of(database, application, version):
            raise InputError("", fault, _OTHER)
    except BaseException:
        database.close()
        raise
    return database, version


def _fault_of(database: sqlite3.Connection, application: int, version: int) -> str:
    """Return why a database cannot be a store by its header and schema; empty if it can."""
    if application != APPLICATION:
        return "is not a store"
    if not 1 <= version <= VERSION:
        return "is a store of a newer version of optpart"
    tables = {"run": _runs(version)} | ({"latest": _LATEST} if version > 1 else {})
    expected = {("table", name): _tokens(sql) for name, sql in tables.items()}
    expected |= {("index", f"sqlite_autoindex_{name}_1"): [] for name in tables}
    found = {
        (kind, name): _tokens(sql or "")
        for kind, name, sql in database.execute("SELECT type, name, sql FROM sqlite_master LIMIT 9")
    }
    for kind, name in found:
        if (kind, name) not in expected:
            return f"has a {kind} {shown(name)}, which no store has"
    if found != expected:
        return "has other tables than a store"
    return ""


def _tokens(statement: str) -> list[str]:
    return re.findall(r"\w+|\S", statement)


def _said(error: Exception, path: Path) -> str:
    if isinstance(error, sqlite3.OperationalError) and not path.absolute().parent.is_dir():
        return "its folder does not exist"
    return str(getattr(error, "strerror", None) or error)


def _decoded(document: object) -> str:
    try:
        return document.decode() if isinstance(document, bytes) else ""
    except UnicodeError:
        raise InputError("", "not text", "run it again") from None
