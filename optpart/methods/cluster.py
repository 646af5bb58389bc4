"""A Dask cluster: which of its workers can be used, and worker processes on their machines."""

from __future__ import annotations

import asyncio
import logging
import pickle
import re
import socket
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from optpart.base.children import worker_actor
from optpart.base.children.worker import Channel, WorkerDiedError
from optpart.base.errors import ArgumentError, InputError
from optpart.methods import registry
from optpart.methods.fingerprint import differing, fingerprint
from optpart.methods.parts import Kind
from optpart.solution.audit import described
from optpart.version import __version__

#: Seconds to wait for an answer of the scheduler or a worker, and for the first worker.
_PATIENCE = 20.0

#: Seconds in which a actor answers, even if there is nothing to say.
_POLL = 1.0

_ENGINES = "use local, dask, dask://HOST:PORT, tcp://HOST:PORT or tls://HOST:PORT of a scheduler"
_ADDRESS = re.compile(r"(dask|tcp|tls)://(?:\[[0-9a-fA-F:.]+\]|[^\s/@:\[\]]+):[0-9]{1,5}")


def address(engine: str) -> str | None:
    """Return the address of a scheduler that an engine names.

    Returns
    -------
    str or None
        Empty for a cluster on this machine; ``None`` if the engine is ``local``.

    Raises
    ------
    InputError
        If there is no such engine, or the package ``distributed`` is not installed.
    """
    if engine == "local":
        return None
    if engine != "dask" and not _ADDRESS.fullmatch(engine):
        raise ArgumentError("engine", f"no engine {engine!r}", _ENGINES)
    try:
        import_module("distributed")
    except ImportError:
        raise ArgumentError(
            "engine", "needs the package distributed", "install optpart[dask]"
        ) from None
    return engine.removeprefix("dask").removeprefix("://")


#: What was taken over from clients, by kind and name, and the bytes that it came in.
_taken: dict[tuple[Kind, str], bytes] = {}


def vet(codes: Mapping[str, str], registered: bytes = b"") -> str:
    """Return why methods must not run here; empty if they may.

    Parameters
    ----------
    codes : mapping of str to str
        The :func:`~optpart.methods.fingerprint.fingerprint` that each method has at the client.
    registered : bytes
        What is registered at the client, pickled; empty for nothing.
    """
    _take_over(registered)
    for method, code in codes.items():
        try:
            registry.check(method)
        except InputError as error:
            return f"lacks a method: {error.problem}"
        sent = any(part in _taken for part in registry.foreign(method))
        if not sent and (other := differing(code, fingerprint(method))):
            return f"has other code of {method} ({other})"
    return ""


def _take_over(packed: bytes) -> None:
    """Register what the client has registered, in place of what an earlier one had."""
    if set(_taken.values()) <= {packed} and (_taken or not packed):
        return
    for kind, name in _taken:
        registry.forget(name, kind)
    _taken.clear()
    if not packed:
        return
    here = {(kind, name) for kind, name, *_ in registry.registered()}
    for kind, name, function, summary in pickle.loads(packed):
        if (kind, name) not in here:  # a worker in the process of the client has it already
            registry.register(name, summary, kind=kind)(function)
            _taken[kind, name] = packed


