"""Solver processes, each of which is reused from one solve to the next."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from optpart.base.children.failures import record_failure
from optpart.base.children.worker import Worker, WorkerDiedError
from optpart.exact.messages import Done, Incumbent, Limits, LowerBound, Waiting
from optpart.problem.footprint import resident, said

#: Seconds beyond its limit for the solver to answer before it is killed.
GRACE = 10.0

#: The same at least where it must keep its limit, once the process has started, and the seconds
#: that a process may take to start.
_SHORT_GRACE = 0.4
_STARTING = 5.0

#: Most seconds between two messages to the caller.
_PULSE = 0.1


#: The status of a task whose process took more memory than was allowed.
TOO_LARGE = "TOO LARGE"


class SolverDiedError(RuntimeError):
    """The solver process died or hung; its earlier messages remain valid."""


class SolverLateError(SolverDiedError):
    """The solver process did not answer within its limit; its earlier messages remain valid."""


class SolverTooLargeError(SolverDiedError):
    """The solver process was stopped because it took too much memory."""


class Timed(Protocol):
    """A limit on seconds, or on the solver's deterministic time."""

    @property
    def seconds(self) -> float:
        """The limit on the clock."""

    @property
    def deterministic(self) -> float | None:
        """The limit that decides, if there is one."""


def prompt_grace(limits: Timed) -> float:
    """Return the grace period of a solve that must keep its limit: it may cost the process."""
    if limits.deterministic is not None:
        return GRACE
    return min(GRACE, max(_SHORT_GRACE, 0.05 * limits.seconds))


class SolverProcess:
    """A solver process, started for its first job and reused for later ones.

    It is separate because a crash in the solver's native code must cost no more than the current
    solve, and because some solver libraries cannot share a process.

    Parameters
    ----------
    module : str
        Module whose ``main`` answers jobs.
    """

    def __init__(self, module: str) -> None:
        self._module = module
        self.worker: Worker | None = None

    def solve(
        self, task: object, limits: Limits, grace: float | None = None
    ) -> Iterator[Incumbent | LowerBound | Waiting | Done]:
        """Yield the solver's messages until the job is done, and ``Waiting`` in between.

        Parameters
        ----------
        grace : float, optional
            Seconds beyond the limit after which the process is killed.

        Raises
        ------
        SolverDiedError
            If the process ended.
        SolverLateError
            If it did not answer within its limit and the grace period.
        SolverTooLargeError
            If this process and the solver's held more memory than the limits state.
        """
        grace = GRACE if grace is None else grace
        if self.worker is None or not self.worker.running:
            grace = max(grace, min(GRACE, _STARTING))
        deadline = time.monotonic() + limits.seconds + grace
        try:
            worker = self._started()
            worker.send((task, limits))
            while True:
                self._weigh(worker, limits)
                left = deadline - time.monotonic()
                try:
                    message = worker.receive(min(left, _PULSE))
                except TimeoutError:
                    if left <= _PULSE:
                        raise
                    yield Waiting()
                    continue
                assert isinstance(message, (Incumbent, LowerBound, Done))
                yield message
                if isinstance(message, Done):
                    return
        except WorkerDiedError as error:
            self.stop()
            raise SolverDiedError(f"the solver {error}") from None
        except TimeoutError:
            self.stop()
            raise SolverLateError("the solver did not stop at its limit") from None
        except BaseException:  # including interrupts and generators closed early
            self.stop()
            raise

    def _weigh(self, worker: Worker, limits: Limits) -> None:
        """Raise an error if this process and the solver's hold more memory than is allowed.

        Looking at it is more robust than a limit of the system on address space, much of which
        libraries reserve and never use.
        """
        if limits.memory is None:
            return
        held = resident("self") + (resident(worker.process.pid) if worker.running else 0)
        if held > limits.memory:
            self.stop()
            raise SolverTooLargeError(
                f"the solver was stopped: with it, {said(held)} of memory were in use, of "
                f"{said(limits.memory)} allowed"
            )

    def start(self) -> None:
        """Start the process, if it is not running, so that it is ready when its job comes."""
        self._started()

    def _started(self) -> Worker:
        if self.worker is None or not self.worker.running:
            self.stop()
            self.worker = Worker(self._module)
        return self.worker

    def stop(self) -> None:
        """Kill the process."""
        if self.worker is not None:
            self.worker.stop()
            self.worker = None


_shared: dict[str, SolverProcess] = {}
_lent: dict[str, threading.Lock] = {}


def shared(module: str) -> SolverProcess:
    """Return the shared process for a module."""
    return _shared.setdefault(module, SolverProcess(module))


def expect(module: str) -> None:
    """Start the shared process, so that it loads its libraries while this one prepares its job."""
    lock = _lent.setdefault(module, threading.Lock())
    if lock.acquire(blocking=False):
        try:
            shared(module).start()
        finally:
            lock.release()


@dataclass(frozen=True)
class Answer:
    """The last solution and bound, and the status of the solver, or how its process failed."""

    found: Incumbent | None
    status: str
    bound: int | None = None


def answer(module: str, task: object, limits: Limits, *, what: str, prompt: bool = False) -> Answer:
    """Return what a solver process finds; if it dies, that is recorded as a failure.

    Parameters
    ----------
    what : str
        What fails then.
    prompt : bool
        Whether to keep the limit of seconds even if another one decides.
    """
    found: Incumbent | None = None
    status, bound = "", None
    grace = prompt_grace(replace(limits, deterministic=None) if prompt else limits)
    try:
        with borrowed(module) as process:
            for message in process.solve(task, limits, grace):
                if isinstance(message, Incumbent):
                    found = message
                elif isinstance(message, Done):
                    # The last message, yet no `return`: leaving early would kill the process.
                    status, bound = message.status, message.value
    except SolverTooLargeError:
        status = TOO_LARGE
    except SolverLateError:
        pass
    except SolverDiedError as error:
        record_failure(what, error)
    return Answer(found, status, bound)


@contextmanager
def borrowed(module: str) -> Iterator[SolverProcess]:
    """Lend the shared process, or a separate one if another thread is using it."""
    lock = _lent.setdefault(module, threading.Lock())
    if lock.acquire(blocking=False):
        try:
            yield shared(module)
        finally:
            lock.release()
    else:
        process = SolverProcess(module)
        try:
            yield process
        finally:
            process.stop()
