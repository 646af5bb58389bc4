"""The caller's handle on searchers in worker processes."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from typing import IO

from optpart.exact.messages import send
from optpart.exact.process import pump
from optpart.search.messages import Bounded, Found, Job, Moves


class Helper:
    """One worker process. If it dies, its earlier messages remain and no more follow.

    It starts at once, so that it is ready when its job comes.
    """

    def __init__(self) -> None:
        self.moves = 0
        self.paid: Counter[str] = Counter()
        self._messages: queue.SimpleQueue[object] = queue.SimpleQueue()
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from optpart.search.worker import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is the caller's to handle
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._inbox = self.process.stdin
        threading.Thread(
            target=pump, args=(self.process.stdout, self._messages), daemon=True
        ).start()
        self._outbox: queue.SimpleQueue[object] = queue.SimpleQueue()
        threading.Thread(target=_post, args=(self._inbox, self._outbox), daemon=True).start()

    def assign(self, job: Job) -> None:
        """Give the process its only job."""
        self._outbox.put(job)

    def heard(self) -> Iterator[Found | Bounded]:
        """Yield what has come since the last call."""
        while not self._messages.empty():
            message = self._messages.get()
            if isinstance(message, Moves):
                self.moves, self.paid = message.count, message.paid
            elif isinstance(message, (Found, Bounded)):
                yield message

    def tell(self, found: Found) -> None:
        """Send another searcher's layout without waiting."""
        self._outbox.put(found)

    def stop(self) -> None:
        """End the process at once."""
        self._outbox.put(None)
        self.process.kill()
        self.process.wait()


def _post(stream: IO[bytes], messages: queue.SimpleQueue[object]) -> None:
    """Write queued messages in a thread: a process that does not read must not block the caller."""
    try:
        while (message := messages.get()) is not None:
            send(stream, message)
        stream.close()
    except OSError:  # the process is gone
        pass