class Cluster:
    """Workers of a Dask cluster, each of whose threads counts as one.

    Parameters
    ----------
    client : distributed.Client
    place : str
        How to call the cluster.
    codes : mapping of str to str
        See :func:`vet`.
    registered : bytes
        The same.

    Attributes
    ----------
    faults : dict of str to str
        Why a worker is not used, by its address; empty if it is.
    """

    remote = True

    def __init__(
        self, client: Any, place: str, codes: Mapping[str, str], registered: bytes
    ) -> None:
        self.client = client
        self.place = place
        self.faults: dict[str, str] = {}
        self._asked = codes, registered
        self._free: list[str] = []

    def usable(self) -> dict[str, int]:
        """Return the threads of every worker that can be used; wait for the first.

        Raises
        ------
        InputError
            If there is none.
        """
        deadline = time.monotonic() + _PATIENCE
        while True:
            threads: dict[str, int] = self.client.nthreads()
            self._vet([worker for worker in threads if worker not in self.faults])
            found = {worker: n for worker, n in threads.items() if not self.faults[worker]}
            if found:
                return found
            if threads or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        if threads:
            raise ArgumentError(
                "engine",
                f"no worker of {self.place} can be used: {next(iter(self.refused))}",
                f"start workers that have optpart {__version__} as it is here",
            )
        raise ArgumentError(
            "engine",
            f"the scheduler at {self.place} has no workers",
            f"start some with 'dask worker {self.place} --nthreads 1'",
        )

    @property
    def refused(self) -> list[str]:
        """The workers that are not used, each with the reason."""
        return [f"{worker} {fault}" for worker, fault in self.faults.items() if fault]

    def _vet(self, workers: list[str]) -> None:
        async def asked() -> list[str]:
            return await asyncio.gather(*map(self._fault, workers))

        self.faults |= zip(workers, self.client.sync(asked), strict=True)

    async def _fault(self, worker: str) -> str:
        """Return why a worker cannot be used; empty if it can."""
        try:
            # A text, because another Python version cannot load code of this one.
            version = await self._ask(worker, eval, "__import__('optpart').__version__")
            if version != __version__:
                return f"has optpart {version}, not {__version__}"
            return str(await self._ask(worker, vet, *self._asked))
        except TimeoutError:
            return "does not answer"
        except ModuleNotFoundError as error:
            return f"has no {error.name}"
        except Exception as error:  # whatever may go wrong elsewhere
            return f"fails ({described(error)})"

    async def _ask(self, worker: str, *call: Any) -> object:
        run = self.client.run(*call, workers=[worker], on_error="return")
        answer = (await asyncio.wait_for(run, _PATIENCE))[worker]
        if isinstance(answer, Exception):
            raise answer
        return answer

    # --- processes -------------------------------------------------------------------------

    @property
    def workers(self) -> int:
        """The number that can work at once, this process included."""
        return 1 + len(self._free)

    def take(self, most: int) -> None:
        """Use up to so many threads of the workers for processes."""
        self._free = [worker for worker, n in self.usable().items() for _ in range(n)][:most]

    def hire(self, module: str, threads: int = 1) -> Channel:
        """Start a process where most threads are free, and take as many of them as are needed."""
        free = Counter(map(_host, self._free))
        host = max(free, key=lambda host: free[host], default="")
        taken = [worker for worker in self._free if _host(worker) == host][:threads]
        for worker in taken:
            self._free.remove(worker)
        return _Remote(self, taken, module)

    def give_back(self, workers: list[str]) -> None:
        """Let others use these threads."""
        self._free += workers


class _Remote(Channel):
    """A process on the machine of a Dask worker."""

    def __init__(self, cluster: Cluster, taken: list[str], module: str) -> None:
        self.threads = len(taken)
        self._cluster, self._taken = cluster, taken
        self._future: Any = None if not taken else cluster.client.submit(
            worker_actor.WorkerActor, module, actor=True, workers=taken[:1], pure=False
        )  # fmt: skip
        super().__init__()
        self._begin()

    def _write(self) -> None:
        with suppress(Exception):  # the other thread tells
            actor = self._actor()
            while (content := self._sent.get()) is not None:
                actor.send(content).result(_PATIENCE)

    def _read(self) -> None:
        try:
            actor = self._actor()
            while True:
                for content in actor.receive(_POLL).result(_POLL + _PATIENCE):
                    self._received.put(content)
        except WorkerDiedError as error:
            self._received.put(WorkerDiedError(f"at {self._taken[0]} {error}"))
        except Exception:  # Dask knows many ways to lose a worker or a scheduler
            where = f"at {self._taken[0]} was lost" if self._taken else "found no place"
            self._received.put(WorkerDiedError(where))

    def _actor(self) -> Any:
        """Wait for the actor, as long as its worker may still have time for it."""
        while True:
            try:
                return self._future.result(timeout=_POLL)
            except TimeoutError:
                if self._taken[0] not in self._cluster.client.nthreads():
                    raise

    def stop(self) -> None:
        """Let go of the actor, which ends the process."""
        self._sent.put(None)
        if self._future is not None:
            with suppress(Exception):  # there may be no scheduler any more
                self._future.cancel()
            self._future = None
            self._cluster.give_back(self._taken)


