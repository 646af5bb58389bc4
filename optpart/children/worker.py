"""The caller's end of the channel to a worker process, which it starts and stops."""

from __future__ import annotations

import atexit
import queue
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod

from optpart.children.framing import pack, read, unpack, write
from optpart.children.keeper import kill
from optpart.children.spawn import spawn

#: Seconds for a worker to end after it has closed its output.
_ENDING = 1.0


class WorkerDiedError(RuntimeError):
    """The worker has died; the message states the cause."""


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
        # One thread a way, so that a worker that does not read or write blocks nobody.
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

    It starts immediately. Its :class:`~optpart.children.caller.Caller` ends it when this process
    ends.

    Parameters
    ----------
    module : str
        Module whose ``main`` the process runs.
    threads : int
        How many threads or processes it may use.
    """

    def __init__(self, module: str, threads: int = 1) -> None:
        self.threads = threads
        program = f"from {module} import main; main()"
        # It learns when it was started, on the clock that all processes of a machine share.
        self.process = spawn([sys.executable, "-c", program, str(time.monotonic())])
        super().__init__()
        atexit.register(self.stop)

    @property
    def running(self) -> bool:
        """Whether the process is running."""
        return self.process.poll() is None

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
            code = self.process.wait(_ENDING)
        except subprocess.TimeoutExpired:
            return "closed its output"
        return f"died ({f'signal {-code}' if code < 0 else f'exit {code}'})"

    def stop(self) -> None:
        """Kill the process and its group."""
        if self.running:
            kill(self.process)
            self.process.wait()
        self._sent.put(None)
        atexit.unregister(self.stop)
