"""Finished measurements of all benches: JSON lines, one per run, under a key of its dependencies.

A row holds the run, its result and its code. It counts as long as its key is that of today's code
(:mod:`bench.depends`), parameters and packages. Nothing is ever removed from a file.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import optpart
from bench.depends import ROOT, Code, Needs
from optpart.files import ANY, write_text
from optpart.methods import registry

#: Parameters of a run, or what came out of it; only what JSON has.
Values = dict[str, Any]

MACHINE = f"{platform.machine()}, {os.cpu_count()} cores"
#: All strategies: what search tries for a start, and the solvers that start from search.
STRATEGIES = (*registry.PARTITIONERS, *registry.SCHEDULERS, *registry.SPECIAL_SCHEDULERS)
RESULTS = ROOT / "bench" / "results"


@dataclass(frozen=True)
class Row:
    """A finished run.

    Attributes
    ----------
    key : str
        Digest of the dependencies, see :meth:`Store.key`; empty if they are no longer known.
    run, result : dict
        Parameters and result.
    measured : dict
        The measured code: ``commit``, ``date``, ``version`` and remarks.
    """

    key: str
    run: Values
    result: Values
    measured: Values

    @property
    def flat(self) -> Values:
        """Parameters and result in one."""
        return self.run | self.result


class Store:
    """A file of rows to which several processes can append at the same time.

    Parameters
    ----------
    path : Path
    needs : callable
        What a run depends on besides its parameters.
    """

    def __init__(
        self, path: Path, needs: Callable[[Values], Needs], code: Code | None = None
    ) -> None:
        self.path, self.needs, self.code = path, needs, code or Code()

    def key(self, run: Values) -> str:
        """Return a digest of all dependencies of a run."""
        needs = self.needs(run)
        packages = {name: package(name) for name in sorted(needs.packages)}
        parts = {"code": self.code.digest(needs), "run": run, "packages": packages}
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]

    def append(self, run: Values, result: Values) -> Row:
        """Add a row in one write, so that those of several processes do not mix.

        Raises
        ------
        OSError
            If the disk is full: then the row is not whole.
        """
        row = Row(self.key(run), run, result, dict(stamp()))
        with self._held() as descriptor:
            size = os.fstat(descriptor).st_size
            cut = bool(size) and os.pread(descriptor, 1, size - 1) != b"\n"
            content = ("\n" * cut + _line(row)).encode()
            if os.write(descriptor, content) < len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        return row

    @contextmanager
    def _held(self) -> Iterator[int]:
        """Open the file, and keep other processes from adding rows or writing it anew."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                # It may have been written anew in between.
                if os.path.samestat(os.stat(self.path), os.fstat(descriptor)):
                    yield descriptor
                    return
            finally:
                os.close(descriptor)

    def all(self) -> list[Row]:
        """Read every row of the file; a line that a stop cut short is skipped, and said."""
        if not self.path.exists():
            return []
        rows = []
        for number, line in enumerate(self.path.read_text(encoding="utf-8").splitlines(), 1):
            try:
                rows.append(Row(**json.loads(line)))
            except (json.JSONDecodeError, TypeError):
                print(f"{self.path}:{number}: no whole row, skipped", file=sys.stderr)
        return rows

    def latest(self) -> list[Row]:
        """Return the newest row of every run, whatever code it was measured on.

        A row that counts is newer than one that does not.
        """
        found: dict[str, Row] = {}
        for row in self.all():
            name = json.dumps(row.run, sort_keys=True)
            if name not in found or not self._counts(found[name]) or self._counts(row):
                found[name] = row
        return list(found.values())

    def rows(self) -> list[Row]:
        """Return the newest row of every run that counts: measured on the code as it is now."""
        return [row for row in self.latest() if self._counts(row)]

    def known(self, run: Values) -> Row | None:
        """Return the row of a run, if there is one that counts."""
        key = self.key(run)
        return next((row for row in reversed(self.all()) if row.key == key), None)

    def run(self, run: Values, call: Callable[[], Values]) -> Row:
        """Return the row of a run, made now unless there is one that counts."""
        known = self.known(run)
        return self.append(run, call()) if known is None else known

    def rewrite(self, rows: list[Row]) -> None:
        """Write the file anew, all or nothing; there must be as many rows as before."""
        with self._held():
            if len(rows) != len(self.all()):
                raise ValueError(f"{self.path}: {len(self.all())} rows, not {len(rows)}")
            write_text(self.path, "".join(map(_line, rows)), ANY)

    @property
    def mark(self) -> Path:
        """The file that says of which rows the tables beside it are."""
        return self.path.with_name("tables.sha256")

    def content(self, rows: list[Row]) -> str:
        """Return a digest of runs and results, whatever their keys and order."""
        text = sorted(json.dumps([row.run, row.result], sort_keys=True) for row in rows)
        return hashlib.sha256("\n".join(text).encode()).hexdigest()

    def tables_written(self) -> None:
        """Note that the tables are of the rows that count now."""
        write_text(self.mark, self.content(self.rows()) + "\n", ANY)

    def today(self, run: Values) -> str:
        """Return the key of a run; empty if what it ran is no more."""
        try:
            return self.key(run)
        except (KeyError, ModuleNotFoundError):
            return ""

    def _counts(self, row: Row) -> bool:
        return bool(row.key) and row.key == self.today(row.run)


def _line(row: Row) -> str:
    return json.dumps(asdict(row), ensure_ascii=False) + "\n"


@cache
def package(name: str) -> str:
    """Return the version of an installed package; of ``python`` major and minor number."""
    if name == "python":
        return ".".join(platform.python_version_tuple()[:2])
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


@cache
def stamp() -> Mapping[str, str]:
    """Describe the running code: version and commit, with a plus if files differ from it."""
    found = {"version": optpart.__version__, "date": time.strftime("%Y-%m-%d", time.gmtime())}
    try:
        commit = git("rev-parse", "--short=7", "HEAD").strip()
        changed = git("status", "--porcelain", "--untracked-files=no", "--", "*.py").strip()
    except (OSError, subprocess.CalledProcessError):
        return found
    return {"commit": commit + "+" * bool(changed), **found}


def git(*arguments: str) -> str:
    """Return the output of git.

    Raises
    ------
    OSError, subprocess.CalledProcessError
        If there is no git, or no repository.
    """
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


@dataclass(frozen=True)
class Bench:
    """The properties of a bench that keeps rows, for :mod:`bench.status`.

    Attributes
    ----------
    name : str
        Folder of its results.
    command : str
        The command that measures everything that is missing.
    needs : callable
        Returns the dependencies of a run, see :class:`Store`.
    again : callable or None
        Repeats a run; takes its parameters and the folder of shared data. ``None`` if that takes as
        long as measuring everything.
    differs : callable
        Takes the old and the new result; returns the contradictions, or nothing.
    stratum : callable
        Sorts rows into kinds; a sample has some of each.
    cheap : callable
        Whether a row is cheap enough to repeat.
    """

    name: str
    command: str
    needs: Callable[[Values], Needs]
    again: Callable[[Values, Path], Values] | None
    differs: Callable[[Values, Values], str]
    stratum: Callable[[Row], str]
    cheap: Callable[[Row], bool]

    @property
    def store(self) -> Store:
        """Its rows, where they are committed."""
        return Store(RESULTS / self.name / "runs.jsonl", self.needs)

    def strata(self, rows: list[Row]) -> list[tuple[str, list[Row]]]:
        """Return rows by kind."""
        found: dict[str, list[Row]] = {}
        for row in rows:
            found.setdefault(self.stratum(row), []).append(row)
        return sorted(found.items())
