"""Mixed-integer linear programming for the ``delay`` model.

The formulation is independent of that for CP-SAT (``models/README.md``), so that each checks the
other.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from optpart.base.clock import limited
from optpart.base.errors import UnsupportedError
from optpart.exact.messages import Incumbent
from optpart.exact.milp_task import MilpTask, Solver, passed_tensors
from optpart.exact.run import SolverRun
from optpart.exact.symmetry import canonical, interchangeable_devices
from optpart.kernels.compiled import UNLIMITED, whole_memory
from optpart.kernels.horizon import horizon, horizon_without_queues
from optpart.kernels.ticks import Grid
from optpart.lower_bounds.load import load_ticks
from optpart.lower_bounds.windows import Windows, no_windows, windows
from optpart.problem import footprint
from optpart.problem.feasibility import contradiction, excluded
from optpart.problem.instance import Instance
from optpart.solution.goal import Goal
from optpart.solution.job import Job, method
from optpart.solution.pruning import Pruning
from optpart.solution.result import Budget, Result, Starts, Watch
from optpart.solution.schedule import Schedule, retime
from optpart.solution.termination import Termination

#: Longest horizon in ticks: beyond it, the solvers' tolerances are not small relative to a tick.
HORIZON = 10**6

#: Width of a rounded grid in ticks.
_ROUNDED = 2**16

#: Larger models take impractically long to build and load.
_MAX_ROWS = 100_000

#: Windows spare a model at most this share of its rows; the share of the time they get if not even
#: that is enough.
_HOPELESS, _BRIEFLY = 100, 0.1

#: A separate process, because neither PuLP nor HiGHS can share one with OR-Tools.
WORKER = "optpart.exact.milp_worker"

_NO_CBC = "CBC is not installed"
_CLOSED = "closed except for the solver's tolerances"
_ROUNDING = "closed except for rounding"


@method
def solve_milp(
    job: Job,
    watch: Watch | None = None,
    *,
    solver: Solver = "HiGHS",
    starts: Starts | None = None,
) -> Result:
    """Solve an instance as a mixed-integer linear program, in one thread.

    Supports ``delay`` with memory ``none`` or ``estimate``, colocation, allowed devices, given run
    times and transfer times, missing links and separation. A goal may minimise makespan or
    bottleneck, and may give a placement, orders of vertices, contiguous blocks, an order of
    devices, and limits on makespan and traffic. The bottleneck is minimised under every
    communication model if neither an order nor a limit on the makespan is given. Of the budget,
    only seconds and memory count: the solvers have no deterministic limit.

    Parameters
    ----------
    solver : {"HiGHS", "CBC"}
    starts : callable, optional
        Generates further initial schedules.

    Raises
    ------
    UnsupportedError
        If the instance has another communication or memory model, if the goal has another
        objective or orders transfers, or if the solver is not installed.

    Notes
    -----
    **Validity of bounds.** The solvers compute in floating point. Their dual bound ``B`` becomes
    whole ticks by :func:`~optpart.exact.milp_task.proven_ticks`, with a margin for tolerances:
    ``⌈B − ¼ − τ⌉``, where ``τ = 10⁻⁹ · horizon · (starts + 3 · rows)``. This is not a
    certificate: neither an error beyond the solver's own tolerances nor a wrong "infeasible" would
    be noticed. Schedules do not depend on tolerances: the solver's order
    is timed again in exact arithmetic and verified.

    The grid is the coarsest exact one. If the horizon exceeds a million of its ticks, the
    tolerances would be too large relative to a tick; times are then rounded down to a grid of 2¹⁶
    ticks, whose bounds are valid for the exact problem.
    """
    check_scope(job.instance, job.goal)
    alone = replace(job.budget, workers=1, deterministic=None)
    return _Solve(replace(job, budget=alone), watch, solver, starts).run()


def check_scope(instance: Instance, goal: Goal) -> None:
    """Raise :class:`UnsupportedError` if the method does not support the model or the goal."""
    model = instance.model
    placed = goal.objective == "bottleneck" and not _needs_times(goal)
    if not (placed or not model.queues) or model.timed_memory:
        raise UnsupportedError(
            "model",
            f"milp does not support {model.communication} with memory {model.memory}",
            "use delay with none or estimate",
        )
    if goal.objective not in ("makespan", "bottleneck"):
        raise UnsupportedError(
            "goal.objective",
            f"milp does not minimise {goal.objective}",
            "use makespan or bottleneck",
        )
    if any(isinstance(task, tuple) for pair in goal.order for task in pair):
        raise UnsupportedError(
            "goal.order",
            "milp does not order transfers",
            "order vertices; under delay, transfers never queue",
        )


def _needs_times(goal: Goal) -> bool:
    """Return whether times matter for a goal, not only the placement."""
    return goal.objective != "bottleneck" or goal.makespan is not None or bool(goal.order)


def _vertex_pairs(goal: Goal) -> tuple[tuple[int, int], ...]:
    return tuple((a, b) for a, b in goal.order if isinstance(a, int) and isinstance(b, int))


def _grid(instance: Instance, makespan: Fraction | None) -> Grid:
    """Return the coarsest exact grid, or a rounded one if that is too fine for the solvers."""
    grid = Grid.of(instance, makespan)
    upper = horizon_without_queues(grid) if makespan is None else grid.floor(makespan)
    return _coarse(grid, upper)


def _grid_of_loads(instance: Instance, makespan: Fraction | None) -> Grid:
    """Return a grid, as :func:`_grid`, on which loads times the channels are moderate numbers."""
    wide = Grid.of(instance)
    longest = max(wide.time(horizon(instance, wide)), makespan or Fraction(0))
    grid = Grid.of(instance, instance.model.parallel * longest)
    return _coarse(grid, instance.model.parallel * grid.floor(longest))


def _coarse(grid: Grid, upper: int) -> Grid:
    """Return the grid, or a coarser one if ``upper`` is too many ticks for the solvers."""
    if upper <= HORIZON:
        return grid
    factor = -(-upper // _ROUNDED)
    # ⌊⌊scale·t⌋ / factor⌋ = ⌊scale·t / factor⌋, and −1 stays −1.
    return replace(
        grid,
        scale=grid.scale / factor,
        exact=False,
        duration=grid.duration // factor,
        delays=grid.delays // factor,
        measured=grid.measured // factor,
        send=grid.send // factor,
    )


class _Solve(SolverRun[MilpTask]):
    worker = WORKER

    def __init__(
        self, job: Job, watch: Watch | None, solver: Solver, starts: Starts | None
    ) -> None:
        super().__init__(job, watch, starts)
        self.solver = solver

    def run(self) -> Result:
        """Start from heuristics and combinatorial bounds, then let the solver close the gap."""
        infeasible = ""
        with self.record.until_interrupted():
            infeasible = self._run()
        method = "milp" if self.solver == "HiGHS" else "milp-cbc"
        return self.record.result(method, infeasible=infeasible)

    def _run(self) -> str:
        """Run the search; return why no schedule satisfies the goal, if that is proven."""
        infeasible = self.goal.contradiction(self.instance) or contradiction(self.instance)
        if infeasible:
            return infeasible
        self.instance = self.goal.narrowed(self.job.instance)
        with limited(self.left):
            self.start(hopeless=self._hopeless())
        if self.reached:
            return ""
        if self.goal.objective == "makespan":
            return self._least_makespan()
        infeasible = self._least_bottleneck()
        self.shorten()
        return infeasible

    def _hopeless(self) -> bool:
        """Return whether the model will be too large, however narrow the windows become."""
        if not _needs_times(self.goal):
            return _rows_of_loads(self.instance) > _MAX_ROWS
        return _rows(self.instance, no_windows(self.instance)) > _HOPELESS * _MAX_ROWS

    def _time_for_bounds(self) -> float:
        """Return the seconds for windows and load: less where nothing follows them."""
        return (_BRIEFLY if self._hopeless() else 1.0) * self.left

    def _windows(self, grid: Grid, limit: int | None) -> Windows:
        if Pruning.WINDOWS in self.without:
            return no_windows(self.instance)
        return windows(self.instance, grid, limit, seconds=self._time_for_bounds())

    def _load(self, grid: Grid, window: Windows) -> int:
        """Return a bound in ticks from the load of the devices."""
        if Pruning.BOUNDS in self.without:
            return 0
        return load_ticks(self.instance, grid, window, seconds=self._time_for_bounds())

    def _least_bottleneck(self) -> str:
        grid = _grid_of_loads(self.instance, self.goal.makespan)
        share = self.instance.model.parallel
        limit = None if self.goal.makespan is None else grid.floor(self.goal.makespan)
        upper = horizon(self.instance, grid) if limit is None else limit
        window = self._windows(grid, limit)
        if window.bound is None:
            return self.excluded_by_bounds()
        lower = self._load(grid, window)
        if limit is not None and lower > limit:
            return self.excluded_by_bounds()
        if Pruning.BOUNDS not in self.without:
            self.record.raise_bound(grid.time(lower))
            least = load_ticks(self.instance, grid, no_windows(self.instance))
            self.record.raise_bound(grid.time(least), "bottleneck")
        if self.record.closed("bottleneck"):
            return ""
        most, reached = share * horizon(self.instance, grid), self.record.values.get("bottleneck")
        if reached is not None and Pruning.INCUMBENT not in self.without:
            most = grid.floor(share * reached)
        least = grid.floor(share * self.record.bounds.get("bottleneck", Fraction(0)))
        task = self._task(grid, window, lower, upper)
        return self._solve(
            replace(task, loads=(least, most), timed=_needs_times(self.goal)), window
        )

    def _least_makespan(self) -> str:
        reached = None if Pruning.INCUMBENT in self.without else self.record.makespan
        limit = self.goal.makespan if reached is None else reached
        grid = _grid(self.instance, limit)
        if limit is None:
            known = self.record.makespan or Fraction(0)
            upper = max(horizon_without_queues(grid), grid.floor(known))
        else:
            upper = grid.floor(limit)
        window = self._windows(grid, upper)
        if window.bound is None:
            return self.excluded_by_bounds()
        lower = self._load(grid, window)
        if lower > upper:
            return self.excluded_by_bounds()
        self.record.raise_bound(grid.time(lower))
        if self.record.closed("makespan"):
            return ""
        return self._solve(self._task(grid, window, lower, upper), window)

    def _solve(self, task: MilpTask, window: Windows) -> str:
        rows = _rows(self.instance, window) if task.timed else _rows_of_loads(self.instance)
        refused = _refusal(self.instance, rows, self.budget)
        if refused is not None:
            self.record.end(*refused)
            return ""
        if self.ask(task) == "INFEASIBLE":
            if self.record.makespan is None:
                return excluded(self.job.instance, "search", self.goal.given)
            self.record.end(
                Termination.FAILED, f"{self.solver} finds no schedule although one is known"
            )
        closed = self.record.closed("makespan" if task.loads is None else "bottleneck")
        if not closed and self.record.termination is Termination.COMPLETED:
            why = self.refused or (_CLOSED if task.grid.exact else _ROUNDING)
            self.record.end(Termination.ROUNDING, why)
        return ""

    def _task(self, grid: Grid, window: Windows, lower: int, upper: int) -> MilpTask:
        restricted = self.instance
        placement = start = None
        sequence: list[int] = []
        alike: list[list[int]] = []
        if Pruning.SYMMETRY not in self.without:
            alike = interchangeable_devices(restricted, self.goal)
        if self.record.incumbent is not None:
            placement = canonical(restricted, self.record.incumbent.placement, alike)
            times = self.record.incumbent.start.fractions()
            start = np.array([grid.floor(time) for time in times], dtype=np.int64)
            sequence = self.record.incumbent.sequence
        need, capacity = whole_memory(restricted, relax=True)
        return MilpTask(
            instance=restricted,
            grid=grid,
            head=window.head,
            tail=window.tail,
            possible=window.possible,
            lower=lower,
            upper=upper,
            need=need,
            capacity=np.where(capacity < UNLIMITED, capacity, -1),
            alike=alike,
            load_cuts=Pruning.LOAD_CUTS not in self.without,
            order=_vertex_pairs(self.goal),
            traffic=self.goal.traffic,
            placement=placement,
            start=start,
            sequence=sequence,
            solver=self.solver,
            contiguous=self.goal.contiguous,
            device_order=self.goal.device_order,
        )

    def take(self, found: Incumbent, task: MilpTask) -> None:
        """Offer what the solver has found; tolerances and rounding may admit invalid schedules."""
        refused = self.record.offer(_timed(task, found))
        self.refused = f"its last schedule is not valid: {refused}" if refused else ""

    def raise_to(self, value: int, task: MilpTask) -> None:
        """Record a bound of the solver, in ticks."""
        if task.loads is None:
            self.record.raise_bound(task.grid.time(value))
        else:
            self.record.raise_bound(task.grid.time(value) / task.channels, "bottleneck")

    def finish(self, status: str) -> None:
        """Record why the solver has ended."""
        if status == _NO_CBC:
            raise UnsupportedError("solver", status, "install it or use HiGHS")
        if status == "FEASIBLE":
            self.record.end(Termination.TIME_LIMIT, "time limit")
        elif status not in ("OPTIMAL", "INFEASIBLE"):
            self.record.end(Termination.FAILED, f"{self.solver} answered: {status}")


def pairs_to_order(instance: Instance, window: Windows) -> int:
    """Return the number of pairs of vertices that may share a device, once per device."""
    devices = window.possible[instance.unit_of].sum(axis=0)
    return sum(int(n) * (int(n) - 1) // 2 for n in devices)


def program_rows(instance: Instance, goal: Goal) -> int:
    """Return the approximate number of rows of the program, if every allowed device is possible."""
    return _rows(instance, no_windows(instance)) if _needs_times(goal) else _rows_of_loads(instance)


def _refusal(instance: Instance, rows: int, budget: Budget) -> tuple[Termination, str] | None:
    if rows > _MAX_ROWS:
        reason = f"too large for MILP (about {rows:,} rows of {_MAX_ROWS:,} at most)"
        return Termination.UNSUPPORTED, reason
    too_much = footprint.excess(footprint.of_milp(instance, rows), budget.memory)
    return (Termination.MEMORY_LIMIT, f"MILP {too_much}") if too_much else None


def _rows(instance: Instance, window: Windows) -> int:
    """Return the approximate number of rows: those for pairs of vertices and those for edges."""
    edges = len(instance.graph.edge_source) * instance.devices
    return pairs_to_order(instance, window) + edges


def _rows_of_loads(instance: Instance) -> int:
    """Return the approximate number of rows if times do not matter: those for transfers."""
    pairs = instance.devices * (instance.devices - 1)
    return len(instance.graph.edge_source) * max(1, pairs)


def _timed(task: MilpTask, found: Incumbent) -> Schedule:
    """Return the solver's placement and order, timed exactly."""
    if found.start is None:
        first_to_last = task.instance.graph.topological_order.tolist()
        return retime(task.instance, found.placement, first_to_last)
    start, placement = found.start.tolist(), found.placement.tolist()
    end = [start[v] + int(task.grid.duration[v, d]) for v, d in enumerate(placement)]
    import networkx as nx  # slow to load, and not needed to tell what the method supports

    order: nx.DiGraph[int] = nx.DiGraph()
    order.add_nodes_from(range(len(start)))
    order.add_edges_from(passed_tensors(task.instance))
    # The given order breaks ties between vertices that start and end together.
    for a, b in task.order:
        if placement[a] == placement[b] and not nx.has_path(order, b, a):
            order.add_edge(a, b)
    sequence = nx.lexicographical_topological_sort(order, key=lambda v: (start[v], end[v], v))
    return retime(task.instance, placement, list(sequence))
