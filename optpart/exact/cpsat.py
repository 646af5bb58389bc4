"""CP-SAT: proven optima of the ``delay`` problem."""

from __future__ import annotations

import threading
import time
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from optpart.bounds.load import load_ticks
from optpart.bounds.windows import Windows, windows
from optpart.compiled import UNLIMITED, arrays, whole_memory
from optpart.errors import UnsupportedError
from optpart.exact.alike import alike_devices, canonical
from optpart.exact.messages import Done, Incumbent, Limits, LowerBound
from optpart.exact.model import Task
from optpart.exact.process import SolverDiedError, SolverProcess
from optpart.feasibility import contradiction
from optpart.instance import Instance
from optpart.result import Budget, Progress, Result, Watch, conclude
from optpart.result import gap as relative_gap
from optpart.schedule import Schedule, retime
from optpart.ticks import Grid
from optpart.verify import verify

#: Width of a rounded grid: wide enough to close a gap to about one in a million, narrow enough
#: for the solver's linear programs.
_TICKS = 2**26

#: Larger models take longer to build and load than anybody waits for a better bound.
_MAX_TERMS = 4_000_000

#: A rounded grid is refined while the gap is larger than this and a finer one is at hand.
_CLOSED = 1e-6
_FINER = 4

_ROUNDED = "closed but for rounding"

# One process serves one solve after the other; a solve beside it in another thread gets its own.
_solver = SolverProcess()
_solver_is_free = threading.Lock()


def cpsat(
    instance: Instance,
    *,
    budget: Budget | None = None,
    seed: int = 0,
    start: Schedule | None = None,
    watch: Watch | None = None,
) -> Result:
    """Solve an instance with CP-SAT.

    Supports ``delay`` with memory ``none`` and ``estimate``, colocation, allowed devices, given
    run times and transfer times, missing links and separation.

    Parameters
    ----------
    start : Schedule, optional
        Where to start from; otherwise the best of the heuristics.

    Raises
    ------
    UnsupportedError
        If the instance has another communication or memory model.
    """
    model = instance.model
    if model.communication != "delay" or model.memory not in ("none", "estimate"):
        raise UnsupportedError(
            "model",
            f"cpsat does not solve {model.communication} with memory {model.memory}",
            "use delay with none or estimate",
        )
    return _Solve(instance, budget or Budget(), seed, watch).run(start)


