"""The method ``series``: a dynamic programme over the parts of a graph.

A path in which vertices repeat is solved by the model of its cycles
(:mod:`~optpart.exact.series.cycles`) first, which mostly leaves nothing to do. Where memory is no
limit, what the relaxation leaves open is solved part by part
(:mod:`~optpart.exact.series.block_path`).
"""

from __future__ import annotations

from fractions import Fraction

from optpart.base import clock
from optpart.base.clock import limited
from optpart.base.errors import UnsupportedError
from optpart.exact.messages import Limits
from optpart.exact.series import block_path
from optpart.exact.series.columns import Sequence
from optpart.exact.series.cycles import Path, path_of_cycles, solve
from optpart.exact.series.dual import Dual, Pricing
from optpart.exact.series.forward import Forward, PassResult
from optpart.exact.series.problem import Series
from optpart.kernels.horizon import horizon_without_queues
from optpart.problem.feasibility import contradiction, excluded
from optpart.problem.instance import Instance
from optpart.solution.goal import Goal
from optpart.solution.job import Job, method
from optpart.solution.record import Record
from optpart.solution.result import Result, Starts, Watch
from optpart.solution.schedule import retime
from optpart.solution.termination import Termination

#: Relaxations whose completion bounds a forward pass uses.
_DUALS = 9

#: Labels per downset, or per cut, in the first pass; every further pass may have more.
_BEAM, _MORE, _MOST_LABELS = 100, 4, 10_000_000

#: Labels per cut for combinations of known columns, first and at most.
_POOLED, _MOST_POOLED = 300, 3_000

#: Share of the gap, above the lower bound, in which a pass looks for schedules.
_SHARE = 0.25

#: Labels of the first pass that merges them, and the share of the time left that one may take.
_MERGED, _ONE_MERGING = 1000, 0.35

#: Share of the gap up to which the first of them proves; how much further the next one does, or
#: less far after one that gave up a column; and the least share.
_NEAR, _FURTHER, _LESS, _NEAREST = 1 / 32, 2, 4, 1e-3

#: How many times as long a pass may take with more labels, and further up the gap.
_MERGING_MORE, _MERGING_FURTHER = 8, 30

#: Share of the time for the relaxation if memory is limited or blocks can be solved one by one, and
#: if neither; then it solves the problem.
_RELAXING, _RELAXING_ALL = 0.4, 0.95

#: Share of the time for the model of a path of cycles.
_PATH = 0.9

#: Share of the time after which no further heuristic is tried for a start.
_STARTING = 0.2


def check_scope(instance: Instance, goal: Goal) -> None:
    """Raise :class:`UnsupportedError` if the method does not support the goal or the graph."""
    if goal.objective != "makespan":
        raise UnsupportedError(
            "goal.objective", f"series does not minimise {goal.objective}", "use makespan"
        )
    if goal.blocks:
        raise UnsupportedError(
            "goal", "series does not support contiguous blocks", "use cpsat or pipeline"
        )
    if goal.order or goal.traffic is not None or goal.makespan is not None:
        raise UnsupportedError("goal", "series takes no order and no limit", "use cpsat")


@method
def solve_series(job: Job, watch: Watch | None = None, *, starts: Starts | None = None) -> Result:
    """Solve an instance by dynamic programming over its parts.

    Raises
    ------
    UnsupportedError
        If the goal has another objective, contiguous blocks, an order, or a limit.
    """
    check_scope(job.instance, job.goal)
    return _Solve(job, watch, starts).run()


