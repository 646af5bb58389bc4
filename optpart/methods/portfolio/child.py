"""The caller's handle on a member in a process of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from optpart.base.children.crew import Crew
from optpart.base.children.worker import WorkerDiedError
from optpart.exact.process import GRACE, prompt_grace
from optpart.methods.portfolio.outcome import Outcome
from optpart.solution.job import Job
from optpart.solution.result import Progress
from optpart.solution.termination import Termination


class Child:
    """A member in a process; whatever becomes of the process, the last message is an outcome.

    The process starts, and loads what members need, before it has a job.
    """

    def __init__(self, name: str, workers: int, crew: Crew) -> None:
        self.name = name
        self.ended = False
        self._worker = crew.hire("optpart.methods.portfolio.worker", workers)
        #: How many workers it has.
        self.workers = max(1, self._worker.threads)

    def begin(self, path: str, job: Job) -> None:
        """Give it its only job, for the function at a path."""
        self._end = time.monotonic() + job.budget.seconds
        self._prompt = prompt_grace(job.budget)
        self._worker.send((path, replace(job, budget=replace(job.budget, workers=self.workers))))

    def heard(self, seconds: float = 0.0, *, patient: bool = True) -> Iterator[Progress | Outcome]:
        """Yield the messages since the last call; wait for the first of them up to so long.

        Parameters
        ----------
        patient : bool
            Whether the member may take seconds beyond its limit to end. If not, it is killed soon
            after its limit, which costs at most what it has not yet said.
        """
        while not self.ended:
            try:
                message = self._worker.receive(seconds)
            except TimeoutError:
                late = time.monotonic() - self._end
                if late < (GRACE if patient else self._prompt):
                    return
                end = Termination.FAILED if patient else Termination.TIME_LIMIT
                message = Outcome(end, "did not stop at its limit")
            except WorkerDiedError as error:
                message = Outcome(Termination.FAILED, f"its process {error}")
            assert isinstance(message, Progress | Outcome)
            seconds = 0.0
            if isinstance(message, Outcome):
                self.stop()
            yield message

    def stop(self) -> None:
        """End the process."""
        self.ended = True
        self._worker.stop()
