"""The solve loop of CP-SAT: compute bounds, build the model, and solve until the gap is closed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.base.clock import limited
from optpart.exact.conflict import conflict, memory_conflict
from optpart.exact.identical import identical
from optpart.exact.longest_path import Choices, longest_path
from optpart.exact.memory_units import MemoryUnits, memory_units
from optpart.exact.messages import Incumbent
from optpart.exact.process import expect
from optpart.exact.retiming import schedules
from optpart.exact.run import SolverRun
from optpart.exact.symmetry import (
    canonical,
    interchangeable_devices,
    possible_first,
    talkers_first,
)
from optpart.exact.task import Asked, Known, Task
from optpart.kernels.compiled import UNLIMITED, whole_memory
from optpart.kernels.horizon import horizon
from optpart.kernels.ticks import Grid
from optpart.lower_bounds.best import BOUNDS, Bound
from optpart.lower_bounds.load import load_ticks
from optpart.lower_bounds.one_machine import sharpened
from optpart.lower_bounds.windows import Windows, no_windows, windows
from optpart.problem import footprint
from optpart.problem.feasibility import contradiction, excluded
from optpart.problem.instance import Instance
from optpart.solution.gap import gap as relative_gap
from optpart.solution.job import Job, method
from optpart.solution.pruning import Pruning
from optpart.solution.result import Budget, Result, Starts, Status, Watch
from optpart.solution.schedule import Schedule
from optpart.solution.termination import Termination

#: Width of a rounded grid: wide enough to close a gap to about one in a million, narrow enough
#: for the solver's linear programs.
_TICKS = 2**26

#: Larger models take impractically long to build and load.
_MAX_TERMS = 4_000_000

#: Maximum seconds for finding which constraints make an instance infeasible.
_EXPLAINING = 5.0

#: Share of the time for tightening the windows, and again for bounds other than the load.
_BEFORE = 0.03
_BEFORE_LARGE = 0.2
_SEARCHING = 0.3
_PROVABLE = 100

#: Up to this many vertices, the solver takes less time than it takes to load what solves the linear
#: programs of the bounds.
_QUICK = 12

#: Bounds that windows and load on the solver's own grid imply.
_ON_GRID = ("critical-path", "load", "one-machine")

#: A rounded grid is refined while the gap exceeds this and a finer grid is available.
_CLOSED = 1e-6
_FINER = 4

#: Schedules that may be as long as the incumbent but for rounding, before the proof is given up.
_ATTEMPTS = 500

#: Upper limit of traffic in whole units, so that the solver's doubles represent it exactly.
_MOST_TRAFFIC = 2**50

WORKER = "optpart.exact.worker"


#: Improves an incumbent within a budget and a seed.
Improve = Callable[[Instance, Budget, int, Schedule], Result]


@method
def solve(
    job: Job,
    watch: Watch | None = None,
    *,
    starts: Starts | None = None,
    improve: Improve | None = None,
) -> Result:
    """Solve an instance with CP-SAT, starting only from the given schedules.

    Parameters
    ----------
    starts : callable, optional
        Generates further initial schedules.
    improve : callable, optional
        Improves the best initial schedule of a large instance before the solver begins.

    Raises
    ------
    InputError
        If the start contradicts the placement or the order given by the goal.
    """
    return _Solve(job, watch, starts, improve).run()


class _Units(NamedTuple):
    """Tensor sizes in whole units, rounded down if they have no sufficiently coarse unit."""

    weight: NDArray[np.int64]
    unit: Fraction


class _Span(NamedTuple):
    """The windows of the vertices, and a lower and an upper limit of the makespan, in ticks."""

    window: Windows
    lower: int
    upper: int


class _Solve(SolverRun[Task]):
    worker = WORKER

    def __init__(
        self, job: Job, watch: Watch | None, starts: Starts | None, improve: Improve | None
    ) -> None:
        super().__init__(job, watch, starts)
        self.improve = improve
        self.alike: list[list[int]] = []
        self.turn = np.zeros(0, dtype=np.int64)
        self.explains = True
        #: What the solver has found last, in exact time.
        self.latest: Schedule | None = None

    def run(self) -> Result:
        """Start from heuristics and combinatorial bounds, then let the solver close the gap."""
        infeasible = self.goal.contradiction(self.instance)
        with self.record.until_interrupted():
            if not infeasible:
                self.instance = self.goal.narrowed(self.job.instance)
                if Pruning.SYMMETRY not in self.without:
                    self.alike = interchangeable_devices(self.instance, self.goal)
                self.turn = talkers_first(self.instance)
                infeasible = contradiction(self.instance)
            if not infeasible:
                if not self._spent():
                    expect(WORKER)
                with limited(math.inf if self.budget.deterministic is not None else self.left):
                    self.start(hopeless=excess_of_terms(self.instance) != "")
                    self._improve_start()
                infeasible = self._search()
        return self.record.result("cpsat", infeasible=infeasible)

    def _improve_start(self) -> None:
        """Run local search first on large instances, where the solver finds little."""
        small = self.instance.vertices <= _PROVABLE
        goal, timed = self.goal, self.budget.deterministic is None
        if self.improve is None or small or self.record.incumbent is None or not timed:
            return
        if self._spent() or Pruning.BOUNDS in self.without:
            return
        if goal.objective != "makespan" or goal.order or goal.traffic is not None or goal.decides:
            return  # for a decision problem, the incumbent is the answer
        if goal.blocks:  # search does not support them
            return
        if refusal(self.instance, self.budget):
            return  # the solver cannot go on from there
        budget = replace(self.budget, seconds=min(_SEARCHING * self.budget.seconds, self.left))
        found = self.improve(self.instance, budget, self.job.seed, self.record.incumbent)
        if found.lower_bound is not None:
            self.record.raise_bound(found.lower_bound)
        if found.schedule is not None:
            self.record.take(found.schedule)
        if found.termination is Termination.INTERRUPTED:
            raise KeyboardInterrupt

    # --- search ----------------------------------------------------------------------------

    def _search(self) -> str:
        """Run the search; return why the instance is infeasible, if that is proven."""
        if self.goal.objective == "traffic":
            return self._least_traffic(self.goal.makespan)
        if self.goal.objective == "bottleneck":
            infeasible = self._least_bottleneck(self.goal.makespan)
            self.shorten()
            return infeasible
        infeasible = self._least_makespan()
        if self.goal.objective == "lexicographic" and self.record.closed("makespan"):
            self._least_traffic(self.record.makespan)
        return infeasible

    def _least_makespan(self) -> str:
        while not self.reached:
            grid = Grid.of(self.instance, self._limit(), _TICKS)
            infeasible = self._least_makespan_on(grid)
            rounded = self.record.termination is Termination.ROUNDING and not self.refused
            if infeasible or grid.exact or not rounded:
                return infeasible
            gap = relative_gap(self.record.makespan, self.record.bound)
            finer = Grid.of(self.instance, self._limit(), _TICKS)
            # A poor start forces a coarse grid; a better incumbent allows a finer one.
            if (gap or 0.0) <= _CLOSED or finer.scale < _FINER * grid.scale:
                return self._close(grid)
        return ""

    def _close(self, grid: Grid) -> str:
        """Look for schedules that only rounding makes as long as the incumbent, or too long.

        Every schedule that is shorter than the incumbent is one of fewer ticks, rounded up, and
        makes none of the choices that are known to take as long. If the solver finds no other, the
        incumbent is optimal. Before there is an incumbent, the same holds for schedules within the
        limit of the goal: if the solver finds no other, there is none. Return why, in this case.
        """
        if not self._closable():
            return ""
        excluded = set[Choices]()
        for _ in range(_ATTEMPTS):
            best, most = self.record.makespan, self.goal.makespan
            if best is not None:
                most = grid.time(math.ceil(best * grid.scale) - 1)
            span = self._span(grid, most)
            status, self.latest = "INFEASIBLE", None
            if span is not None:
                self.record.go_on()
                chosen = {"known": None, "identical": False, "excluded": tuple(excluded)}
                status = self._ask(grid, span, "decision", **chosen)
            if best is None and status == "INFEASIBLE":
                return self._why()
            if best is not None and status == "INFEASIBLE":
                self.record.raise_bound(best)
            if status == "INFEASIBLE" or self.reached:
                return ""
            choices = self.latest and longest_path(self.instance, self.latest)
            if choices is None or choices in excluded:
                break
            excluded.add(choices)
        if self.record.termination is Termination.COMPLETED:
            self.record.end(Termination.ROUNDING, self.refused or "closed except for rounding")
        return ""

    def _closable(self) -> bool:
        """Return whether the longest path of a schedule explains its makespan."""
        goal, model = self.goal, self.instance.model
        return (
            model.parallel == 1
            and not model.timed_memory
            and not (goal.order or goal.blocks)
            and goal.traffic is None
            and not self.without & {Pruning.INCUMBENT, Pruning.LONGEST_PATHS}
        )

    def _limit(self) -> Fraction | None:
        """Return the known upper limit of the makespan; ``None`` if there is none."""
        reached = None if Pruning.INCUMBENT in self.without else self.record.makespan
        known = [limit for limit in (reached, self.goal.makespan) if limit is not None]
        return min(known, default=None)

    def _least_makespan_on(self, grid: Grid) -> str:
        self.record.go_on()
        limit = self._limit()
        span = self._span(grid, limit)
        if span is None:
            return self.excluded_by_bounds()
        if self._too_large(span):
            return ""
        for bound in self._further_bounds():
            self.record.pulse()
            if self._spent():
                break
            if not self.record.closed("makespan"):
                value = bound.compute(self.instance, seconds=self._share(), makespan=limit)
                self.record.raise_bound(value or Fraction(0))
        if self.record.closed("makespan"):
            return ""
        asked: Asked = "decision" if self.goal.decides else "makespan"
        lower = max(span.lower, grid.floor(self.record.bound or Fraction(0)))
        return self._solve_on(grid, span._replace(lower=lower), asked)

    def _least_traffic(self, limit: Fraction | None) -> str:
        """Minimise the traffic among schedules within a makespan limit."""
        self.record.go_on()
        self.record.raise_bound(Fraction(0), "traffic")
        if self.record.closed("traffic"):
            return ""
        grid = Grid.of(self.instance, limit, _TICKS)
        span = self._span(grid, limit)
        return self.excluded_by_bounds() if span is None else self._solve_on(grid, span, "traffic")

    def _least_bottleneck(self, limit: Fraction | None) -> str:
        """Minimise the bottleneck among schedules within a makespan limit."""
        grid = self._grid_of_loads()
        span = self._span(grid, limit)
        if span is None:
            return self.excluded_by_bounds()
        if Pruning.BOUNDS not in self.without:
            least = load_ticks(self.instance, grid, no_windows(self.instance))
            self.record.raise_bound(grid.time(least), "bottleneck")
        if self.record.closed("bottleneck"):
            return ""
        return self._solve_on(grid, span, "bottleneck")

    def _span(self, grid: Grid, limit: Fraction | None) -> _Span | None:
        """Bound the makespans up to a limit, and the times of the vertices within them.

        Returns ``None`` if windows and load exclude all of them.
        """
        upper = None if limit is None else grid.floor(limit)
        window = self._windows(grid, upper)
        if window.bound is None:
            return None
        lower = self._load(grid, window)
        if upper is not None and lower > upper:
            return None
        self.record.raise_bound(grid.time(lower))
        return _Span(window, lower, self._longest(grid) if upper is None else upper)

    def _grid_of_loads(self) -> Grid:
        """Return a grid on which all loads times the channels of a port are moderate numbers."""
        longest = self.record.values.get("bottleneck")
        if longest is None or self._timed("bottleneck"):
            grid = Grid.of(self.instance)
            longest = grid.time(horizon(self.instance, grid))
        return Grid.of(self.instance, self.instance.model.parallel * longest, _TICKS)

    def _loads(self, grid: Grid) -> tuple[int, int]:
        """Return the bounds between which the bottleneck is, in ticks divided by the channels."""
        share = self.instance.model.parallel
        least = grid.floor(share * self.record.bounds.get("bottleneck", Fraction(0)))
        most = self.record.values.get("bottleneck")
        if most is None or Pruning.INCUMBENT in self.without:
            return least, share * horizon(self.instance, grid)
        return least, grid.floor(share * most)

    def _longest(self, grid: Grid) -> int:
        """Return an upper bound, in ticks, on the optimal makespan."""
        known = self.record.makespan or Fraction(0)
        return max(horizon(self.instance, grid), grid.floor(known))

    def _windows(self, grid: Grid, upper: int | None) -> Windows:
        """Return heads and tails, tightened within a small share of the budget."""
        if Pruning.WINDOWS in self.without:
            return no_windows(self.instance)
        allowed = None
        if not self._identical():
            allowed = possible_first(self.instance, self.alike, self.turn)
        window = windows(self.instance, grid, upper, allowed, seconds=self._share())
        if window.bound is None or model_terms(self.instance, window.possible) > _MAX_TERMS:
            return window
        return sharpened(self.instance, grid, window, upper, seconds=self._share())

    def _identical(self) -> bool:
        """Return whether all devices can be modelled as one cumulative resource."""
        return Pruning.IDENTICAL not in self.without and identical(self.instance, self.goal)

    def _load(self, grid: Grid, window: Windows) -> int:
        """Return a bound in ticks from the load of the devices."""
        return (
            0
            if Pruning.BOUNDS in self.without
            else load_ticks(
                self.instance, grid, window, seconds=0.0 if self._quick() else self._share()
            )
        )

    def _quick(self) -> bool:
        """Return whether linear programs take longer to load than the solver needs."""
        return self.instance.vertices <= _QUICK

    def _share(self) -> float:
        """Return the seconds available to each preprocessing step."""
        if self.budget.deterministic is not None:
            return math.inf
        part = _BEFORE if self.instance.vertices <= _PROVABLE else _BEFORE_LARGE
        return min(part * self.budget.seconds, self.left)

    def _spent(self) -> bool:
        """Return whether there is a limit of seconds, and it is spent."""
        return self.budget.deterministic is None and self.left <= 0.0

    def _further_bounds(self) -> list[Bound]:
        """Return the further bounds to compute; on large instances, the solver proves little."""
        if Pruning.BOUNDS in self.without or self._quick():
            return []
        further = [bound for bound in BOUNDS.values() if bound.name not in _ON_GRID]
        if self.instance.vertices <= _PROVABLE or self.budget.deterministic is not None:
            return [bound for bound in further if bound.cost != "anytime"]
        return further

    def _solve_on(self, grid: Grid, span: _Span, asked: Asked) -> str:
        if self._too_large(span):
            return ""
        status = self._ask(grid, span, asked)
        if status == "INFEASIBLE":
            if self.record.incumbent is not None:
                raise AssertionError("the solver excludes a verified schedule; please report this")
            return self._why()
        closed = self.reached if asked == "decision" else self.record.closed(asked)
        if self.record.termination is Termination.COMPLETED and not closed:
            self.record.end(Termination.ROUNDING, self.refused or "closed except for rounding")
        return ""

    def _ask(self, grid: Grid, span: _Span, asked: Asked, **changes: Any) -> str:
        """Run the solver for the remaining time; return its status, or "" if none remains."""
        return self.ask(replace(self._task(grid, span, asked), **changes))

    def _too_large(self, span: _Span) -> bool:
        """Return whether the model would be too large, before anything is done for it."""
        refused = refusal(self.instance, self.budget, span.window.possible)
        if refused is not None:
            self.record.end(*refused)
        return refused is not None

    def _why(self) -> str:
        """Return the reason for infeasibility, the smallest conflict found in the time left."""
        goal = self.goal
        if goal.makespan is None and goal.traffic is None and not goal.order:
            reason = conflict(
                self.instance, min(self.budget.seconds - self.record.seconds, _EXPLAINING)
            )
            if not reason and self.explains and not goal.blocks:
                reason = memory_conflict(self.instance, self._infeasible)
            if reason:
                return f"{reason} (given {goal.given})" if goal.given else reason
        return excluded(self.job.instance, "search", goal.given)

    def _infeasible(self, other: Instance) -> bool:
        left = min(self.budget.seconds - self.record.seconds, _EXPLAINING)
        if left <= 0:
            return False
        job = Job(other, budget=replace(self.budget, seconds=left), seed=self.job.seed)
        run = _Solve(job, None, self.starts, None)
        run.explains = False
        return run.run().status is Status.INFEASIBLE

    def _timed(self, asked: Asked) -> bool:
        """Return whether times matter for the question, not only the placement."""
        goal = self.goal
        return (
            asked not in ("traffic", "bottleneck")
            or goal.objective == "lexicographic"
            or goal.makespan is not None
            or bool(goal.order)
            or (asked == "traffic" and self.instance.model.timed_memory)
        )

    def _task(self, grid: Grid, span: _Span, asked: Asked) -> Task:
        instance, goal, window = self.instance, self.goal, span.window
        units = _traffic_units(instance)
        memory = self._memory(span.upper)
        return Task(
            instance=instance,
            grid=grid,
            head=window.head,
            tail=window.tail,
            possible=window.possible,
            lower=span.lower,
            upper=span.upper,
            need=memory.need,
            capacity=memory.capacity,
            alike=self.alike,
            load_cuts=Pruning.LOAD_CUTS not in self.without,
            size=memory.size,
            known=None
            if self.record.incumbent is None
            else self._known(grid, self.record.incumbent),
            turn=self.turn,
            identical=self._identical(),
            asked=asked,
            timed=self._timed(asked),
            order=goal.order,
            weight=units.weight,
            most_traffic=-1 if goal.traffic is None else math.floor(goal.traffic / units.unit),
            contiguous=goal.contiguous,
            device_order=goal.device_order,
            loads=self._loads(grid),
        )

    def _known(self, grid: Grid, schedule: Schedule) -> Known:
        """Convert a schedule to ticks, with interchangeable devices in canonical order."""
        placement = canonical(self.instance, schedule.placement, self.alike, self.turn)
        new_name = dict(zip(schedule.placement.tolist(), placement.tolist(), strict=True))
        moves = schedule.transfers
        return Known(
            placement,
            np.array([grid.floor(time) for time in schedule.start.fractions()], dtype=np.int64),
            {
                (tensor, new_name[target]): grid.floor(time)
                for tensor, target, time in zip(
                    moves.tensor.tolist(),
                    moves.target.tolist(),
                    moves.start.fractions(),
                    strict=True,
                )
            },
        )

    def _memory(self, upper: int) -> MemoryUnits:
        if self.instance.model.timed_memory:
            return memory_units(self.instance, upper)
        need, capacity = whole_memory(self.instance, relax=True)
        nothing = np.zeros(self.instance.graph.tensors, dtype=np.int64)
        return MemoryUnits(nothing, need, np.where(capacity < UNLIMITED, capacity, -1))

    def take(self, found: Incumbent, task: Task) -> None:
        """Record the first valid schedule that a solution gives."""
        refused, most = "", self.goal.makespan
        for schedule in schedules(self.instance, found, task.grid):
            broken = self.record.offer(schedule)
            if not broken or (most is not None and schedule.makespan(self.instance) > most):
                self.latest = schedule  # whose longest path says why it is not shorter
                return
            refused = refused or broken
        # Memory amounts or times were rounded to the solver's integers.
        self.refused = f"rounding admitted an invalid schedule: {refused}"

    def raise_to(self, value: int, task: Task) -> None:
        """Record a bound of the solver, in its integer units."""
        match task.asked:
            case "makespan":
                self.record.raise_bound(task.grid.time(value))
            case "traffic":
                self.record.raise_bound(value * _traffic_units(self.instance).unit, "traffic")
            case "bottleneck":
                self.record.raise_bound(task.grid.time(value) / task.channels, "bottleneck")
            case "decision":
                pass


def _traffic_units(instance: Instance) -> _Units:
    sizes = instance.graph.tensor_size
    numerators = [int(x) for x in sizes.numerators.tolist()]
    coarse = max(1, math.gcd(*numerators))
    total = sum(numerators) // coarse * instance.devices
    divide = coarse * max(1, -(-total // _MOST_TRAFFIC))
    weight = np.array([x // divide for x in numerators], dtype=np.int64)
    return _Units(weight, Fraction(divide, sizes.denominator))


def refusal(
    instance: Instance, budget: Budget, possible: NDArray[np.bool_] | None = None
) -> tuple[Termination, str] | None:
    """Return why the model of an instance is not built; ``None`` if it is."""
    too_many = excess_of_terms(instance, possible)
    if too_many:
        return Termination.UNSUPPORTED, f"too large for CP-SAT ({too_many})"
    needed = footprint.of_cpsat(instance, model_terms(instance, possible), budget.workers)
    too_much = footprint.excess(needed, budget.memory)
    return (Termination.MEMORY_LIMIT, f"CP-SAT {too_much}") if too_much else None


def excess_of_terms(instance: Instance, possible: NDArray[np.bool_] | None = None) -> str:
    """Return how much larger the model would be than any that is built; empty if it is not."""
    terms = model_terms(instance, possible)
    return f"{terms:,} terms of {_MAX_TERMS:,} at most" if terms > _MAX_TERMS else ""


def model_terms(instance: Instance, possible: NDArray[np.bool_] | None = None) -> int:
    """Return the size of the model: the number of terms in its largest constraint group.

    Parameters
    ----------
    possible : ndarray of bool, shape (units, devices), optional
        The devices that each unit may use, by default the allowed ones.
    """
    possible = instance.allowed if possible is None else possible
    devices = possible.sum(axis=1)[instance.unit_of]
    graph = instance.graph
    return int((devices[graph.edge_source] * devices[graph.edge_target]).sum())
