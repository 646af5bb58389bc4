"""Intervals: exact solutions of small parts of the graph make heads and tails larger.

The vertices on the paths from ``a`` to ``b``, both on a critical path, are placed and ordered by
CP-SAT as if nothing else existed, but none before its head. With ``B`` the least of
``start(b) + p[b,d] + tail[b,d]`` over all schedules of the interval, no schedule starts ``b`` on a
device ``d`` before ``B − p[b,d] − tail[b,d]``: one solve yields a head for every device, with the
tails as potentials that say what each device is worth. The next interval begins at ``b`` with its
new heads, so that the gains along a critical path add up. Tails follow likewise, backwards.

All devices but the few best for the interval are merged into one that is at least as good as any of
them: it has the least run times, heads, tails and delays, and runs everything at once.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from optpart import clock
from optpart.bounds.one_machine import sharpened
from optpart.bounds.windows import NEVER, Windows, windows
from optpart.kernels.ticks import Grid
from optpart.problem.instance import Instance

#: Vertices of an interval at most, one pass after the other.
_SIZES = (24, 40, 64, 96)

#: Seconds of a solve at most, per vertex of the interval.
_PER_VERTEX = 0.1

#: Devices that are not merged.
_APART = 4

#: Times are rounded down so that an interval takes about this many ticks.
_TICKS = 2**20

#: Share of the time for sharpening before the first interval.
_SHARPENING = 0.3


def interval_bound(
    instance: Instance,
    seconds: float = np.inf,
    makespan: Fraction | None = None,
    *,
    workers: int = 2,
    seed: int = 0,
) -> Fraction | None:
    """Bound the makespan by heads and tails of intervals that are solved exactly.

    Parameters
    ----------
    seconds : float
        Time limit. The work ends when longer intervals bring nothing.
    makespan : Fraction, optional
        Makespan of a schedule; the work ends when the bound reaches it.

    Returns
    -------
    Fraction or None
        ``None`` if some unit has no device at all, which proves the instance infeasible.
    """
    deadline = clock.now() + seconds
    grid = Grid.of(instance)
    window = windows(instance, grid)
    if window.bound is None:
        return None
    window = sharpened(instance, grid, window, seconds=_SHARPENING * seconds)
    work = Intervals(instance, grid, window, deadline, workers, seed)
    enough = None if makespan is None else grid.floor(makespan)
    for size in _SIZES:
        before = work.bound
        for backwards in (False, True):
            if work.bound is None:
                return None
            if work.bound == enough or clock.now() > deadline:
                return grid.time(work.bound)
            work.sweep(size, backwards)
        if work.bound == before:
            break
    return None if work.bound is None else grid.time(work.bound)


class _Part(NamedTuple):
    """An interval: its vertices, and the one whose head or tail is to be raised."""

    members: list[int]
    goal: int


class Intervals:
    """Heads and tails of an instance, raised by intervals until a deadline."""

    def __init__(
        self,
        instance: Instance,
        grid: Grid,
        window: Windows,
        deadline: float,
        workers: int = 2,
        seed: int = 0,
    ) -> None:
        self.instance, self.grid, self.window = instance, grid, window
        self.deadline = deadline
        self.workers, self.seed = workers, seed
        graph, n = instance.graph, instance.vertices
        self.successors: list[dict[int, list[int]]] = [{} for _ in range(n)]
        self._predecessors: list[list[int]] = [[] for _ in range(n)]
        edges = zip(
            graph.edge_source.tolist(),
            graph.edge_target.tolist(),
            graph.edge_tensor.tolist(),
            strict=True,
        )
        for u, v, tensor in edges:
            if v not in self.successors[u]:
                self.successors[u][v] = []
                self._predecessors[v].append(u)
            self.successors[u][v].append(tensor)
        self._position = np.empty(n, dtype=np.int64)
        self._position[graph.topological_order] = np.arange(n)

    @property
    def bound(self) -> int | None:
        """Lower bound of the makespan in ticks; ``None`` if some unit has no device."""
        return self.window.bound

    def sweep(self, size: int, backwards: bool) -> None:
        """Solve the intervals of a critical path, each from where the one before ends."""
        path = self.critical_path()
        if backwards:
            path.reverse()
        first = 0
        while first < len(path) - 1 and clock.now() < self.deadline:
            step = min(size, len(path) - 1 - first)
            while True:
                members = self._between(path[first], path[first + step], backwards)
                if len(members) <= size or step == 1:
                    break
                step = max(1, 3 * step // 4)
            if 2 < len(members) <= size:
                self._raise(_Part(members, path[first + step]), backwards)
            first += step

    def critical_path(self) -> list[int]:
        """Return a path through the vertex that bounds the makespan, along the most critical."""
        reach = self.through().min(axis=1, initial=NEVER)
        path = [int(reach.argmax())] if len(reach) else []
        while path and self._predecessors[path[-1]]:
            path.append(max(self._predecessors[path[-1]], key=lambda u: (reach[u], -u)))
        path.reverse()
        while path and self.successors[path[-1]]:
            path.append(max(self.successors[path[-1]], key=lambda v: (reach[v], -v)))
        return path

    def through(self) -> NDArray[np.int64]:
        """Return head + run time + tail, n × k."""
        window = self.window
        total = window.head + self.grid.duration + window.tail
        return np.where((window.head < NEVER) & (window.tail < NEVER), total, NEVER)

    def _between(self, a: int, b: int, backwards: bool) -> list[int]:
        """Return the vertices on the paths between two vertices, in topological order."""
        if backwards:
            a, b = b, a
        low, high = self._position[a], self._position[b]
        after, before = {a}, {b}
        reached = [a]
        while reached:
            for v in self.successors[reached.pop()]:
                if v not in after and self._position[v] <= high:
                    after.add(v)
                    reached.append(v)
        reached = [b]
        while reached:
            for u in self._predecessors[reached.pop()]:
                if u not in before and self._position[u] >= low:
                    before.add(u)
                    reached.append(u)
        return sorted(after & before, key=lambda v: int(self._position[v]))

    def _raise(self, part: _Part, backwards: bool) -> None:
        """Solve an interval, and raise the head or the tail of its goal on every device."""
        left = min(self.deadline - clock.now(), _PER_VERTEX * len(part.members))
        if left <= 0:
            return
        goal, window = part.goal, self.window
        least = self._solved(part, backwards, left)
        raised = window.head.copy(), window.tail.copy()
        here, there = raised[::-1] if backwards else raised
        usable = (here[goal] < NEVER) & (there[goal] < NEVER)
        known = np.where(usable, here[goal] + self.grid.duration[goal] + there[goal], NEVER)
        if least <= known.min():
            return
        from_here = least - self.grid.duration[goal] - there[goal]
        here[goal] = np.where(usable, np.maximum(here[goal], from_here), here[goal])
        known_windows = replace(window, head=raised[0], tail=raised[1])
        self.window = windows(
            self.instance, self.grid, allowed=window.possible, known=known_windows
        )

    def _solved(self, part: _Part, backwards: bool, seconds: float) -> int:
        """Return the least head + run time + tail of the goal that the solver proves, in ticks."""
        model = _Model(self, part, backwards)
        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = seconds
        solver.parameters.num_workers = self.workers
        solver.parameters.random_seed = self.seed
        if solver.solve(model.model) == cp_model.INFEASIBLE:
            return model.ticks(model.limit + 1)
        return model.ticks(round(solver.best_objective_bound))


class _Model:
    """The CP-SAT model of an interval.

    Time is counted from the least head, up to the least tail, in coarse ticks rounded down.
    Forwards, no vertex starts before its head, and the goal, the last one, ends with its tail.
    Backwards, the goal, the first one, starts at its head, and every vertex ends before its tail.

    Attributes
    ----------
    limit : int
        The objective is at most this; if there is no solution, it is more.
    """

    def __init__(self, of: Intervals, part: _Part, backwards: bool) -> None:
        self.model = cp_model.CpModel()
        self._instance, self._grid, self._window = of.instance, of.grid, of.window
        self._members = members = part.members
        window = of.window
        through = of.through()
        self._groups = self._grouped(through)
        self._begin = int(window.head[members].min())
        self._end = int(window.tail[members].min())
        likely = max(1, int(through[part.goal].min()) - self._begin - self._end)
        self._coarse = max(1, likely // _TICKS)
        self.limit = 2 * (likely // self._coarse)
        run = self._least(of.grid.duration)
        head = self._least(window.head - self._begin)
        tail = self._least(window.tail - self._end)
        self._chosen = self._units()
        self._start = {v: self.model.new_int_var(0, self.limit, "") for v in members}
        makespan = self.model.new_int_var(0, self.limit, "")
        for i, v in enumerate(members):
            if (v == part.goal) == backwards:
                self.model.add(self._start[v] >= self._at(v, head[i]))
            if (v == part.goal) != backwards:
                self.model.add(makespan >= self._start[v] + self._at(v, run[i] + tail[i]))
            for w, tensors in of.successors[v].items():
                if w in self._start:
                    self._follow(v, w, tensors, run[i])
        for g, devices in enumerate(self._groups):
            if len(devices) == 1:
                self._one_at_a_time(g, run[:, g].tolist(), makespan)
        self.model.minimize(makespan)

    def ticks(self, objective: int) -> int:
        """Return an objective in the ticks of the grid."""
        return objective * self._coarse + self._begin + self._end

    def _grouped(self, through: NDArray[np.int64]) -> list[list[int]]:
        """Return groups of devices; all but the best for the interval are one."""
        ranked = through[self._members].sum(axis=0, dtype=np.float64).argsort(kind="stable")
        if len(ranked) <= _APART + 1:
            return [[d] for d in ranked.tolist()]
        return [*([d] for d in ranked[:_APART].tolist()), ranked[_APART:].tolist()]

    def _least(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return, per vertex and group, the least time on a possible device in coarse ticks."""
        possible = self._window.possible[self._instance.unit_of[self._members]]
        least = np.where(possible, times[self._members], NEVER)
        best = np.stack([least[:, devices].min(axis=1) for devices in self._groups], axis=1)
        return np.asarray(np.where(best < NEVER, best // self._coarse, 0))

    def _units(self) -> dict[int, list[Any]]:
        """Return a literal per unit and group, ``None`` where a unit cannot be."""
        instance, possible = self._instance, self._window.possible
        chosen: dict[int, list[Any]] = {}
        for unit in sorted(set(instance.unit_of[self._members].tolist())):
            chosen[unit] = [
                self.model.new_bool_var("") if possible[unit, devices].any() else None
                for devices in self._groups
            ]
            self.model.add_exactly_one(x for x in chosen[unit] if x is not None)
        for a, b in instance.separated_units:
            for g, devices in enumerate(self._groups):
                if a in chosen and b in chosen and len(devices) == 1:
                    pair = (chosen[a][g], chosen[b][g])
                    self.model.add_at_most_one(x for x in pair if x is not None)
        return chosen

    def _literals(self, v: int) -> list[Any]:
        return self._chosen[int(self._instance.unit_of[v])]

    def _at(self, v: int, times: NDArray[np.int64]) -> Any:
        """Return the time of the group where a vertex is."""
        pairs = zip(times.tolist(), self._literals(v), strict=True)
        return sum(t * x for t, x in pairs if x is not None)

    def _follow(self, u: int, v: int, tensors: list[int], run: NDArray[np.int64]) -> None:
        """Start a vertex when what it gets from another has arrived."""
        if self._instance.unit_of[u] == self._instance.unit_of[v]:
            self.model.add(self._start[v] >= self._start[u] + self._at(u, run))
            return
        for g, here in enumerate(self._literals(v)):
            if here is None:
                continue
            arrival = run.copy()
            for f, there in enumerate(self._literals(u)):
                delay = self._delay(tensors, f, g)
                if delay is not None:
                    arrival[f] += delay
                elif there is not None:
                    self.model.add_at_most_one(here, there)
            arrived = self._start[u] + self._at(u, arrival)
            self.model.add(self._start[v] >= arrived).only_enforce_if(here)

    def _delay(self, tensors: list[int], f: int, g: int) -> int | None:
        """Return the least time of a crossing between groups; ``None`` if there is no link."""
        if f == g:
            return 0
        grid = self._grid
        sends = self._instance.model.communication == "sendrecv"
        found = []
        for d in self._groups[f]:
            for e in self._groups[g]:
                delays = [grid.delay(tensor, d, e) for tensor in tensors]
                if min(delays) >= 0:
                    found.append(max(delays) + (int(grid.send[d]) if sends else 0))
        return min(found) // self._coarse if found else None

    def _one_at_a_time(self, g: int, run: list[int], makespan: Any) -> None:
        """Run one vertex at a time on a device, all of them before the end."""
        here = [
            (v, time, self._literals(v)[g])
            for v, time in zip(self._members, run, strict=True)
            if self._literals(v)[g] is not None
        ]
        new = self.model.new_optional_fixed_size_interval_var
        self.model.add_no_overlap(new(self._start[v], time, x, "") for v, time, x in here)
        self.model.add(sum(time * x for _, time, x in here) <= makespan)
