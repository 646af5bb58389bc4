"""Intervals: exact solutions of small parts of the graph make heads and tails larger.

The vertices on the paths from ``a`` to ``b``, both on a critical path, are placed and ordered by
CP-SAT as if nothing else existed, but none before its head. With ``B`` the least of
``start(b) + p[b,d] + tail[b,d]`` over all schedules of the interval, no schedule starts ``b`` on a
device ``d`` before ``B − p[b,d] − tail[b,d]``: one solve yields a head for every device, with the
tails as potentials that say what each device is worth. The next interval begins at ``b`` with its
new heads, so that the gains along a critical path add up. Tails follow likewise, backwards.

All devices but the few best for the interval are merged into a *pool*, which is at least as good as
any of them: it has the least run times, heads, tails and delays. Which of its devices a unit is on
is not decided, but whether two units are on the same one: a tensor that passes between adjacent
units of the pool is there at once only if they are *together*. Otherwise it crosses some link of
the pool, and takes the least delay; with the run before it, with that after it, and with both, it
takes the least on the two devices of one link. So a fast link between slow devices does not serve
the fast ones. Units that are together with a third are together, and vertices of units that are
together run one at a time. So the pool cannot run a branch beside another one for free, however
many devices it has. Every schedule says who is together, so this is a relaxation.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from optpart.base import clock
from optpart.exact.cp_sat import solver_within
from optpart.kernels.ticks import Grid
from optpart.lower_bounds.one_machine import sharpened
from optpart.lower_bounds.windows import NEVER, Windows, windows
from optpart.problem.instance import Instance

#: Vertices of an interval at most, and devices that are not merged, one pass after the other; every
#: second one backwards. Longer intervals pay more than devices that are told apart.
_PASSES = (
    *((24, 0), (48, 0), (24, 4), (48, 2), (96, 0), (48, 4)),
    *((160, 0), (96, 1), (96, 4)),
)

#: Deterministic time of a solve at most, per vertex of the interval.
_PER_VERTEX = 0.1

#: Times are rounded down so that an interval takes about this many ticks.
_TICKS = 2**20

#: Share of the time for sharpening before the first interval.
_SHARPENING = 0.1


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
        Time limit; the last pass may end earlier.
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
    for i, (size, apart) in enumerate(_PASSES):
        if work.bound is None or work.bound == enough or clock.now() > deadline:
            break
        work.sweep(size, apart, backwards=i % 2 == 1)
    return None if work.bound is None else grid.time(work.bound)


class _Part(NamedTuple):
    """An interval: its vertices, the one whose head or tail is to be raised, devices not merged."""

    members: list[int]
    goal: int
    apart: int


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
        edges = graph.edges()
        for u, v, tensor in edges:
            if v not in self.successors[u]:
                self.successors[u][v] = []
                self._predecessors[v].append(u)
            self.successors[u][v].append(tensor)
        self._position = graph.position

    @property
    def bound(self) -> int | None:
        """Lower bound of the makespan in ticks; ``None`` if some unit has no device."""
        return self.window.bound

    def sweep(self, size: int, apart: int, backwards: bool) -> None:
        """Solve the intervals of a critical path, each from where the one before ends."""
        path = self.critical_path()
        if backwards:
            path.reverse()
        window = self.window
        self.window = replace(window, head=window.head.copy(), tail=window.tail.copy())
        first = 0
        while first < len(path) - 1 and clock.now() < self.deadline:
            step = min(size, len(path) - 1 - first)
            while True:
                members = self._between(path[first], path[first + step], backwards)
                if len(members) <= size or step == 1:
                    break
                step = max(1, 3 * step // 4)
            self._pass_on(path[first], members, backwards)
            if 2 < len(members) <= size:
                self._raise(_Part(members, path[first + step], apart), backwards)
            first += step
        self.window = windows(
            self.instance, self.grid, allowed=self.window.possible, known=self.window
        )

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

    def _pass_on(self, origin: int, members: list[int], backwards: bool) -> None:
        """Raise heads or tails in an interval by what is known of the vertex where it begins.

        Crossings are left to the model. New heads and tails of all vertices would take longer.
        """
        here = self.window.tail if backwards else self.window.head
        before = self.successors if backwards else self._predecessors
        end: dict[int, int] = {}
        for v in reversed(members) if backwards else members:
            if v != origin:
                known = max(end[u] for u in before[v] if u in end)
                here[v] = np.maximum(here[v], known)
            end[v] = int((here[v] + self.grid.duration[v]).min())

    def _raise(self, part: _Part, backwards: bool) -> None:
        """Solve an interval, and raise the head or the tail of its goal on every device."""
        left = self.deadline - clock.now()
        known = self.through()[part.goal]
        if left <= 0 or known.min() >= NEVER:
            return
        model = _Model(self, part, backwards)
        least = self._solved(model, left)
        goal, window = part.goal, self.window
        here, there = (window.tail, window.head) if backwards else (window.head, window.tail)
        for devices in model.groups:
            d = [d for d in devices if known[d] < NEVER]
            if d:
                from_here = least - self.grid.duration[goal, d] - there[goal, d].min()
                here[goal, d] = np.maximum(here[goal, d], from_here)

    def _solved(self, model: _Model, seconds: float) -> int:
        """Return the least head + run time + tail of the goal that the solver proves, in ticks."""
        effort = _PER_VERTEX * len(model.members)
        solver = solver_within(seconds, workers=self.workers, seed=self.seed, deterministic=effort)
        # Raises the bound from below. By default, a solve that ends early has proven little; but a
        # pool alone is solved faster by default.
        solver.parameters.use_objective_lb_search = len(model.groups) > 1
        if solver.solve(model.model) == cp_model.INFEASIBLE:
            return model.ticks(model.limit + 1)
        return model.ticks(round(solver.best_objective_bound))


class _Model:
    """The CP-SAT model of an interval.

    Time is counted from the least head, up to the least tail, in coarse ticks rounded down.
    Forwards, no vertex starts before its head, and the goal, the last one, ends with its tail.
    Backwards, the goal, the first one, starts at its head, and every vertex ends before its tail.

    In the pool, a vertex has a start and an end, at least its least run time apart.

    Attributes
    ----------
    groups : list of list of int
        Devices that the model does not tell apart.
    limit : int
        The objective is at most this; if there is no solution, it is more.
    """

    def __init__(self, of: Intervals, part: _Part, backwards: bool) -> None:
        self.model = cp_model.CpModel()
        self._instance, self._grid, self._window = of.instance, of.grid, of.window
        self.members = members = part.members
        self._backwards = backwards
        window, duration = of.window, of.grid.duration
        through = of.through()
        self.groups = self._grouped(through, part.apart)
        self._begin = int(window.head[members].min())
        self._rest = int(window.tail[members].min())
        likely = max(1, int(through[part.goal].min()) - self._begin - self._rest)
        self._coarse = max(1, likely // _TICKS)
        self.limit = 2 * (likely // self._coarse)
        self._run = dict(zip(members, self._least(duration), strict=True))
        self._chosen = self._units()
        self._together: dict[tuple[int, int], Any] = {}
        self._start = {v: self.model.new_int_var(0, self.limit, "") for v in members}
        self._end = {v: self._ending(v) for v in members}
        makespan = self.model.new_int_var(0, self.limit, "")
        heads = self._least(window.head - self._begin)
        tails = self._least(window.tail - self._rest)
        # In the pool, a fast device must not be credited with the early start of a slow one.
        ends = self._least(window.head + duration - self._begin)
        lefts = self._least(duration + window.tail - self._rest)
        for v, head, tail, end, left in zip(members, heads, tails, ends, lefts, strict=True):
            if (v == part.goal) == backwards:
                self.model.add(self._start[v] >= self._at(v, head))
            if (v == part.goal) != backwards:
                self.model.add(makespan >= self._end[v] + self._at(v, tail))
            if v != part.goal and self._may_be_in_pool(v):
                if backwards:
                    self.model.add(makespan >= self._start[v] + self._at(v, left))
                else:
                    self.model.add(self._end[v] >= self._at(v, end))
            for w, tensors in of.successors[v].items():
                if w in self._start:
                    self._follow(v, w, tensors)
        for g, devices in enumerate(self.groups):
            if len(devices) == 1:
                self._one_at_a_time(g, makespan)
            else:
                self._together_one_at_a_time(of)
        self.model.minimize(makespan)

    def ticks(self, objective: int) -> int:
        """Return an objective in the ticks of the grid."""
        return objective * self._coarse + self._begin + self._rest

    def _grouped(self, through: NDArray[np.int64], apart: int) -> list[list[int]]:
        """Return groups of devices; all but the best for the interval are one, the pool."""
        ranked = through[self.members].sum(axis=0, dtype=np.float64).argsort(kind="stable")
        if len(ranked) <= apart + 1:
            return [[d] for d in ranked.tolist()]
        return [*([d] for d in ranked[:apart].tolist()), ranked[apart:].tolist()]

    def _least(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return, per vertex and group, the least time on a possible device in coarse ticks."""
        possible = self._window.possible[self._instance.unit_of[self.members]]
        least = np.where(possible, times[self.members], NEVER)
        best = np.stack([least[:, devices].min(axis=1) for devices in self.groups], axis=1)
        return np.asarray(np.where(best < NEVER, best // self._coarse, 0))

    def _units(self) -> dict[int, list[Any]]:
        """Return a literal per unit and group, ``None`` where a unit cannot be."""
        instance, possible = self._instance, self._window.possible
        chosen: dict[int, list[Any]] = {}
        for unit in sorted(set(instance.unit_of[self.members].tolist())):
            chosen[unit] = [
                self.model.new_bool_var("") if possible[unit, devices].any() else None
                for devices in self.groups
            ]
            self.model.add_exactly_one(x for x in chosen[unit] if x is not None)
        for a, b in instance.separated_units:
            for g, devices in enumerate(self.groups):
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

    def _may_be_in_pool(self, v: int) -> bool:
        return len(self.groups[-1]) > 1 and self._literals(v)[-1] is not None

    def _ending(self, v: int) -> Any:
        """Return the end of a vertex: in the pool, at least its least run time after its start."""
        earliest = self._start[v] + self._at(v, self._run[v])
        if not self._may_be_in_pool(v):
            return earliest
        end = self.model.new_int_var(0, self.limit, "")
        self.model.add(end >= earliest)
        return end

    def _follow(self, u: int, v: int, tensors: list[int]) -> None:
        """Start a vertex when what it gets from another has arrived."""
        if self._instance.unit_of[u] == self._instance.unit_of[v]:
            self.model.add(self._start[v] >= self._end[u])
            self._later(u, v, self._at(u, self._run[u]), self._at(v, self._run[v]), [])
            return
        for g, here in enumerate(self._literals(v)):
            if here is None:
                continue
            crossings = [
                None if f == g else self._crossing(u, v, tensors, f, g)
                for f in range(len(self.groups))
            ]
            for f, there in enumerate(self._literals(u)):
                if f != g and crossings[f] is None and there is not None:
                    self.model.add_at_most_one(here, there)
            runs = int(self._run[u][g]), int(self._run[v][g])
            at_once = np.array([0, *runs, sum(runs)])
            self._arrive(u, v, g, crossings, at_once, [here])
            if len(self.groups[g]) > 1 and self._literals(u)[g] is not None:
                together, apart = self._joined(u, v), self._crossing(u, v, tensors, g, g)
                if apart is None:
                    self.model.add_bool_or(together, ~here, ~self._literals(u)[g])
                else:
                    self._arrive(u, v, g, crossings, apart, [here, ~together])

    def _arrive(
        self,
        u: int,
        v: int,
        g: int,
        crossings: list[NDArray[np.int64] | None],
        inside: NDArray[np.int64],
        given: list[Any],
    ) -> None:
        """Let a vertex in a group wait for another, wherever that is.

        ``inside`` is what ``crossings`` would say if the other is in the same group.
        """
        apart = [np.zeros(4, dtype=np.int64) if c is None else c for c in crossings]
        apart[g] = inside
        delay, run_delay, delay_run, both_runs = np.stack(apart, axis=1)
        start, end = self._start[v], self._end[v]
        self.model.add(start >= self._end[u] + self._at(u, delay)).only_enforce_if(given)
        pool = len(self.groups[g]) > 1
        # The end on a device apart is not rounded by itself, and follows from the start.
        if self._backwards or pool:
            self._later(u, v, self._at(u, run_delay), self._at(u, delay_run), given)
        known = self._run[u] + delay + self._run[v][g]
        if pool and (both_runs > known).any():
            arrived = self._start[u] + self._at(u, both_runs)
            self.model.add(end >= arrived).only_enforce_if(given)

    def _later(self, u: int, v: int, of_starts: Any, of_ends: Any, given: list[Any]) -> None:
        """Let the ends of two vertices be some time apart; backwards, their starts.

        This follows from the start of the one and the end of the other, but spares the solver the
        way from each to the next.
        """
        at, apart = (self._start, of_starts) if self._backwards else (self._end, of_ends)
        self.model.add(at[v] >= at[u] + apart).only_enforce_if(given)

    def _joined(self, u: int, v: int) -> Any:
        """Return the literal that the units of two vertices are on the same device of the pool."""
        a, b = sorted(self._instance.unit_of[[u, v]].tolist())
        if (a, b) not in self._together:
            self._together[a, b] = self.model.new_bool_var("")
        return self._together[a, b]

    def _crossing(
        self, u: int, v: int, tensors: list[int], f: int, g: int
    ) -> NDArray[np.int64] | None:
        """Return the least times of a crossing between devices of two groups, or of the pool.

        They are those of the crossing alone; with the run before it; with that after it; and with
        both. ``None`` if there is no link.
        """
        grid, unit_of = self._grid, self._instance.unit_of
        possible = self._window.possible
        here, there = np.ix_(self.groups[f], self.groups[g])
        delays = np.stack([self._transfer(tensor)[here, there] for tensor in tensors])
        linked = (delays >= 0).all(axis=0) & (here != there)
        linked &= possible[unit_of[u], here] & possible[unit_of[v], there]
        if not linked.any():
            return None
        delay = delays.max(axis=0).astype(np.int64)
        if self._instance.model.sends:
            delay += grid.send[here]
        before, after = grid.duration[u, here], grid.duration[v, there]
        times = (delay, before + delay, delay + after, before + delay + after)
        return np.array([int(t[linked].min()) // self._coarse for t in times])

    def _transfer(self, tensor: int) -> NDArray[Any]:
        """Return the transfer times of a tensor, k × k; −1 without a link."""
        grid, row = self._grid, int(self._grid.size_class[tensor])
        if row < len(grid.delays):
            return np.asarray(grid.delays[row, grid.link_class])
        return np.asarray(grid.measured[row - len(grid.delays)])

    def _one_at_a_time(self, g: int, makespan: Any) -> None:
        """Run one vertex at a time on a device, all of them before the end."""
        here = [
            (v, int(self._run[v][g]), self._literals(v)[g])
            for v in self.members
            if self._literals(v)[g] is not None
        ]
        new = self.model.new_optional_fixed_size_interval_var
        self.model.add_no_overlap(new(self._start[v], time, x, "") for v, time, x in here)
        self.model.add(sum(time * x for _, time, x in here) <= makespan)

    def _together_one_at_a_time(self, of: Intervals) -> None:
        """Run one vertex at a time of units that are together on a device of the pool."""
        unit_of, pool = self._instance.unit_of, len(self.groups) - 1
        run = {v: int(self._run[v][pool]) for v in self.members}
        parts: dict[int, list[int]] = {}
        for v in self.members:
            parts.setdefault(int(unit_of[v]), []).append(v)
        new = self.model.new_optional_fixed_size_interval_var
        for unit, vertices in parts.items():
            here = self._chosen[unit][pool]
            if len(vertices) > 1 and here is not None:
                ends = not self._backwards
                begin = {v: self._end[v] - run[v] if ends else self._start[v] for v in vertices}
                self.model.add_no_overlap(new(begin[v], run[v], here, "") for v in vertices)
        self._close()
        after = self._after(of)
        for (a, b), together in self._together.items():
            for u in parts[a]:
                for v in parts[b]:
                    if v in after[u] or u in after[v] or not (run[u] and run[v]):
                        continue
                    first = self.model.new_bool_var("")
                    self._later(u, v, run[u], run[v], [together, first])
                    self._later(v, u, run[v], run[u], [together, ~first])

    def _close(self) -> None:
        """Make "same device" transitive across adjacent units."""
        steps = list(self._together.items())
        units = sorted({unit for pair in self._together for unit in pair})
        for pair in combinations(units, 2):
            if pair not in self._together:
                self._together[pair] = self.model.new_bool_var("")
        for (b, c), step in steps:
            for a in units:
                if a not in (b, c):
                    with_b, with_c = self._pair(a, b), self._pair(a, c)
                    self.model.add_bool_or(~with_b, ~step, with_c)
                    self.model.add_bool_or(~with_c, ~step, with_b)

    def _pair(self, a: int, b: int) -> Any:
        return self._together[min(a, b), max(a, b)]

    def _after(self, of: Intervals) -> dict[int, set[int]]:
        """Return the vertices that follow each vertex of the interval."""
        after: dict[int, set[int]] = {}
        for v in reversed(self.members):
            next_ones = [w for w in of.successors[v] if w in self._start]
            after[v] = set(next_ones).union(*(after[w] for w in next_ones))
        return after
