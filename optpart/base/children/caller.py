"""The worker's end of the channel to the process that started it."""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections.abc import Iterator
from typing import IO, Any

from optpart.base.children.framing import pack, read, unpack, write


class Caller:
    """The process that started this one; when it ends, this process ends as well.

    Messages arrive on standard input and are sent to the original standard output. Anything printed
    goes to standard error from then on.

    Attributes
    ----------
    started : float
        When it started this process, by :func:`time.monotonic`.
    """

    def __init__(self) -> None:
        self.started = float(sys.argv[1])
        self._channel = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
        self._writing = threading.Lock()
        self._received: queue.SimpleQueue[Any] = queue.SimpleQueue()
        # Not ``sys.stdin``, whose lock the interpreter acquires at exit.
        stream = os.fdopen(0, "rb", closefd=False)
        threading.Thread(target=self._listen, args=(stream,), daemon=True).start()

    def _listen(self, stream: IO[bytes]) -> None:
        while (content := read(stream)) is not None:
            self._received.put(unpack(content))
        os._exit(0)  # the caller has ended, so nobody waits for a result

    def send(self, message: object) -> None:
        """Send a message; this is thread-safe."""
        with self._writing:
            write(self._channel, pack(message))

    def receive(self) -> Any:
        """Wait for the next message."""
        return self._received.get()

    def received(self) -> Iterator[Any]:
        """Yield the messages received so far, without waiting."""
        while not self._received.empty():
            yield self._received.get()
