"""The caller's handle on searchers in worker processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from optpart.base import clock
from optpart.base.children.failures import record_failure, record_failures
from optpart.base.children.worker import Pool, Worker, WorkerDiedError
from optpart.search.messages import Bounded, Improvement, Moves, SearcherTask


class SearcherProcess:
    """A worker process. If it dies, that is recorded, and its earlier messages remain valid.

    The process starts immediately, so that it is ready when its task arrives.

    Parameters
    ----------
    number : int
        What it is called if it fails.

    Attributes
    ----------
    begun : float or None
        When its first message was received, by :func:`optpart.base.clock.now`.
    lost : str
        Why it has died; empty if it has not.
    """

    def __init__(self, pool: Pool, number: int) -> None:
        self.number = number
        self.moves = 0
        self.improvements: Counter[str] = Counter()
        self._missing: tuple[str, ...] = ()
        self.begun: float | None = None
        self.lost = ""
        self.worker = pool.hire("optpart.search.worker")

    def assign(self, task: SearcherTask) -> None:
        """Give the process its only task."""
        self.worker.send(task)

    def messages(self) -> Iterator[Improvement | Bounded]:
        """Yield the messages received since the last call."""
        while not self.lost:
            try:
                message = self.worker.receive(0.0)
            except TimeoutError:
                return
            except WorkerDiedError as error:
                self.lost = str(error)
                return
            if self.begun is None:
                self.begun = clock.now()
            if isinstance(message, Moves):
                self.moves, self.improvements = message.count, message.improvements
                self._missing = message.missing
            elif isinstance(message, (Improvement, Bounded)):
                yield message

    def send(self, found: Improvement) -> None:
        """Send another searcher's layout, without waiting."""
        self.worker.send(found)

    def stop(self) -> None:
        """End the process; if it has failed before, or anything in it, record that."""
        died = self.worker.failure if isinstance(self.worker, Worker) else ""
        if self.lost or died:
            record_failure(f"searcher {self.number}", f"its process {self.lost or died}")
        self.lost = ""
        record_failures(*self._missing)
        self._missing = ()
        self.worker.stop()
