"""The record of a run: its incumbent and proven bounds, from which its result is built."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction

from optpart import clock
from optpart.children.losses import Losses, lose
from optpart.problem.instance import Instance
from optpart.solution.goal import Goal
from optpart.solution.metrics import bottleneck, traffic
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
    instance : Instance
        The original instance: schedules are verified against it, and the result refers to it.
    goal : Goal
    watch : callable, optional
        Called with every step, and by :meth:`pulse`.
    bound : Fraction, optional
        Initial bound on the makespan, and on traffic or bottleneck if that is the objective.

    Attributes
    ----------
    incumbent : Schedule or None
        The best schedule so far.
    makespan, traffic, bottleneck : Fraction or None
        Values of the incumbent; the bottleneck only if that is the objective.
    bound, traffic_bound, bottleneck_bound : Fraction or None
        Proven lower bounds; under ``lexicographic``, the traffic bound is valid among schedules of
        minimal makespan.
    trace : list of Progress
        The steps so far; consecutive steps differ in their values.
    remarks : list of str
        Further remarks for the reader of the result.
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
        self.begin = clock.now()
        self.instance = instance
        self.goal = goal
        self.incumbent: Schedule | None = None
        self.makespan: Fraction | None = None
        self.traffic: Fraction | None = None
        self.bottleneck: Fraction | None = None
        self._value: tuple[Fraction, ...] | None = None
        self.bound = bound
        self.traffic_bound = bound if goal.objective == "traffic" else None
        self.bottleneck_bound = bound if goal.objective == "bottleneck" else None
        self.trace: list[Progress] = []
        self.remarks: list[str] = []
        self.termination = Termination.COMPLETED
        self.reason = ""
        self._watch = watch
        self._told = self.begin
        self._losses = Losses()

    @property
    def seconds(self) -> float:
        """Wall-clock time since the run began."""
        return clock.now() - self.begin

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
        makespan = schedule.makespan(self.instance)
        crossing, load = traffic(self.instance, schedule.placement), None
        if self.goal.objective == "bottleneck":
            load = bottleneck(self.instance, schedule.placement)
        found = makespan, crossing, load or Fraction(0)
        if self._value is not None and not self.goal.better(found, self._value):
            return
        self.incumbent, self._value = schedule, found
        self.makespan, self.traffic, self.bottleneck = makespan, crossing, load
        self._step()

    def raise_bound(self, bound: Fraction) -> None:
        """Record a proven lower bound on the makespan if it improves on the known one."""
        if self.bound is None or bound > self.bound:
            self.bound = bound
            self._step()

    def raise_traffic_bound(self, bound: Fraction) -> None:
        """Record a proven lower bound on the traffic if it improves on the known one."""
        if self.traffic_bound is None or bound > self.traffic_bound:
            self.traffic_bound = bound
            self._step()

    def raise_bottleneck_bound(self, bound: Fraction) -> None:
        """Record a proven lower bound on the bottleneck if it improves on the known one."""
        if self.bottleneck_bound is None or bound > self.bottleneck_bound:
            self.bottleneck_bound = bound
            self._step()

    def _step(self) -> None:
        values = self.makespan, self.bound
        match self.goal.objective:
            case "traffic":
                values = self.traffic, self.traffic_bound
            case "bottleneck":
                values = self.bottleneck, self.bottleneck_bound
            case _:
                pass
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

    def result(self, method: str, *, infeasible: str = "", seed: int, workers: int = 1) -> Result:
        """Return the verified result of the run, which says what it lacks.

        Parameters
        ----------
        infeasible : str
            Why no schedule exists, if that is proven.
        """
        missing = self._losses.described()
        termination = self.termination
        if termination is Termination.FAILED:
            lose(method, self.reason)
        elif missing and termination is not Termination.INTERRUPTED:
            termination = Termination.FAILED
        return conclude(
            self.instance,
            method,
            self.incumbent,
            bound=None if infeasible else self.bound,
            traffic_bound=None if infeasible else self.traffic_bound,
            bottleneck_bound=None if infeasible else self.bottleneck_bound,
            infeasible=infeasible,
            termination=termination,
            reason="; ".join(part for part in (self.reason, *missing, *self.remarks) if part),
            seconds=self.seconds,
            seed=seed,
            workers=workers,
            trace=tuple(self.trace),
            goal=self.goal,
        )
