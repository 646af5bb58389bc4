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

from optpart.base import clock
from optpart.kernels.compiled import arrays, inner, short_kernel, slowdown
from optpart.kernels.struct import BoolCube, BoolMatrix, LongCube, LongMatrix, Longs, Struct
from optpart.kernels.ticks import Grid
from optpart.lower_bounds.one_machine import sharpened
from optpart.lower_bounds.windows import NEVER, Windows, windows
from optpart.problem.graph import inverse
from optpart.problem.instance import Instance

#: Vertices of an interval, and cases of its tree, at most: one round after another, while there is
#: time and they prove more. The last takes thirty times as long as the first.
_ROUNDS = ((20, 24), (36, 50), (48, 100), (64, 160))

#: The round that is repeated from sharpened heads and tails, and the share of the time for these.
#: In long networks, they lead to other longest paths, and often to less; later rounds begin where
#: this one proved more.
_COMPARED = 1
_SHARPENING = 0.25

#: Numbers in the tables of delays, at most, and seconds that a vertex or an edge takes at least; of
#: these, machine code takes the second.
_MAX_CELLS = 2**23
_PER_ITEM, _PASSING = 1e-5, 1.6e-7

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
    rounds = _ROUNDS if fits(instance, grid, deadline - clock.now()) else ()
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


