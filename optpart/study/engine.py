"""Where the runs of a sweep are done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from optpart.errors import ArgumentError
from optpart.solution.result import Result
from optpart.study.run import Run, Watch, execute, interrupted

_DASK = "dask"


class Engine(Protocol):
    """Executes runs in any order; an interrupted engine stops before all are done."""

    def __call__(self, runs: Sequence[Run], watch: Watch | None) -> Iterator[tuple[Run, Result]]:
        """Yield each run with its result as soon as it is done."""
        ...


def local(runs: Sequence[Run], watch: Watch | None) -> Iterator[tuple[Run, Result]]:
    """Do one run after the other in this process."""
    for run in runs:
        result = execute(run, watch)
        yield run, result
        if interrupted(result):
            return


def choose(name: str, workers: int) -> Engine:
    """Return the engine of a name.

    Parameters
    ----------
    name : str
        ``local``; ``dask`` for a Dask cluster on this machine, or ``dask://ADDRESS`` for the one
        whose scheduler is there.
    workers : int
        Threads that each run takes.
    """
    if name == "local":
        return local
    scheme, _, address = name.partition("://")
    if scheme != _DASK or (name != _DASK and not address):
        raise ArgumentError(
            "engine", f"no engine {name!r}", "use local, dask or dask://HOST:PORT of a scheduler"
        )
    from optpart.study.dask import DaskEngine

    return DaskEngine(address, workers)
