"""What a run has found and proven so far, and the result that this makes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

from optpart.problem.instance import Instance
from optpart.solution.goal import Goal
from optpart.solution.metrics import traffic
from optpart.solution.result import Progress, Result, Watch, conclude
from optpart.solution.schedule import Schedule
from optpart.solution.termination import Termination
from optpart.solution.verifier import verify


class Record:
    """The incumbent and the proven bounds of a run in exact numbers, and the trace of both.

    Parameters
    ----------
    instance : Instance
        The one that was given: schedules are verified against it, and the result is about it.
    goal : Goal
    watch : callable, optional
        Told every step.
    bound : Fraction, optional
        A bound of the makespan, and of the traffic if that alone is the objective, to start from.

    Attributes
    ----------
    incumbent : Schedule or None
        The best schedule so far.
    makespan, traffic : Fraction or None
        Those of the incumbent.
    bound, traffic_bound : Fraction or None
        Proven; under ``lexicographic``, the second among the schedules of least makespan.
    trace : list of Progress
        The steps so far; no two in succession have the same values.
    remarks : list of str
        What else the reader of the result must know.
    termination : Termination
    reason : str
    """

    def __init__(
        self,
        instance: Instance,
        goal: Goal,
        watch: Watch | None = None,
        *,
        bound: Fraction | None = None,
    ) -> None:
        self.begin = time.perf_counter()
        self.instance = instance
        self.goal = goal
        self.incumbent: Schedule | None = None
        self.makespan: Fraction | None = None
        self.traffic: Fraction | None = None
        self.bound = bound
        self.traffic_bound = bound if goal.objective == "traffic" else None
        self.trace: list[Progress] = []
        self.remarks: list[str] = []
        self.termination = Termination.COMPLETED
        self.reason = ""
        self._watch = watch

    @property
    def seconds(self) -> float:
        """Wall-clock time since the run began."""
        return time.perf_counter() - self.begin

    # --- schedules and bounds --------------------------------------------------------------

    def broken(self, schedule: Schedule) -> str:
        """Return the first rule of the instance or part of the goal that a schedule breaks."""
        violations = verify(self.instance, schedule, most=1)
        return str(violations[0]) if violations else self.goal.broken(self.instance, schedule)

    def offer(self, schedule: Schedule) -> str:
        """Take a schedule if it is valid, keeps the goal and is better than the incumbent.

        Returns
        -------
        str
            What it breaks; empty if nothing, whether or not it is better.
        """
        broken = self.broken(schedule)
        if not broken:
            self.take(schedule)
        return broken

    def offer_start(self, schedule: Schedule) -> None:
        """Take the schedule that the user gives to start from, or remark that it is not used."""
        broken = self.offer(schedule)
        if broken:
            self.remarks.append(f"the start given was not used: {broken}")

    def take(self, schedule: Schedule) -> None:
        """Take a schedule that is known to be valid and to keep the goal, if it is better."""
        found = schedule.makespan(self.instance), traffic(self.instance, schedule.placement)
        if self.makespan is not None and self.traffic is not None:
            known = self.makespan, self.traffic
            if not self.goal.better(found, known):
                return
        self.incumbent, (self.makespan, self.traffic) = schedule, found
        self._step()

    def raise_bound(self, bound: Fraction) -> None:
        """Take a proven lower bound of the makespan, if it is above the one that is known."""
        if self.bound is None or bound > self.bound:
            self.bound = bound
            self._step()

    def raise_traffic_bound(self, bound: Fraction) -> None:
        """Take a proven lower bound of the traffic, if it is above the one that is known."""
        if self.traffic_bound is None or bound > self.traffic_bound:
            self.traffic_bound = bound
            self._step()

    def _step(self) -> None:
        values = self.makespan, self.bound
        if self.goal.objective == "traffic":
            values = self.traffic, self.traffic_bound
        if self.trace and (self.trace[-1].objective, self.trace[-1].bound) == values:
            return
        step = Progress(self.seconds, *values)
        self.trace.append(step)
        if self._watch is not None:
            self._watch(step)

    # --- the end ---------------------------------------------------------------------------

    def end(self, termination: Termination, reason: str) -> None:
        """Note why the run ends short of a proof; a later note takes the place of this one."""
        self.termination, self.reason = termination, reason

    def go_on(self) -> None:
        """Forget why a part of the run has ended, since another part follows."""
        self.end(Termination.COMPLETED, "")

    @contextmanager
    def until_interrupted(self) -> Iterator[None]:
        """End the run where the user interrupts it; what it has found and proven still counts."""
        try:
            yield
        except KeyboardInterrupt:
            self.end(Termination.INTERRUPTED, str(Termination.INTERRUPTED))

    def result(self, method: str, *, infeasible: str = "", seed: int, workers: int = 1) -> Result:
        """Return the verified result of the run.

        Parameters
        ----------
        infeasible : str
            Why no schedule exists, if that is proven.
        """
        return conclude(
            self.instance,
            method,
            self.incumbent,
            bound=None if infeasible else self.bound,
            traffic_bound=None if infeasible else self.traffic_bound,
            infeasible=infeasible,
            termination=self.termination,
            reason="; ".join(part for part in (self.reason, *self.remarks) if part),
            seconds=self.seconds,
            seed=seed,
            workers=workers,
            trace=tuple(self.trace),
            goal=self.goal,
        )
