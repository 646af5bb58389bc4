"""A part of a schedule, solved separately with everything else fixed in place and order.

The part is a stretch of the order of all vertices. The heads of vertices before it and the tails of
those after it do not change, so the longest path through the part is exact if links do not queue,
and a part is as small for a hundred thousand vertices as for a hundred. Within the part, freed
vertices may move to other devices; all others keep their device and order, but not their starts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from optpart.kernels.compiled import UNLIMITED
from optpart.problem.graph import inverse
from optpart.search.plan import Ints, Layout
from optpart.search.state import State

#: The current makespan in ticks of the part, unless times are whole numbers below it.
_TICKS = 2**20

#: Vertices of a part, freed or not, and devices that a freed unit may choose from.
_WIDEST, _CHOICE = 600, 8


#: Source and target by their number in the part, and the delay per pair of devices; −1 for none.
Edge = tuple[int, int, dict[tuple[int, int], int]]


class Stay(NamedTuple):
    """A vertex on a device: earliest start, run time, and least time after its end, in ticks."""

    head: int
    run: int
    tail: int


#: A vertex on a device that some data cannot reach or leave.
NOWHERE = Stay(0, -1, 0)


@dataclass(frozen=True)
class Part:
    """The subproblem for the solver; vertices and freed units by their number in the part.

    Attributes
    ----------
    vertices : list of int
        In the instance.
    stays : list of dict from device to Stay, one per vertex
    unit : list of int, one per vertex
        Number of its freed unit; −1 for a vertex that keeps its device.
    edges : list of Edge
    chains : list of (int, int)
        Neighbours on a device that keep their order.
    need : list of int, one per freed unit
    room : dict from device to int
        Static memory that the freed units may take.
    apart : list of (int, int)
        Freed units that must not share a device.
    upper : int
        Longest path through the part as it is.
    device, start : list of int, one per vertex
        Current devices and starts.
    """

    vertices: list[int]
    stays: list[dict[int, Stay]]
    unit: list[int]
    edges: list[Edge]
    chains: list[tuple[int, int]]
    need: list[int]
    room: dict[int, int]
    apart: list[tuple[int, int]]
    upper: int
    device: list[int]
    start: list[int]


def cut(state: State, rng: np.random.Generator) -> Part | None:
    """Cut out the part that holds the freed units; ``None`` if it would be too wide.

    Units at the edges of a part that is too wide are not freed.
    """
    return _Cut(state, rng).part()


def merged(state: State, part: Part, device: list[int], start: list[int]) -> Layout:
    """Return the layout with the solver's solution of a part."""
    order, place = state.layout.order.copy(), state.layout.device.copy()
    run = [stays[d].run for stays, d in zip(part.stays, device, strict=True)]
    # Vertices that start and end together keep their order, so sources precede targets.
    begin = np.array(start)
    turn = np.lexsort((np.arange(len(start)), begin + np.array(run), begin))
    first = int(np.flatnonzero(order == part.vertices[0])[0])
    within = np.array(part.vertices, dtype=order.dtype)
    order[first : first + len(within)] = within[turn]
    place[within] = device
    return Layout(place, order, state.layout.eager)


