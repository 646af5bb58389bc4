"""Worker processes: their start, and the caller's end of the channel to each."""

from __future__ import annotations

import atexit
import queue
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

from optpart.base.children import start
from optpart.base.children.framing import pack, read, unpack, write
from optpart.base.children.watchdog import kill
from optpart.base.limits import available_processors

#: Seconds for a worker to end after it has closed its output.
_ENDING = 1.0


def python(module: str, *arguments: str) -> list[str]:
    """Return the command that runs ``main`` of a module of this package in a process of its own.

    What lies in the current folder, or beside any file of the user, is never imported there. The
    user's ``PYTHONPATH`` counts.
    """
    return [sys.executable, "-P", start.__file__, module, *arguments]


def spawn(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a process in its own process group, with pipes for input and output.

    Ctrl-C does not reach the group; this process handles it. No other child inherits the pipes, so
    the child's input ends when this process ends.
    """
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


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


class Pool(Protocol):
    """Workers of a method, on this machine or on others.

    Attributes
    ----------
    remote : bool
        Whether they run on other machines, or as if they did.
    """

    remote: bool

    @property
    def workers(self) -> int:
        """The number that can work at once, this process included."""

    def hire(self, module: str, threads: int = 1) -> Channel:
        """Start a worker without waiting.

        Parameters
        ----------
        module : str
            Module whose ``main`` it runs.
        threads : int
            How many threads or processes it would use; it may get fewer.
        """


class _Local:
    remote = False

    @property
    def workers(self) -> int:
        return available_processors()

    def hire(self, module: str, threads: int = 1) -> Channel:
        return Worker(module, threads)


#: Processes on this machine.
LOCAL: Pool = _Local()
