"""The caller's handle on a member in a process of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator

from optpart.children.worker import Worker, WorkerDiedError
from optpart.methods.portfolio.messages import Job, Outcome, Step
from optpart.solution.termination import Termination

#: Seconds beyond its limit for a member to end before it is killed.
GRACE = 10.0


class Child:
    """A member in a process; whatever becomes of the process, the last message is an outcome."""

    def __init__(self, name: str, job: Job) -> None:
        self.name = name
        self.ended = False
        self._deadline = time.monotonic() + job.budget.seconds + GRACE
        self._worker = Worker("optpart.methods.portfolio.worker")
        self._worker.send(job)

    def heard(self, seconds: float = 0.0) -> Iterator[Step | Outcome]:
        """Yield the messages since the last call; wait for the first of them up to so long."""
        while not self.ended:
            try:
                message = self._worker.receive(seconds)
            except TimeoutError:
                if time.monotonic() < self._deadline:
                    return
                message = Outcome(Termination.FAILED, "did not stop at its limit")
            except WorkerDiedError as error:
                message = Outcome(Termination.FAILED, f"its process {error}")
            assert isinstance(message, Step | Outcome)
            seconds = 0.0
            if isinstance(message, Outcome):
                self.stop()
            yield message

    def stop(self) -> None:
        """Kill the process."""
        self.ended = True
        self._worker.stop()