def _host(worker: str) -> str:
    return urlsplit(worker).hostname or worker


# --- connecting --------------------------------------------------------------------------


@contextmanager
def connected(
    at: str, processes: int, codes: Mapping[str, str], registered: bytes = b""
) -> Iterator[Cluster]:
    """Connect to a cluster.

    Parameters
    ----------
    at : str
        Address of its scheduler; empty to start a cluster on this machine.
    processes : int
        How many workers such a cluster has.
    codes, registered
        See :class:`Cluster`.

    Raises
    ------
    InputError
        If no scheduler answers.
    """
    distributed: Any = import_module("distributed")
    with ExitStack() as stack:
        stack.enter_context(_quiet())
        place: Any = at
        if at:
            try:
                _knock(at)
                client = stack.enter_context(distributed.Client(at, timeout=_PATIENCE))
            except ArgumentError:
                raise
            except Exception as error:
                raise ArgumentError(
                    "engine",
                    f"no Dask scheduler answers at {at} ({described(error)})",
                    "give the address that 'dask scheduler' prints",
                ) from None
        else:
            # Who counts deaths knows which run was alone with its worker, which Dask does not. And
            # processes must not find modules in the folder in which they start.
            config = {
                "distributed.scheduler.allowed-failures": 0,
                "distributed.nanny.pre-spawn-environ.PYTHONSAFEPATH": "1",
            }
            stack.enter_context(import_module("dask").config.set(config))
            place = stack.enter_context(
                distributed.LocalCluster(
                    n_workers=processes,
                    threads_per_worker=1,
                    dashboard_address=None,
                    preload=[worker_actor.__name__],
                    silence_logs=logging.CRITICAL,
                )
            )
            client = stack.enter_context(distributed.Client(place, timeout=_PATIENCE))
        yield Cluster(client, at or "this machine", codes, registered)


def _knock(at: str) -> None:
    """Check that a scheduler answers: a client that fails to connect disturbs the next one.

    Raises
    ------
    InputError
        If the certificates are missing or not accepted, or what answers is no scheduler.
    OSError
        If nothing answers.
    """
    place = import_module("distributed.comm").normalize_address(at)
    scheme, where = place.split("://")[0], urlsplit(place)
    secure = scheme == "tls"
    try:
        security = import_module("distributed.security").Security()
        context = security.get_connection_args("client")["ssl_context"] if secure else None
    except (OSError, ValueError) as error:
        raise _no_certificates(f"cannot be read ({described(error)})") from None
    if secure and context is None:
        raise _no_certificates("are not configured")
    with socket.create_connection((where.hostname, where.port), _PATIENCE) as plain:
        try:
            with plain if context is None else context.wrap_socket(plain) as stream:
                said = stream.recv(1)  # a scheduler speaks first
        except TimeoutError:
            said = b""
        except OSError as error:
            if context is None:
                raise
            raise ArgumentError(
                "engine",
                f"no encrypted connection to {at} ({described(error)})",
                "check the certificates, and whether the scheduler uses tls://",
            ) from None
    if not said:
        raise ArgumentError(
            "engine",
            f"what answers at {at} is no Dask scheduler, or one that uses {_other(secure)}",
            "give the address that 'dask scheduler' prints",
        )


def _other(secure: bool) -> str:
    return "tcp://" if secure else "tls://"


def _no_certificates(problem: str) -> ArgumentError:
    return ArgumentError(
        "engine",
        f"the certificates for tls:// {problem}",
        "set ca-file, client.cert and client.key of distributed.comm.tls in Dask's configuration",
    )


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