def fits(instance: Instance, grid: Grid, seconds: float) -> bool:
    """Return whether heads can be raised in some time; that takes a pass over the whole graph."""
    tables = (len(grid.delays) + len(grid.measured)) * instance.devices**2
    items = instance.vertices + len(instance.graph.edge_source)
    per_item = _PER_ITEM + _PASSING * (slowdown(_pass_on) - 1)
    return tables <= _MAX_CELLS and per_item * items < seconds


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
    sending = grid.send if instance.model.sends else np.zeros_like(grid.send)
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
    """Limits on how far trees grow.

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
        self._network = _Network(
            order=self.order,
            unit=self.unit,
            begin=np.cumsum([0, *map(len, inputs)]),
            input=np.array([*chain.from_iterable(inputs)], dtype=np.int64).reshape(-1, 2),
            run=np.ascontiguousarray(run),
            arrival=np.ascontiguousarray(arrival),
            head=self.head,
            never=never,
        )
        self._position = inverse(self.order)

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
        _pass_on(self._network, begin, end)


class _Network(Struct):
    """Heads, and the edges that raise them.

    Attributes
    ----------
    order : ndarray of int64, length n
        A topological order.
    unit : ndarray of int64, length n
    begin, input : ndarray of int64, n + 1; m × 2
        The inputs of ``v`` and their tables are the rows from ``begin[v]`` to ``begin[v + 1]``.
    run, arrival, head, never
        As in :class:`Heads`.
    """

    order: Longs
    unit: Longs
    begin: Longs
    input: LongMatrix
    run: LongMatrix
    arrival: LongCube
    head: LongMatrix
    never: int


class _Inside(Struct):
    """An interval before its cases; its vertices and units count from 0.

    Attributes
    ----------
    head, run : ndarray of int64, n × k
    edge : ndarray of int64, m × 3
        Two vertices and the table of the tensor between them, by the second vertex.
    arrival : ndarray of int64, tables × k × k
    unit : ndarray of int64, length n
    before : ndarray of bool, n × n
        Which vertices precede each vertex.
    rest : ndarray of int64, length k
        The least time from the start of the last vertex on each device to the end.
    pair : ndarray of int64, pairs × 2
        Units with an edge between them.
    never : int
    """

    head: LongMatrix
    run: LongMatrix
    edge: LongMatrix
    arrival: LongCube
    unit: Longs
    before: BoolMatrix
    rest: Longs
    pair: LongMatrix
    never: int


class _Tree(Struct):
    """A tree of cases; its first entry is the root.

    Attributes
    ----------
    label : ndarray of int64, cases × units
        Units of one label share a device.
    apart : ndarray of bool, cases × units × units
        Which labels are on different devices.
    start : ndarray of int64, cases × k
        Starts of the last vertex on each device.
    value : ndarray of int64, cases
        The least length that these starts admit.
    pair : ndarray of int64, cases × 2
        Two units, on one device in the first part of the case and on two in the second.
    part : ndarray of int64, cases
        The first part, which the second follows; −1 if the case is not split.
    """

    label: LongMatrix
    apart: BoolCube
    start: LongMatrix
    value: Longs
    pair: LongMatrix
    part: Longs

    @classmethod
    def room(cls, most: int, apart: NDArray[np.bool_], devices: int) -> _Tree:
        """Return a root, to be split at most a number of times."""
        size, units = 2 * most + 1, len(apart)
        tree = cls(
            label=np.empty((size, units), dtype=np.int64),
            apart=np.empty((size, units, units), dtype=np.bool_),
            start=np.empty((size, devices), dtype=np.int64),
            value=np.empty(size, dtype=np.int64),
            pair=np.full((size, 2), -1, dtype=np.int64),
            part=np.full(size, -1, dtype=np.int64),
        )
        tree.label[0], tree.apart[0] = np.arange(units), apart
        return tree


class _Interval:
    """The cases of an interval.

    Attributes
    ----------
    least : ndarray of int64, vertices × k
        The least starts over all cases.
    """

    def __init__(self, heads: Heads, vertices: list[int]) -> None:
        self.vertices = vertices
        number = {v: i for i, v in enumerate(vertices)}
        unit: dict[int, int] = {}
        for v in vertices:
            unit.setdefault(heads.unit[v], len(unit))
        self._unit = np.array([unit[heads.unit[v]] for v in vertices], dtype=np.int64)
        self._first = [int((self._unit == u).argmax()) for u in range(len(unit))]
        edges = [(number[u], i, t) for i, v in enumerate(vertices)
                 for u, t in heads.inputs[v] if u in number]  # fmt: skip
        edge = np.array(edges, dtype=np.int64).reshape(-1, 3)
        before = np.zeros((len(vertices), len(vertices)), dtype=np.bool_)
        for i, j, _ in edges:
            before[j] |= before[i]
            before[j, i] = True
        pairs = {tuple(sorted((int(self._unit[i]), int(self._unit[j])))) for i, j, _ in edges}
        adjacent = sorted(pair for pair in pairs if pair[0] != pair[1])
        self._apart = np.zeros((len(unit), len(unit)), dtype=np.bool_)
        for a, b in heads.separated:
            if a in unit and b in unit:
                self._apart[unit[a], unit[b]] = self._apart[unit[b], unit[a]] = True
        tables, kind = np.unique(edge[:, 2], return_inverse=True)
        edge[:, 2] = kind
        arrival = np.ascontiguousarray(heads.arrival[tables])
        arrival[:, range(arrival.shape[1]), range(arrival.shape[1])] = heads.never
        run = np.ascontiguousarray(heads.run[vertices])
        self.least = heads.head[vertices]
        self._inside = _Inside(
            head=self.least,
            run=run,
            edge=edge,
            arrival=arrival,
            unit=self._unit,
            before=before,
            rest=run[-1] + heads.tail[vertices[-1]],
            pair=np.array(adjacent, dtype=np.int64).reshape(-1, 2),
            never=heads.never,
        )

    def split(self, most: int) -> list[int]:
        """Grow the tree of cases where it proves least; return it as the record has it."""
        inside = self._inside
        tree = _Tree.room(most, self._apart, inside.head.shape[1])
        count = _grow(inside, tree)
        start, part = tree.start[:count], tree.part[:count]
        proven = start[part < 0].min(axis=0)
        cases: list[int] = []
        self.least = np.full_like(inside.head, inside.never)
        row = np.empty_like(inside.head)
        stack = [0]
        while stack:
            case = stack.pop()
            if part[case] < 0 or (start[case] >= proven).all():
                cases.append(-1)
                _enter(inside, tree.label[case][self._unit], tree.apart[case], row, 0, True)
                np.minimum(self.least, row, out=self.least)
            else:
                cases.extend(self._first[u] for u in tree.pair[case].tolist())
                stack += [part[case] + 1, part[case]]
        return cases


@short_kernel
def _pass_on(a: _Network, first: int, last: int) -> None:
    """Raise the heads of the vertices at positions ``first`` to ``last`` of the order.

    They rise to when their inputs arrive from wherever is best.
    """
    head, run, unit = a.head, a.run, a.unit
    k = head.shape[1]
    end = np.empty(k, np.int64)
    for position in range(first, last):
        v = a.order[position]
        for e in range(a.begin[v], a.begin[v + 1]):
            u, table = a.input[e, 0], a.input[e, 1]
            for d in range(k):
                end[d] = head[u, d] + run[u, d]
            for d in range(k):
                least = end[d]
                if unit[u] != unit[v]:
                    for f in range(k):
                        least = min(least, end[f] + a.arrival[table, d, f])
                head[v, d] = max(head[v, d], least)
        for d in range(k):
            head[v, d] = min(a.never, head[v, d])


@inner
def _labelled(x: _Inside, label: Any, of: Any) -> None:
    """Fill in the label of each vertex from that of each unit."""
    for i in range(len(of)):
        of[i] = label[x.unit[i]]


@inner
def _length(x: _Inside, start: Any) -> Any:
    """Return the least length that starts of the last vertex admit."""
    least = start[0] + x.rest[0]
    for d in range(1, len(start)):
        least = min(least, start[d] + x.rest[d])
    return least


@inner
def _keep(x: _Inside, tree: _Tree, case: int, label: Any, apart: Any, start: Any) -> None:
    """Make an entry of the tree."""
    units = len(label)
    tree.value[case] = _length(x, start)
    for d in range(len(start)):
        tree.start[case, d] = start[d]
    for u in range(units):
        tree.label[case, u] = label[u]
        for w in range(units):
            tree.apart[case, u, w] = apart[u, w]


@inner
def _most_promising(tree: _Tree, count: int) -> Any:
    """Return the case that proves least of those that are not split; −1 if all are."""
    case = -1
    for i in range(count):
        if tree.part[i] < 0 and (case < 0 or tree.value[i] < tree.value[case]):
            case = i
    return case


@inner
def _divide(apart: Any, a: int, b: int, joined: Any, split: Any) -> None:
    """Fill in what is apart from which where two labels are one, and where they are apart."""
    units = len(apart)
    for u in range(units):
        for w in range(units):
            joined[u, w] = split[u, w] = apart[u, w]
    for w in range(units):
        joined[a, w] |= joined[b, w]
    for u in range(units):
        joined[u, a] |= joined[u, b]
    split[a, b] = split[b, a] = True


@inner
def _first_of_both(of: Any, a: int, b: int) -> Any:
    """Return the first position up to which both labels have come up."""
    one = other = -1
    for i in range(len(of) - 1, -1, -1):
        if of[i] == a:
            one = i
        if of[i] == b:
            other = i
    return max(one, other)


@short_kernel
def _grow(x: _Inside, tree: _Tree) -> int:
    """Split the case that proves least, as long as there is room; return the number of cases.

    Before each split, every case that is not split has its starts, and every pair of labels is
    tried in it; what the best one proves in both of its parts is kept at the end of the tree.
    """
    n, k = x.head.shape
    units = tree.label.shape[1]
    row, known = np.empty((n, k), np.int64), np.empty((n, k), np.int64)
    of, joint = np.empty(n, np.int64), np.empty(n, np.int64)
    same, together = np.empty(k, np.int64), np.empty(units, np.int64)
    joined, split = np.empty((units, units), np.bool_), np.empty((units, units), np.bool_)
    seen = np.full((units, units), -1, np.int64)
    _labelled(x, tree.label[0], of)
    _enter(x, of, tree.apart[0], row, 0, False)
    _keep(x, tree, 0, tree.label[0], tree.apart[0], row[n - 1])
    count = 1
    while count < len(tree.value):
        case = _most_promising(tree, count)
        if tree.value[case] > x.never:
            break
        label, apart = tree.label[case], tree.apart[case]
        _labelled(x, label, of)
        _enter(x, of, apart, known, 0, False)
        best = -1
        for i in range(x.pair.shape[0]):
            a, b = label[x.pair[i, 0]], label[x.pair[i, 1]]
            a, b = min(a, b), max(a, b)
            if a == b or apart[a, b] or seen[a, b] == count:
                continue
            seen[a, b] = count
            # Before both of the labels have come up, next to nothing changes: only what is apart
            # from one of them is now apart from the other as well. Leaving that out is valid.
            begin = _first_of_both(of, a, b)
            for j in range(begin):
                for d in range(k):
                    row[j, d] = known[j, d]
            for u in range(units):
                together[u] = a if label[u] == b else label[u]
            _divide(apart, a, b, joined, split)
            _labelled(x, together, joint)
            _enter(x, joint, joined, row, begin, False)
            for d in range(k):
                same[d] = row[n - 1, d]
            _enter(x, of, split, row, begin, False)
            first, second = _length(x, same), _length(x, row[n - 1])
            low = min(first, second) - tree.value[case]
            high = max(first, second) - tree.value[case]
            rise = _LESSER * min(low, _MOST) + min(high, _MOST)
            if rise > best:
                best = rise
                tree.pair[case, 0], tree.pair[case, 1] = x.pair[i, 0], x.pair[i, 1]
                _keep(x, tree, count, together, joined, same)
                _keep(x, tree, count + 1, label, split, row[n - 1])
        if best < 0:
            break
        tree.part[case] = count
        count += 2
    return count


@short_kernel
def _enter(
    x: _Inside, label: Longs, apart: BoolMatrix, row: LongMatrix, begin: int, exact: bool
) -> None:
    """Compute starts in a case: inputs arrive, and what shares a device has taken its turn.

    Starts before position ``begin`` are known. What takes turns on a device is done no earlier than
    one after the other in the order of their starts there. Less exactly, but on all devices at a
    time, it is bounded by the last of them in topological order, by the last two, and so on: these
    take all of their run times after the earliest of their starts.

    Parameters
    ----------
    label : ndarray of int64, length n
        Vertices of one label share a device.
    row : ndarray of int64, n × k
        The starts.
    """
    run, edge, never = x.run, x.edge, x.never
    n, k = run.shape
    turn = np.empty(n, np.int64)
    end, begun = np.empty(k, np.int64), np.empty(k, np.int64)
    work, done = np.empty(k, np.int64), np.empty(k, np.int64)
    e = 0
    while e < edge.shape[0] and edge[e, 1] < begin:
        e += 1
    for i in range(begin, n):
        for d in range(k):
            row[i, d] = x.head[i, d]
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
                        least = min(least, end[f] + x.arrival[table, d, f])
                row[i, d] = max(row[i, d], least)
        size = 0
        for j in range(i):
            if x.before[i, j] and label[j] == label[i]:
                turn[size] = j
                size += 1
        if not exact:
            for d in range(k):
                begun[d], work[d], done[d] = never, 0, 0
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
