"""What the runs of CP-SAT and of the MILP solvers have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Generic, TypeVar

from optpart.exact.block_starts import block_schedules
from optpart.exact.messages import Done, Incumbent, Limits, LowerBound, Waiting
from optpart.exact.process import (
    SolverDiedError,
    SolverLateError,
    SolverTooLargeError,
    borrowed,
    prompt_grace,
)
from optpart.exact.retiming import prompt
from optpart.problem.feasibility import excluded
from optpart.problem.instance import Instance
from optpart.solution.job import Job
from optpart.solution.record import Record
from optpart.solution.result import Starts, Watch
from optpart.solution.termination import Termination

#: Share of the time after which no further heuristic is tried for a start.
_STARTING = 0.2

T = TypeVar("T")


class SolverRun(ABC, Generic[T]):
    """One run of a solver process, from the first start to the proof or the end of the budget.

    ``T`` is the type of its tasks.

    Attributes
    ----------
    instance : Instance
        That of the job, restricted to what the goal gives; until then, that of the job.
    refused : str
        Why the last schedule of the solver was not valid, if it was not.
    """

    #: The module that answers tasks in a process of its own.
    worker: str

    def __init__(self, job: Job, watch: Watch | None, starts: Starts | None) -> None:
        self.job = job
        self.record = Record(job, watch, bound=Fraction(0))
        self.instance: Instance = job.instance
        self.goal, self.budget, self.without = job.goal, job.budget, job.without
        self.starts = starts
        self.refused = ""

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return max(0.0, self.budget.seconds - self.record.seconds)

    @property
    def reached(self) -> bool:
        """True if the goal asks for any schedule within a limit, and there is one."""
        return self.goal.decides and self.record.incumbent is not None

    def start(self, *, hopeless: bool) -> None:
        """Offer the start of the job, those of heuristics and, if blocks are asked for, blocks.

        Parameters
        ----------
        hopeless : bool
            Whether the model is too large for the solver; one start is enough then.
        """
        start = self.job.require_kept_start()
        if start is not None:
            self.record.offer_start(start)
        found = self.starts(self.instance, self.job.seed, self.budget.memory) if self.starts else ()
        for schedule in found:
            self.record.offer_verified(schedule)
            timed = self.budget.deterministic is None
            late = timed and self.record.seconds > _STARTING * self.budget.seconds
            if (late or (hopeless and timed)) and self.record.incumbent is not None:
                break
        if self.goal.blocks:
            for schedule in block_schedules(self.instance, self.goal):
                self.record.offer(schedule)

    def shorten(self) -> None:
        """Shorten the schedule of the best placement, whose bottleneck does not depend on it."""
        found = self.record.incumbent
        if found is not None and not self.goal.order:
            self.record.offer(prompt(self.instance, found.placement))

    def excluded_by_bounds(self) -> str:
        """Return that bounds exclude every schedule."""
        if self.record.incumbent is not None:
            raise AssertionError("bounds exclude a verified schedule; please report this")
        return excluded(self.job.instance, "bounds", self.goal.given)

    def ask(self, task: T) -> str:
        """Run the solver for the remaining time; return its status, or "" if none remains."""
        left, budget = self.budget.seconds - self.record.seconds, self.budget
        if left <= 0:
            self.record.end(Termination.TIME_LIMIT, "time limit")
            return ""
        seed, counted = self.job.seed, budget.deterministic
        limits = Limits(left, budget.workers, seed, counted, budget.memory)
        status = ""
        try:
            with borrowed(self.worker) as solver:
                for message in solver.solve(task, limits, prompt_grace(limits)):
                    match message:
                        case Waiting():
                            self.record.pulse()
                        case Incumbent():
                            self.take(message, task)
                        case LowerBound():
                            self.raise_to(message.value, task)
                        case Done():
                            status = message.status
                            if message.value is not None:
                                self.raise_to(message.value, task)
                            self.finish(status)
        except SolverLateError:  # what it had found and proven before has arrived
            self.record.end(Termination.TIME_LIMIT, "time limit")
        except SolverTooLargeError as error:
            self.record.end(Termination.MEMORY_LIMIT, str(error))
        except SolverDiedError as error:
            self.record.end(Termination.FAILED, str(error))
        return status

    def finish(self, status: str) -> None:
        """Record why the solver has ended."""
        if status in ("FEASIBLE", "UNKNOWN"):
            self.record.end(Termination.TIME_LIMIT, "time limit")
        elif status not in ("OPTIMAL", "INFEASIBLE"):
            self.record.end(Termination.FAILED, f"the solver answered {status}")

    @abstractmethod
    def take(self, found: Incumbent, task: T) -> None:
        """Offer what the solver has found to the record."""

    @abstractmethod
    def raise_to(self, value: int, task: T) -> None:
        """Record a bound of the solver, in its integer units."""
