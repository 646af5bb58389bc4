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

from optpart.base import clock
from optpart.kernels.compiled import arrays, inner, short_kernel
from optpart.kernels.struct import BoolMatrix, Bools, IntMatrix, Ints, LongMatrix, Longs, Struct
from optpart.kernels.ticks import Grid
from optpart.lower_bounds.jackson import Waiting, jackson, one_after_the_other, sort
from optpart.lower_bounds.windows import NEVER, Crossings, Windows, cross, windows, windows_seconds
from optpart.problem.graph import grouped
from optpart.problem.instance import Instance

#: Passes forwards and backwards; further ones would hardly change anything.
_ROUNDS = 10

#: Vertices between two checks of the time, at most, and steps of their loops.
_CHUNK = 64
_STEPS = 50_000_000

#: Ancestors one after another that cannot delay a vertex; none before them is then looked at.
_QUIET = 64

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
        As :func:`~optpart.lower_bounds.windows.windows` computes it for the same limit.
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
        n, k = self.head.shape
        self._work = _Work.of(n, k, len(self.possible))
        there, back = (Crossings.of(instance, grid, backwards=b) for b in (False, True))
        a = arrays(instance)
        self._sides = (
            _Side(
                False,
                a.order,
                a.in_start,
                a.in_source,
                a.in_tensor,
                *grouped(a.in_source, n),
                there,
                back,
            ),
            _Side(
                True,
                a.order[::-1].copy(),
                a.out_start,
                a.out_target,
                a.out_tensor,
                *grouped(a.out_target, n),
                back,
                there,
            ),
        )

    @property
    def feasible(self) -> bool:
        """True if every unit has a device left."""
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
        times = self._times(side)
        head = times.head
        tables, work = _Pass.empty(len(side.before), head.shape), self._begun_work()
        tables.remote.fill(NEVER)
        tables.away.fill(NEVER)
        _reach(side, times, tables)
        place = int(np.flatnonzero(side.order == v)[0])
        size = _ancestors_of(side, times, tables, work, place, d)
        ancestor = work.ancestor[1:size]
        after, bound = work.if_here[1:size, d], work.bound[1:size, d]
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

    def _times(self, side: _Side) -> _Times:
        """Return heads and tails as they are now, seen in a direction of time."""
        head, tail = (self.tail, self.head) if side.backwards else (self.head, self.tail)
        return _Times(self.unit, self.grid.duration, self.possible, head, tail, self.limit)

    def _label(self) -> NDArray[np.int32]:
        """Return the number in ``unit`` of each unit of the instance."""
        label = np.arange(len(self.possible), dtype=np.int32)
        label[self.instance.unit_of] = self.unit
        return label

    def _sweep(self, side: _Side, deadline: float, *, brief: bool) -> int:
        """Raise the heads or, backwards, the tails of all vertices; count the changes."""
        times = self._times(side)
        n, k = times.head.shape
        before = int(self.possible.sum())
        now, work = self._begun(side, times.tail), self._begun_work()
        self._passes.pop(side.backwards, None)
        # A brief pass leaves out some vertices that a later one has to look at.
        kept = not brief and len(side.before) * k <= _MAX_KEPT
        together, pairs = np.empty((4 * n, 2), dtype=np.int32), np.zeros(1, dtype=np.int64)
        found = _Together(together, pairs)
        _reach(side, times, now)
        changed = 0
        steps = (n + len(side.before)) * k**2
        chunk = max(1, min(_CHUNK, _STEPS // max(1, steps)))
        for first in range(0, n, chunk):
            if clock.now() > deadline or not self.feasible:
                kept = False
                break
            last = min(n, first + chunk)
            changed += _raise_heads(side, times, now, work, found, first, last, brief)
        changed += self._merge(together[: pairs[0]])
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
            return now.replaced(unit=self.unit.copy(), possible=possible, tail=tail.copy())
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

    def _begun_work(self) -> _Work:
        """Return the scratch, which copies share, ready for a pass."""
        self._work.mark.fill(-1)
        self._work.seen.fill(-1)
        self._work.members[:] = np.bincount(self.unit, minlength=len(self.possible))
        return self._work

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
        return one_after_the_other(*members, self.grid.duration, self.head, self.tail)


def must_run_on(work: Sharpening) -> NDArray[np.int64]:
    """Return, per device, the one-machine bound of the units that have no other device left."""
    k = work.possible.shape[1]
    alone = (work.possible.sum(axis=1) == 1)[work.unit]
    device = np.where(alone, work.possible[work.unit].argmax(axis=1), k).astype(np.int32)
    start, member = grouped(device, k + 1)
    bound = one_after_the_other(start[: k + 1], member, work.grid.duration, work.head, work.tail)
    return bound.diagonal()


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


class _Pass(Struct):
    """Results of a pass over the vertices, and the values they were computed from.

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

    near: LongMatrix
    far: LongMatrix
    fastest: LongMatrix
    remote: LongMatrix
    away: LongMatrix
    moved: Bools
    tightened: Bools
    unit: Ints
    possible: BoolMatrix
    tail: LongMatrix

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


class _Side(Struct):
    """The edges seen in one direction of time; for tails everything is mirrored."""

    backwards: bool
    order: Ints  # earlier vertices first
    start: Ints
    before: Ints  # per edge into a vertex, the earlier vertex
    tensor: Ints
    after_start: Ints
    after: Ints  # per vertex, the edges of which it is the earlier vertex
    crossings: Crossings
    reversed: Crossings  # those of the other direction


class _Times(Struct):
    """Heads, tails and run times of the vertices, seen in one direction of time.

    Attributes
    ----------
    unit : ndarray of int32, length n
    duration : ndarray of int64, n × k
    possible : ndarray of bool, units × k
    head, tail : ndarray of int64, n × k
    limit : int
        Only schedules of at most this many ticks count.
    """

    unit: Ints
    duration: LongMatrix
    possible: BoolMatrix
    head: LongMatrix
    tail: LongMatrix
    limit: int


class _Together(Struct):
    """Pairs of units that must share a device.

    Attributes
    ----------
    units : ndarray of int32, pairs × 2
    count : ndarray of int64, length 1
        How many have been found; further ones than there is room for are left out.
    """

    units: IntMatrix
    count: Longs


class _Work(Struct):
    """Scratch for one vertex after the other.

    Attributes
    ----------
    ancestor : ndarray of int32, length n
        The vertex and its ancestors, later ones first.
    rank : ndarray of int32, length n
        The place of each of them in that list.
    mark, seen : ndarray of int64, length n
        The last position at which a vertex was an ancestor, and had a row of what follows.
    if_here, if_away, bound : ndarray of int64, n × k
        Of each ancestor, in their order; see `_look_back`.
    here, there, end : ndarray of int64, length k
        Of one vertex, on each device or elsewhere.
    members : ndarray of int64, length units
        How many vertices each unit has.
    of_unit : ndarray of int64, units × k
        The largest bound of each unit of more than one member.
    close : ndarray of int32, k × n
        For each device, the ancestors that may have to run there before the vertex.
    jobs, least, room : ndarray of int64, length k
        Their number, the least start of the vertex, and the latest that the limit permits.
    job, chosen : ndarray of int32, length n
        Vertices that run one at a time.
    key, place, falling : ndarray of int64, length n
        For sorting them, by vertex; their bounds in falling order.
    later, elsewhere : ndarray of int64, length n
        Of each of them: the least time from its end, and the bound for the case that it is remote.
    waiting : Waiting
    """

    ancestor: Ints
    rank: Ints
    mark: Longs
    seen: Longs
    if_here: LongMatrix
    if_away: LongMatrix
    bound: LongMatrix
    here: Longs
    there: Longs
    end: Longs
    members: Longs
    of_unit: LongMatrix
    close: IntMatrix
    jobs: Longs
    least: Longs
    room: Longs
    job: Ints
    chosen: Ints
    key: Longs
    place: Longs
    falling: Longs
    later: Longs
    elsewhere: Longs
    waiting: Waiting

    @classmethod
    def of(cls, n: int, k: int, units: int) -> _Work:
        """Return scratch for vertices, devices and units."""

        def ints() -> NDArray[np.int32]:
            return np.empty(n, dtype=np.int32)

        def longs(*shape: int) -> NDArray[np.int64]:
            return np.empty(shape, dtype=np.int64)

        return cls(
            ancestor=ints(),
            rank=ints(),
            mark=longs(n),
            seen=longs(n),
            if_here=longs(n, k),
            if_away=longs(n, k),
            bound=longs(n, k),
            here=longs(k),
            there=longs(k),
            end=longs(k),
            members=longs(units),
            of_unit=longs(units, k),
            close=np.empty((k, n), dtype=np.int32),
            jobs=longs(k),
            least=longs(k),
            room=longs(k),
            job=ints(),
            chosen=ints(),
            key=longs(n),
            place=longs(n),
            falling=longs(n),
            later=longs(n),
            elsewhere=longs(n),
            waiting=Waiting(longs(n), ints()),
        )


@short_kernel
def _reach(side: _Side, times: _Times, now: _Pass) -> None:
    """Update, per edge and device, the least crossing time from and to any other device.

    Also update, per vertex and device, the least run time on any other device. Where no vertex has
    moved, they are up to date.
    """
    unit, duration, possible = times.unit, times.duration, times.possible
    start, before, moved, fastest = side.start, side.before, now.moved, now.fastest
    n, k = duration.shape
    time = np.empty(k, np.int64)
    for x in range(n):
        if moved[x]:
            for d in range(k):
                fastest[x, d] = NEVER
            for e in range(k):
                if possible[unit[x], e]:
                    for d in range(k):
                        if d != e:
                            fastest[x, d] = min(fastest[x, d], duration[x, e])
        for j in range(start[x], start[x + 1]):
            if moved[before[j]]:
                for d in range(k):
                    now.near[j, d] = NEVER
                    time[d] = 0 if possible[unit[before[j]], d] else NEVER
                cross(now.near[j], time, side.tensor[j], side.crossings)
            if moved[x]:
                for d in range(k):
                    now.far[j, d] = NEVER
                    time[d] = 0 if possible[unit[x], d] else NEVER
                cross(now.far[j], time, side.tensor[j], side.reversed)


@inner
def _lineage(side: _Side, s: _Work, position: int) -> Any:
    """List the vertex at a position and its ancestors, later ones first; return their number."""
    start, before, mark = side.start, side.before, s.mark
    size = 0
    mark[side.order[position]] = position
    for earlier in range(position, -1, -1):
        x = side.order[earlier]
        if mark[x] == position:
            s.ancestor[size], s.rank[x] = x, size
            size += 1
            for j in range(start[x], start[x + 1]):
                mark[before[j]] = position
    return size


@inner
def _look_back(
    side: _Side, times: _Times, now: _Pass, s: _Work, position: int, size: int, quiet: int
) -> Any:
    """Bound the start of ``ancestor[0]`` on each device for each case that another is remote.

    ``if_here[i,d]`` and ``if_away[i,d]`` become the least time from the end of ``ancestor[i]``, on
    ``d`` or remote, to that start. All devices are looked at together, because what depends on the
    vertices alone would otherwise be looked up for each of them.

    Return how many ancestors have been looked at: those up to the last of so many ``quiet`` ones
    that none of their bounds exceeds ``least``. In a large graph, most ancestors are too far away.
    """
    unit, duration, possible, head = times.unit, times.duration, times.possible, times.head
    near, far, fastest, remote, away = now.near, now.far, now.fastest, now.remote, now.away
    here, there, if_here, if_away, bound = s.here, s.there, s.if_here, s.if_away, s.bound
    k = duration.shape[1]
    v = s.ancestor[0]
    if_here[0], if_away[0], bound[0] = 0, 0, 0
    last = 0
    for a in range(size):
        x = s.ancestor[a]
        if a - last > quiet:
            return a
        if unit[x] == unit[v]:
            for d in range(k):
                bound[a, d] = NEVER
        if x == v:
            for d in range(k):
                here[d], there[d] = 0, NEVER
        else:
            for d in range(k):
                least = max(bound[a, d], away[x, d] + if_away[a, d])
                bound[a, d] = min(NEVER, least)
                if least > s.least[d]:
                    last = a
                after = duration[x, d] + if_here[a, d]
                here[d] = after if possible[unit[x], d] else NEVER
                after = min(NEVER, fastest[x, d] + if_away[a, d])
                there[d] = after if least < NEVER else NEVER
        for j in range(side.start[x], side.start[x + 1]):
            w = side.before[j]
            b = s.rank[w]
            if s.seen[w] != position:
                s.seen[w] = position
                for d in range(k):
                    if_here[b, d] = if_away[b, d] = bound[b, d] = 0
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
    return size


@inner
def _of_units(unit: Any, s: _Work, size: int) -> None:
    """Give each ancestor the largest bound of its unit: colocated ones are remote together."""
    ancestor, members, bound, of_unit = s.ancestor, s.members, s.bound, s.of_unit
    k = bound.shape[1]
    for a in range(1, size):
        u = unit[ancestor[a]]
        if members[u] > 1:
            for d in range(k):
                of_unit[u, d] = 0
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


@short_kernel
def _ancestors_of(side: _Side, times: _Times, now: _Pass, s: _Work, position: int, d: int) -> int:
    """Find the ancestors of the vertex at a position, and what `_look_back` finds for each.

    Return their number, with the vertex. Before, ``remote`` and ``away`` are ``NEVER``.
    """
    head, duration, end = times.head, times.duration, s.end
    n, k = duration.shape
    for x in range(n):
        for e in range(k):
            if e != d and head[x, e] < NEVER:
                now.away[x, d] = min(now.away[x, d], head[x, e] + duration[x, e])
        for j in range(side.start[x], side.start[x + 1]):
            w = side.before[j]
            for e in range(k):
                end[e] = NEVER if head[w, e] >= NEVER else head[w, e] + duration[w, e]
            cross(now.remote[j], end, side.tensor[j], side.crossings)
    size: int = _lineage(side, s, position)
    size = _look_back(side, times, now, s, position, size, n)
    _of_units(times.unit, s, size)
    return size


@inner
def _arrivals(side: _Side, times: _Times, remote: Any, v: int, d: int) -> Any:
    """Return the earliest start of ``v`` on ``d`` by its direct predecessors alone."""
    unit, head = times.unit, times.head
    least = head[v, d]
    for j in range(side.start[v], side.start[v + 1]):
        w = side.before[j]
        arrival = NEVER if unit[w] == unit[v] else remote[j, d]
        if times.possible[unit[w], d]:
            arrival = min(arrival, head[w, d] + times.duration[w, d])
        least = max(least, arrival)
    return least


@inner
def _least_start(times: _Times, s: _Work, d: int, jobs: int, known: int) -> Any:
    """Return the least time on ``d`` that passes, ``known`` or later.

    It is the minimum over ``i`` of ``max(J_i, R_{i+1})``, with jobs in the order of falling bounds.
    """
    job, chosen, key, place = s.job, s.chosen, s.key, s.place
    head, duration = times.head, times.duration
    for b in range(jobs):
        key[job[b]] = head[job[b], d]
    sort(job, jobs, key)
    best = jackson(job, jobs, head, duration, d, s.later, s.waiting)
    if best <= known:  # most often: then nothing has changed since the last pass
        return known
    for b in range(jobs):
        chosen[b] = job[b]
        key[job[b]] = -s.elsewhere[job[b]]
    sort(chosen, jobs, key)
    for b in range(jobs):
        place[chosen[b]] = b
        s.falling[b] = s.elsewhere[chosen[b]]
    low, high = 0, jobs - 1
    while low <= high:
        first = (low + high) // 2
        size = 0
        for b in range(jobs):
            if place[job[b]] < first:
                chosen[size] = job[b]
                size += 1
        after = jackson(chosen, size, head, duration, d, s.later, s.waiting)
        best = min(best, max(after, s.falling[first]))
        if after >= s.falling[first]:
            high = first - 1
        else:
            low = first + 1
    return max(best, known)


@inner
def _is_stale(side: _Side, times: _Times, now: _Pass, v: int, brief: bool) -> Any:
    """Return whether the heads of ``v`` may rise; before, its predecessors have their heads."""
    head, moved = times.head, now.moved
    for j in range(side.start[v], side.start[v + 1]):
        moved[v] |= moved[side.before[j]]
    stale = moved[v]
    if not stale and now.tightened[v]:
        stale = not brief
        for d in range(head.shape[1]):
            length = head[v, d] + times.duration[v, d] + times.tail[v, d]
            stale |= head[v, d] < NEVER and length > times.limit
    return stale


@inner
def _gather(times: _Times, s: _Work, size: int) -> None:
    """Raise the least start of the vertex on each device, and list the ancestors that may do so."""
    unit, possible, bound, least, jobs = times.unit, times.possible, s.bound, s.least, s.jobs
    k = len(least)
    for a in range(1, size):
        u = unit[s.ancestor[a]]
        for d in range(k):
            if not possible[u, d]:
                least[d] = max(least[d], bound[a, d])
    for a in range(1, size):
        u = unit[s.ancestor[a]]
        for d in range(k):
            if bound[a, d] > least[d] and possible[u, d]:
                s.close[d, jobs[d]] = a
                jobs[d] += 1


@inner
def _pass_on(side: _Side, times: _Times, now: _Pass, end: Any, v: int) -> None:
    """Fill in when ``v`` ends elsewhere, and when its tensors arrive from there."""
    k = len(end)
    for e in range(k):
        end[e] = NEVER if times.head[v, e] >= NEVER else times.head[v, e] + times.duration[v, e]
        now.away[v, e] = NEVER
    for e in range(k):
        for d in range(k):
            if d != e:
                now.away[v, d] = min(now.away[v, d], end[e])
    for i in range(side.after_start[v], side.after_start[v + 1]):
        j = side.after[i]
        for d in range(k):
            now.remote[j, d] = NEVER
        cross(now.remote[j], end, side.tensor[j], side.crossings)


@short_kernel
def _raise_heads(
    side: _Side,
    times: _Times,
    now: _Pass,
    s: _Work,
    together: _Together,
    first: int,
    last: int,
    brief: bool,
) -> int:
    """Raise the heads of the vertices at positions ``first`` to ``last`` of the order.

    ``remote[j,d]`` is the earliest arrival over an edge from elsewhere and ``away[w,d]`` the
    earliest end of a vertex elsewhere; both are known once the vertex has its heads. A vertex keeps
    its heads if nothing has changed before it, and not its tails either; or, if ``brief``, if these
    still leave it room. ``moved`` becomes true of what has changed, and of all that comes after.

    Return how many rose.
    """
    unit, possible, head = times.unit, times.possible, times.head
    least, room = s.least, s.room
    k = len(least)
    changed = 0
    for position in range(first, last):
        v = side.order[position]
        if not _is_stale(side, times, now, v, brief):
            continue
        for d in range(k):
            s.jobs[d], least[d] = 0, NEVER
            if possible[unit[v], d]:
                least[d] = _arrivals(side, times, now.remote, v, d)
        size = _lineage(side, s, position)
        size = _look_back(side, times, now, s, position, size, _QUIET)
        _of_units(unit, s, size)
        _gather(times, s, size)
        devices = 0
        for d in range(k):
            for b in range(s.jobs[d]):
                a = s.close[d, b]
                w = s.ancestor[a]
                s.job[b], s.later[w], s.elsewhere[w] = w, s.if_here[a, d], s.bound[a, d]
            if s.jobs[d] > 0:
                least[d] = _least_start(times, s, d, s.jobs[d], least[d])
            # The latest start that the limit permits.
            room[d] = times.limit - times.duration[v, d] - times.tail[v, d]
            if least[d] > room[d]:
                least[d] = room[d] = NEVER
            else:
                devices += 1
            if least[d] > head[v, d]:
                head[v, d] = least[d]
                changed += int(possible[unit[v], d])
                now.moved[v] = True
        for a in range(1, size):
            forced = 0
            for d in range(k):
                forced += int(s.bound[a, d] > room[d])
            w = s.ancestor[a]
            pair = together.count[0]
            fits = pair < together.units.shape[0]
            if 0 < devices == forced and unit[w] != unit[v] and fits:
                together.units[pair, 0], together.units[pair, 1] = unit[w], unit[v]
                together.count[0] += 1
        for d in range(k):
            if head[v, d] >= NEVER:
                possible[unit[v], d] = False
        _pass_on(side, times, now, s.end, v)
    return changed
