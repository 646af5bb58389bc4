"""The caller's end of the channel to a worker process, which it starts and stops."""

from __future__ import annotations

import atexit
import queue
import subprocess
import threading
import time
from abc import ABC, abstractmethod

from optpart.base.children.framing import pack, read, unpack, write
from optpart.base.children.keeper import kill
from optpart.base.children.spawn import python, spawn

#: Seconds for a worker to end after it has closed its output.
_ENDING = 1.0


class WorkerDiedError(RuntimeError):
    """The worker has died, or never lived; the message states the cause."""


class Channel(ABC):
    """The caller's end of a channel to a worker, wherever that runs.

    Attributes
    ----------
    threads : int
        How many threads or processes the worker may use.
    """

    threads = 1

    def __init__(self) -> None:
        self._sent: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._received: queue.SimpleQueue[bytes | WorkerDiedError] = queue.SimpleQueue()

    def _begin(self) -> None:
        """Start one thread a way, so that a worker that does not read or write blocks nobody."""
        for target in (self._write, self._read):
            threading.Thread(target=target, daemon=True).start()

    @abstractmethod
    def _write(self) -> None:
        """Pass on what is sent, until ``None``."""

    @abstractmethod
    def _read(self) -> None:
        """Take what the worker says, and finally why it says no more."""

    @abstractmethod
    def stop(self) -> None:
        """End the worker and all that it has started."""

    def send(self, message: object) -> None:
        """Send a message without waiting; if the worker is dead, the message is lost."""
        self.forward(pack(message))

    def forward(self, content: bytes) -> None:
        """Send a message that is packed already."""
        self._sent.put(content)

    def receive(self, seconds: float) -> object:
        """Wait for the next message.

        Raises
        ------
        TimeoutError
            If none arrives within this time.
        WorkerDiedError
            If the worker has died and all its messages have been received.
        """
        return unpack(self.packed(seconds))

    def packed(self, seconds: float) -> bytes:
        """Wait for the next message as :meth:`receive` does, but do not unpack it."""
        try:
            content = self._received.get(timeout=max(0.0, seconds))
        except queue.Empty:
            raise TimeoutError from None
        if isinstance(content, WorkerDiedError):
            self._received.put(content)
            raise content
        return content


class Worker(Channel):
    """A process that answers messages; if it crashes, only its current job is lost.

    It starts immediately; if the system refuses that, it counts as dead. Its
    :class:`~optpart.base.children.caller.Caller` ends it when this process ends.

    Parameters
    ----------
    module : str
        Module whose ``main`` the process runs.
    threads : int
        How many threads or processes it may use.
    """

    def __init__(self, module: str, threads: int = 1) -> None:
        super().__init__()
        self.threads = threads
        self._process: subprocess.Popen[bytes] | None = None
        self._unborn = ""
        try:
            # It learns when it was started, on the clock that all processes of a machine share.
            self._process = spawn(python(module, str(time.monotonic())))
            self._begin()
        except (OSError, RuntimeError, MemoryError) as error:  # no file, process or thread is left
            self._unborn = f"could not be started ({getattr(error, 'strerror', error)})"
            self._received.put(WorkerDiedError(self._unborn))
            self.stop()
        else:
            atexit.register(self.stop)

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The process; there is none if it could not be started."""
        assert self._process is not None
        return self._process

    @property
    def running(self) -> bool:
        """True if the process is running."""
        return self._process is not None and self._process.poll() is None

    @property
    def failure(self) -> str:
        """The reason why the worker failed: it did not start, or died; empty if it did not fail."""
        code = None if self._process is None else self._process.poll()
        return self._unborn or (_ended(code) if code else "")

    def _write(self) -> None:
        assert self.process.stdin is not None
        try:
            with self.process.stdin as stream:
                while (content := self._sent.get()) is not None:
                    write(stream, content)
        except OSError:  # the worker has ended, which its output shows
            pass

    def _read(self) -> None:
        assert self.process.stdout is not None
        try:
            with self.process.stdout as stream:
                while (content := read(stream)) is not None:
                    self._received.put(content)
        finally:
            self._received.put(WorkerDiedError(self._cause_of_death()))

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
