"""Finished measurements of all benches: JSON lines, one per run.

A row holds the parameters of a run, its result, and the commit that it was measured on. What has a
row is not measured again: to measure anew, remove rows, or write to another folder.
"""

from __future__ import annotations

import argparse
import errno
import fcntl
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import optpart
from optpart.base.files import ANY, write_text

#: Parameters of a run, or what came out of it; only what JSON has.
Values = dict[str, Any]

#: Parameters of a run, and what makes it.
Runs = tuple[Values, Callable[[], Values]]

MACHINE = f"{platform.machine()}, {os.cpu_count()} cores"
ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results"


@dataclass(frozen=True)
class Row:
    """A finished run.

    Attributes
    ----------
    run, result : dict
        Parameters and result.
    measured : dict
        The measured code: ``commit``, ``date``, ``version`` and remarks.
    """

    run: Values
    result: Values
    measured: Values

    @property
    def flat(self) -> Values:
        """Parameters and result in one."""
        return self.run | self.result


class Store:
    """A file of rows to which several processes can append at the same time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if kept := self.rows():
            commits = len({row.measured.get("commit") for row in kept})
            print(
                f"{path}: {len(kept)} runs of {commits} commits are kept and not measured again",
                file=sys.stderr,
            )

    def append(self, run: Values, result: Values) -> Row:
        """Add a row in one write, so that those of several processes do not mix.

        Raises
        ------
        OSError
            If the disk is full: then the row is not whole.
        """
        row = Row(run, result, dict(stamp()))
        with self._held() as descriptor:
            size = os.fstat(descriptor).st_size
            cut = bool(size) and os.pread(descriptor, 1, size - 1) != b"\n"
            content = ("\n" * cut + _line(row)).encode()
            if os.write(descriptor, content) < len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        return row

    @contextmanager
    def _held(self) -> Iterator[int]:
        """Open the file, and keep other processes from adding rows."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield descriptor
        finally:
            os.close(descriptor)

    def all(self) -> list[Row]:
        """Read every row of the file; a line that a stop cut short is skipped, and said."""
        if not self.path.exists():
            return []
        rows = []
        for number, line in enumerate(self.path.read_text(encoding="utf-8").splitlines(), 1):
            try:
                values = json.loads(line)
                rows.append(Row(values["run"], values["result"], values["measured"]))
            except (json.JSONDecodeError, KeyError, TypeError):
                print(f"{self.path}:{number}: no whole row, skipped", file=sys.stderr)
        return rows

    def rows(self) -> list[Row]:
        """Return the newest row of every run."""
        return [*{json.dumps(row.run, sort_keys=True): row for row in self.all()}.values()]

    def known(self, run: Values) -> Row | None:
        """Return the newest row of a run, if there is one."""
        return next((row for row in reversed(self.all()) if row.run == run), None)

    def run(self, run: Values, call: Callable[[], Values]) -> Row:
        """Return the row of a run, made now unless there is one."""
        known = self.known(run)
        return self.append(run, call()) if known is None else known


def make_page(
    doc: str | None,
    name: str,
    seconds: float,
    runs: Callable[[float], Iterable[Runs]],
    page: Callable[[list[Row]], str],
) -> None:
    """Run the command of a bench: make what is missing, and write its page.

    Parameters
    ----------
    doc : str
        Of the bench; its first line describes the command.
    name : str
        Of the bench, its store and its page.
    seconds : float
        The default of the time limit, which ``runs`` gets.
    """
    parser = argparse.ArgumentParser(name, description=(doc or "").splitlines()[0])
    parser.add_argument("--time-limit", type=float, default=seconds)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    store = Store(given.output / f"{name}.jsonl")
    for run, call in runs(given.time_limit):
        print(*run.values(), store.run(run, call).result, flush=True)
    write_text(given.output / f"{name}.md", page(store.rows()), ANY)


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
        commit = _git("rev-parse", "--short=7", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", "*.py")
    except (OSError, subprocess.CalledProcessError):
        return found
    return {"commit": commit + "+" * bool(changed), **found}


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
