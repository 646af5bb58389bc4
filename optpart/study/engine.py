"""Engines: where a sweep executes its runs, here or on the workers of a Dask cluster.

Instances travel as native JSON, results as result documents that are verified on arrival.
"""

from __future__ import annotations

import json
import logging
import os
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from typing import Any

from optpart.base.errors import ArgumentError, InputError
from optpart.interop.formats import native
from optpart.interop.formats import result as result_format
from optpart.interop.formats.json import parse_json
from optpart.methods import registry
from optpart.methods.cluster import Cluster, address, connected
from optpart.problem.instance import Instance
from optpart.solution.audit import described, one_line
from optpart.solution.result import Budget, Result
from optpart.study.arrival import rebuild
from optpart.study.run import Run, Watch, execute, failed, interrupted

_LOG = logging.getLogger(__name__)

#: Executes runs in any order, and yields each with its result as soon as it is done; if
#: interrupted, it stops early.
Engine = Callable[[Sequence[Run], Watch | None], Iterator[tuple[Run, Result]]]

#: A run fails after this many workers have died during it, the last while it ran alone.
_DEATHS = 3

#: Runs submitted per worker thread, so that a worker never waits for its next run.
_AHEAD = 2

#: Seconds after which to look for workers that have died or come.
_LOOK = 1.0


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
    return local if at is None else DaskEngine(at, workers)


def local(runs: Sequence[Run], watch: Watch | None) -> Iterator[tuple[Run, Result]]:
    """Execute the runs one after another in this process."""
    for run in runs:
        result = execute(run, watch)
        yield run, result
        if interrupted(result):
            return


class DaskEngine:
    """An engine that executes runs on the workers of a Dask cluster.

    If a worker dies, others do its runs.

    Parameters
    ----------
    address : str
        Address of the scheduler; empty to start a local cluster for the sweep.
    workers : int
        Threads that each run takes; a local cluster has as many processes as the cores allow.
    """

    def __init__(self, address: str, workers: int) -> None:
        self._address = address
        self._processes = max(1, (os.cpu_count() or 1) // workers)

    def __call__(self, runs: Sequence[Run], watch: Watch | None) -> Iterator[tuple[Run, Result]]:
        """Yield each run with its result as soon as it arrives.

        Raises
        ------
        InputError
            If there is no scheduler at the address, or it has no workers that have this code.
        """
        if not runs:
            return
        codes = {run.method: run.key.code for run in runs}
        try:
            with connected(self._address, self._processes, codes, _packed()) as cluster:
                for run, result in self._results(cluster, runs):
                    if watch is not None:
                        watch(run, None)
                    yield run, result
        except KeyboardInterrupt:
            return

    def _results(self, cluster: Cluster, runs: Sequence[Run]) -> Iterator[tuple[Run, Result]]:
        """Yield results; Dask blames a death on all runs that waited, so these are tried alone."""
        suspects: list[tuple[Run, int]] = []
        for run, document in self._spread(cluster, runs):
            if isinstance(document, str):
                yield run, _arrived(run, document)
            else:
                suspects.append((run, document))
        for run, deaths in suspects:
            _, document = next(self._spread(cluster, [run]))
            while not isinstance(document, str) and deaths + document < _DEATHS:
                deaths += document
                _, document = next(self._spread(cluster, [run]))
            if isinstance(document, str):
                yield run, _arrived(run, document)
            else:
                yield run, failed(run, f"{deaths + document} workers died while executing it")

    def _spread(self, cluster: Cluster, runs: Sequence[Run]) -> Iterator[tuple[Run, str | int]]:
        """Yield each run with its document, or the number of workers that died in it."""
        waiting = deque(runs)
        at_work: dict[Any, tuple[Run, list[str]]] = {}
        wait = import_module("distributed").wait
        while waiting or at_work:
            workers = self._usable(cluster)
            for future, (run, chosen) in [*at_work.items()]:
                if not {*chosen} & {*workers}:  # Dask waits for ever for one of these
                    del at_work[future]
                    future.cancel()
                    yield run, 1
            while waiting and len(at_work) < _AHEAD * len(workers):
                run = waiting.popleft()
                at_work[_submit(cluster.client, run, workers)] = run, workers
            try:
                done = wait([*at_work], timeout=_LOOK, return_when="FIRST_COMPLETED").done
            except TimeoutError:
                continue
            for future in done:
                yield at_work.pop(future)[0], self._document(future)

    def _usable(self, cluster: Cluster) -> list[str]:
        """Return the workers that can execute runs, and name those that are new and cannot."""
        known = len(cluster.refused)
        threads = cluster.usable()
        for refused in cluster.refused[known:]:
            _LOG.warning(one_line(f"not used: {refused}"))
        if self._address and max(threads.values()) > 1:
            raise ArgumentError(
                "engine",
                f"workers at {self._address} execute several runs per process, which would slow "
                "each other",
                f"start them with 'dask worker {self._address} --nthreads 1 --nworkers N'",
            )
        return [*threads]

    def _document(self, future: Any) -> str | int:
        try:
            return str(future.result())
        except import_module("distributed").scheduler.KilledWorker as error:
            return int(error.allowed_failures) + 1
        except Exception as error:  # an error of Dask
            problem = f"the cluster failed ({described(error)})"
            raise ArgumentError("engine", problem, "check that its scheduler runs") from None


def _submit(client: Any, run: Run, workers: list[str]) -> Any:
    asked = _text(run.instance), run.method, run.seed, run.budget
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph")  # an instance may be large
        return client.submit(execute_text, *asked, workers=workers, pure=False)


def execute_text(instance: str, method: str, seed: int, budget: Budget) -> str:
    """Execute a run on an instance in native JSON, on a worker; return its result document."""
    result = execute(Run(_parsed(instance), method, seed, budget))
    return json.dumps(result_format.to_dict(result))


@lru_cache(maxsize=2)
def _parsed(instance: str) -> Instance:
    return native.from_dict(parse_json(instance))


@lru_cache(maxsize=2)
def _text(instance: Instance) -> str:
    return native.dumps(instance)


def _packed() -> bytes:
    """Return what was registered here, for workers that have not run the code that does it."""
    rows = registry.registered()
    if not rows:
        return b""
    try:
        packed: bytes = import_module("cloudpickle").dumps(rows)
    except Exception as error:  # objects of somebody else's may refuse in any way
        raise ArgumentError(
            "engine",
            f"what is registered cannot be sent to workers ({described(error)})",
            "register functions that can be pickled, or use local",
        ) from None
    return packed


def _arrived(run: Run, document: str) -> Result:
    """Rebuild the result of a run; if the document is not valid, only this run fails."""
    try:
        result = rebuild(parse_json(document), run.instance)
    except InputError as error:
        return failed(run, f"a worker sent an invalid result ({error})")
    return replace(result, method=run.method, seed=run.seed)
