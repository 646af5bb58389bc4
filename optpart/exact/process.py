"""The caller's end of the solver process: start it, feed it, outlive it."""

from __future__ import annotations

import atexit
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import IO

from optpart.exact.messages import Done, Incumbent, Limits, LowerBound, receive, send
from optpart.exact.model import Task

#: How long past its limit the solver may take to answer before it is ended.
GRACE = 10.0


class SolverDiedError(RuntimeError):
    """The solver process ended or hung; whatever it had reported before still holds."""


class SolverProcess:
    """One solver process, started at its first job and used again for the next.

    A process of its own, because a crash in the solver's native code must cost no more than the
    solve at hand.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._messages: queue.SimpleQueue[object] = queue.SimpleQueue()

    def solve(self, task: Task, limits: Limits) -> Iterator[Incumbent | LowerBound | Done]:
        """Yield what the solver reports until it is done.

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
                [sys.executable, "-c", "from optpart.exact.worker import main; main()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is the caller's to handle
            )
            assert self._process.stdout is not None
            threading.Thread(
                target=_pump, args=(self._process.stdout, self._messages), daemon=True
            ).start()
            atexit.register(self.stop)
        return self._process

    def stop(self) -> None:
        """End the process at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        atexit.unregister(self.stop)


def _pump(stream: IO[bytes], messages: queue.SimpleQueue[object]) -> None:
    """Pass messages on; ``None`` says that the process is gone."""
    try:
        while (message := receive(stream)) is not None:
            messages.put(message)
    finally:
        messages.put(None)
