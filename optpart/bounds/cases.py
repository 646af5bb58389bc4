"""Heads raised by cases of which vertices share a device, interval by interval.

Heads let every path choose its devices by itself. In a large network, most of what they miss is
local: two branches either take turns on one device, or a tensor crosses. An interval consists of
the vertices between two of a longest path. A tree of cases grows where the start of its last vertex
is least: of all pairs of units with an edge between them, the one is split whose cases raise it
most. In a case, a vertex starts on a device no earlier than its inputs arrive there from a device
that the case allows, and no earlier than a single machine is done with those of its predecessors in
the interval that share its device; the least over all cases is a valid head. Since heads rise in
topological order, what the intervals along a path gain adds up.

All models of communication satisfy ``start(v) ≥ end(u) + send + δ``, and all run vertices one at a
time per device, so this holds in all of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart import clock
from optpart.bounds.one_machine import sharpened
from optpart.bounds.windows import NEVER, Windows, windows
from optpart.kernels.compiled import arrays, short_kernel
from optpart.kernels.ticks import Grid
from optpart.problem.instance import Instance

#: Vertices of an interval, and cases of its tree, at most: one round after another, while there is
#: time and they prove more. The last takes thirty times as long as the first.
_ROUNDS = ((20, 24), (36, 50), (48, 100), (64, 160))

#: The round that is repeated from sharpened heads and tails, and the share of the time for these.
#: In long networks, they lead to other longest paths, and often to less; later rounds begin where
#: this one proved more.
_COMPARED = 1
_SHARPENING = 0.25

#: Numbers in the tables of delays, at most, and seconds that a vertex or an edge takes at least.
_MAX_CELLS = 2**23
_PER_ITEM = 1e-5

#: Intervals along the longest path, about.
_INTERVALS = 320

#: By how much the lesser rise counts more than the greater one when a pair is chosen.
_LESSER = 10

#: A rise that counts as any greater one, so that sums stay within 64 bits.
_MOST = 2**58

Times = NDArray[np.int64]


def cases_bound(
    instance: Instance, seconds: float = np.inf, makespan: Fraction | None = None
) -> Fraction | None:
    """Bound the makespan by heads that cases raise along a longest path.

    Parameters
    ----------
    seconds : float
        Time limit.
    makespan : Fraction, optional
        Makespan of a schedule; the bound goes no higher.

    Returns
    -------
    Fraction or None
        ``None`` if some unit has no device at all.
    """
    deadline = clock.now() + seconds
    grid = Grid.of(instance)
    window = windows(instance, grid, seconds=seconds)
    if window.bound is None:
        return None
    least = window.bound
    most = NEVER if makespan is None else grid.floor(makespan)
    tables = (len(grid.delays) + len(grid.measured)) * instance.devices**2
    items = instance.vertices + len(instance.graph.edge_source)
    rounds = _ROUNDS if tables <= _MAX_CELLS and _PER_ITEM * items < deadline - clock.now() else ()
    start = window
    for number, (size, cases) in enumerate(rounds):
        growth = Growth(size, cases, deadline)
        _, found = raised(instance, grid, start, growth)
        if number == _COMPARED and found is not None and clock.now() < deadline:
            left = _SHARPENING * (deadline - clock.now())
            sharp = sharpened(instance, grid, window, seconds=left)
            _, from_sharp = raised(instance, grid, sharp, growth)
            if from_sharp is None or from_sharp > found:
                start, found = sharp, from_sharp
        if found is None:
            return None
        rose, least = found > least, max(least, found)
        if least >= most or clock.now() > deadline or (number >= _COMPARED and not rose):
            break
    return grid.time(min(least, most))


def raised(
    instance: Instance, grid: Grid, window: Windows, growth: Growth
) -> tuple[Windows, int | None]:
    """Raise heads along a longest path, and then tails.

    Returns
    -------
    known : Windows
        With these heads and tails; for units, they are not passed on.
    ticks : int or None
        The length that they prove; ``None`` if there is no schedule.
    """
    forwards = heads_of(instance, grid, window)
    deque(forwards.rise(growth), maxlen=0)
    window = replace(window, head=forwards.head)
    backwards = heads_of(instance, grid, window, backwards=True)
    deque(backwards.rise(growth), maxlen=0)
    known = replace(window, tail=backwards.head)
    return known, None if backwards.ticks >= NEVER else backwards.ticks


def heads_of(instance: Instance, grid: Grid, window: Windows, *, backwards: bool = False) -> Heads:
    """Return the heads and tails of windows, to be raised.

    Parameters
    ----------
    backwards : bool
        Whether times are counted from the end, so that tails rise.
    """
    graph = instance.graph
    sending = grid.send if instance.model.communication == "sendrecv" else np.zeros_like(grid.send)
    near = np.concatenate((grid.delays[:, grid.link_class], grid.measured))
    delay = np.where(near < 0, NEVER, near + sending[:, None])  # sender × receiver
    order, head, tail = arrays(instance).order, window.head, window.tail
    source, target = graph.edge_source.tolist(), graph.edge_target.tolist()
    if backwards:
        order, head, tail = order[::-1], tail, head
        source, target = target, source
    else:
        delay = delay.transpose(0, 2, 1)
    inputs: list[list[tuple[int, int]]] = [[] for _ in range(instance.vertices)]
    tables = grid.size_class[graph.edge_tensor].tolist()
    for u, v, table in zip(source, target, tables, strict=True):
        inputs[v].append((u, table))
    return Heads(
        order.tolist(), instance.unit_of.tolist(), list(instance.separated_units),
        head, tail, np.maximum(grid.duration, 0), inputs, np.ascontiguousarray(delay), NEVER,
    )  # fmt: skip


class Growth(NamedTuple):
    """How far trees grow.

    Attributes
    ----------
    size, cases : int
        Vertices of an interval, and cases of its tree, at most.
    deadline : float
        On the clock; what has risen by then is valid.
    """

    size: int
    cases: int
    deadline: float


class Step(NamedTuple):
    """An interval and its cases.

    Attributes
    ----------
    vertices : list of int
        In topological order.
    cases : list of int
        The tree from its root: two positions in ``vertices`` split a case in two, first that they
        share a device, then that they do not; −1 splits no further.
    """

    vertices: list[int]
    cases: list[int]


class Heads:
    """Heads of an instance that rise in topological order.

    Parameters
    ----------
    order : sequence of int
        A topological order.
    unit : sequence of int, length n
    separated : list of (int, int)
        Pairs of units that do not share a device.
    head, tail, run : ndarray of int64, n × k
        In ticks; ``head`` is ``never`` on devices where a vertex cannot be, and ``run`` 0.
    inputs : list of list of (int, int)
        The inputs of each vertex, each with its row of ``arrival``.
    arrival : ndarray of int64, tables × k × k
        The time to a device from another one.
    never : int
        What no schedule reaches.
    """

    def __init__(
        self, order: Iterable[int], unit: Iterable[int], separated: list[tuple[int, int]],
        head: Times, tail: Times, run: Times, inputs: list[list[tuple[int, int]]], arrival: Times,
        never: int,
    ) -> None:  # fmt: skip
        self.order = np.fromiter(order, dtype=np.int64)
        self.unit = np.fromiter(unit, dtype=np.int64)
        self.separated = separated
        self.head, self.tail, self.run = head.copy(), tail, run
        self.inputs, self.arrival, self.never = inputs, arrival, never
        self.after: list[list[int]] = [[] for _ in inputs]
        for v, sources in enumerate(inputs):
            for u, _ in sources:
                self.after[u].append(v)
        self._begin = np.cumsum([0, *map(len, inputs)])
        self._input = np.array([*chain.from_iterable(inputs)], dtype=np.int64).reshape(-1, 2)
        self._position = np.empty(len(self.order), dtype=np.int64)
        self._position[self.order] = np.arange(len(self.order))

    def rise(self, growth: Growth, numbers: float = np.inf) -> Iterator[Step]:
        """Raise heads along a longest path, as far as the deadline permits; yield each step.

        Parameters
        ----------
        numbers : float
            In all steps together, at most; a step that exceeds it is the last, and left out.
        """
        size, deadline = growth.size, growth.deadline
        passed = 0
        for v, begins in self._goals(size):
            position = int(self._position[v]) + 1
            self._pass_on(passed, position)
            passed = position
            if clock.now() > deadline or numbers < 0:
                break
            interval = _Interval(self, self._within(begins, v, size))
            step = Step(interval.vertices, interval.split(growth.cases))
            if not (interval.least > self.head[interval.vertices]).any():
                continue
            numbers -= len(step.vertices) + len(step.cases)
            if numbers >= 0:
                self.head[interval.vertices] = interval.least
                yield step
        self._pass_on(passed, len(self.order))

    @property
    def ticks(self) -> int:
        """The least length that heads and tails admit."""
        return int(min(self.never, self._through().max(initial=0)))

    def _through(self) -> Times:
        return np.asarray((self.head + self.run + self.tail).min(axis=1))

    def _goals(self, size: int) -> list[tuple[int, list[int]]]:
        """Return vertices along a longest path, each with those of the path before it."""
        through = self._through()
        path = [int(through.argmax())] if len(through) else []
        while path and self.inputs[path[-1]]:
            path.append(max((u for u, _ in self.inputs[path[-1]]), key=lambda u: (through[u], -u)))
        path.reverse()
        while path and self.after[path[-1]]:
            path.append(max(self.after[path[-1]], key=lambda v: (through[v], -v)))
        step = -(-len(path) // _INTERVALS)
        ends = {*range(step, len(path), max(1, step)), len(path) - 1} - {-1}
        return [(path[i], path[max(0, i - size) : i]) for i in sorted(ends)]

    def _within(self, begins: list[int], end: int, size: int) -> list[int]:
        """Return the vertices from one of some to an end, from as early a one as is not too far."""
        low, high = 0, len(begins) - 1
        found = [end]
        while low <= high:
            middle = (low + high) // 2
            inside = self._between(begins[middle], end)
            if len(inside) <= size:
                found, high = inside, middle - 1
            else:
                low = middle + 1
        return found

    def _between(self, begin: int, end: int) -> list[int]:
        position = self._position
        after, before = {begin}, {end}
        reached = [begin]
        while reached:
            for v in self.after[reached.pop()]:
                if v not in after and position[v] <= position[end]:
                    after.add(v)
                    reached.append(v)
        reached = [end]
        while reached:
            for u, _ in self.inputs[reached.pop()]:
                if u not in before and position[u] >= position[begin]:
                    before.add(u)
                    reached.append(u)
        return sorted(after & before, key=lambda v: int(position[v]))

    def _pass_on(self, begin: int, end: int) -> None:
        """Raise the heads from a position in the order to another one."""
        _pass_on(
            self.order[begin:end], self._begin, self._input, self.unit, self.run, self.arrival,
            self.never, self.head,
        )  # fmt: skip


class _Interval:
    """The cases of an interval.

    Attributes
    ----------
    least : ndarray of int64, vertices × k
        The least starts over all cases.
    """

    def __init__(self, heads: Heads, vertices: list[int]) -> None:
        self.vertices = vertices
        self._heads = heads
        number = {v: i for i, v in enumerate(vertices)}
        unit: dict[int, int] = {}
        for v in vertices:
            unit.setdefault(heads.unit[v], len(unit))
        self._unit = np.array([unit[heads.unit[v]] for v in vertices], dtype=np.int64)
        self._first = [int((self._unit == u).argmax()) for u in range(len(unit))]
        edges = [(number[u], i, t) for i, v in enumerate(vertices)
                 for u, t in heads.inputs[v] if u in number]  # fmt: skip
        self._edge = np.array(edges, dtype=np.int64).reshape(-1, 3)
        self._before = np.zeros((len(vertices), len(vertices)), dtype=np.bool_)
        for i, j, _ in edges:
            self._before[j] |= self._before[i]
            self._before[j, i] = True
        pairs = {tuple(sorted((int(self._unit[i]), int(self._unit[j])))) for i, j, _ in edges}
        adjacent = sorted(pair for pair in pairs if pair[0] != pair[1])
        self._pairs = np.array(adjacent, dtype=np.int64).reshape(-1, 2)
        self._apart = np.zeros((len(unit), len(unit)), dtype=np.bool_)
        for a, b in heads.separated:
            if a in unit and b in unit:
                self._apart[unit[a], unit[b]] = self._apart[unit[b], unit[a]] = True
        tables, kind = np.unique(self._edge[:, 2], return_inverse=True)
        self._edge[:, 2] = kind
        self._arrival = heads.arrival[tables]
        self._arrival[:, range(self._arrival.shape[1]), range(self._arrival.shape[1])] = heads.never
        self._head, self._run = heads.head[vertices], heads.run[vertices]
        self.least = self._head

    def split(self, most: int) -> list[int]:
        """Grow the tree of cases where it proves least; return it as the record has it."""
        rest = self._run[-1] + self._heads.tail[self.vertices[-1]]
        label, apart, start, pair, part = _grow(
            self._head, self._run, self._edge, self._arrival, self._unit, self._apart, self._before,
            rest, self._heads.never, self._pairs, most,
        )  # fmt: skip
        proven = start[part < 0].min(axis=0)
        cases: list[int] = []
        self.least = np.full_like(self._head, self._heads.never)
        row = np.empty_like(self._head)
        stack = [0]
        while stack:
            case = stack.pop()
            if part[case] < 0 or (start[case] >= proven).all():
                cases.append(-1)
                _enter(
                    self._head, self._run, self._edge, self._arrival, label[case][self._unit],
                    apart[case], self._before, self._heads.never, row, 0, True,
                )  # fmt: skip
                np.minimum(self.least, row, out=self.least)
            else:
                cases.extend(self._first[u] for u in pair[case].tolist())
                stack += [part[case] + 1, part[case]]
        return cases


@short_kernel
def _pass_on(
    order: Any, begin: Any, source: Any, unit: Any, run: Any, arrival: Any, never: Any, head: Any
) -> None:
    """Raise the heads of some vertices to when their inputs arrive from wherever is best.

    Parameters
    ----------
    begin, source : ndarray of int64, n + 1; m × 2
        The inputs of ``v`` and their tables are the rows from ``begin[v]`` to ``begin[v + 1]``.
    """
    k = head.shape[1]
    end = np.empty(k, np.int64)
    for v in order:
        for e in range(begin[v], begin[v + 1]):
            u, table = source[e]
            for d in range(k):
                end[d] = head[u, d] + run[u, d]
            for d in range(k):
                least = end[d]
                if unit[u] != unit[v]:
                    for f in range(k):
                        least = min(least, end[f] + arrival[table, d, f])
                head[v, d] = max(head[v, d], least)
        for d in range(k):
            head[v, d] = min(never, head[v, d])


@short_kernel
def _grow(
    head: Any, run: Any, edge: Any, arrival: Any, unit: Any, apart: Any, before: Any, rest: Any,
    never: int, pairs: Any, most: int,
) -> Any:  # fmt: skip
    """Split the case that proves least, up to ``most`` times.

    Returns
    -------
    label : ndarray of int64, cases × units
        Units of one label share a device.
    apart : ndarray of bool, cases × units × units
        Which labels are on different devices.
    start : ndarray of int64, cases × k
        Starts of the last vertex on each device.
    pair : ndarray of int64, cases × 2
        Two units, on one device in the first part of the case and on two in the second.
    part : ndarray of int64, cases
        The first part, which the second follows; −1 if the case is not split.
    """
    n, k = head.shape
    units = apart.shape[0]
    size = 2 * most + 1
    labels = np.empty((size, units), np.int64)
    parted = np.empty((size, units, units), np.bool_)
    start = np.empty((size, k), np.int64)
    value = np.empty(size, np.int64)
    pair = np.full((size, 2), -1, np.int64)
    part = np.full(size, -1, np.int64)
    row = np.empty((n, k), np.int64)
    known = np.empty((n, k), np.int64)
    seen = np.empty((units, units), np.bool_)
    labels[0] = np.arange(units)
    parted[0] = apart
    _enter(head, run, edge, arrival, labels[0][unit], parted[0], before, never, row, 0, False)
    start[0] = row[n - 1]
    value[0] = (start[0] + rest).min()
    count = 1
    for _ in range(most):
        case = -1
        for i in range(count):
            if part[i] < 0 and (case < 0 or value[i] < value[case]):
                case = i
        if value[case] > never:
            break
        _enter(
            head, run, edge, arrival, labels[case][unit], parted[case], before, never, known, 0,
            False,
        )  # fmt: skip
        best = -1
        seen[:] = False
        for i in range(pairs.shape[0]):
            a, b = labels[case, pairs[i, 0]], labels[case, pairs[i, 1]]
            a, b = min(a, b), max(a, b)
            if a == b or parted[case, a, b] or seen[a, b]:
                continue
            seen[a, b] = True
            # Before both of the labels have come up, next to nothing changes: only what is apart
            # from one of them is now apart from the other as well. Leaving that out is valid.
            of = labels[case][unit]
            begin = int(max(np.argmax(of == a), np.argmax(of == b)))
            together = np.where(labels[case] == b, a, labels[case])
            joined = parted[case].copy()
            joined[a] |= joined[b]
            joined[:, a] |= joined[:, b]
            row[:begin] = known[:begin]
            _enter(
                head, run, edge, arrival, together[unit], joined, before, never, row, begin, False
            )
            same = row[n - 1].copy()
            split = parted[case].copy()
            split[a, b] = split[b, a] = True
            _enter(head, run, edge, arrival, of, split, before, never, row, begin, False)
            first, second = (same + rest).min(), (row[n - 1] + rest).min()
            low, high = min(first, second) - value[case], max(first, second) - value[case]
            rise = _LESSER * min(low, _MOST) + min(high, _MOST)
            if rise > best:
                best = rise
                pair[case] = pairs[i]
                labels[count], labels[count + 1] = together, labels[case]
                parted[count], parted[count + 1] = joined, split
                start[count], start[count + 1] = same, row[n - 1]
                value[count], value[count + 1] = first, second
        if best < 0:
            break
        part[case] = count
        count += 2
    return labels[:count], parted[:count], start[:count], pair[:count], part[:count]


@short_kernel
def _enter(
    head: Any, run: Any, edge: Any, arrival: Any, label: Any, apart: Any, before: Any, never: Any,
    row: Any, begin: int, exact: bool,
) -> None:  # fmt: skip
    """Compute starts in a case: inputs arrive, and what shares a device has taken its turn.

    Starts before position ``begin`` are known. What takes turns on a device is done no earlier than
    one after the other in the order of their starts there. Less exactly, but on all devices at a
    time, it is bounded by the last of them in topological order, by the last two, and so on: these
    take all of their run times after the earliest of their starts.
    """
    n, k = head.shape
    turn = np.empty(n, np.int64)
    end, begun = np.empty(k, np.int64), np.empty(k, np.int64)
    work, done = np.empty(k, np.int64), np.empty(k, np.int64)
    e = 0
    while e < edge.shape[0] and edge[e, 1] < begin:
        e += 1
    for i in range(begin, n):
        row[i] = head[i]
        while e < edge.shape[0] and edge[e, 1] == i:
            j, table = edge[e, 0], edge[e, 2]
            e += 1
            for d in range(k):
                end[d] = row[j, d] + run[j, d]
            same, other = label[i] == label[j], apart[label[i], label[j]]
            for d in range(k):
                least = end[d] if not other else never
                if not same:
                    for f in range(k):
                        least = min(least, end[f] + arrival[table, d, f])
                row[i, d] = max(row[i, d], least)
        size = 0
        for j in range(i):
            if before[i, j] and label[j] == label[i]:
                turn[size] = j
                size += 1
        if not exact:
            begun[:], work[:], done[:] = never, 0, 0
            for a in range(size - 1, -1, -1):
                j = turn[a]
                for d in range(k):
                    begun[d] = min(begun[d], row[j, d])
                    work[d] += run[j, d]
                    done[d] = max(done[d], begun[d] + work[d])
            for d in range(k):
                row[i, d] = min(never, max(row[i, d], done[d]))
            continue
        for d in range(k):
            for a in range(1, size):
                j, b = turn[a], a - 1
                while b >= 0 and row[turn[b], d] > row[j, d]:
                    turn[b + 1] = turn[b]
                    b -= 1
                turn[b + 1] = j
            free = 0
            for a in range(size):
                free = max(free, row[turn[a], d]) + run[turn[a], d]
            row[i, d] = min(never, max(row[i, d], free))
