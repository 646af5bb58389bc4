"""The caller's end of the channel to a worker process, which it starts and stops."""

from __future__ import annotations

import atexit
import queue
import subprocess
import threading
from collections.abc import Iterator
from typing import IO

from optpart.children.framing import pack, receive
from optpart.children.keeper import kill
from optpart.children.spawn import python, spawn

#: Seconds for a worker to end after it has closed its output.
_ENDING = 1.0


class WorkerDiedError(RuntimeError):
    """The worker has died, or never lived; the message states the cause."""


class Worker:
    """A process that answers messages; if it crashes, only its current job is lost.

    It starts immediately; if the system refuses that, it counts as dead. Its
    :class:`~optpart.children.caller.Caller` ends it when this process ends.

    Parameters
    ----------
    module : str
        Module whose ``main`` the process runs.
    """

    def __init__(self, module: str) -> None:
        self._sent: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._received: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._process: subprocess.Popen[bytes] | None = None
        self._unborn = ""
        try:
            self._process = spawn(python(module))
            self._connect(self._process)
        except (OSError, RuntimeError, MemoryError) as error:  # no file, process or thread is left
            self._unborn = f"could not be started ({getattr(error, 'strerror', error)})"
            self._received.put(None)
            self.stop()
        else:
            atexit.register(self.stop)

    def _connect(self, process: subprocess.Popen[bytes]) -> None:
        """Start one thread per pipe, so that a worker that does not read or write blocks nobody."""
        assert process.stdin is not None
        assert process.stdout is not None
        for target, stream, messages in (
            (_write, process.stdin, self._sent),
            (_read, process.stdout, self._received),
        ):
            threading.Thread(target=target, args=(stream, messages), daemon=True).start()

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The process; there is none if it could not be started."""
        assert self._process is not None
        return self._process

    @property
    def running(self) -> bool:
        """Whether the process is running."""
        return self._process is not None and self._process.poll() is None

    @property
    def failure(self) -> str:
        """How the worker has failed: by not starting, or by dying; empty if it has not."""
        code = None if self._process is None else self._process.poll()
        return self._unborn or (_ended(code) if code else "")

    def send(self, message: object) -> None:
        """Send a message without waiting; if the worker is dead, the message is lost."""
        self._sent.put(pack(message))

    def receive(self, seconds: float) -> object:
        """Wait for the next message.

        Raises
        ------
        TimeoutError
            If none arrives within this time.
        WorkerDiedError
            If the worker has died and all its messages have been received.
        """
        try:
            message = self._received.get(timeout=max(0.0, seconds))
        except queue.Empty:
            raise TimeoutError from None
        if message is None:
            raise WorkerDiedError(self._cause_of_death())
        return message

    def received(self) -> Iterator[object]:
        """Yield the messages received so far, without waiting."""
        while not self._received.empty():
            message = self._received.get()
            if message is not None:
                yield message

    def _cause_of_death(self) -> str:
        try:
            return self._unborn or _ended(self.process.wait(_ENDING))
        except subprocess.TimeoutExpired:
            return "closed its output"

    def stop(self) -> None:
        """Kill the process and its group."""
        if self.running:
            kill(self.process)
            self.process.wait()
        self._sent.put(None)
        atexit.unregister(self.stop)


def _ended(code: int) -> str:
    return f"died ({f'signal {-code}' if code < 0 else f'exit {code}'})"


def _write(stream: IO[bytes], messages: queue.SimpleQueue[bytes | None]) -> None:
    """Write messages until ``None``."""
    try:
        with stream:
            while (message := messages.get()) is not None:
                stream.write(message)
                stream.flush()
    except OSError:  # the worker has ended, which its output shows
        pass


def _read(stream: IO[bytes], messages: queue.SimpleQueue[object]) -> None:
    """Read messages into the queue, followed by ``None``."""
    try:
        with stream:
            while (message := receive(stream)) is not None:
                messages.put(message)
    finally:
        messages.put(None)
