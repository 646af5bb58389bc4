"""Records of tier ``intervals``: which vertices share a device, case by case, along a longest path.

An interval consists of the vertices between two of a longest path. A tree of cases grows where the
start of its last vertex is least: of all pairs of units with an edge between them, the one is split
whose cases raise it most. Starts are computed as the checker does, so that it proves the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart import clock
from optpart.certify.arithmetic import Record
from optpart.certify.check import MAX_CERTIFICATE, Windows
from optpart.kernels.compiled import short_kernel

#: Vertices of an interval, and cases of its tree, at most.
_SIZE = 32
_CASES = 40

#: Intervals along the longest path, about.
_INTERVALS = 320

#: Bytes per number of a record, with those around it; a record takes up to half of a certificate.
_BYTES = 12

#: By how much the lesser rise counts more than the greater one when a pair is chosen.
_LESSER = 10

_SAME, _ANY, _APART = range(3)

Times = NDArray[np.int64]


class Proof(NamedTuple):
    """A record, and the length in ticks up to which it refutes: no schedule takes less."""

    record: Record
    ticks: int


def interval_proof(windows: Windows, deadline: float) -> Proof:
    """Raise heads along a longest path, as far as the deadline permits."""
    work = _Sweep(windows)
    goals = work.goals()
    steps = []
    room = MAX_CERTIFICATE // (2 * _BYTES)
    for v in windows.grid.problem.order:
        work.pass_on(v)
        if v not in goals or clock.now() > deadline:
            continue
        interval = _Interval(work, work.between(goals[v], v))
        cases = interval.split(deadline)
        room -= len(interval.vertices) + len(cases)
        if len(cases) > 1 and room >= 0:
            work.head[interval.vertices] = interval.least
            steps.append({"vertices": interval.vertices, "cases": cases})
    return Proof({"steps": steps}, work.ticks)


class _Sweep:
    """Heads that rise in topological order; ``H + 1`` is never."""

    def __init__(self, windows: Windows) -> None:
        grid, problem = windows.grid, windows.grid.problem
        self.never = grid.horizon + 1
        self.order = problem.order
        self.unit = problem.unit
        self.head = np.array(windows.head, dtype=np.int64)
        self.tail = np.array(windows.tail, dtype=np.int64)
        run = [[0 if p is None else p for p in row] for row in grid.run]
        self.run = np.array(run, dtype=np.int64).reshape(self.head.shape)
        self.separated = [(problem.unit[a], problem.unit[b]) for a, b in problem.separated]
        number: dict[int, int] = {}
        tables: list[list[list[int]]] = []
        self.inputs: list[list[tuple[int, int]]] = [[] for _ in self.order]
        self._after: list[list[int]] = [[] for _ in self.order]
        for u, v, tensor in problem.edges:
            arrival = grid.arrival[tensor]
            if id(arrival) not in number:
                number[id(arrival)] = len(tables)
                tables.append(arrival)
            self.inputs[v].append((u, number[id(arrival)]))
            self._after[u].append(v)
        k = len(problem.devices)
        #: Delay of each kind of tensor to a device from another.
        self.arrival = np.array(tables, dtype=np.int64).reshape(-1, k, k)
        self._position = np.empty(len(self.order), dtype=np.int64)
        self._position[self.order] = np.arange(len(self.order))

    @property
    def ticks(self) -> int:
        """The least length that heads and tails admit, ``H + 1`` at most."""
        return int(min(self.never, self._through().max(initial=0)))

    def _through(self) -> Times:
        return np.asarray((self.head + self.run + self.tail).min(axis=1))

    def goals(self) -> dict[int, list[int]]:
        """Return vertices along a longest path, each with those of the path before it."""
        through = self._through()
        path = [int(through.argmax())] if len(through) else []
        while path and self.inputs[path[-1]]:
            path.append(max((u for u, _ in self.inputs[path[-1]]), key=lambda u: (through[u], -u)))
        path.reverse()
        while path and self._after[path[-1]]:
            path.append(max(self._after[path[-1]], key=lambda v: (through[v], -v)))
        step = -(-len(path) // _INTERVALS)
        ends = {*range(step, len(path), max(1, step)), len(path) - 1} - {-1}
        return {path[i]: path[max(0, i - _SIZE) : i] for i in ends}

    def between(self, begins: list[int], end: int) -> list[int]:
        """Return the vertices from one of some to an end, from as early a one as is not too far."""
        low, high = 0, len(begins) - 1
        found = [end]
        while low <= high:
            middle = (low + high) // 2
            inside = self._between(begins[middle], end)
            if len(inside) <= _SIZE:
                found, high = inside, middle - 1
            else:
                low = middle + 1
        return found

    def _between(self, begin: int, end: int) -> list[int]:
        position = self._position
        after, before = {begin}, {end}
        reached = [begin]
        while reached:
            for v in self._after[reached.pop()]:
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

    def pass_on(self, v: int) -> None:
        """Raise the head of a vertex to when its inputs arrive from wherever is best."""
        row = self.head[v]
        for u, table in self.inputs[v]:
            end = self.head[u] + self.run[u]
            if self.unit[u] != self.unit[v]:
                end = (end + self.arrival[table]).min(axis=1)
            np.maximum(row, end, out=row)
        np.minimum(row, self.never, out=row)


@dataclass(eq=False)
class _Case:
    """A case: a leaf of the tree, unless it is split.

    Attributes
    ----------
    label : ndarray of int64
        Of each unit; units of one label share a device.
    apart : ndarray of bool
        Which labels are on different devices.
    start : ndarray of int64
        Starts of the last vertex on each device.
    pair : (int, int) or None
        Two vertices, the first of their units, that are on one device in the first of ``parts``.
    """

    label: Times
    apart: NDArray[np.bool_]
    start: Times
    pair: tuple[int, int] | None = None
    parts: tuple[_Case, ...] = ()


class _Interval:
    """The cases of an interval.

    Attributes
    ----------
    least : ndarray of int64, vertices × k
        The least starts over all cases, once there are any.
    """

    def __init__(self, sweep: _Sweep, vertices: list[int]) -> None:
        self.vertices = vertices
        self._sweep = sweep
        number = {v: i for i, v in enumerate(vertices)}
        unit: dict[int, int] = {}
        for v in vertices:
            unit.setdefault(sweep.unit[v], len(unit))
        self._unit = np.array([unit[sweep.unit[v]] for v in vertices], dtype=np.int64)
        self._first = [int((self._unit == u).argmax()) for u in range(len(unit))]
        edges = [(number[u], i, t) for i, v in enumerate(vertices)
                 for u, t in sweep.inputs[v] if u in number]  # fmt: skip
        self._edge = np.array(edges, dtype=np.int64).reshape(-1, 3)
        self._before = np.zeros((len(vertices), len(vertices)), dtype=np.bool_)
        for i, j, _ in edges:
            self._before[j] |= self._before[i]
            self._before[j, i] = True
        pairs = {tuple(sorted((int(self._unit[i]), int(self._unit[j])))) for i, j, _ in edges}
        self._pairs = sorted(pair for pair in pairs if pair[0] != pair[1])
        self._apart = np.zeros((len(unit), len(unit)), dtype=np.bool_)
        for a, b in sweep.separated:
            if a in unit and b in unit:
                self._apart[unit[a], unit[b]] = self._apart[unit[b], unit[a]] = True
        tables, kind = np.unique(self._edge[:, 2], return_inverse=True)
        self._edge[:, 2] = kind
        self._arrival = sweep.arrival[tables]
        self._head, self._run = sweep.head[vertices], sweep.run[vertices]
        self._rest = self._run[-1] + sweep.tail[vertices[-1]]
        self._row = np.empty_like(self._head)
        self.least = self._head

    def split(self, deadline: float) -> list[int]:
        """Grow the tree of cases where it proves least; return it as the record has it."""
        root = self._case(np.arange(len(self._first)), self._apart)
        leaves = [(self._value(root), 0, root)]
        for number in range(1, 2 * _CASES, 2):
            if clock.now() > deadline:
                break
            value, _, case = leaves[0]
            best = max(self._choices(case, value), key=lambda choice: choice[0], default=None)
            if best is None or value > self._sweep.never:
                break
            _, case.pair, case.parts = best
            heappop(leaves)
            for i, part in enumerate(case.parts):
                heappush(leaves, (self._value(part), number + i, part))
        proven = np.min([case.start for _, _, case in leaves], axis=0)
        cases: list[int] = []
        rows = []
        stack = [root]
        while stack:
            case = stack.pop()
            if case.pair is None or (case.start >= proven).all():
                cases.append(-1)
                rows.append(self._starts(case.label, case.apart).copy())
            else:
                cases.extend(case.pair)
                stack.extend(reversed(case.parts))
        self.least = np.min(rows, axis=0)
        return cases

    def _choices(
        self, case: _Case, value: int
    ) -> Iterable[tuple[int, tuple[int, int], tuple[_Case, _Case]]]:
        """Yield the pairs that may split a case, with how much that raises it."""
        seen = set()
        for u, w in self._pairs:
            a, b = sorted((int(case.label[u]), int(case.label[w])))
            if a == b or case.apart[a, b] or (a, b) in seen:
                continue
            seen.add((a, b))
            label = np.where(case.label == b, a, case.label)
            joined = case.apart.copy()
            joined[a] |= joined[b]
            joined[:, a] |= joined[:, b]
            parted = case.apart.copy()
            parted[a, b] = parted[b, a] = True
            parts = self._case(label, joined), self._case(case.label, parted)
            low, high = sorted(self._value(part) - value for part in parts)
            yield _LESSER * low + high, (self._first[u], self._first[w]), parts

    def _case(self, label: Times, apart: NDArray[np.bool_]) -> _Case:
        return _Case(label, apart, self._starts(label, apart)[-1].copy())

    def _value(self, case: _Case) -> int:
        return int((case.start + self._rest).min())

    def _starts(self, label: Times, apart: NDArray[np.bool_]) -> Times:
        _enter(
            self._head, self._run, self._edge, self._arrival, label[self._unit], apart,
            self._before, self._sweep.never, self._row,
        )  # fmt: skip
        return self._row


@short_kernel
def _enter(
    head: Any, run: Any, edge: Any, arrival: Any, label: Any, apart: Any, before: Any, never: Any,
    row: Any,
) -> None:  # fmt: skip
    """Compute starts in a case: inputs arrive, and what shares a device has taken its turn."""
    n, k = head.shape
    turn = np.empty(n, np.int64)
    e = 0
    for i in range(n):
        row[i] = head[i]
        while e < edge.shape[0] and edge[e, 1] == i:
            j, table = edge[e, 0], edge[e, 2]
            e += 1
            same, other = label[i] == label[j], apart[label[i], label[j]]
            for d in range(k):
                least = row[j, d] + run[j, d] if not other else never
                if not same:
                    for f in range(k):
                        if f != d or not other:
                            least = min(least, row[j, f] + run[j, f] + arrival[table, d, f])
                row[i, d] = max(row[i, d], least)
        size = 0
        for j in range(i):
            if before[i, j] and label[j] == label[i]:
                turn[size] = j
                size += 1
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