class _Solve:
    """One run: the incumbent and the bound in exact time, and the trace of both."""

    def __init__(self, instance: Instance, budget: Budget, seed: int, watch: Watch | None) -> None:
        self.instance = instance
        self.budget = budget
        self.seed = seed
        self.watch = watch
        self.begin = time.perf_counter()
        self.incumbent: Schedule | None = None
        self.makespan: Fraction | None = None
        self.bound = Fraction(0)
        self.trace: list[Progress] = []
        self.reason = ""
        self.refused = ""

    def run(self, start: Schedule | None) -> Result:
        """Start from heuristics and combinatorial bounds, then let the solver close the gap."""
        infeasible = contradiction(self.instance)
        try:
            if not infeasible:
                self._start(start)
                infeasible = self._search()
        except KeyboardInterrupt:
            self.reason = "interrupted"
        return conclude(
            self.instance,
            "cpsat",
            self.incumbent,
            bound=None if infeasible else self.bound,
            infeasible=infeasible,
            reason=self.reason,
            seconds=time.perf_counter() - self.begin,
            seed=self.seed,
            workers=self.budget.workers,
            trace=tuple(self.trace),
        )

    def _start(self, start: Schedule | None) -> None:
        from optpart import methods

        if start is not None and not verify(self.instance, start, most=1):
            self._offer(start)
        for name in methods.heuristics():
            schedule = methods.get(name)(self.instance, seed=self.seed).schedule
            if schedule is not None:
                self._offer(schedule)

    def _offer(self, schedule: Schedule) -> None:
        makespan = schedule.makespan(self.instance)
        if self.makespan is None or makespan < self.makespan:
            self.incumbent, self.makespan = schedule, makespan
            self._report()

    def _raise(self, bound: Fraction) -> None:
        if bound > self.bound:
            self.bound = bound
            self._report()

    def _report(self) -> None:
        step = Progress(time.perf_counter() - self.begin, self.makespan, self.bound)
        self.trace.append(step)
        if self.watch is not None:
            self.watch(step)

    def _search(self) -> str:
        """Return why the instance is infeasible, if the solver proves that."""
        scale = None
        while True:
            grid = Grid.of(self.instance, self.makespan, _TICKS)
            if scale is not None and grid.scale < _FINER * scale:
                return ""
            infeasible = self._solve_on(grid)
            gap = relative_gap(self.makespan, self.bound)
            if infeasible or grid.exact or self.reason != _ROUNDED or (gap or 0.0) <= _CLOSED:
                return infeasible
            # A poor start makes a coarse grid; from a better incumbent a finer one may close more.
            scale = grid.scale

    def _solve_on(self, grid: Grid) -> str:
        instance = self.instance
        self.reason = ""
        upper = None if self.makespan is None else grid.floor(self.makespan)
        window = windows(instance, grid, upper)
        if window.bound is None:
            if upper is not None:
                raise AssertionError("windows exclude a verified schedule; please report this")
            return "no device is left for some unit once missing links are taken into account"
        lower = load_ticks(instance, grid, window)
        self._raise(grid.time(lower))
        if self.bound == self.makespan:
            return ""
        if (terms := _terms(instance, window)) > _MAX_TERMS:
            self.reason = f"too large for CP-SAT ({terms:,} terms of {_MAX_TERMS:,} at most)"
            return ""
        left = self.budget.seconds - (time.perf_counter() - self.begin)
        if left <= 0:
            self.reason = "time limit"
            return ""
        task = self._task(grid, window, lower, upper)
        limits = Limits(left, self.budget.workers, self.seed, self.budget.deterministic)
        status = self._listen(task, limits, grid)
        if status == "INFEASIBLE" and self.makespan is None:
            return f"{_limits(instance)} leave no placement (proven by search)"
        if self.reason == "" and self.makespan != self.bound:
            self.reason = self.refused or _ROUNDED
        return ""

    def _task(self, grid: Grid, window: Windows, lower: int, upper: int | None) -> Task:
        need, capacity = whole_memory(self.instance, relax=True)
        alike = alike_devices(self.instance)
        placement: NDArray[np.int32] | None = None
        start = None
        if self.incumbent is not None:
            placement = canonical(self.instance, self.incumbent.placement, alike)
            start = np.array(
                [grid.floor(time) for time in self.incumbent.start.fractions()], dtype=np.int64
            )
        if upper is None:
            upper = _serial(grid)
        return Task(
            self.instance,
            grid,
            window.head,
            window.tail,
            window.possible,
            lower,
            upper,
            need,
            np.where(capacity < UNLIMITED, capacity, -1),
            placement,
            start,
            alike,
        )

    def _listen(self, task: Task, limits: Limits, grid: Grid) -> str:
        status = ""
        shared = _solver_is_free.acquire(blocking=False)
        solver = _solver if shared else SolverProcess()
        try:
            for message in solver.solve(task, limits):
                match message:
                    case Incumbent():
                        schedule = self._timed(message, grid)
                        refused = verify(self.instance, schedule, most=1)
                        if refused:  # where memory had to be rounded to fit the solver's integers
                            self.refused = f"rounding lets through what does not hold: {refused[0]}"
                        else:
                            self._offer(schedule)
                    case LowerBound():
                        self._raise(grid.time(message.ticks))
                    case Done():
                        status = message.status
                        if message.ticks is not None:
                            self._raise(grid.time(message.ticks))
                        if status in ("FEASIBLE", "UNKNOWN"):
                            self.reason = "time limit"
                        elif status not in ("OPTIMAL", "INFEASIBLE"):
                            self.reason = f"the solver answered {status}"
        except SolverDiedError as error:
            self.reason = str(error)
        finally:
            if shared:
                _solver_is_free.release()
            else:
                solver.stop()
        return status

    def _timed(self, found: Incumbent, grid: Grid) -> Schedule:
        """The solver's placement and order, timed exactly."""
        vertices = np.arange(self.instance.vertices)
        end = found.start + grid.duration[vertices, found.placement]
        position = np.empty(len(end), dtype=np.int64)
        position[self.instance.graph.topological_order] = np.arange(len(end))
        order = np.lexsort((position, end, found.start)).tolist()
        return retime(self.instance, found.placement, order)


def _serial(grid: Grid) -> int:
    """Everything one after the other: no earliest-start schedule takes longer."""
    transfers = grid.delays.max(axis=1, initial=0)[
        np.minimum(grid.size_class, len(grid.delays) - 1)
    ]
    measured = grid.measured.max(axis=(1, 2), initial=0)
    return int(grid.duration.max(axis=1, initial=0).sum() + transfers.sum() + measured.sum())


def _limits(instance: Instance) -> str:
    """Name the kinds of constraints that can make this instance infeasible."""
    kinds = {
        "allowed devices": not instance.allowed.all(),
        "colocation": len(instance.units) < instance.vertices,
        "separation": bool(instance.graph.separation),
        "missing links": arrays(instance).may_block,
        "memory": instance.model.memory == "estimate",
    }
    present = [kind for kind, there in kinds.items() if there]
    return " and ".join([", ".join(present[:-1]), present[-1]] if present[1:] else present)


def _terms(instance: Instance, window: Windows) -> int:
    """Size of the model: terms of its largest constraint group."""
    devices = window.possible.sum(axis=1)[instance.unit_of]
    graph = instance.graph
    return int((devices[graph.edge_source] * devices[graph.edge_target]).sum())
