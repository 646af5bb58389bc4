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

    def only(self, unit: int, device: int) -> Sharpening:
        """Return a copy in which a unit is on a given device."""
        copy = object.__new__(Sharpening)
        copy.__dict__.update(self.__dict__)
        copy.head, copy.tail = self.head.copy(), self.tail.copy()
        copy.possible, copy.unit = self.possible.copy(), self.unit.copy()
        copy.possible[unit] = False
        copy.possible[unit, device] = self.possible[unit, device]
        copy.settle()
        return copy

    def run(self, deadline: float = np.inf, rounds: int = _ROUNDS) -> bool:
        """Sharpen until nothing changes; return whether every unit has a device left."""
        if len(self.instance.graph.edge_source) * self.instance.devices > _MAX_CELLS:
            return self.feasible
        for _ in range(rounds):
            changed = 0
            for side in self._sides:
                late = clock.now() + windows_seconds(self.instance) > deadline
                if not self.feasible or late:
                    return self.feasible
                changed += self._sweep(side, deadline)
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
        near, far, fastest = _reach(
            side.start, side.before, side.tensor, side.crossings, side.reversed, self.unit,
            self.grid.duration, self.possible,
        )  # fmt: skip
        ancestor, after, bound = _ancestors_of(
            side.order, side.start, side.before, side.tensor, side.crossings, self.unit,
            self.grid.duration, self.possible, head, near, far, fastest,
            int(np.flatnonzero(side.order == v)[0]), d,
        )  # fmt: skip
        here = self.possible[self.unit[ancestor], d]
        job = ancestor[here][np.argsort(-bound[ancestor[here]], kind="stable")]
        # J grows and R falls with the number of jobs: the best of min(J, R) is where they meet.
        low, high = 0, len(job)
        best: Queue | None = None
        while low < high:
            size = (low + high) // 2 + 1
            chosen = job[:size]
            queue = _busiest(
                chosen, head[chosen, d], self.grid.duration[chosen, d], after[chosen],
                int(bound[job[size - 1]]),
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

    def _sweep(self, side: _Side, deadline: float) -> int:
        """Raise the heads or, backwards, the tails of all vertices; count the changes."""
        head, tail = (self.tail, self.head) if side.backwards else (self.head, self.tail)
        n = len(head)
        before = int(self.possible.sum())
        together = np.empty((4 * n, 2), dtype=np.int32)
        near, far, fastest = _reach(
            side.start, side.before, side.tensor, side.crossings, side.reversed, self.unit,
            self.grid.duration, self.possible,
        )  # fmt: skip
        remote, away = np.full_like(near, NEVER), np.full_like(fastest, NEVER)
        changed, pairs = 0, 0
        steps = (n + len(side.before)) * head.shape[1] ** 2
        chunk = max(1, min(_CHUNK, _STEPS // max(1, steps)))
        for first in range(0, n, chunk):
            if clock.now() > deadline:
                break
            raised, pairs = _raise_heads(
                side.order, side.start, side.before, side.tensor, side.after_start, side.after,
                side.crossings, self.unit, self.grid.duration, self.possible, head, tail,
                self.limit, near, far, fastest, remote, away, first, min(n, first + chunk),
                together, pairs,
            )  # fmt: skip
            changed += raised
        changed += self._merge(together[:pairs])
        self.settle()
        return changed + before - int(self.possible.sum())

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
    duration: Any, possible: Any,
) -> Any:  # fmt: skip
    """Return, per edge and device, the least crossing time from and to any other device.

    Also return, per vertex and device, the least run time on any other device.
    """
    n, k = duration.shape
    near = np.full((before.shape[0], k), NEVER, np.int64)
    far = np.full((before.shape[0], k), NEVER, np.int64)
    fastest = np.full((n, k), NEVER, np.int64)
    time = np.empty(k, np.int64)
    for x in range(n):
        for e in range(k):
            for d in range(k):
                if d != e and possible[unit[x], e]:
                    fastest[x, d] = min(fastest[x, d], duration[x, e])
        for j in range(start[x], start[x + 1]):
            for d in range(k):
                time[d] = 0 if possible[unit[before[j]], d] else NEVER
            cross(near[j], time, tensor[j], *crossings)
            for d in range(k):
                time[d] = 0 if possible[unit[x], d] else NEVER
            cross(far[j], time, tensor[j], *reversed_crossings)
    return near, far, fastest


@inner
def _lineage(order: Any, start: Any, before: Any, position: int, mark: Any, ancestor: Any) -> Any:
    """List the vertex at a position and its ancestors, later ones first; return their number."""
    size = 0
    mark[order[position]] = position
    for earlier in range(position, -1, -1):
        x = order[earlier]
        if mark[x] == position:
            ancestor[size] = x
            size += 1
            for j in range(start[x], start[x + 1]):
                mark[before[j]] = position
    return size


@inner
def _look_back(
    start: Any, before: Any, unit: Any, duration: Any, possible: Any, head: Any, near: Any,
    far: Any, fastest: Any, remote: Any, away: Any, ancestor: Any, size: int, d: int,
    if_here: Any, if_away: Any, bound: Any,
) -> None:  # fmt: skip
    """Bound the start of ``ancestor[0]`` on ``d`` for each case that another is remote.

    ``if_here[w]`` and ``if_away[w]`` become the least time from the end of ``w``, on ``d`` or
    remote, to that start.
    """
    for a in range(size):
        x = ancestor[a]
        if_here[x], if_away[x], bound[x] = 0, 0, 0
    v = ancestor[0]
    for a in range(size):
        x = ancestor[a]
        here, there = 0, NEVER
        if unit[x] == unit[v]:
            bound[x] = NEVER
        if x != v:
            bound[x] = min(NEVER, max(bound[x], away[x, d] + if_away[x]))
            here = duration[x, d] + if_here[x] if possible[unit[x], d] else NEVER
            if bound[x] < NEVER:
                there = min(NEVER, fastest[x, d] + if_away[x])
        for j in range(start[x], start[x + 1]):
            w = before[j]
            if unit[w] == unit[x]:
                if_here[w] = max(if_here[w], here)
                if_away[w] = max(if_away[w], there)
                bound[w] = max(bound[w], bound[x])
            else:
                if_here[w] = max(if_here[w], min(here, far[j, d] + there))
                if_away[w] = max(if_away[w], min(near[j, d] + here, there))
                arrival = max(remote[j, d], head[x, d])
                bound[w] = max(bound[w], min(min(NEVER, arrival + here), bound[x]))


@inner
def _of_units(unit: Any, ancestor: Any, size: int, bound: Any, of_unit: Any) -> None:
    """Give each ancestor the largest bound of its unit: colocated ones are remote together."""
    for a in range(1, size):
        of_unit[unit[ancestor[a]]] = 0
    for a in range(1, size):
        x = ancestor[a]
        of_unit[unit[x]] = max(of_unit[unit[x]], bound[x])
    for a in range(1, size):
        bound[ancestor[a]] = of_unit[unit[ancestor[a]]]


@short_kernel
def _ancestors_of(
    order: Any, start: Any, before: Any, tensor: Any, crossings: Any, unit: Any, duration: Any,
    possible: Any, head: Any, near: Any, far: Any, fastest: Any, position: int, d: int,
) -> Any:  # fmt: skip
    """Return the ancestors of the vertex at a position, and by vertex what `_look_back` finds."""
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
    ancestor, mark = np.empty(n, np.int32), np.full(n, -1, np.int64)
    if_here, if_away = np.empty(n, np.int64), np.empty(n, np.int64)
    bound, of_unit = np.empty(n, np.int64), np.zeros(possible.shape[0], np.int64)
    size = _lineage(order, start, before, position, mark, ancestor)
    _look_back(
        start, before, unit, duration, possible, head, near, far, fastest, remote, away,
        ancestor, size, d, if_here, if_away, bound,
    )  # fmt: skip
    _of_units(unit, ancestor, size, bound, of_unit)
    return ancestor[1:size], if_here, bound


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
    job: Any, jobs: int, bound: Any, head: Any, duration: Any, d: int, tail: Any, key: Any,
    place: Any, chosen: Any, left: Any, heap: Any,
) -> Any:  # fmt: skip
    """Return the least time that passes: the minimum over ``i`` of ``max(J_i, R_{i+1})``.

    Jobs are taken in the order of falling bounds.
    """
    for b in range(jobs):
        key[job[b]] = -bound[job[b]]
    sort(job, jobs, key)
    falling = np.empty(jobs + 1, np.int64)
    for b in range(jobs):
        place[job[b]] = b
        falling[b] = bound[job[b]]
        key[job[b]] = head[job[b], d]
    falling[jobs] = 0
    sort(job, jobs, key)
    best = NEVER
    low, high = 0, jobs
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
    return best


@short_kernel
def _raise_heads(
    order: Any, start: Any, before: Any, tensor: Any, after_start: Any, after: Any,
    crossings: Any, unit: Any, duration: Any, possible: Any, head: Any, tail: Any, limit: int,
    near: Any, far: Any, fastest: Any, remote: Any, away: Any, first: int, last: int,
    together: Any, pairs: int,
) -> Any:  # fmt: skip
    """Raise the heads of the vertices at positions ``first`` to ``last`` of the order.

    ``remote[j,d]`` is the earliest arrival over an edge from elsewhere and ``away[w,d]`` the
    earliest end of a vertex elsewhere; both are known once the vertex has its heads.

    Return how many rose, and the number of pairs in ``together``: units that must share a device.
    """
    n, k = duration.shape
    ancestor, job = np.empty(n, np.int32), np.empty(n, np.int32)
    chosen, heap = np.empty(n, np.int32), np.empty(n, np.int32)
    mark, place, forced = np.full(n, -1, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    if_here, if_away = np.empty(n, np.int64), np.empty(n, np.int64)
    bound, key, left = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    of_unit, end = np.zeros(possible.shape[0], np.int64), np.empty(k, np.int64)
    changed = 0
    for position in range(first, last):
        v = order[position]
        size = _lineage(order, start, before, position, mark, ancestor)
        for a in range(size):
            forced[ancestor[a]] = 0
        devices = 0
        for d in range(k):
            if not possible[unit[v], d]:
                head[v, d] = NEVER
                continue
            _look_back(
                start, before, unit, duration, possible, head, near, far, fastest, remote, away,
                ancestor, size, d, if_here, if_away, bound,
            )  # fmt: skip
            _of_units(unit, ancestor, size, bound, of_unit)
            least = _arrivals(start, before, unit, duration, possible, head, remote, v, d)
            for a in range(1, size):
                if not possible[unit[ancestor[a]], d]:
                    least = max(least, bound[ancestor[a]])
            jobs = 0
            for a in range(1, size):
                if bound[ancestor[a]] > least and possible[unit[ancestor[a]], d]:
                    job[jobs] = ancestor[a]
                    jobs += 1
            if jobs > 0:
                passing = _least_start(
                    job, jobs, bound, head, duration, d, if_here, key, place, chosen, left, heap
                )
                least = max(least, passing)
            # The latest start that the limit permits.
            room = limit - duration[v, d] - tail[v, d]
            if least > room:
                least = NEVER
            else:
                devices += 1
                for a in range(1, size):
                    if bound[ancestor[a]] > room:
                        forced[ancestor[a]] += 1
            if least > head[v, d]:
                head[v, d] = least
                changed += 1
        for d in range(k):
            if head[v, d] >= NEVER:
                possible[unit[v], d] = False
        for a in range(1, size):
            w = ancestor[a]
            if 0 < devices == forced[w] and unit[w] != unit[v] and pairs < together.shape[0]:
                together[pairs, 0], together[pairs, 1] = unit[w], unit[v]
                pairs += 1
        for e in range(k):
            end[e] = NEVER if head[v, e] >= NEVER else head[v, e] + duration[v, e]
        for e in range(k):
            for d in range(k):
                if d != e:
                    away[v, d] = min(away[v, d], end[e])
        for i in range(after_start[v], after_start[v + 1]):
            cross(remote[after[i]], end, tensor[after[i]], *crossings)
    return changed, pairs
