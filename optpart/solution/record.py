"""The record of a run: its incumbent and proven bounds, from which its result is built."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction

from optpart.base import clock
from optpart.base.children.failures import Failures, record_failure
from optpart.solution.goal import MINIMISED, Measure, objective_gap
from optpart.solution.job import Job
from optpart.solution.result import Progress, Result, Watch, conclude
from optpart.solution.schedule import Schedule
from optpart.solution.termination import Termination
from optpart.solution.verifier import verify
from optpart.solution.whole_numbers import accepts

#: Seconds between two calls of a watch while nothing changes.
_PULSE = 0.1


class Record:
    """The incumbent and the proven bounds of a run as exact numbers, with their trace.

    Parameters
    ----------
    job : Job
        Schedules are verified against its instance, to which the result refers.
    watch : callable, optional
        Called with every step, and by :meth:`pulse`.
    bound : Fraction, optional
        Initial bound on the makespan and on what is minimised.

    Attributes
    ----------
    incumbent : Schedule or None
        The best schedule so far.
    values : dict from measure to Fraction
        Those of the incumbent; the bottleneck only if that is the objective.
    bounds : dict from measure to Fraction
        Proven lower bounds; under ``lexicographic``, that of the traffic is valid among schedules
        of minimal makespan.
    trace : list of Progress
        The steps so far; consecutive steps differ in their values.
    remarks : list of str
        Further remarks for the reader of the result.
    termination : Termination
    reason : str
    """

    def __init__(
        self,
        job: Job,
        watch: Watch | None = None,
        *,
        bound: Fraction | None = None,
    ) -> None:
        self.begin = clock.now()
        self.job = job
        self.instance, self.goal = job.instance, job.goal
        self.incumbent: Schedule | None = None
        self.values: dict[Measure, Fraction] = {}
        self.bounds: dict[Measure, Fraction] = {}
        if bound is not None:
            self.bounds |= dict.fromkeys(("makespan", MINIMISED[self.goal.objective][0]), bound)
        self.trace: list[Progress] = []
        self.remarks: list[str] = []
        self.termination = Termination.COMPLETED
        self.reason = ""
        self._watch = watch
        self._told = self.begin
        self._failures = Failures()

    @property
    def seconds(self) -> float:
        """Wall-clock time since the run began."""
        return clock.now() - self.begin

    @property
    def makespan(self) -> Fraction | None:
        """The makespan of the incumbent."""
        return self.values.get("makespan")

    @property
    def bound(self) -> Fraction | None:
        """The proven lower bound on the makespan."""
        return self.bounds.get("makespan")

    @property
    def gap(self) -> float | None:
        """The gap of what is minimised; see :attr:`Result.gap`."""
        return objective_gap(self.goal.objective, self.values, self.bounds)

    def closed(self, measure: Measure) -> bool:
        """Return whether the value of a measure equals its bound."""
        return measure in self.values and self.values[measure] == self.bounds.get(measure)

    # --- schedules and bounds --------------------------------------------------------------

    def broken(self, schedule: Schedule) -> str:
        """Return the first violation of the instance or the goal by a schedule; empty if none."""
        if accepts(self.instance, schedule):  # the reference judges the schedule of the result
            return self.goal.broken(self.instance, schedule)
        return next(map(str, verify(self.instance, schedule, most=1)), "")

    def offer(self, schedule: Schedule) -> str:
        """Accept a schedule if it is valid, satisfies the goal and improves on the incumbent.

        Returns
        -------
        str
            The first violation; empty if there is none, whether or not the schedule is better.
        """
        broken = self.broken(schedule)
        if not broken:
            self.take(schedule)
        return broken

    def offer_verified(self, schedule: Schedule) -> None:
        """Accept what the verifier has just accepted, if it satisfies the goal and is better.

        The instance may be this one or one with fewer allowed devices. The incumbent is verified
        once more for the result.
        """
        if not self.goal.broken(self.instance, schedule):
            self.take(schedule)

    def offer_start(self, schedule: Schedule) -> None:
        """Accept the user's initial schedule, or add a remark that it was not used."""
        broken = self.offer(schedule)
        if broken:
            self.remarks.append(f"the given start was not used: {broken}")

    def take(self, schedule: Schedule) -> None:
        """Accept a schedule known to be valid and to satisfy the goal, if it is better."""
        found = self.goal.values(self.instance, schedule)
        if self.values and not self.goal.better(found, self.values):
            return
        self.incumbent, self.values = schedule, found
        self._step()

    def raise_bound(self, bound: Fraction, measure: Measure = "makespan") -> None:
        """Record a proven lower bound if it improves on the known one."""
        if measure not in self.bounds or bound > self.bounds[measure]:
            self.bounds[measure] = bound
            self._step()

    def _step(self) -> None:
        measure = MINIMISED[self.goal.objective][0]
        values = self.values.get(measure), self.bounds.get(measure)
        if self.trace and (self.trace[-1].objective, self.trace[-1].bound) == values:
            return
        step = Progress(self.seconds, *values)
        self.trace.append(step)
        self._tell(step)

    def pulse(self) -> None:
        """Call the watch although nothing has changed, so that it can stop a run that waits.

        It is called about ten times a second, however often the run calls this.
        """
        if clock.now() - self._told >= _PULSE:
            values = (self.trace[-1].objective, self.trace[-1].bound) if self.trace else (None,) * 2
            self._tell(Progress(self.seconds, *values))

    def _tell(self, step: Progress) -> None:
        self._told = clock.now()
        if self._watch is not None:
            self._watch(replace(step, schedule=self.incumbent))

    # --- the end ---------------------------------------------------------------------------

    def end(self, termination: Termination, reason: str) -> None:
        """Record why the run ends without a proof; a later call replaces this, but no failure."""
        if self.termination is not Termination.FAILED or termination is Termination.INTERRUPTED:
            self.termination, self.reason = termination, reason

    def go_on(self) -> None:
        """Discard the recorded end, because another part of the run follows."""
        self.end(Termination.COMPLETED, "")

    @contextmanager
    def until_interrupted(self) -> Iterator[None]:
        """Record an interruption by the user and suppress it, so that a result can be returned."""
        try:
            yield
        except KeyboardInterrupt:
            self.end(Termination.INTERRUPTED, str(Termination.INTERRUPTED))

    def result(self, method: str, *, infeasible: str = "", workers: int | None = None) -> Result:
        """Return the verified result of the run, which says what it lacks.

        Parameters
        ----------
        infeasible : str
            Why no schedule exists, if that is proven.
        workers : int, optional
            How many have worked; by default, those of the budget.
        """
        missing = self._failures.described()
        termination = self.termination
        if termination is Termination.FAILED:
            record_failure(method, self.reason)
        elif missing and termination is not Termination.INTERRUPTED:
            termination = Termination.FAILED
        return conclude(
            self.instance,
            method,
            self.incumbent,
            bound={} if infeasible else self.bounds,
            infeasible=infeasible,
            termination=termination,
            reason="; ".join(part for part in (self.reason, *missing, *self.remarks) if part),
            seconds=self.seconds,
            seed=self.job.seed,
            workers=self.job.budget.workers if workers is None else workers,
            trace=tuple(self.trace),
            goal=self.goal,
        )