class _Solve:
    def __init__(self, job: Job, watch: Watch | None, starts: Starts | None) -> None:
        self.job = job
        self.instance = job.instance
        self.budget, self.goal, self.starts = job.budget, job.goal, starts
        self.record = Record(job, watch)
        self.deadline = clock.now() + job.budget.seconds
        self.lower = 0
        self.upper = 0

    def run(self) -> Result:
        infeasible = self.goal.contradiction(self.instance)
        if not infeasible:
            self.instance = self.goal.narrowed(self.instance)
            infeasible = contradiction(self.instance)
        if not infeasible:
            with self.record.until_interrupted():
                try:
                    infeasible = self._solve()
                except clock.OutOfTimeError:
                    self._end_late()
        return self.record.result("series", infeasible=infeasible, workers=self.budget.workers)

    def _solve(self) -> str:
        record, starts = self.record, self.starts
        if self.job.start is not None:
            record.offer_start(self.job.start)
        begin, left = clock.now(), max(0.0, self.deadline - clock.now())
        with limited(left):
            for schedule in (
                starts(self.instance, self.job.seed, self.budget.memory) if starts else ()
            ):
                record.offer_verified(schedule)
                late = clock.now() - begin > _STARTING * left
                if late and record.incumbent is not None:
                    break
        if clock.now() >= self.deadline:
            self._end_late()
            return ""
        with limited(self.deadline - clock.now()):
            return self._solve_parts()

    def _solve_parts(self) -> str:
        """Build the parts and solve them; return the reason if there is no schedule."""
        record = self.record
        series = self.series = Series(self.instance, record.makespan)
        if len(series) < 2 and not series.solvable:
            record.end(Termination.UNSUPPORTED, "the graph does not fall into parts")
            return ""
        self.upper = self._limit()
        if (path := path_of_cycles(series)) is not None and (reason := self._solve_path(path)):
            return reason
        if self._closed():
            return ""
        pricing = Pricing(series, self.upper, self.budget.workers)
        duals = self._relax(pricing)
        if self._closed():
            return ""
        if block_path.applies(series):
            return self._solve_blocks(duals[0])
        if not series.solvable:
            record.end(Termination.COMPLETED, "some parts have too many downsets to enumerate")
            return ""
        return self._search(Forward(pricing, duals))

    def _end_late(self) -> None:
        self.record.end(Termination.TIME_LIMIT, str(Termination.TIME_LIMIT))

    def _limit(self) -> int:
        """Return the makespan, in ticks, that a schedule must be below to be of interest."""
        if self.record.makespan is None:
            return horizon_without_queues(self.series.grid) + 1
        # Rounded up: a given start need not lie on the grid, and the optimum may be just below it.
        return -self.series.grid.floor(-self.record.makespan)

    def _raise(self, ticks: int) -> None:
        """Record a lower bound in ticks."""
        self.lower = max(self.lower, min(ticks, self.upper))
        if self.record.makespan is not None or self.lower < self.upper:
            self.record.raise_bound(self._time(self.lower))

    def _time(self, ticks: int) -> Fraction:
        value = self.series.grid.time(ticks)
        return value if self.record.makespan is None else min(value, self.record.makespan)

    def _closed(self) -> bool:
        return self.record.makespan is not None and self.lower >= self.upper

    def _solve_path(self, path: Path) -> str:
        """Solve a path of cycles; return the reason if there is no schedule."""
        left = self.deadline - clock.now()
        budget = self.budget
        seconds = max(0.01, _PATH * left)
        limits = Limits(seconds, budget.workers, self.job.seed, None, budget.memory)
        order = self.instance.graph.topological_order.tolist()
        for found in solve(path, limits):
            if found.impossible:
                return excluded(self.instance, "series", self.goal.given)
            if found.devices is not None:
                self._offer(tuple(zip(order, found.devices, strict=True)))
            if found.bound is not None:
                self._raise(found.bound)
            if self._closed():
                break
        return ""

    def _relax(self, pricing: Pricing) -> list[Dual]:
        """Return the relaxations with the best bounds."""
        left = self.deadline - clock.now()
        partial = self.series.limited or block_path.applies(self.series)
        share = _RELAXING if partial else _RELAXING_ALL
        deadline = clock.now() + share * left
        duals: list[Dual] = []
        for dual in pricing.run(deadline):
            duals.append(dual)
            self._raise(dual.bound)
            if self._closed():
                break
        return sorted(duals, key=lambda dual: -dual.bound)[:_DUALS]

    def _solve_blocks(self, dual: Dual) -> str:
        """Solve every block that matters by itself; return the reason if there is no schedule."""
        for found in block_path.BlockPath(self.series, dual).run(
            self.deadline, self.budget, self.job.seed
        ):
            if found.bound is None:
                return excluded(self.instance, "series", self.goal.given)
            if found.schedule is not None:
                self.record.offer(found.schedule)
            known = self.record.makespan
            self.record.raise_bound(found.bound if known is None else min(found.bound, known))
        if not self.record.closed("makespan"):
            self._end_late()
        return ""

    def _search(self, forward: Forward) -> str:
        """Alternate between passes that look for schedules and passes that raise the bound."""
        beam, share, combined = _BEAM, _SHARE, 0
        near, merged = _NEAR, _MERGED
        found = self._pass(forward, self.upper, _POOLED, pooled=True)
        while not self._closed():
            if found is None:
                self._end_late()
                return ""
            near, merged = self._raise_by_merging(forward, near, merged)
            if self._closed():
                return ""
            target = self._target(share)
            known, proven = self.upper, self.lower
            found = self._pass(forward, target, beam)
            if found is None or self._closed():
                continue
            if found.complete and found.value is not None:
                if forward.tightened():
                    continue
                self._end_unequal()
                return ""
            if found.complete:
                if target == self.upper and self.record.makespan is None:
                    return excluded(self.instance, "series", self.goal.given)
                share = min(1.0, share * 2)
                continue
            forward.sharpen(self.deadline)
            if self.upper == known:
                if len(forward.pool) > combined:
                    combined = len(forward.pool)
                    pooled = min(max(beam, _POOLED), _MOST_POOLED)
                    self._pass(forward, self.upper, pooled, pooled=True)
                # A pass that proves nothing was too wide for the labels and nodes that it had.
                share = min(share, _SHARE) if self.lower > proven else share / 2
                beam = min(beam * _MORE, _MOST_LABELS)
        return ""

    def _end_unequal(self) -> None:
        """Say why the dynamic programme is solved, but its schedule is not as short."""
        if not self.series.grid.exact:
            self.record.end(Termination.ROUNDING, "closed except for rounding")
        else:
            model = self.instance.model
            self.record.end(
                Termination.COMPLETED,
                f"solved for delay; under {model.communication} with memory {model.memory} the "
                "schedule is longer",
            )

    def _raise_by_merging(self, forward: Forward, share: float, beam: int) -> tuple[float, int]:
        """Raise the bound by passes that merge labels, each up to a share of the gap.

        Returns
        -------
        float, int
            The share and the labels to begin with the next time.
        """
        while share >= _NEAREST and self.lower < self.upper:
            target, begin = self._target(share), clock.now()
            found = self._pass(forward, target, beam, merging=True)
            if found is None or not found.complete:
                return share / _LESS, beam
            now = clock.now()
            longer = (_ONE_MERGING * (self.deadline - now)) / max(1e-3, now - begin)
            if found.bound < target:
                beam = min(beam * _MORE, _MOST_LABELS)
                if longer < _MERGING_MORE:
                    break
            elif longer > _MERGING_FURTHER:
                share = min(1.0, share * _FURTHER)
        return share, beam

    def _target(self, share: float) -> int:
        """Return a makespan that is a share of the gap above the lower bound."""
        return min(self.upper, self.lower + max(1, int((self.upper - self.lower) * share)))

    def _pass(
        self,
        forward: Forward,
        upper: int,
        beam: int,
        *,
        pooled: bool = False,
        merging: bool = False,
    ) -> PassResult | None:
        now = clock.now()
        deadline = now + (self.deadline - now) * (_ONE_MERGING if merging else 1.0)
        found = forward.run(upper, beam, deadline, pooled=pooled, merging=merging)
        if found is None:
            return None
        if found.value is not None or found.sequence:
            self._offer(found.sequence)
        self._raise(found.bound)
        return found

    def _offer(self, sequence: Sequence) -> None:
        """Time a sequence exactly, and offer the schedule."""
        placement = [0] * self.instance.vertices
        for v, d in sequence:
            placement[v] = d
        order = [v for v, _ in sequence]
        self.record.offer(retime(self.instance, placement, order))
        self.upper = min(self.upper, self._limit())
