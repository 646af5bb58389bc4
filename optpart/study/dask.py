"""Runs on a Dask cluster: on this machine, or on all machines where its scheduler has workers."""

from __future__ import annotations

import logging
import os
import socket
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from optpart.errors import ArgumentError, InputError
from optpart.formats import native
from optpart.formats.json import parse_json
from optpart.methods import registry
from optpart.problem.instance import Instance
from optpart.solution.result import Result
from optpart.study import remote
from optpart.study.arrival import rebuild
from optpart.study.run import Run, Watch, failed
from optpart.version import __version__

#: A run fails after this many workers have died during it, the last while it ran alone.
_DEATHS = 3

#: Seconds to wait for the scheduler, and for its first worker.
_PATIENCE = 20.0

#: Runs submitted per worker thread, so that a worker never waits for its next run.
_AHEAD = 2


class DaskEngine:
    """An engine that executes runs on the workers of a Dask cluster.

    Instances travel as native JSON, results as result documents that are verified on arrival. If a
    worker dies, Dask gives its runs to others.

    Parameters
    ----------
    address : str
        Address of the scheduler; empty to start a local cluster for the sweep.
    workers : int
        Threads that each run takes; a local cluster has as many processes as the cores allow.

    Raises
    ------
    InputError
        If the package ``distributed`` is not installed.
    """

    def __init__(self, address: str, workers: int) -> None:
        self._address = address
        self._processes = max(1, (os.cpu_count() or 1) // workers)
        try:
            self._dask: Any = import_module("distributed")
        except ImportError:
            raise ArgumentError(
                "engine", "needs the package distributed", "install optpart[dask]"
            ) from None

    def __call__(self, runs: Sequence[Run], watch: Watch | None) -> Iterator[tuple[Run, Result]]:
        """Yield each run with its result as soon as it arrives.

        Raises
        ------
        InputError
            If there is no scheduler at the address, it has no workers, or they lack this version
            of optpart or a method.
        """
        if not runs:
            return
        with ExitStack() as stack:
            stack.enter_context(_quiet())
            try:
                client = self._client(stack)
                for run, result in self._results(client, runs):
                    if watch is not None:
                        watch(run, None)
                    yield run, result
            except KeyboardInterrupt:
                return

    def _client(self, stack: ExitStack) -> Any:
        """Connect to the cluster; start a local one if there is no address."""
        place: Any = self._address
        if not place:
            # The engine counts deaths itself: it knows which run was alone with its worker.
            config = {
                "distributed.scheduler.allowed-failures": 0,
                # Only what is installed is imported, not what lies in the current folder.
                "distributed.nanny.pre-spawn-environ.PYTHONSAFEPATH": "1",
            }
            stack.enter_context(import_module("dask").config.set(config))
            place = stack.enter_context(
                self._dask.LocalCluster(
                    n_workers=self._processes,
                    threads_per_worker=1,
                    dashboard_address=None,
                    preload=[remote.__name__],
                    silence_logs=logging.CRITICAL,
                )
            )
        try:
            if self._address:
                _knock(self._address)
            client = stack.enter_context(self._dask.Client(place, timeout=_PATIENCE))
        except (OSError, ValueError) as error:
            raise ArgumentError(
                "engine",
                f"no Dask scheduler answers at {self._address} ({error})",
                "give the HOST:PORT that 'dask scheduler' prints",
            ) from None
        if self._address:
            self._check_workers(client)
        return client

    def _check_workers(self, client: Any) -> None:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError:
            raise ArgumentError(
                "engine",
                f"the scheduler at {self._address} has no workers",
                f"start some with 'dask worker {self._address} --nthreads 1'",
            ) from None
        if max(client.nthreads().values(), default=1) > 1:
            raise ArgumentError(
                "engine",
                f"workers at {self._address} execute several runs per process, which would slow "
                "each other",
                f"start them with 'dask worker {self._address} --nthreads 1 --nworkers N'",
            )

    def _results(self, client: Any, runs: Sequence[Run]) -> Iterator[tuple[Run, Result]]:
        suspects: list[tuple[Run, int]] = []
        for run, document in self._spread(client, runs):
            if isinstance(document, str):
                yield run, _arrived(run, document)
            else:
                suspects.append((run, document))
        for run, deaths in suspects:
            yield run, self._alone(client, run, deaths)

    def _alone(self, client: Any, run: Run, deaths: int) -> Result:
        """Retry a run alone: Dask blames a worker's death on all runs that waited for it."""
        while True:
            _, document = next(self._spread(client, [run]))
            if isinstance(document, str):
                return _arrived(run, document)
            deaths += document
            if deaths >= _DEATHS:
                return failed(run, f"{deaths} workers died while executing it")

    def _spread(self, client: Any, runs: Sequence[Run]) -> Iterator[tuple[Run, str | int]]:
        """Yield each run with its document, or the number of workers that died in it."""
        waiting = deque(runs)
        at_work: dict[Any, Run] = {}
        arrivals = self._dask.as_completed()
        while waiting or at_work:
            while waiting and len(at_work) < _AHEAD * max(1, len(client.nthreads())):
                run = waiting.popleft()
                future = _submit(client, run)
                at_work[future] = run
                arrivals.add(future)
            future = next(arrivals)
            yield at_work.pop(future), self._document(future)

    def _document(self, future: Any) -> str | int:
        try:
            return str(future.result())
        except self._dask.scheduler.KilledWorker as error:
            return int(error.allowed_failures) + 1
        except InputError:
            raise
        except Exception as error:  # an error of Dask, or of a worker that lacks something
            raise ArgumentError(
                "engine",
                f"the cluster failed ({type(error).__name__}: {error})",
                f"check that its scheduler runs and that its workers have optpart {__version__}",
            ) from None


def _knock(address: str) -> None:
    """Check that the scheduler answers: a client that fails to connect disturbs the next one."""
    place = urlsplit(address if "://" in address else f"tcp://{address}")
    socket.create_connection((place.hostname or "", place.port or 0), timeout=_PATIENCE).close()


def _submit(client: Any, run: Run) -> Any:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph")  # an instance may be large
        return client.submit(
            remote.execute_text,
            _text(run.instance),
            run.method,
            run.seed,
            run.budget,
            __version__,
            run.key.code,
            _packed(),
            pure=False,
        )


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
            f"what is registered cannot be sent to workers ({type(error).__name__}: {error})",
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


@lru_cache(maxsize=2)
def _text(instance: Instance) -> str:
    return native.dumps(instance)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Dask's log of connections and workers off the terminal."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    levels = {logger: logger.level for logger in map(logging.getLogger, names)}
    for logger in levels:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)
