"""Heads and tails sharpened by vertices that must run on the same device, one at a time.

To decide whether ``v`` may start on ``d`` at a time ``t``, determine for every ancestor ``w`` when
``v`` could start if ``w`` were *remote*, on any device but ``d``. If that is after ``t``, then
``w`` must run on ``d``; and all vertices that must run on ``d`` before ``v`` run one at a time.
Jackson's preemptive schedule of these (heads, run times, and least times from their ends to the
start of ``v``) bounds the start of ``v`` from below. The least ``t`` that passes is a valid head
(design §7; Papadimitriou & Yannakakis 1990; Jung, Kirousis & Spirakis 1993, for graphs with a
single delay and arbitrarily many identical processors). Tails are computed likewise, backwards.

Proof. Let ``v`` start on ``d`` at ``s`` in a schedule, and let ``R_1 ≥ R_2 ≥ …`` be valid lower
bounds of its start for the case that ancestor ``w_i`` is remote. With ``i`` the number of bounds
above ``s``, ``w_1 … w_i`` are on ``d``, so ``s`` is at least their one-machine bound ``J_i``, and
at least ``R_{i+1}`` by the choice of ``i``. So ``s ≥ min_i max(J_i, R_{i+1})``, where ``J_i`` grows
and ``R_{i+1}`` falls with ``i``. This holds whatever else queues: all communication models satisfy
``start(v) ≥ end(u) + send + δ``, and all run one vertex at a time per device.

``R`` is computed for each ``(v, d)`` in one pass over the ancestors, backwards, with two states per
ancestor, *on d* and *remote*. The least time from the end of ``w`` to the start of ``v`` is, in
either state, the largest over the edges ``w → x`` of the lesser of the two states of ``x``; and if
``w`` is remote, ``v`` starts no earlier than the lesser of (a) ``x`` on ``d``, no earlier than its
tensor arrives from elsewhere, and the least time from there, (b) the bound for remote ``x``.
Colocated vertices have the same state.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart import clock
from optpart.bounds.jackson import jackson, one_after_the_other, sort
from optpart.bounds.windows import NEVER, Crossings, Windows, cross, windows, windows_seconds
from optpart.kernels.compiled import arrays, inner, short_kernel
from optpart.kernels.ticks import Grid
from optpart.problem.graph import grouped
from optpart.problem.instance import Instance

#: Passes forwards and backwards; further ones would hardly change anything.
_ROUNDS = 10

#: Vertices between two checks of the time, at most, and steps of their loops.
_CHUNK = 64
_STEPS = 50_000_000

#: Edges times devices; beyond, tables of delays take too much memory, and nothing is sharpened.
_MAX_CELLS = 20_000_000

#: The same; beyond, a pass begins anew instead of looking only at what may have changed.
_MAX_KEPT = 1_000_000


def one_machine_bound(instance: Instance, seconds: float = np.inf) -> Fraction | None:
    """Bound the makespan by sharpened heads and tails.

    Returns
    -------
    Fraction or None
        ``None`` if some unit has no device at all, which proves the instance infeasible.
    """
    deadline = clock.now() + seconds
    grid = Grid.of(instance)
    window = windows(instance, grid, seconds=seconds)
    left = deadline - clock.now()
    window = sharpened(instance, grid, window, seconds=left)
    return None if window.bound is None else grid.time(window.bound)


def sharpened(
    instance: Instance,
    grid: Grid,
    window: Windows,
    limit: int | None = None,
    *,
    seconds: float = np.inf,
) -> Windows:
    """Sharpen heads and tails, and drop the devices that they rule out.

    Parameters
    ----------
    window : Windows
        As :func:`~optpart.bounds.windows.windows` computes it for the same limit.
    limit : int, optional
        Only schedules of at most this many ticks count.
    seconds : float
        Time limit; what has been sharpened by then is returned, as it is valid at any moment.
    """
    if windows_seconds(instance) > seconds:
        return window
    deadline = clock.now() + seconds
    work = Sharpening(instance, grid, window, limit)
    work.run(deadline)
    return work.windows()


class Sharpening:
    """The state of sharpening: heads, tails and devices of vertices.

    Attributes
    ----------
    head, tail : ndarray of int64, n × k
    possible : ndarray of bool, units × k
    unit : ndarray of int32, length n
        As in the instance, but units that must share a device in every schedule of at most
        ``limit`` ticks have the number of the first of them.
    """

    def __init__(
        self, instance: Instance, grid: Grid, window: Windows, limit: int | None = None
    ) -> None:
        self.instance = instance
        self.grid = grid
        self.limit = NEVER - 1 if limit is None else limit
        self.head, self.tail = window.head.copy(), window.tail.copy()
        self.possible = window.possible.copy()
        self.unit = instance.unit_of.copy()
        self._passes: dict[bool, _Pass] = {}
        there, back = (Crossings.of(instance, grid, backwards=b) for b in (False, True))
        a = arrays(instance)
        n = instance.vertices
        self._sides = (
            _Side(
                False,
                a.order,
                a.in_start,
                a.in_source,
                a.in_tensor,
                *grouped(a.in_source, n),
                tuple(there),
                tuple(back),
            ),
            _Side(
                True,
                a.order[::-1].copy(),
                a.out_start,
                a.out_target,
                a.out_tensor,
                *grouped(a.out_target, n),
                tuple(back),
                tuple(there),
            ),
        )

    @property
    def feasible(self) -> bool:
        """Whether every unit has a device left."""
        return bool(self.possible.any(axis=1).all())

    @property
    def freedom(self) -> float:
        """The logarithm of the number of placements that the devices left to each unit permit."""
        left = self.possible[np.unique(self.unit)].sum(axis=1)
        return float(np.log(np.maximum(1, left)).sum())

    def only(self, unit: int, device: int) -> Sharpening:
        """Return a copy in which a unit is on a given device."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy.head, copy.tail = self.head.copy(), self.tail.copy()
        copy.possible, copy.unit = self.possible.copy(), self.unit.copy()
        copy._passes = dict(self._passes)
        copy.possible[unit] = False
        copy.possible[unit, device] = self.possible[unit, device]
        copy.settle()
        return copy

    def exclude(self, unit: int, device: int, trial: Sharpening) -> None:
        """Drop a device from a unit, because ``trial`` refutes that the unit is there."""
        self.possible[unit, device] = False

    def run(self, deadline: float = np.inf, rounds: int = _ROUNDS, *, brief: bool = False) -> bool:
        """Sharpen until nothing changes; return whether every unit has a device left.

        A device that is dropped during a pass counts in the next one.

        Parameters
        ----------
        brief : bool
            Whether to leave out what is rarely found: units that must share a device because a
            head or tail that follows them has changed, and nothing before them.
        """
        if len(self.instance.graph.edge_source) * self.instance.devices > _MAX_CELLS:
            return self.feasible
        for _ in range(rounds):
            changed = 0
            for side in self._sides:
                late = clock.now() + windows_seconds(self.instance) > deadline
                if not self.feasible or late:
                    return self.feasible
                changed += self._sweep(side, deadline, brief=brief)
            changed += self._one_after_the_other()
            if not changed:
                break
        return self.feasible

    def windows(self) -> Windows:
        """Return the result for the units of the instance."""
        label = self._label()
        through = self._through()
        return Windows(self.head, self.tail, through[label], self.possible[label])

    def queue(self, v: int, d: int, *, backwards: bool = False) -> Queue | None:
        """Return the vertices that queue on ``d`` before ``v``, if they delay its start.

        Parameters
        ----------
        backwards : bool
            Whether those after ``v`` are wanted, with all times counted from the end.
        """
        side = self._sides[backwards]
        head = self.tail if backwards else self.head
        tables = _Pass.empty(len(side.before), self.head.shape)
        everything = np.ones(len(self.unit), dtype=np.bool_)
        near, far, fastest = tables.near, tables.far, tables.fastest
        _reach(
            side.start, side.before, side.tensor, side.crossings, side.reversed, self.unit,
            self.grid.duration, self.possible, everything, near, far, fastest,
        )  # fmt: skip
        ancestor, after, bound = _ancestors_of(
            side.order, side.start, side.before, side.tensor, side.crossings, self.unit,
            self.grid.duration, self.possible, head, near, far, fastest,
            int(np.flatnonzero(side.order == v)[0]), d,
        )  # fmt: skip
        here = self.possible[self.unit[ancestor], d]
        falling = np.flatnonzero(here)[np.argsort(-bound[here], kind="stable")]
        job, after, bound = ancestor[falling], after[falling], bound[falling]
        # J grows and R falls with the number of jobs: the best of min(J, R) is where they meet.
        low, high = 0, len(job)
        best: Queue | None = None
        while low < high:
            size = (low + high) // 2 + 1
            chosen = job[:size]
            queue = _busiest(
                chosen, head[chosen, d], self.grid.duration[chosen, d], after[:size],
                int(bound[size - 1]),
            )  # fmt: skip
            if best is None or queue.value > best.value:
                best = queue
            if queue.begin + queue.work + queue.after >= queue.elsewhere:
                high = size - 1
            else:
                low = size
        return best

    def queue_of_unit(self, unit: int, d: int) -> Queue:
        """Return the members of a unit that take longest one after the other on a device."""
        member = np.flatnonzero(self.unit == unit).astype(np.int32)
        return _busiest(
            member, self.head[member, d], self.grid.duration[member, d], self.tail[member, d], NEVER
        )

    def settle(self) -> None:
        """Set heads and tails to ``NEVER`` on devices that are no longer possible."""
        gone = ~self.possible[self.unit]
        self.head[gone] = NEVER
        self.tail[gone] = NEVER

    def _label(self) -> NDArray[np.int32]:
        """Return the number in ``unit`` of each unit of the instance."""
        label = np.arange(len(self.possible), dtype=np.int32)
        label[self.instance.unit_of] = self.unit
        return label

    def _sweep(self, side: _Side, deadline: float, *, brief: bool) -> int:
        """Raise the heads or, backwards, the tails of all vertices; count the changes."""
        head, tail = (self.tail, self.head) if side.backwards else (self.head, self.tail)
        n = len(head)
        before = int(self.possible.sum())
        now = self._begun(side, tail)
        self._passes.pop(side.backwards, None)
        # A brief pass leaves out some vertices that a later one has to look at.
        kept = not brief and len(side.before) * head.shape[1] <= _MAX_KEPT
        together = np.empty((4 * n, 2), dtype=np.int32)
        _reach(
            side.start, side.before, side.tensor, side.crossings, side.reversed, self.unit,
            self.grid.duration, self.possible, now.moved, now.near, now.far, now.fastest,
        )  # fmt: skip
        changed, pairs = 0, 0
        steps = (n + len(side.before)) * head.shape[1] ** 2
        chunk = max(1, min(_CHUNK, _STEPS // max(1, steps)))
        for first in range(0, n, chunk):
            if clock.now() > deadline or not self.feasible:
                kept = False
                break
            raised, pairs = _raise_heads(
                side.order, side.start, side.before, side.tensor, side.after_start, side.after,
                side.crossings, self.unit, self.grid.duration, self.possible, head, tail,
                self.limit, now.near, now.far, now.fastest, now.remote, now.away, now.moved,
                now.tightened, brief, first, min(n, first + chunk), together, pairs,
            )  # fmt: skip
            changed += raised
        changed += self._merge(together[:pairs])
        self.settle()
        if kept:
            self._passes[side.backwards] = now
        return changed + before - int(self.possible.sum())

    def _begun(self, side: _Side, tail: NDArray[np.int64]) -> _Pass:
        """Return the tables of a new pass, and what has changed since the last one."""
        possible = self.possible[self.unit]
        last = self._passes.get(side.backwards)
        if last is None:
            now = _Pass.empty(len(side.before), tail.shape)
            return now._replace(unit=self.unit.copy(), possible=possible, tail=tail.copy())
        return _Pass(
            near=last.near.copy(),
            far=last.far.copy(),
            fastest=last.fastest.copy(),
            remote=last.remote.copy(),
            away=last.away.copy(),
            moved=(possible != last.possible).any(axis=1) | (self.unit != last.unit),
            tightened=(tail != last.tail).any(axis=1),
            unit=self.unit.copy(),
            possible=possible,
            tail=tail.copy(),
        )

    def _merge(self, pairs: NDArray[np.int32]) -> int:
        """Merge units that must share a device; return by how many units there are fewer."""
        if not len(pairs):
            return 0
        # Loaded here because it takes long, and few instances need it.
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        units = len(self.possible)
        links = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(units, units))
        parts, part = connected_components(links, directed=False)
        first = np.full(parts, units, dtype=np.int32)
        np.minimum.at(first, part, np.arange(units, dtype=np.int32))
        common = np.ones((parts, self.possible.shape[1]), dtype=np.bool_)
        np.logical_and.at(common, part, self.possible)
        self.possible = common[part]
        before = len(np.unique(self.unit))
        self.unit = first[part][self.unit]
        return before - len(np.unique(self.unit))

    def _one_after_the_other(self) -> int:
        """Drop the devices on which the members of a unit do not fit within the limit."""
        gone = self.possible & (self._through() > self.limit)
        if gone.any():
            self.possible &= ~gone
            self.settle()
        return int(gone.sum())

    def _through(self) -> NDArray[np.int64]:
        members = grouped(self.unit, len(self.possible))
        return np.asarray(one_after_the_other(*members, self.grid.duration, self.head, self.tail))


def must_run_on(work: Sharpening) -> NDArray[np.int64]:
    """Return, per device, the one-machine bound of the units that have no other device left."""
    k = work.possible.shape[1]
    alone = (work.possible.sum(axis=1) == 1)[work.unit]
    device = np.where(alone, work.possible[work.unit].argmax(axis=1), k).astype(np.int32)
    start, member = grouped(device, k + 1)
    bound = one_after_the_other(start[: k + 1], member, work.grid.duration, work.head, work.tail)
    return np.asarray(bound.diagonal())


class Queue(NamedTuple):
    """Vertices that run one at a time on a device, and bound what comes after them.

    Either one of them is on another device, and then what follows starts no earlier than
    ``elsewhere``; or all of them are there, and then no earlier than ``begin + work + after``.

    Attributes
    ----------
    begin : int
        The earliest start of the first of them, in ticks.
    work : int
        Their run times together.
    after : int
        The least time from the last of them to what follows.
    """

    vertices: NDArray[np.int32]
    begin: int
    work: int
    after: int
    elsewhere: int

    @property
    def value(self) -> int:
        """The bound of what follows."""
        return min(self.elsewhere, self.begin + self.work + self.after)


def _busiest(
    job: NDArray[np.int32],
    head: NDArray[np.int64],
    duration: NDArray[np.int64],
    after: NDArray[np.int64],
    elsewhere: int,
) -> Queue:
    """Return the jobs with the largest least head + run times + least time after them.

    Their value is the end of Jackson's preemptive schedule (Carlier 1982).
    """
    falling = np.argsort(-after, kind="stable")
    best = Queue(job[:0], 0, 0, 0, elsewhere)
    for begin in np.unique(head).tolist():
        late = falling[head[falling] >= begin]
        total = np.cumsum(duration[late])
        value = begin + total + after[late]
        i = int(value.argmax())
        if value[i] > best.begin + best.work + best.after:
            best = Queue(job[late[: i + 1]], begin, int(total[i]), int(after[late[i]]), elsewhere)
    return best


class _Pass(NamedTuple):
    """What a pass over the vertices has computed, and what it was computed from.

    Attributes
    ----------
    near, far : ndarray of int64, edges × k
        The least crossing time from and to any other device.
    fastest : ndarray of int64, n × k
        The least run time on any other device.
    remote : ndarray of int64, edges × k
        The earliest arrival from any other device.
    away : ndarray of int64, n × k
        The earliest end on any other device.
    moved : ndarray of bool, length n
        Whether unit or devices differ from those of the pass before.
    tightened : ndarray of bool, length n
        Whether tails do; when heads have changed, the pass itself knows.
    unit, possible, tail
        As they were when the pass began, by vertex.
    """

    near: NDArray[np.int64]
    far: NDArray[np.int64]
    fastest: NDArray[np.int64]
    remote: NDArray[np.int64]
    away: NDArray[np.int64]
    moved: NDArray[np.bool_]
    tightened: NDArray[np.bool_]
    unit: NDArray[np.int32]
    possible: NDArray[np.bool_]
    tail: NDArray[np.int64]

    @classmethod
    def empty(cls, edges: int, shape: tuple[int, ...]) -> _Pass:
        """Return tables to be filled, with everything marked as changed."""
        n, k = shape
        return cls(
            near=np.empty((edges, k), dtype=np.int64),
            far=np.empty((edges, k), dtype=np.int64),
            fastest=np.empty((n, k), dtype=np.int64),
            remote=np.empty((edges, k), dtype=np.int64),
            away=np.empty((n, k), dtype=np.int64),
            moved=np.ones(n, dtype=np.bool_),
            tightened=np.ones(n, dtype=np.bool_),
            unit=np.empty(n, dtype=np.int32),
            possible=np.empty((n, k), dtype=np.bool_),
            tail=np.empty((n, k), dtype=np.int64),
        )


class _Side(NamedTuple):
    """The edges seen in one direction of time; for tails everything is mirrored."""

    backwards: bool
    order: NDArray[np.int32]  # earlier vertices first
    start: NDArray[np.int32]
    before: NDArray[np.int32]  # per edge into a vertex, the earlier vertex
    tensor: NDArray[np.int32]
    after_start: NDArray[np.int32]
    after: NDArray[np.int32]  # per vertex, the edges of which it is the earlier vertex
    crossings: tuple[NDArray[Any], ...]  # as in Crossings
    reversed: tuple[NDArray[Any], ...]  # those of the other direction


@short_kernel
def _reach(
    start: Any, before: Any, tensor: Any, crossings: Any, reversed_crossings: Any, unit: Any,
    duration: Any, possible: Any, moved: Any, near: Any, far: Any, fastest: Any,
) -> None:  # fmt: skip
    """Update, per edge and device, the least crossing time from and to any other device.

    Also update, per vertex and device, the least run time on any other device. Where no vertex has
    moved, they are up to date.
    """
    n, k = duration.shape
    time = np.empty(k, np.int64)
    for x in range(n):
        if moved[x]:
            fastest[x] = NEVER
            for e in range(k):
                if possible[unit[x], e]:
                    for d in range(k):
                        if d != e:
                            fastest[x, d] = min(fastest[x, d], duration[x, e])
        for j in range(start[x], start[x + 1]):
            if moved[before[j]]:
                near[j] = NEVER
                for d in range(k):
                    time[d] = 0 if possible[unit[before[j]], d] else NEVER
                cross(near[j], time, tensor[j], *crossings)
            if moved[x]:
                far[j] = NEVER
                for d in range(k):
                    time[d] = 0 if possible[unit[x], d] else NEVER
                cross(far[j], time, tensor[j], *reversed_crossings)


@inner
def _lineage(
    order: Any, start: Any, before: Any, position: int, mark: Any, ancestor: Any, rank: Any
) -> Any:
    """List the vertex at a position and its ancestors, later ones first; return their number.

    ``rank`` becomes the place of each of them in the list.
    """
    size = 0
    mark[order[position]] = position
    for earlier in range(position, -1, -1):
        x = order[earlier]
        if mark[x] == position:
            ancestor[size], rank[x] = x, size
            size += 1
            for j in range(start[x], start[x + 1]):
                mark[before[j]] = position
    return size


@inner
def _look_back(
    start: Any, before: Any, unit: Any, duration: Any, possible: Any, head: Any, near: Any,
    far: Any, fastest: Any, remote: Any, away: Any, ancestor: Any, size: int, rank: Any,
    here: Any, there: Any, if_here: Any, if_away: Any, bound: Any,
) -> None:  # fmt: skip
    """Bound the start of ``ancestor[0]`` on each device for each case that another is remote.

    ``if_here[i,d]`` and ``if_away[i,d]`` become the least time from the end of ``ancestor[i]``, on
    ``d`` or remote, to that start. All devices are looked at together, because what depends on the
    vertices alone would otherwise be looked up for each of them.
    """
    k = duration.shape[1]
    if_here[:size] = 0
    if_away[:size] = 0
    bound[:size] = 0
    v = ancestor[0]
    for a in range(size):
        x = ancestor[a]
        if unit[x] == unit[v]:
            bound[a] = NEVER
        if x == v:
            here[:] = 0
            there[:] = NEVER
        else:
            for d in range(k):
                least = max(bound[a, d], away[x, d] + if_away[a, d])
                bound[a, d] = min(NEVER, least)
                after = duration[x, d] + if_here[a, d]
                here[d] = after if possible[unit[x], d] else NEVER
                after = min(NEVER, fastest[x, d] + if_away[a, d])
                there[d] = after if least < NEVER else NEVER
        for j in range(start[x], start[x + 1]):
            w = before[j]
            b = rank[w]
            if unit[w] == unit[x]:
                for d in range(k):
                    if_here[b, d] = max(if_here[b, d], here[d])
                    if_away[b, d] = max(if_away[b, d], there[d])
                    bound[b, d] = max(bound[b, d], bound[a, d])
            else:
                for d in range(k):
                    if_here[b, d] = max(if_here[b, d], min(here[d], far[j, d] + there[d]))
                    if_away[b, d] = max(if_away[b, d], min(near[j, d] + here[d], there[d]))
                    arrival = max(remote[j, d], head[x, d])
                    least = min(min(NEVER, arrival + here[d]), bound[a, d])
                    bound[b, d] = max(bound[b, d], least)


@inner
def _of_units(unit: Any, ancestor: Any, size: int, bound: Any, members: Any, of_unit: Any) -> None:
    """Give each ancestor the largest bound of its unit: colocated ones are remote together."""
    k = bound.shape[1]
    for a in range(1, size):
        u = unit[ancestor[a]]
        if members[u] > 1:
            of_unit[u] = 0
    for a in range(1, size):
        u = unit[ancestor[a]]
        if members[u] > 1:
            for d in range(k):
                of_unit[u, d] = max(of_unit[u, d], bound[a, d])
    for a in range(1, size):
        u = unit[ancestor[a]]
        if members[u] > 1:
            for d in range(k):
                bound[a, d] = of_unit[u, d]


@inner
def _members(unit: Any, units: int) -> Any:
    """Return the number of members of each unit."""
    count = np.zeros(units, np.int64)
    for v in range(unit.shape[0]):
        count[unit[v]] += 1
    return count


@short_kernel
def _ancestors_of(
    order: Any, start: Any, before: Any, tensor: Any, crossings: Any, unit: Any, duration: Any,
    possible: Any, head: Any, near: Any, far: Any, fastest: Any, position: int, d: int,
) -> Any:  # fmt: skip
    """Return the ancestors of the vertex at a position, and what `_look_back` finds for each."""
    n, k = duration.shape
    remote, away = np.full_like(near, NEVER), np.full_like(fastest, NEVER)
    end = np.empty(k, np.int64)
    for x in range(n):
        for e in range(k):
            if e != d and head[x, e] < NEVER:
                away[x, d] = min(away[x, d], head[x, e] + duration[x, e])
        for j in range(start[x], start[x + 1]):
            w = before[j]
            for e in range(k):
                end[e] = NEVER if head[w, e] >= NEVER else head[w, e] + duration[w, e]
            cross(remote[j], end, tensor[j], *crossings)
    ancestor, rank = np.empty(n, np.int32), np.empty(n, np.int32)
    mark = np.full(n, -1, np.int64)
    size = _lineage(order, start, before, position, mark, ancestor, rank)
    here, there = np.empty(k, np.int64), np.empty(k, np.int64)
    if_here, if_away = np.empty((size, k), np.int64), np.empty((size, k), np.int64)
    bound, of_unit = np.empty((size, k), np.int64), np.zeros((possible.shape[0], k), np.int64)
    _look_back(
        start, before, unit, duration, possible, head, near, far, fastest, remote, away,
        ancestor, size, rank, here, there, if_here, if_away, bound,
    )  # fmt: skip
    _of_units(unit, ancestor, size, bound, _members(unit, len(of_unit)), of_unit)
    return ancestor[1:size], if_here[1:, d].copy(), bound[1:, d].copy()


@inner
def _arrivals(
    start: Any, before: Any, unit: Any, duration: Any, possible: Any, head: Any, remote: Any,
    v: int, d: int,
) -> Any:  # fmt: skip
    """Return the earliest start of ``v`` on ``d`` by its direct predecessors alone."""
    least = head[v, d]
    for j in range(start[v], start[v + 1]):
        w = before[j]
        arrival = NEVER if unit[w] == unit[v] else remote[j, d]
        if possible[unit[w], d]:
            arrival = min(arrival, head[w, d] + duration[w, d])
        least = max(least, arrival)
    return least


@inner
def _least_start(
    job: Any, jobs: int, bound: Any, head: Any, duration: Any, d: int, tail: Any, known: int,
    key: Any, place: Any, chosen: Any, left: Any, heap: Any,
) -> Any:  # fmt: skip
    """Return the least time that passes, ``known`` or later.

    It is the minimum over ``i`` of ``max(J_i, R_{i+1})``, with jobs in the order of falling bounds.
    """
    for b in range(jobs):
        key[job[b]] = head[job[b], d]
    sort(job, jobs, key)
    best = jackson(job, jobs, head, duration, d, tail, left, heap)
    if best <= known:  # most often: then nothing has changed since the last pass
        return known
    for b in range(jobs):
        chosen[b] = job[b]
        key[job[b]] = -bound[job[b]]
    sort(chosen, jobs, key)
    falling = np.empty(jobs, np.int64)
    for b in range(jobs):
        place[chosen[b]] = b
        falling[b] = bound[chosen[b]]
    low, high = 0, jobs - 1
    while low <= high:
        first = (low + high) // 2
        size = 0
        for b in range(jobs):
            if place[job[b]] < first:
                chosen[size] = job[b]
                size += 1
        after = jackson(chosen, size, head, duration, d, tail, left, heap)
        best = min(best, max(after, falling[first]))
        if after >= falling[first]:
            high = first - 1
        else:
            low = first + 1
    return max(best, known)


@short_kernel
def _raise_heads(
    order: Any, start: Any, before: Any, tensor: Any, after_start: Any, after: Any,
    crossings: Any, unit: Any, duration: Any, possible: Any, head: Any, tail: Any, limit: int,
    near: Any, far: Any, fastest: Any, remote: Any, away: Any, moved: Any, tightened: Any,
    brief: bool, first: int, last: int, together: Any, pairs: int,
) -> Any:  # fmt: skip
    """Raise the heads of the vertices at positions ``first`` to ``last`` of the order.

    ``remote[j,d]`` is the earliest arrival over an edge from elsewhere and ``away[w,d]`` the
    earliest end of a vertex elsewhere; both are known once the vertex has its heads. A vertex keeps
    its heads if nothing has changed before it, and not its tails either; or, if ``brief``, if these
    still leave it room. ``moved`` becomes true of what has changed, and of all that comes after.

    Return how many rose, and the number of pairs in ``together``: units that must share a device.
    """
    n, k = duration.shape
    ancestor, job = np.empty(n, np.int32), np.empty(n, np.int32)
    rank, chosen, heap = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    mark, place = np.full(n, -1, np.int64), np.empty(n, np.int64)
    key, left = np.empty(n, np.int64), np.empty(n, np.int64)
    later, elsewhere = np.empty(n, np.int64), np.empty(n, np.int64)
    here, there = np.empty(k, np.int64), np.empty(k, np.int64)
    if_here, if_away = np.empty((last, k), np.int64), np.empty((last, k), np.int64)
    bound, near_by = np.empty((last, k), np.int64), np.empty((k, last), np.int32)
    jobs, least, room = np.empty(k, np.int64), np.empty(k, np.int64), np.empty(k, np.int64)
    members = _members(unit, possible.shape[0])
    of_unit, end = np.zeros((possible.shape[0], k), np.int64), np.empty(k, np.int64)
    changed = 0
    for position in range(first, last):
        v = order[position]
        for j in range(start[v], start[v + 1]):
            moved[v] |= moved[before[j]]
        stale = moved[v]
        if not stale and tightened[v]:
            stale = not brief
            for d in range(k):
                stale |= head[v, d] < NEVER and head[v, d] + duration[v, d] + tail[v, d] > limit
        if not stale:
            continue
        size = _lineage(order, start, before, position, mark, ancestor, rank)
        _look_back(
            start, before, unit, duration, possible, head, near, far, fastest, remote, away,
            ancestor, size, rank, here, there, if_here, if_away, bound,
        )  # fmt: skip
        _of_units(unit, ancestor, size, bound, members, of_unit)
        for d in range(k):
            jobs[d], least[d] = 0, NEVER
            if possible[unit[v], d]:
                least[d] = _arrivals(start, before, unit, duration, possible, head, remote, v, d)
        for a in range(1, size):
            u = unit[ancestor[a]]
            for d in range(k):
                if not possible[u, d]:
                    least[d] = max(least[d], bound[a, d])
        for a in range(1, size):
            u = unit[ancestor[a]]
            for d in range(k):
                if bound[a, d] > least[d] and possible[u, d]:
                    near_by[d, jobs[d]] = a
                    jobs[d] += 1
        devices = 0
        for d in range(k):
            for b in range(jobs[d]):
                w = ancestor[near_by[d, b]]
                job[b], later[w] = w, if_here[near_by[d, b], d]
                elsewhere[w] = bound[near_by[d, b], d]
            if jobs[d] > 0:
                least[d] = _least_start(
                    job, jobs[d], elsewhere, head, duration, d, later, least[d], key, place, chosen,
                    left, heap,
                )  # fmt: skip
            # The latest start that the limit permits.
            room[d] = limit - duration[v, d] - tail[v, d]
            if least[d] > room[d]:
                least[d] = room[d] = NEVER
            else:
                devices += 1
            if least[d] > head[v, d]:
                head[v, d] = least[d]
                changed += int(possible[unit[v], d])
                moved[v] = True
        for a in range(1, size):
            forced = 0
            for d in range(k):
                forced += int(bound[a, d] > room[d])
            w = ancestor[a]
            if 0 < devices == forced and unit[w] != unit[v] and pairs < together.shape[0]:
                together[pairs, 0], together[pairs, 1] = unit[w], unit[v]
                pairs += 1
        for d in range(k):
            if head[v, d] >= NEVER:
                possible[unit[v], d] = False
        for e in range(k):
            end[e] = NEVER if head[v, e] >= NEVER else head[v, e] + duration[v, e]
        away[v] = NEVER
        for e in range(k):
            for d in range(k):
                if d != e:
                    away[v, d] = min(away[v, d], end[e])
        for i in range(after_start[v], after_start[v + 1]):
            remote[after[i]] = NEVER
            cross(remote[after[i]], end, tensor[after[i]], *crossings)
    return changed, pairs
