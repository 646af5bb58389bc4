"""The plan that is best in the worst case, or on average, when run times vary.

A plan is a placement and an order on every device, link and port; at other times it is carried out
in its order, every task as early as possible. It has to be valid at all times that are considered,
and the verifier judges it at each of them, but for intervals, where it judges the ends.

**Intervals.** With a fixed order, the makespan is the longest path of a graph without cycles whose
weights are times, so it never falls if a time rises. The worst case of a plan is therefore that all
times are at their upper ends, and the best worst case is the optimum of the instance at these
times. Two premises are needed: memory that changes with time is not limited, since there times
decide whether an order is valid; and a port has one channel, since with several of them the order
does not say which transfer waits for which (Graham 1969 has examples where shorter times make such
schedules longer). Without them, intervals are refused.

**At most g deviations** (Bertsimas and Sim 2004). If no more than ``g`` vertices take their upper
ends and the others their own times, the worst case of a plan is found by dynamic programming
(:mod:`optpart.study.robust.clockwork`). The best worst case has a proof by generation of cases: an
optimal plan for some of the choices of ``g`` vertices gives a lower bound, and its own worst choice
is added, until it is among them (Zeng and Zhao 2013).

**Samples** are taken as equally likely, and the worst case is that among them.

**Proofs.** The model of :mod:`optpart.exact.shared_plan` finds the best plan for several cases. If
it is too large for that, the candidates are schedules of heuristics and of ``auto`` at single
times, improved by moves of single vertices, and the bound is the same function of the lower bounds
of all cases.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import get_args

import numpy as np

from optpart.base import clock
from optpart.base.arguments import checked
from optpart.base.choices import choice
from optpart.base.errors import ArgumentError, ContradictionError, UnsupportedError
from optpart.base.limits import check_seconds
from optpart.exact.messages import Limits
from optpart.exact.process import answer, expect
from optpart.exact.shared_plan import WORKER, SharedTask, shared_tasks
from optpart.lower_bounds.best import BOUNDS, best_bound
from optpart.methods.solve import ask
from optpart.methods.starts import heuristic_schedules
from optpart.problem.footprint import read_memory
from optpart.problem.instance import Instance
from optpart.solution.result import Result, Status, conclude
from optpart.solution.schedule import Schedule, retime
from optpart.solution.termination import Termination
from optpart.solution.verifier import verify
from optpart.study.robust.answer import GoalName, Outcome, Point, Robust
from optpart.study.robust.clockwork import Clockwork
from optpart.study.robust.plan import Plan, dispatch, moved, ordered
from optpart.study.robust.variation import Variation, mixed, variation
from optpart.study.sensitivity import task_order

#: Larger models, in pairs of tasks times cases and devices, are not built; above the other number,
#: single vertices are moved first, for half of the time.
_MOST_PAIRS, _FEW_PAIRS = 400_000, 40_000

#: Longest makespan in ticks: weighted sums of all cases are exact in the solver's doubles.
_MOST_TICKS = 2**31

#: Moves of single vertices.
_MOST_MOVES = 100_000

#: Shares of the time for schedules at single times, and for the bounds of the cases.
_SINGLE, _BOUNDS = 0.15, 0.1

#: The weights of the goal beside the nominal makespan, on the curve of samples.
_WEIGHTS = tuple(Fraction(i, 4) for i in range(5))

_QUICK = [bound for bound in BOUNDS.values() if bound.cost != "anytime"]


@checked
def robust(
    instance: Instance,
    *,
    samples: str | Path | None = None,
    intervals: str | Path | None = None,
    spread: str | float | Fraction | None = None,
    draws: int | None = None,
    deviations: int | None = None,
    goal: GoalName = "worst",
    curve: bool = False,
    seconds: float = 60.0,
    workers: int = 2,
    seed: int = 0,
    memory: int | str | None = None,
    watch: Callable[[str, Fraction | None], None] | None = None,
) -> Robust:
    """Find the plan of the least worst or mean makespan; see the module.

    Parameters
    ----------
    samples, intervals, spread, draws, seed
        How run times vary; see :func:`~optpart.study.robust.variation.variation`.
    deviations : int, optional
        Of intervals: how many vertices deviate at most; all by default.
    goal : {"worst", "mean"}
        What to minimise; intervals have no mean.
    curve : bool
        Also find the best plans for other numbers of deviations or, for samples, for weighted sums
        of the nominal makespan and the goal, in half of the time.
    memory : int or str, optional
        Memory that optpart and its solvers may take together.
    watch : callable, optional
        Called with what is looked for, and the best value so far.

    Raises
    ------
    InputError
        If what is given contradicts itself or the instance, or a number is out of range.
    UnsupportedError
        For intervals where memory that changes with time is limited, and for ports with several
        channels.
    """
    if goal not in get_args(GoalName):
        raise ArgumentError("goal", f"no goal {goal!r}", choice(goal, get_args(GoalName)))
    varies = variation(
        instance, samples=samples, intervals=intervals, spread=spread, draws=draws, seed=seed
    )
    _check(varies, goal, deviations)
    check_seconds(seconds)
    deadline = clock.now() + seconds
    shared = _Shared(varies, goal, workers, seed, memory, watch)
    end = clock.now() + seconds / 2 if curve else deadline
    first = shared.start(end)
    if first.schedule is None:
        status = Status.INFEASIBLE if first.status is Status.INFEASIBLE else Status.UNKNOWN
        return Robust(varies, goal, deviations, first, status, reason=first.reason)
    search = _Search(shared, deviations, Fraction(1))
    search.run(end)
    points = []
    if curve:
        own = Fraction(1) if varies.samples else Fraction(
            instance.vertices if deviations is None else deviations)  # fmt: skip
        rows = _WEIGHTS if varies.samples else _counts(instance.vertices, int(own))
        for i, parameter in enumerate(rows):
            each = search
            if parameter != own:
                each = _Search(shared, *(
                    (None, parameter) if varies.samples else (int(parameter), Fraction(1))
                ))  # fmt: skip
                now = clock.now()
                each.run(now + max(0.0, deadline - now) / (len(rows) - i))
            if each.best is not None:
                points.append(each.point(parameter))
    return search.outcome(first, tuple(points))


def _counts(vertices: int, own: int) -> tuple[Fraction, ...]:
    """Return numbers of deviations: 0, powers of 2, the one that was asked for, and all."""
    powers = {2**i for i in range(vertices.bit_length())}
    return tuple(Fraction(g) for g in sorted({0, own, vertices, *powers}) if g <= vertices)


def _check(varies: Variation, goal: GoalName, deviations: int | None) -> None:
    instance, model = varies.instance, varies.instance.model
    if deviations is not None and varies.samples:
        raise ArgumentError("deviations", "given with samples", "give intervals, or a spread alone")
    if deviations is not None and not 0 <= deviations <= instance.vertices:
        remedy = f"give 0 to {instance.vertices}, the number of vertices"
        raise ArgumentError("deviations", f"{deviations} is out of range", remedy)
    if goal == "mean" and not varies.samples:
        raise ArgumentError("goal", "intervals have no mean", "give samples, or draws")
    if model.parallel > 1:
        problem = "with several channels of a port, an order does not fix who waits for whom"
        raise UnsupportedError("model.channels", problem, "use one channel")
    limited = any(capacity is not None for capacity in instance.cluster.memory)
    if not varies.samples and model.timed_memory and limited:
        problem = "where memory depends on time, the worst case need not be at the ends"
        raise UnsupportedError("model.memory", problem, "give samples, or draws")


@dataclass(eq=False)
class _Case:
    """An instance at certain times.

    Attributes
    ----------
    least : Fraction
        The least ratio of a run time to the nominal one, at most 1.
    bound : Fraction
        Proven lower bound of the makespan.
    bounded : bool
        Whether it has been bounded by itself.
    """

    instance: Instance
    least: Fraction = Fraction(1)
    bound: Fraction = Fraction(0)
    bounded: bool = False


class _Shared:
    """What the searches of all points of a curve have in common."""

    def __init__(
        self,
        varies: Variation,
        goal: GoalName,
        workers: int,
        seed: int,
        memory: int | str | None,
        watch: Callable[[str, Fraction | None], None] | None,
    ) -> None:
        self.varies, self.goal, self.workers, self.seed = varies, goal, workers, seed
        self.memory, self.watch = None if memory is None else read_memory(memory), watch
        self.plans: list[Plan] = []
        self.interrupted = False
        self.nominal = _Case(varies.instance)
        corners = [] if varies.high is None else [varies.high]
        self.cases = [_Case(each, self._least(each)) for each in (*varies.samples, *corners)]

    def start(self, end: float) -> Result:
        """Solve at the nominal and at other single times, whose plans are the first candidates."""
        expect(WORKER)
        samples = self.varies.samples
        others = self.cases
        if samples:
            others = [_Case(mixed(samples, longest=longest)) for longest in (False, True)]
        share = _SINGLE * max(0.0, end - clock.now())
        first = self._solve(self.nominal, share)
        for other in others if first.schedule is not None else ():
            if not self.interrupted:
                # At the upper ends, this is the whole question.
                self._solve(other, share if samples else 4 * share)
                with clock.limited(share):
                    for schedule in heuristic_schedules(other.instance, self.seed):
                        self.take(other.instance, schedule)
        return first

    def _solve(self, case: _Case, seconds: float) -> Result:
        question = ask(
            case.instance, seconds=seconds, workers=self.workers, seed=self.seed, memory=self.memory
        )
        result = question.answer()
        self.interrupted |= result.termination is Termination.INTERRUPTED
        case.bound = result.lower_bound or Fraction(0)
        if result.schedule is not None:
            self.take(case.instance, result.schedule)
        return result

    def _least(self, other: Instance) -> Fraction:
        own = self.varies.instance
        ratios = [
            other.duration(v, d) / own.duration(v, d)
            for v, d in np.argwhere(own.vertex_allowed).tolist()
            if own.duration(v, d)
        ]
        return min([Fraction(1), *ratios])

    def take(self, instance: Instance, schedule: Schedule) -> None:
        """Keep a schedule as a candidate."""
        self.plans.append(Plan(schedule.placement, tuple(task_order(instance, schedule))))


class _Search:
    """The search for the best plan for one weight of the goal, or one number of deviations."""

    def __init__(self, shared: _Shared, deviations: int | None, weight: Fraction) -> None:
        self.shared, self.deviations, self.weight = shared, deviations, weight
        self.nominal = shared.varies.instance
        if deviations is None:
            self.cases = [*shared.cases]
            instances = [self.nominal, *(case.instance for case in self.cases)]
            self.clockwork = Clockwork(instances)
        else:
            self.cases = []
            self.clockwork = Clockwork([self.nominal], shared.varies.high, deviations)
        self.best: Plan | None = None
        self.value = self.shortest_nominal = Fraction(0)
        self.bound = Fraction(0)
        self.shortest = False
        self.reason = ""
        self._rounded = False
        self._chosen: set[frozenset[int]] = set()

    # --- plans -----------------------------------------------------------------------------

    def _spans(self, plan: Plan) -> list[Fraction] | None:
        """Return the nominal makespan, and those of all cases or of the worst one."""
        ticks = self.clockwork.makespans(plan)
        if ticks is None:
            return None
        spans = [Fraction(int(time), self.clockwork.scale) for time in ticks]
        return spans if self.deviations is None else [spans[0], spans[-1]]

    def _goal(self, cases: Sequence[Fraction]) -> Fraction:
        """Return the mean or the worst makespan of several cases."""
        mean = self.shared.goal == "mean"
        return sum(cases, Fraction(0)) / len(cases) if mean else max(cases)

    def _aim(self, nominal: Fraction, cases: Sequence[Fraction]) -> Fraction:
        """Return the weighted sum of a nominal makespan and of the goal."""
        return (1 - self.weight) * nominal + self.weight * self._goal(cases)

    def offer(self, plan: Plan) -> bool:
        """Take a plan if it is better, and valid at all times."""
        spans = self._spans(plan)
        if spans is None:
            return False
        value = self._aim(spans[0], spans[1:])
        if self.best is not None and (value, spans[0]) >= (self.value, self.shortest_nominal):
            return False
        if not self._valid(plan, spans):
            return False
        self.best, self.value, self.shortest_nominal = plan, value, spans[0]
        if self.shared.watch is not None:
            self.shared.watch(self._words, value)
        return True

    @property
    def _words(self) -> str:
        weighted = f"weight {self.weight}" if self.weight != 1 else self.shared.goal
        return weighted if self.deviations is None else f"{self.deviations} deviations"

    def _valid(self, plan: Plan, spans: list[Fraction]) -> bool:
        """Ask the verifier, in every case, and compare the times with those of retiming."""
        judged = [self.nominal, *(case.instance for case in self.cases)]
        high = self.shared.varies.high
        if self.deviations is not None and high is not None:
            judged = [self.nominal, self.shared.varies.deviated(self.clockwork.worst(plan)), high]
        for i, instance in enumerate(judged):
            schedule = retime(instance, plan.placement, plan.order)
            if verify(instance, schedule, most=1):
                return False
            if i < len(spans) and schedule.makespan(instance) != spans[i]:
                raise ContradictionError("a plan has two makespans; please report this as a bug")
        return True

    # --- search ----------------------------------------------------------------------------

    def run(self, end: float) -> None:
        """Search and prove until the end, on the clock of :mod:`optpart.base.clock`."""
        begin = clock.now()
        try:
            for plan in [*self.shared.plans]:
                self.offer(plan)
            if self.deviations is not None and self.best is not None:
                self._add_case(self.best)
            self._raise_bound(_BOUNDS * max(0.0, end - begin))
            if self._pairs() > _MOST_PAIRS:
                self.reason = "too large for the model of all times"
                self._improve(end)
            else:
                if self._pairs() > _FEW_PAIRS:
                    self._improve((clock.now() + end) / 2)
                self._prove(end)
        except KeyboardInterrupt:
            self.shared.interrupted = True
        if self.best is not None:
            self.shared.plans.append(self.best)

    def _add_case(self, plan: Plan) -> bool:
        """Add the choice of vertices that is worst for a plan; return whether it is new."""
        chosen = self.clockwork.worst(plan)
        if chosen in self._chosen:
            return False
        self._chosen.add(chosen)
        self.cases.append(_Case(self.shared.varies.deviated(chosen)))
        return True

    def _low(self, case: _Case) -> Fraction:
        """Return the lower bound of a case, or what that of the nominal makespan implies for it.

        If no time is below a share of its nominal one, shortening all that runs turns a schedule
        into one that takes at most 1 / share at nominal times, where shortening costs no memory.
        """
        if self.nominal.model.timed_memory:
            return case.bound
        return max(case.bound, case.least * self.shared.nominal.bound)

    def _raise_bound(self, seconds: float) -> None:
        """Bound every case by itself."""
        for case in self.cases:
            if not case.bounded and not self.shared.interrupted:
                case.bounded = True
                found = best_bound(case.instance, seconds / len(self.cases), among=_QUICK).value
                case.bound = max(case.bound, found or Fraction(0))
        if self.cases:
            lows = [self._low(case) for case in self.cases]
            self.bound = max(self.bound, self._aim(self.shared.nominal.bound, lows))

    def _pairs(self) -> int:
        """Return the size of the model of all cases."""
        instance = self.nominal
        tasks = instance.vertices
        if instance.model.queues:
            tasks += instance.graph.tensors * (instance.devices - 1)
        return tasks * (tasks - 1) // 2 * instance.devices * (1 + len(self.cases))

    def _prove(self, end: float) -> None:
        """Solve the model of all cases, and add cases until no plan has a worse one."""
        proven = False
        while self.best is None or self.value > self.bound:
            found, proven = self._solved(end, None)
            # What a plan takes in another case, or rounding, may keep it above the bound.
            new = found is not None and self.deviations is not None and self._add_case(found)
            if not proven or not new:
                break
        if self.best is None or self.value > self.bound:
            self.reason = "time is up"
            if proven:
                what = "rounding" if self._rounded else "limits of memory at other times"
                self.reason = f"closed except for {what}"
            return
        while self.weight == 1 and not self.shortest and not self._rounded:
            limit, before = self.value, self.shortest_nominal
            found, proven = self._solved(end, limit)
            new = found is not None and self.deviations is not None and self._add_case(found)
            if not proven or not (new or self.shortest_nominal < before):
                self.shortest = proven and found is None and not self._rounded
                break

    def _solved(self, end: float, limit: Fraction | None) -> tuple[Plan | None, bool]:
        """Return the best plan for the cases so far, and whether that is proven.

        With a limit of the aim, the best has the least nominal makespan, less than that so far; if
        none has, and that is proven, the plan is ``None``.
        """
        seconds = end - clock.now()
        if seconds <= 0 or self.shared.interrupted:
            return None, False
        made = self._task(limit)
        if made is None:
            return None, limit is not None
        task, unit = made
        shared = self.shared
        limits = Limits(seconds, shared.workers, shared.seed, None, shared.memory)
        found = answer(WORKER, task, limits, what="the model of all times")
        if limit is None and found.bound is not None:
            self.bound = max(self.bound, Fraction(found.bound) / unit)
        plan = None
        if found.found is not None and found.found.start is not None:
            plan = ordered(self.nominal, found.found)
            self.offer(plan)
        return plan, found.status in ("OPTIMAL", "INFEASIBLE")

    def _task(self, limit: Fraction | None) -> tuple[SharedTask, Fraction] | None:
        """Return the job for the solver, and its units per unit of the aim."""
        cases, count = self.cases, len(self.cases)
        mean, weight = self.shared.goal == "mean", self.weight
        with_nominal = weight != 1 or limit is not None
        with_it = [self.shared.nominal, *cases] if with_nominal else cases
        instances = [case.instance for case in with_it]
        shares = [1 - weight] * with_nominal + [weight / count if mean else Fraction(0)] * count
        worst = Fraction(0) if mean else weight
        low = [self._low(case) for case in with_it]
        best = limit if limit is not None else (self.value if self.best is not None else None)
        longest: list[Fraction | None] = [None] * len(instances)
        if best is not None:
            least = sum((s * x for s, x in zip(shares, low, strict=True)), Fraction(0))
            least += worst * max(low[with_nominal:])
            for i, share in enumerate(shares):
                part = share + (worst if i >= with_nominal else 0)
                mine = share * low[i]
                mine += worst * max(low[with_nominal:]) if i >= with_nominal else 0
                if part:
                    longest[i] = (best - least + mine) / part
        if limit is not None:
            longest[0] = self.shortest_nominal
        scale = self.clockwork.coarsest
        span = max([self.shortest_nominal, *(x for x in longest if x is not None), *low])
        exact = span * scale <= _MOST_TICKS
        if not exact:
            self._rounded = True
            scale = Fraction(2) ** math.floor(math.log2(_MOST_TICKS / span))
        unit = math.lcm(*(share.denominator for share in (*shares, worst)))
        tasks = shared_tasks(
            instances,
            scale,
            [None if x is None else math.floor(x * scale) for x in longest],
            [math.floor(x * scale) for x in low],
            exact=exact,
        )
        if tasks is None:
            return None
        if limit is not None:  # strictly shorter
            nominal = tasks[0]
            tasks = (replace(nominal, upper=nominal.upper - 1), *tasks[1:])
            if nominal.upper <= nominal.lower:
                return None
        task = SharedTask(
            tasks,
            tuple(int(share * unit) for share in shares),
            (False,) * with_nominal + (True,) * count,
            int(worst * unit),
            None if limit is None else math.floor(limit * scale * unit),
        )
        return task, scale * unit

    def _improve(self, end: float) -> None:
        """Move single vertices of the best plan to other places in the order, or other devices."""
        if self.best is None:
            return
        rng = np.random.default_rng(self.shared.seed)
        for _ in range(_MOST_MOVES):
            if clock.now() > end or self.shared.interrupted:
                return
            self.offer(moved(self.nominal, self.best, rng))

    # --- answers ---------------------------------------------------------------------------

    def point(self, parameter: Fraction) -> Point:
        """Return the point of the curve."""
        assert self.best is not None
        spans = self._spans(self.best)
        assert spans is not None
        return Point(parameter, spans[0], self._goal(spans[1:]), self.value == self.bound)

    def outcome(self, first: Result, curve: tuple[Point, ...]) -> Robust:
        """Return what was found."""
        shared = self.shared
        found = Robust(shared.varies, shared.goal, self.deviations, first, Status.UNKNOWN,
                       bound=self.bound, curve=curve, cases=len(self.cases))  # fmt: skip
        if self.best is None:
            return replace(found, reason="no plan is valid at all times")
        if self.bound > self.value:
            raise ContradictionError("a lower bound exceeds a valid plan")
        known = [(spans, plan) for plan in shared.plans if (spans := self._spans(plan))]
        known.sort(key=lambda pair: pair[0][0])
        usual = next(plan for spans, plan in known if self._valid(plan, spans))
        schedule = retime(self.nominal, self.best.placement, self.best.order)
        proven = self.value == self.bound
        reason = "interrupted" if shared.interrupted else self.reason
        return replace(
            found,
            result=conclude(self.nominal, "robust", schedule, bound=first.lower_bound),
            status=Status.OPTIMAL if proven else Status.FEASIBLE,
            value=self.value,
            shortest=self.shortest,
            outcome=self._outcome(self.best),
            usual=self._outcome(usual),
            reason="" if proven else reason,
        )

    def _outcome(self, plan: Plan) -> Outcome:
        spans = self._spans(plan)
        assert spans is not None
        dispatched, overfull = [], 0
        for sample in self.shared.varies.samples:
            schedule = dispatch(sample, plan)
            if verify(sample, schedule, most=1):
                overfull += 1
            else:
                dispatched.append(schedule.makespan(sample))
        low = self.shared.varies.low
        least = None if low is None else retime(low, plan.placement, plan.order).makespan(low)
        return Outcome(spans[0], tuple(spans[1:]), tuple(dispatched), overfull, least)
