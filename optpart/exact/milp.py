"""Mixed-integer linear programming for the ``delay`` model.

The formulation is independent of that for CP-SAT (``models/README.md``), so that each checks the
other.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from optpart.bounds.load import load_ticks
from optpart.bounds.windows import Windows, no_windows, windows
from optpart.clock import limited
from optpart.errors import UnsupportedError
from optpart.exact.block_starts import block_schedules
from optpart.exact.messages import Done, Incumbent, Limits, LowerBound, Waiting
from optpart.exact.milp_job import Job, Solver, passed_tensors
from optpart.exact.model_data import channels
from optpart.exact.process import (
    SolverDiedError,
    SolverLateError,
    SolverTooLargeError,
    borrowed,
    prompt_grace,
)
from optpart.exact.pruning import NONE, Pruning
from optpart.exact.retiming import prompt
from optpart.exact.symmetry import canonical, interchangeable_devices
from optpart.kernels.compiled import UNLIMITED, whole_memory
from optpart.kernels.horizon import horizon, horizon_without_queues
from optpart.kernels.ticks import Grid
from optpart.limits import check_seed
from optpart.problem import footprint
from optpart.problem.feasibility import contradiction, excluded
from optpart.problem.instance import Instance
from optpart.solution.goal import Goal
from optpart.solution.record import Record
from optpart.solution.result import Budget, Result, Starts, Watch, no_starts
from optpart.solution.schedule import Schedule, retime
from optpart.solution.termination import Termination

#: Longest horizon in ticks: beyond it, the solvers' tolerances are not small relative to a tick.
HORIZON = 10**6

#: Width of a rounded grid in ticks.
_ROUNDED = 2**16

#: Share of the time after which no further heuristic is tried for a start.
_STARTING = 0.2

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

_MAKESPAN = Goal()


def solve_milp(
    instance: Instance,
    *,
    budget: Budget | None = None,
    seed: int = 0,
    start: Schedule | None = None,
    watch: Watch | None = None,
    goal: Goal = _MAKESPAN,
    solver: Solver = "HiGHS",
    without: frozenset[Pruning] = NONE,
    starts: Starts | None = None,
) -> Result:
    """Solve an instance as a mixed-integer linear program.

    Supports ``delay`` with memory ``none`` or ``estimate``, colocation, allowed devices, given run
    times and transfer times, missing links and separation. A goal may minimise makespan or
    bottleneck, and may give a placement, orders of vertices, contiguous blocks, an order of
    devices, and limits on makespan and traffic. The bottleneck is minimised under every
    communication model if neither an order nor a limit on the makespan is given.

    Parameters
    ----------
    budget : Budget, optional
        Only wall-clock seconds count. The solvers have no deterministic limit, and they search in
        one thread regardless of the number of workers.
    start : Schedule, optional
        The initial schedule, used if it satisfies the goal.
    goal : Goal
    solver : {"HiGHS", "CBC"}
    without : frozenset of Pruning
        Pruning rules to disable. Solving is slower, but the answer is the same if all rules are
        correct.
    starts : callable, optional
        Generates further initial schedules.

    Raises
    ------
    UnsupportedError
        If the instance has another communication or memory model, if the goal has another
        objective or orders transfers, or if the solver is not installed.

    Notes
    -----
    **Validity of bounds.** The solvers compute in floating point.
    :func:`~optpart.exact.milp_job.proven_ticks` converts their dual bound ``B`` to whole ticks with
    a margin for their tolerances: ``⌈B − ¼ − τ⌉``, where ``τ = 10⁻⁹ · horizon · (starts + 3 ·
    rows)``. This is not a certificate: neither an error beyond the solver's own tolerances nor a
    wrong "infeasible" would be noticed. Schedules do not depend on tolerances: the solver's order
    is timed again in exact arithmetic and verified.

    The grid is the coarsest exact one. If the horizon exceeds a million of its ticks, the
    tolerances would be too large relative to a tick; times are then rounded down to a grid of 2¹⁶
    ticks, whose bounds are valid for the exact problem.
    """
    check_seed(seed)
    check_scope(instance, goal)
    return _Solve(instance, budget or Budget(), seed, watch, goal, solver, without, starts).run(
        start
    )


def check_scope(instance: Instance, goal: Goal) -> None:
    """Raise :class:`UnsupportedError` if the method does not support the model or the goal."""
    model = instance.model
    placed = goal.objective == "bottleneck" and not _needs_times(goal)
    if not (placed or model.communication == "delay") or model.memory not in ("none", "estimate"):
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
    goal.check(instance)
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
    grid = Grid.of(instance, channels(instance) * longest)
    return _coarse(grid, channels(instance) * grid.floor(longest))


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


class _Solve:
    """One run, from the first bound to the proof or the end of the budget."""

    def __init__(
        self,
        instance: Instance,
        budget: Budget,
        seed: int,
        watch: Watch | None,
        goal: Goal,
        solver: Solver,
        without: frozenset[Pruning],
        starts: Starts | None,
    ) -> None:
        self.record = Record(instance, goal, watch, bound=Fraction(0))
        self.instance = instance
        self.budget = budget
        self.seed = seed
        self.goal = goal
        self.solver = solver
        self.without = without
        self.starts = starts
        self.refused = ""

    def run(self, start: Schedule | None) -> Result:
        """Start from heuristics and combinatorial bounds, then let the solver close the gap."""
        infeasible = ""
        with self.record.until_interrupted():
            infeasible = self._run(start)
        method = "milp" if self.solver == "HiGHS" else "milp-cbc"
        return self.record.result(method, infeasible=infeasible, seed=self.seed)

    def _run(self, start: Schedule | None) -> str:
        """Run the search; return why no schedule satisfies the goal, if that is proven."""
        infeasible = self.goal.contradiction(self.instance) or contradiction(self.instance)
        if infeasible:
            return infeasible
        restricted = self.goal.narrowed(self.instance)
        with limited(self._left()):
            self._start(start, restricted)
        if self.goal.decides and self.record.incumbent is not None:
            return ""
        return self._search(restricted)

    def _start(self, start: Schedule | None, restricted: Instance) -> None:
        if start is not None:
            self.goal.require_kept(self.instance, start)
            self.record.offer_start(start)
        # The solver cannot improve what is too large for it: one start is enough.
        large = self._hopeless(restricted)
        starts = self.starts or no_starts
        for schedule in starts(restricted, self.seed, self.budget.memory):
            self.record.offer_verified(schedule)
            late = self.record.seconds > _STARTING * self.budget.seconds
            if (late or large) and self.record.incumbent is not None:
                break
        if self.goal.blocks:
            for schedule in block_schedules(restricted, self.goal):
                self.record.offer(schedule)

    def _hopeless(self, restricted: Instance) -> bool:
        """Return whether the model will be too large, however narrow the windows become."""
        if not _needs_times(self.goal):
            return _rows_of_loads(restricted) > _MAX_ROWS
        return _rows(restricted, no_windows(restricted)) > _HOPELESS * _MAX_ROWS

    def _time_for_windows(self, restricted: Instance) -> float:
        """Return the seconds for windows and load: less where nothing follows them."""
        return (_BRIEFLY if self._hopeless(restricted) else 1.0) * self._left()

    def _left(self) -> float:
        """Return the seconds that are left."""
        return max(0.0, self.budget.seconds - self.record.seconds)

    def _search(self, restricted: Instance) -> str:
        if self.goal.objective == "makespan":
            return self._least_makespan(restricted)
        infeasible = self._least_bottleneck(restricted)
        if self.record.incumbent is not None and not self.goal.order:
            self.record.offer(prompt(self.instance, self.record.incumbent.placement))
        return infeasible

    def _least_bottleneck(self, restricted: Instance) -> str:
        grid, share = _grid_of_loads(restricted, self.goal.makespan), channels(restricted)
        lower, upper = 0, horizon(restricted, grid)
        limit = None if self.goal.makespan is None else grid.floor(self.goal.makespan)
        if limit is not None:
            upper = limit
        if Pruning.WINDOWS in self.without:
            window = no_windows(restricted)
        else:
            window = windows(restricted, grid, limit, seconds=self._time_for_windows(restricted))
        if window.bound is None:
            return self._excluded()
        if Pruning.BOUNDS not in self.without:
            lower = load_ticks(restricted, grid, window, seconds=self._time_for_windows(restricted))
            if limit is not None and lower > limit:
                return self._excluded()
            self.record.raise_bound(grid.time(lower))
            least = load_ticks(restricted, grid, no_windows(restricted))
            self.record.raise_bottleneck_bound(grid.time(least))
        if self.record.bottleneck == self.record.bottleneck_bound:
            return ""
        most, reached = share * horizon(restricted, grid), self.record.bottleneck
        if reached is not None and Pruning.INCUMBENT not in self.without:
            most = grid.floor(share * reached)
        least = grid.floor(share * (self.record.bottleneck_bound or Fraction(0)))
        job = self._job(restricted, grid, window, lower, upper)
        return self._solve(replace(job, loads=(least, most), timed=_needs_times(self.goal)), window)

    def _excluded(self) -> str:
        if self.record.makespan is not None:
            raise AssertionError("bounds exclude a verified schedule; please report this")
        return excluded(self.instance, "bounds", self.goal.given)

    def _least_makespan(self, restricted: Instance) -> str:
        reached = None if Pruning.INCUMBENT in self.without else self.record.makespan
        limit = self.goal.makespan if reached is None else reached
        grid = _grid(restricted, limit)
        if limit is None:
            known = self.record.makespan or Fraction(0)
            upper = max(horizon_without_queues(grid), grid.floor(known))
        else:
            upper = grid.floor(limit)
        if Pruning.WINDOWS in self.without:
            window = no_windows(restricted)
        else:
            window = windows(restricted, grid, upper, seconds=self._time_for_windows(restricted))
        lower: int | None = 0
        if window.bound is None:
            lower = None
        elif Pruning.BOUNDS not in self.without:
            lower = load_ticks(restricted, grid, window, seconds=self._time_for_windows(restricted))
        if lower is None or lower > upper:
            return self._excluded()
        self.record.raise_bound(grid.time(lower))
        if self.record.makespan == self.record.bound:
            return ""
        return self._solve(self._job(restricted, grid, window, lower, upper), window)

    def _solve(self, job: Job, window: Windows) -> str:
        rows = _rows(job.instance, window) if job.timed else _rows_of_loads(job.instance)
        refused = _refusal(job.instance, rows, self.budget)
        if refused is not None:
            self.record.end(*refused)
            return ""
        left = self.budget.seconds - self.record.seconds
        if left <= 0:
            self.record.end(Termination.TIME_LIMIT, "time limit")
            return ""
        status = self._listen(job, Limits(left, 1, self.seed, None, self.budget.memory))
        if status == "INFEASIBLE":
            if self.record.makespan is None:
                return excluded(self.instance, "search", self.goal.given)
            self.record.end(
                Termination.FAILED, f"{self.solver} finds no schedule although one is known"
            )
        closed = self.record.makespan == self.record.bound
        if job.loads is not None:
            closed = self.record.bottleneck == self.record.bottleneck_bound
        if not closed and self.record.termination is Termination.COMPLETED:
            why = self.refused or (_CLOSED if job.grid.exact else _ROUNDING)
            self.record.end(Termination.ROUNDING, why)
        return ""

    def _job(
        self, restricted: Instance, grid: Grid, window: Windows, lower: int, upper: int
    ) -> Job:
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
        return Job(
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

    def _listen(self, job: Job, limits: Limits) -> str:
        status = ""
        try:
            with borrowed(WORKER) as process:
                for message in process.solve(job, limits, prompt_grace(limits)):
                    status = self._hear(message, job) or status
        except SolverLateError:
            self.record.end(Termination.TIME_LIMIT, "time limit")
        except SolverTooLargeError as error:
            self.record.end(Termination.MEMORY_LIMIT, str(error))
        except SolverDiedError as error:
            self.record.end(Termination.FAILED, str(error))
        return status

    def _hear(self, message: Incumbent | LowerBound | Waiting | Done, job: Job) -> str:
        """Process one message of the solver; return its status if it is the last one."""
        match message:
            case Waiting():
                self.record.pulse()
            case Incumbent():
                refused = self.record.offer(_timed(job, message))
                # Tolerances and rounding may admit invalid schedules.
                self.refused = f"its last schedule is not valid: {refused}" if refused else ""
            case LowerBound() if job.loads is not None:
                self.record.raise_bottleneck_bound(job.grid.time(message.value) / job.channels)
            case LowerBound():
                self.record.raise_bound(job.grid.time(message.value))
            case Done():
                if message.status == _NO_CBC:
                    raise UnsupportedError("solver", message.status, "install it or use HiGHS")
                if message.status == "FEASIBLE":
                    self.record.end(Termination.TIME_LIMIT, "time limit")
                elif message.status not in ("OPTIMAL", "INFEASIBLE"):
                    said = f"{self.solver} answered: {message.status}"
                    self.record.end(Termination.FAILED, said)
                return message.status
        return ""


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


def _timed(job: Job, found: Incumbent) -> Schedule:
    """Return the solver's placement and order, timed exactly."""
    if found.start is None:
        first_to_last = job.instance.graph.topological_order.tolist()
        return retime(job.instance, found.placement, first_to_last)
    start, placement = found.start.tolist(), found.placement.tolist()
    end = [start[v] + int(job.grid.duration[v, d]) for v, d in enumerate(placement)]
    import networkx as nx  # slow to load, and not needed to tell what the method supports

    order: nx.DiGraph[int] = nx.DiGraph()
    order.add_nodes_from(range(len(start)))
    order.add_edges_from(passed_tensors(job.instance))
    # The given order breaks ties between vertices that start and end together.
    for a, b in job.order:
        if placement[a] == placement[b] and not nx.has_path(order, b, a):
            order.add_edge(a, b)
    sequence = nx.lexicographical_topological_sort(order, key=lambda v: (start[v], end[v], v))
    return retime(job.instance, placement, list(sequence))
