"""The caller's end of the channel to a worker process, which it starts and stops."""

from __future__ import annotations

import atexit
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import IO

from optpart.children.framing import pack, receive
from optpart.children.keeper import kill
from optpart.children.spawn import spawn

#: Seconds for a worker to end after it has closed its output.
_ENDING = 1.0


class WorkerDiedError(RuntimeError):
    """The worker has died; the message states the cause."""


class Worker:
    """A process that answers messages; if it crashes, only its current job is lost.

    It starts immediately. Its :class:`~optpart.children.caller.Caller` ends it when this process
    ends.

    Parameters
    ----------
    module : str
        Module whose ``main`` the process runs.
    """

    def __init__(self, module: str) -> None:
        self.process = spawn([sys.executable, "-c", f"from {module} import main; main()"])
        self._sent: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._received: queue.SimpleQueue[object] = queue.SimpleQueue()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        # One thread per pipe, so that a worker that does not read or write blocks nobody.
        for target, stream, messages in (
            (_write, self.process.stdin, self._sent),
            (_read, self.process.stdout, self._received),
        ):
            threading.Thread(target=target, args=(stream, messages), daemon=True).start()
        atexit.register(self.stop)

    @property
    def running(self) -> bool:
        """Whether the process is running."""
        return self.process.poll() is None

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
