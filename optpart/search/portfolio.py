"""The caller's handle on searchers in worker processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from optpart.children.losses import lose, pass_on
from optpart.children.worker import Worker
from optpart.search.messages import Bounded, Found, Job, Moves


class Helper:
    """A worker process. If it dies, its earlier messages remain valid, and its death is a loss.

    The process starts immediately, so that it is ready when its job arrives.
    """

    def __init__(self) -> None:
        self.moves = 0
        self.paid: Counter[str] = Counter()
        self._missing: tuple[str, ...] = ()
        self.worker = Worker("optpart.search.worker")

    def assign(self, job: Job) -> None:
        """Give the process its only job."""
        self.worker.send(job)

    def heard(self) -> Iterator[Found | Bounded]:
        """Yield the messages received since the last call."""
        for message in self.worker.received():
            if isinstance(message, Moves):
                self.moves, self.paid = message.count, message.paid
                self._missing = message.missing
            elif isinstance(message, (Found, Bounded)):
                yield message

    def tell(self, found: Found) -> None:
        """Send another searcher's layout, without waiting."""
        self.worker.send(found)

    def stop(self) -> None:
        """Kill the process; if it has failed before, or anything in it, record that."""
        if self.worker.failure:
            lose("a searcher", f"its process {self.worker.failure}")
        pass_on(*self._missing)
        self._missing = ()
        self.worker.stop()