class _Cut:
    """The stretch of the order that holds the freed units, and its surroundings."""

    def __init__(self, state: State, rng: np.random.Generator) -> None:
        self.a = state.at.arrays
        self.p = state
        self.rng = rng
        self.device = state.layout.device
        self.order = state.layout.order
        self.run = state.end - state.start
        longest = float((state.end + state.tail).max(initial=0.0))
        whole = longest <= _TICKS and not (np.r_[state.start, state.end, state.delay] % 1.0).any()
        self.ticks = 1.0 if whole else _TICKS / max(longest, 1e-300)

    def part(self) -> Part | None:
        freed = self._close_together()
        if len(freed) == 0:
            return None
        self.freed = freed
        self.number = {unit: i for i, unit in enumerate(freed.tolist())}
        self.vertices: list[int] = self.order[self.first : self.last + 1].tolist()
        self.inner = {v: i for i, v in enumerate(self.vertices)}
        self._surroundings()
        choice = [self._choice(unit) for unit in freed.tolist()]
        unit = [self.number.get(int(self.a.unit[v]), -1) for v in self.vertices]
        stays = [
            {
                d: self._stay(v, d)
                for d in ([int(self.device[v])] if unit[i] < 0 else choice[unit[i]])
            }
            for i, v in enumerate(self.vertices)
        ]
        edges, chains = self._edges(stays), self._chains(unit)
        device = [int(self.device[v]) for v in self.vertices]
        start, upper = _as_is(stays, edges, device)
        return Part(
            self.vertices, stays, unit, edges, chains,
            [int(self.a.need[u]) for u in freed.tolist()], self._room(), self._apart(),
            upper, device, start,
        )  # fmt: skip

    def _close_together(self) -> Ints:
        """Return the freed units that a part of bounded width holds; sets first and last."""
        a, freed = self.a, self.p.freed
        position = inverse(self.order)
        starts = a.unit_start
        spans = [position[a.unit_vertex[starts[u] : starts[u + 1]]] for u in freed.tolist()]
        low = np.array([int(span.min()) for span in spans])
        high = np.array([int(span.max()) for span in spans])
        if len(freed) and high.max() - low.min() >= _WIDEST:
            anchor = int(self.rng.integers(0, len(freed)))
            middle = (low[anchor] + high[anchor]) // 2
            near = (low > middle - _WIDEST // 2) & (high < middle + _WIDEST // 2)
            freed, low, high = freed[near], low[near], high[near]
        if len(freed):
            self.first, self.last = int(low.min()), int(high.max())
        return freed

    def _surroundings(self) -> None:
        """Find the end of the vertices before the part on each device, and those after it."""
        k = len(self.a.speed)
        before, behind = self.order[: self.first], self.order[self.last + 1 :]
        self.through = np.zeros(k)
        np.maximum.at(self.through, self.device[before], self.p.end[before])
        self.rest = np.zeros(k)
        np.maximum.at(self.rest, self.device[behind], self.run[behind] + self.p.tail[behind])

    def _choice(self, unit: int) -> list[int]:
        """Return devices for a freed unit: its own, those of its neighbours, and some others."""
        a = self.a
        members = a.unit_vertex[a.unit_start[unit] : a.unit_start[unit + 1]]
        home = int(self.device[members[0]])
        enemies = a.apart[a.apart_start[unit] : a.apart_start[unit + 1]].tolist()
        taken = {
            int(self.device[a.unit_vertex[a.unit_start[other]]])
            for other in enemies
            if other not in self.number
        }
        allowed = [d for d in np.flatnonzero(a.allowed[unit]).tolist() if d not in taken]
        if len(allowed) <= _CHOICE:
            return allowed
        near: list[int] = []
        for v in members.tolist():
            near += self.device[a.in_source[a.in_start[v] : a.in_start[v + 1]]].tolist()
            near += self.device[a.out_target[a.out_start[v] : a.out_start[v + 1]]].tolist()
        self.rng.shuffle(near)
        self.rng.shuffle(allowed)
        possible = [d for d in dict.fromkeys((home, *near)) if d in allowed]
        return list(dict.fromkeys((*possible[: _CHOICE - 2], *allowed)))[:_CHOICE]

    def _whole(self, time: float) -> int:
        """Round to the nearest tick, for choices only: what is found is timed again exactly."""
        return round(time * self.ticks)

    def _crossing(self, tensor: int, d: int, e: int) -> float:
        a = self.a
        if d == e:
            return 0.0
        rate = float(a.bandwidth[d, e])
        if rate == 0.0:
            return -1.0
        row = int(a.measured_row[tensor])
        if row >= 0:
            return float(a.measured[row, d, e])
        return float(a.latency[d, e]) + float(a.size[tensor]) / rate

    def _stay(self, v: int, d: int) -> Stay:
        """Return the head and tail of a vertex on a device that follow from the surroundings."""
        a, p = self.a, self.p
        head, tail = float(self.through[d]), float(self.rest[d])
        for e in range(a.in_start[v], a.in_start[v + 1]):
            u = int(a.in_source[e])
            if u not in self.inner:
                crossing = self._crossing(a.in_tensor[e], int(self.device[u]), d)
                head = np.inf if crossing < 0.0 else max(head, float(p.end[u]) + crossing)
        for e in range(a.out_start[v], a.out_start[v + 1]):
            w = int(a.out_target[e])
            if w not in self.inner:
                crossing = self._crossing(a.out_tensor[e], d, int(self.device[w]))
                after = crossing + float(self.run[w]) + float(p.tail[w])
                tail = np.inf if crossing < 0.0 else max(tail, after)
        run = float(a.durations[v, d]) if len(a.durations) else float(a.ops[v] / a.speed[d])
        if head == np.inf or tail == np.inf:
            return NOWHERE
        return Stay(self._whole(head), self._whole(run), self._whole(tail))

    def _edges(self, stays: list[dict[int, Stay]]) -> list[Edge]:
        a = self.a
        edges: list[Edge] = []
        for j, v in enumerate(self.vertices):
            for e in range(a.in_start[v], a.in_start[v + 1]):
                i = self.inner.get(int(a.in_source[e]))
                if i is None:
                    continue
                delay = {}
                for d in stays[i]:
                    for there in stays[j]:
                        crossing = self._crossing(int(a.in_tensor[e]), d, there)
                        delay[d, there] = -1 if crossing < 0.0 else self._whole(crossing)
                edges.append((i, j, delay))
        return edges

    def _chains(self, unit: list[int]) -> list[tuple[int, int]]:
        last: dict[int, int] = {}
        chains = []
        for i, v in enumerate(self.vertices):
            if unit[i] < 0:
                d = int(self.device[v])
                if d in last:
                    chains.append((last[d], i))
                last[d] = i
        return chains

    def _room(self) -> dict[int, int]:
        a = self.a
        home = self.device[a.unit_vertex[a.unit_start[:-1]]]
        used = np.zeros(len(a.speed), dtype=np.int64)
        np.add.at(used, home, a.need)
        np.subtract.at(used, home[self.freed], a.need[self.freed])
        return {
            d: int(a.capacity[d] - used[d])
            for d in range(len(a.speed))
            if a.capacity[d] < UNLIMITED
        }

    def _apart(self) -> list[tuple[int, int]]:
        """Return separated pairs of freed units; choices already exclude devices of other units."""
        a = self.a
        return [
            (i, self.number[other])
            for i, unit in enumerate(self.freed.tolist())
            for other in a.apart[a.apart_start[unit] : a.apart_start[unit + 1]].tolist()
            if self.number.get(other, -1) > i
        ]


def _as_is(
    stays: list[dict[int, Stay]], edges: list[Edge], device: list[int]
) -> tuple[list[int], int]:
    """Return starts and longest path through a part with its devices and order, in ticks."""
    start = [stay[d].head for stay, d in zip(stays, device, strict=True)]
    into: dict[int, list[tuple[int, int]]] = {}
    for i, j, delay in edges:
        into.setdefault(j, []).append((i, delay[device[i], device[j]]))
    free: dict[int, int] = {}
    longest = 0
    for j, d in enumerate(device):
        at = max(start[j], free.get(d, 0))
        for i, crossing in into.get(j, ()):
            at = max(at, start[i] + stays[i][device[i]].run + crossing)
        start[j] = at
        free[d] = at + stays[j][d].run
        longest = max(longest, free[d] + stays[j][d].tail)
    return start, longest
