"""The caller's end of the solver process: start it, feed it, outlive it."""

from __future__ import annotations

import atexit
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

from optpart.exact.messages import Done, Incumbent, Limits, LowerBound, receive, send

#: How long past its limit the solver may take to answer before it is ended.
GRACE = 10.0


class SolverDiedError(RuntimeError):
    """The solver process died or hung; its earlier messages remain valid."""


class SolverProcess:
    """One solver process, started at its first job and used again for the next.

    It is a separate process because a crash in the solver's native code must cost no more than
    the current solve, and because some solver libraries cannot share a process.

    Parameters
    ----------
    worker : str
        Module whose ``main`` answers jobs.
    """

    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._process: subprocess.Popen[bytes] | None = None
        self._messages: queue.SimpleQueue[object] = queue.SimpleQueue()

    def solve(self, task: object, limits: Limits) -> Iterator[Incumbent | LowerBound | Done]:
        """Yield the solver's messages until the job is done.

        Raises
        ------
        SolverDiedError
            If the process ended or did not answer within its limit and a grace.
        """
        process = self._started()
        deadline = time.monotonic() + limits.seconds + GRACE
        try:
            assert process.stdin is not None
            send(process.stdin, (task, limits))
            while True:
                try:
                    message = self._messages.get(timeout=max(0.0, deadline - time.monotonic()))
                except queue.Empty:
                    raise SolverDiedError("the solver did not stop at its limit") from None
                if message is None:
                    code = process.wait()
                    raise SolverDiedError(
                        f"the solver died ({f'signal {-code}' if code < 0 else f'exit {code}'})"
                    )
                assert isinstance(message, (Incumbent, LowerBound, Done))
                yield message
                if isinstance(message, Done):
                    return
        except BrokenPipeError:
            self.stop()
            raise SolverDiedError("the solver died before its job") from None
        except BaseException:  # also an interrupt, and a caller that has seen enough
            self.stop()
            raise

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._messages = queue.SimpleQueue()
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"from {self._worker} import main; main()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is the caller's to handle
            )
            assert self._process.stdout is not None
            threading.Thread(
                target=pump, args=(self._process.stdout, self._messages), daemon=True
            ).start()
            atexit.register(self.stop)
        return self._process

    def stop(self) -> None:
        """Kill the process and its children."""
        if self._process is not None:
            if hasattr(os, "killpg"):
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
            self._process.wait()
            self._process = None
        atexit.unregister(self.stop)


_shared: dict[str, SolverProcess] = {}
_lent: dict[str, threading.Lock] = {}


def shared(worker: str) -> SolverProcess:
    """Return the process that serves one solve after the other."""
    return _shared.setdefault(worker, SolverProcess(worker))


@contextmanager
def borrowed(worker: str) -> Iterator[SolverProcess]:
    """Lend the shared process, or a separate one if another thread is using it."""
    lock = _lent.setdefault(worker, threading.Lock())
    if lock.acquire(blocking=False):
        try:
            yield shared(worker)
        finally:
            lock.release()
    else:
        process = SolverProcess(worker)
        try:
            yield process
        finally:
            process.stop()


def pump(stream: IO[bytes], messages: queue.SimpleQueue[object]) -> None:
    """Pass messages on; ``None`` says that the process is gone."""
    try:
        while (message := receive(stream)) is not None:
            messages.put(message)
    finally:
        messages.put(None)
