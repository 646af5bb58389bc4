"""The worker's end: messages from and to the process that started it."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterator
from typing import IO, Any

from optpart.children.framing import pack, receive


class Caller:
    """The process that started this one, which ends with it.

    Messages come on standard input and go to what was standard output; what is printed goes to
    standard error from now on.
    """

    def __init__(self) -> None:
        self._channel = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
        self._writing = threading.Lock()
        self._received: queue.SimpleQueue[Any] = queue.SimpleQueue()
        # Not ``sys.stdin``, whose lock the interpreter wants when it ends.
        stream = os.fdopen(0, "rb", closefd=False)
        threading.Thread(target=self._listen, args=(stream,), daemon=True).start()

    def _listen(self, stream: IO[bytes]) -> None:
        while (message := receive(stream)) is not None:
            self._received.put(message)
        os._exit(0)  # the caller is gone: nobody waits for what this process is doing

    def send(self, message: object) -> None:
        """Send a message; any thread may."""
        with self._writing:
            self._channel.write(pack(message))
            self._channel.flush()

    def receive(self) -> Any:
        """Wait for the next message."""
        return self._received.get()

    def received(self) -> Iterator[Any]:
        """Yield the messages that have come, without waiting."""
        while not self._received.empty():
            yield self._received.get()
