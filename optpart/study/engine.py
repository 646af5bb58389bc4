"""Engines: where a sweep executes its runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from optpart.methods.cluster import address
from optpart.solution.result import Result
from optpart.study.run import Run, Watch, execute, interrupted


class Engine(Protocol):
    """A function that executes runs in any order; if interrupted, it stops early."""

    def __call__(self, runs: Sequence[Run], watch: Watch | None) -> Iterator[tuple[Run, Result]]:
        """Yield each run with its result as soon as it is done."""
        ...


def local(runs: Sequence[Run], watch: Watch | None) -> Iterator[tuple[Run, Result]]:
    """Execute the runs one after another in this process."""
    for run in runs:
        result = execute(run, watch)
        yield run, result
        if interrupted(result):
            return


def choose(name: str, workers: int) -> Engine:
    """Return an engine by name.

    Parameters
    ----------
    name : str
        ``local``; ``dask`` for a Dask cluster on this machine; or the address of the scheduler of
        another cluster.
    workers : int
        Threads that each run takes.
    """
    at = address(name)
    if at is None:
        return local
    from optpart.study.dask import DaskEngine

    return DaskEngine(at, workers)
