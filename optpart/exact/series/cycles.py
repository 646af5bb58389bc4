"""Paths in which some vertices repeat in turn, such as attention and experts of a language model.

A *cycle* is a stretch of a path in which ``k`` kinds of vertices take turns: those of one kind have
the same run times, the same memory and the same tensor to the next. A *state* is a kind and a
device. Of a placement, only the number of steps from each state to each state of the next kind
matters: it tells run time, transfers and memory. Numbers of steps belong to a placement exactly if

- as many steps lead into each state as out of it, but for the first and the last vertex; and
- steps lead from the state of the first vertex to all others in use.

For then the steps form an Eulerian trail (Euler's theorem for directed graphs), and the states
along it are a placement. The model of these numbers grows with the number of kinds, not of
vertices, and CP-SAT solves it to optimality even if memory is scarce.

Between two vertices of the path, some others may run beside each other, such as groups of experts:
a *fork*. They all get the same transfer times from the one before, and to the one after. A step
then is also the choice of their devices, of which only those count that no other choice beats in
time and in the memory of every device (:class:`Way`). A vertex over which an edge jumps, such as a
cache between projections that share a device, is a fork of one.

Vertices that are connected with nothing and take no time, such as a vision tower without images,
only need memory: they stand before the path, and all steps from them are free.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, permutations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.base.children.failures import record_failure
from optpart.exact.messages import Done, Incumbent, Limits, LowerBound
from optpart.exact.process import (
    SolverDiedError,
    SolverLateError,
    SolverTooLargeError,
    borrowed,
    prompt_grace,
)
from optpart.exact.series.lattice import NEVER, Links
from optpart.exact.series.parts import is_cut
from optpart.exact.series.problem import Series
from optpart.problem.durations import Durations
from optpart.problem.graph import Graph, inverse
from optpart.problem.instance import Instance

WORKER = "optpart.exact.series.cycles_worker"

#: With fewer vertices per kind, the model is hardly smaller than others.
_LEAST_LENGTH = 3

#: Kinds that may take turns, and limit on the steps of the model.
_MOST_KINDS, _MOST_STEPS = 32, 16_000

#: In place of the row of delays between vertices that no edge joins.
_FREE = -2

#: Choices of devices for the vertices of a fork.
_MOST_CHOICES = 2_000


class Body(NamedTuple):
    """A vertex of a fork: its attributes are those of :class:`Kind`."""

    time: dict[int, int]
    need: int
    beside: dict[int, int]


class Way(NamedTuple):
    """Devices of the vertices of a fork, and ticks from the end before to the start behind."""

    ticks: int
    devices: tuple[int, ...]


class Fork(NamedTuple):
    """Vertices that run beside each other.

    Attributes
    ----------
    bodies : list of Body
    arrive, leave : dict from (device, device) to int
        Ticks to cross to them, and from them; without the pairs of devices that cannot cross.
    ways : dict from (device, device) to list of Way
        By the devices of the vertices before and behind.
    over : dict from device to int, optional
        Of a single vertex, memory that is held besides while it runs on the device of the vertex
        before or behind, which also hold what jumps over it.
    """

    bodies: list[Body]
    arrive: dict[tuple[int, int], int]
    leave: dict[tuple[int, int], int]
    ways: dict[tuple[int, int], list[Way]]
    over: dict[int, int] | None = None


class Kind(NamedTuple):
    """Vertices that are alike.

    Attributes
    ----------
    time : dict from device to int
        Ticks that one takes, on the devices that it may use.
    need : int
        Memory that one takes.
    beside : dict from device to int
        Memory that is held besides while one runs, of the devices whose memory may bind.
    cross : dict from (device, device) to int
        Ticks to cross to the next kind; without the pairs of devices that cannot cross.
    fork : Fork, optional
        Before the next kind.
    """

    time: dict[int, int]
    need: int
    beside: dict[int, int]
    cross: dict[tuple[int, int], int]
    fork: Fork | None = None


class Cycle(NamedTuple):
    """Consecutive vertices whose kinds take turns.

    Attributes
    ----------
    length : int
        Number of vertices; at least as many as kinds.
    kinds : list of Kind
    after : dict from (device, device) to int
        Ticks to cross from the last vertex to the next cycle.
    fork : Fork, optional
        Before the next cycle.
    """

    length: int
    kinds: list[Kind]
    after: dict[tuple[int, int], int]
    fork: Fork | None = None


@dataclass(frozen=True)
class Path:
    """The job for the solver.

    Attributes
    ----------
    cycles : list of Cycle
    capacity : dict from device to int
        Of the devices whose memory may bind.
    same, apart : list of (int, int)
        Cycles of one vertex each that must, or must not, share a device.
    """

    cycles: list[Cycle]
    capacity: dict[int, int]
    same: list[tuple[int, int]]
    apart: list[tuple[int, int]]

    @property
    def forks(self) -> list[Fork]:
        """All forks."""
        inside = [kind.fork for cycle in self.cycles for kind in cycle.kinds]
        return [each for each in (*inside, *(cycle.fork for cycle in self.cycles)) if each]


@dataclass(frozen=True)
class PathResult:
    """An incumbent or bound from the solver.

    Attributes
    ----------
    devices : list of int, optional
        A device for every vertex, in topological order.
    bound : int, optional
        A lower bound of the makespan in ticks.
    impossible : bool
        Whether it is proven that no placement keeps the limits of memory.
    """

    devices: list[int] | None = None
    bound: int | None = None
    impossible: bool = False


def path_of_cycles(series: Series) -> Path | None:
    """Return the cycles of an instance; ``None`` if it is no path, or hardly repeats."""
    stages = _stages(series.instance)
    if stages is None:
        return None
    order = [v for v, _ in stages]
    held = _held(series.instance)
    sent = _sent(series, stages, held)
    if sent is None:
        return None
    after, known = [*sent, _Sent(-1)], dict[_Sent, int]()
    turns = np.array([known.setdefault(each, len(known)) for each in after])
    split = _split(_kinds(series, order, held), turns)
    size = sum(kinds for _, kinds in split)
    if len(order) < _LEAST_LENGTH * size or size * series.devices**2 > _MOST_STEPS:
        return None
    # What jumps over a vertex is part of what the one before holds.
    most = series.unit * int(series.need.sum()) + 2 * max(held, default=0)
    rooms = {
        d: math.floor(limit / series.unit)
        for d, limit in enumerate(series.instance.cluster.memory)
        if limit is not None and (series.capacity[d] >= 0 or limit < most)
    }
    links, ends = series.links, [*(first for first, _ in split), len(order)]
    cycle_of = {order[first]: c for c, (first, _) in enumerate(split)}
    made = _Maker(series, stages, after, rooms, held)
    cycles = [made.cycle(first, end, n) for (first, n), end in zip(split, ends[1:], strict=True)]
    path = Path(
        cycles,
        rooms,
        [
            (cycle_of[v], cycle_of[w])
            for i, v in enumerate(order)
            for w in links.mates[v]
            if v < w and not after[i].together and not (i and after[i - 1].together)
        ],
        [(cycle_of[v], cycle_of[w]) for v in order for w in links.apart[v] if v < w],
    )
    steps = sum(len(ways) for fork in path.forks for ways in fork.ways.values())
    return path if steps <= _MOST_STEPS else None


def repeats(instance: Instance) -> bool:
    """Return whether the graph is a path of few kinds of vertices, which cycles may divide."""
    graph, n = instance.graph, instance.vertices
    if _stages(instance) is None:
        return False
    given = instance.durations
    times = given.times if isinstance(given, Durations) else graph.ops
    rows = times.numerators.reshape(n, -1).tolist()
    return len({tuple(row) for row in rows}) * _LEAST_LENGTH <= n


def solve(path: Path, limits: Limits) -> Iterator[PathResult]:
    """Yield solutions and bounds as they are found; nothing more if the solver breaks down."""
    try:
        with borrowed(WORKER) as process:
            for message in process.solve(path, limits, prompt_grace(limits)):
                if isinstance(message, Incumbent):
                    yield PathResult(devices=message.placement.tolist())
                elif isinstance(message, LowerBound):
                    yield PathResult(bound=message.value)
                elif isinstance(message, Done):
                    if message.status == "INFEASIBLE":
                        yield PathResult(impossible=True)
                    elif message.value is not None:
                        yield PathResult(bound=message.value)
    except (SolverLateError, SolverTooLargeError):
        return
    except SolverDiedError as error:
        record_failure("the model of cycles", error)


def _stages(instance: Instance) -> list[tuple[int, list[int]]] | None:
    """Return the vertices of a path, each with those of the fork behind it; ``None`` if it is none.

    Vertices of a fork read the one before and are read by the one behind; nothing else jumps over,
    and their devices can be enumerated. Vertices that only need memory come first.
    """
    graph, loose = instance.graph, _loose(instance)
    cut, found = is_cut(graph, loose), list[tuple[int, list[int]]]()
    cut &= ~_jumped(graph, cut)
    order = graph.topological_order
    stage = np.zeros(len(graph), dtype=np.int64)
    if loose[order].tolist() != sorted(loose.tolist(), reverse=True):
        return None
    for v in order.tolist():
        if cut[v]:
            found.append((v, []))
        elif found:
            found[-1][1].append(v)
        else:
            return None
        stage[v] = len(found) - 1
    source, target = graph.edge_source, graph.edge_target
    ahead = stage[target] - stage[source]
    # Out of a vertex of a fork, into the next stage; from one of the path, to its own fork or next.
    fits = (ahead == 1) & cut[target] | (ahead == 0) & cut[source] & ~cut[target]
    if not found or found[-1][1] or not fits.all():
        return None
    most = max(len(fork) for _, fork in found)
    few = most < 32 and max(2, instance.devices) ** most <= _MOST_CHOICES
    return found if few else None


def _loose(instance: Instance) -> NDArray[np.bool_]:
    """Return which vertices are connected with nothing and take no time."""
    graph, given = instance.graph, instance.durations
    loose = np.ones(len(graph), dtype=np.bool_)
    loose[graph.edge_source] = loose[graph.edge_target] = False
    times = (given.times if isinstance(given, Durations) else graph.ops).numerators
    loose &= ~(times.reshape(len(graph), times.size // max(1, len(graph))) != 0).any(axis=1)
    return loose


def _jumped(graph: Graph, cut: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return over which vertices an edge between two cut vertices jumps."""
    position = inverse(graph.topological_order)
    ends = cut[graph.edge_source] & cut[graph.edge_target]
    change = np.zeros(len(graph) + 1, dtype=np.int64)
    np.add.at(change, position[graph.edge_source[ends]] + 1, 1)
    np.add.at(change, position[graph.edge_target[ends]], -1)
    return (np.cumsum(change) > 0)[position]


class _Sent(NamedTuple):
    """Rows of delays to the next vertex (−1 without an edge), to its fork, and from there.

    ``fork`` has what each vertex of the fork takes. ``together`` says whether the next vertex, and
    no other, is on the same device.
    """

    row: int
    arrive: int = -1
    leave: int = -1
    together: bool = False
    fork: tuple[tuple[bytes, int, Fraction], ...] = ()


def _sent(
    series: Series, stages: Sequence[tuple[int, list[int]]], held: list[Fraction]
) -> list[_Sent] | None:
    """Return what is between every vertex and the next; ``None`` if forks are not of that kind."""
    links, found = series.links, list[_Sent]()
    for (v, fork), (w, _) in pairwise(stages):
        rows = dict(links.after[v])
        arrive = {rows.pop(u) for u in fork}
        leave = {row for u in fork for _, row in links.after[u]}
        if len(arrive) > 1 or len(leave) > 1 or any(links.mates[u] or links.apart[u] for u in fork):
            return None
        takes = [(series.duration[u].tobytes(), int(series.charge[u]), held[u]) for u in fork]
        into, out = (*arrive, *leave) if fork else (-1, -1)
        row = rows.get(w, -1 if fork else _FREE)
        found.append(_Sent(row, into, out, _paired(links, v, w), tuple(takes)))
    return found


def _paired(links: Links, v: int, w: int) -> bool:
    """Return whether two vertices share a device with each other, and nothing else binds them."""
    alone = not links.apart[v] and not links.apart[w]
    return alone and list(links.mates[v]) == [w] and list(links.mates[w]) == [v]


def _held(instance: Instance) -> list[Fraction]:
    """Return the memory of the tensors that a device holds while it runs each vertex.

    On a path, under ``refcount``, a device never holds more tensors than while it runs a vertex:
    its outputs, and its inputs unless they are freed at the start.
    """
    graph, n = instance.graph, instance.vertices
    if instance.model.memory != "refcount":
        return [Fraction(0)] * n
    sizes = graph.tensor_size
    size, held = sizes.numerators.astype(object), np.zeros(n, dtype=object)
    np.add.at(held, graph.tensor_vertex, size)
    if instance.model.release == "end":
        read = np.unique(np.stack([graph.edge_target, graph.edge_tensor]), axis=1)
        np.add.at(held, read[0], size[read[1]])
    return [Fraction(int(x), sizes.denominator) for x in held]


def _kinds(series: Series, order: list[int], held: list[Fraction]) -> NDArray[np.int64]:
    """Return a number for what each vertex takes; one of its own if it is tied beyond the next."""
    links, known = series.links, dict[tuple[object, ...], int]()
    paired = {x for v, w in pairwise(order) if _paired(links, v, w) for x in (v, w)}
    return np.array(
        [
            known.setdefault(
                (v,)
                if (links.mates[v] or links.apart[v]) and v not in paired
                else (series.duration[v].tobytes(), int(series.charge[v]), held[v]),
                len(known),
            )
            for v in order
        ]
    )


def _split(kind: NDArray[np.int64], sent: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return first vertex and number of kinds of each cycle, with as few kinds as possible.

    A cycle may as well go on as long as it can: what follows needs no more kinds for beginning
    later.
    """
    n = len(kind)
    reach = np.zeros((min(_MOST_KINDS, n) + 1, n), dtype=np.int64)
    for k in range(1, len(reach)):
        same = np.append(kind[k:] == kind[:-k], False)
        both = same & np.append(sent[k:] == sent[:-k], False)
        stop = np.minimum.accumulate(np.where(both, n, np.arange(len(both)))[::-1])[::-1]
        # Where the tensor to the next differs, the vertex is the last one of the cycle.
        reach[k, : len(stop)] = stop + k + same[stop]
    cost, chosen = np.zeros(n + 1, dtype=np.int64), np.zeros(n, dtype=np.int64)
    for i in range(n - 1, -1, -1):
        cost[i], chosen[i] = 1 + cost[i + 1], 0
        for k in range(1, min(len(reach) - 1, (n - i) // 2) + 1):
            if reach[k, i] >= i + 2 * k and k + cost[reach[k, i]] < cost[i]:
                cost[i], chosen[i] = k + cost[reach[k, i]], k
    found, i = [], 0
    while i < n:
        found.append((i, max(1, int(chosen[i]))))
        i = int(reach[chosen[i], i]) if chosen[i] else i + 1
    return found


@dataclass(frozen=True)
class _Maker:
    """Makes the cycles of an instance."""

    series: Series
    stages: list[tuple[int, list[int]]]
    sent: list[_Sent]
    rooms: dict[int, int]
    held: list[Fraction]

    def cycle(self, first: int, end: int, kinds: int) -> Cycle:
        """Return the cycle of the stages from the first up to the end, of so many kinds."""
        found: list[Kind] = []
        for i in range(first, first + kinds):
            body = self._body(self.stages[i][0])
            inside = i + 1 < end
            cross = self._crossings(i) if inside else {}
            found.append(Kind(*body, cross, self._fork(i) if inside else None))
        return Cycle(end - first, found, self._crossings(end - 1), self._fork(end - 1))

    def _crossings(self, stage: int) -> dict[tuple[int, int], int]:
        """Return the ticks to cross to the next stage."""
        sent = self.sent[stage]
        return {} if sent.together else _crossings(self.series, sent.row)

    def _body(self, v: int, over: Fraction = Fraction(0)) -> Body:
        series, limits = self.series, self.series.instance.cluster.memory
        time = {d: t for d, t in enumerate(series.duration[v].tolist()) if t >= 0}
        beside = {
            d: room - math.floor((limit - self.held[v] - over) / series.unit)
            for d, room in self.rooms.items()
            # What takes no time holds nothing.
            if (limit := limits[d]) is not None and time.get(d)
        }
        return Body(time, int(series.charge[v]), beside)

    def _fork(self, stage: int) -> Fork | None:
        """Return the fork behind a vertex, if there is one."""
        vertices, sent = self.stages[stage][1], self.sent[stage]
        if not vertices:
            return None
        bodies = [self._body(v) for v in vertices]
        arrive, leave = (_crossings(self.series, row) for row in (sent.arrive, sent.leave))
        direct = self._crossings(stage)
        ends = [*self.series.duration[[self.stages[i][0] for i in (stage, stage + 1)]]]
        ways = {
            (d, e): self._ways(bodies, arrive, leave, (d, e))
            for d in np.flatnonzero(ends[0] >= 0).tolist()
            for e in np.flatnonzero(ends[1] >= 0).tolist()
            if d == e or (sent.row < 0 and not sent.together) or (d, e) in direct
        }
        ways = {
            pair: [way._replace(ticks=max(way.ticks, direct.get(pair, 0))) for way in found]
            for pair, found in ways.items()
        }
        best = {pair: self._best(bodies, found) for pair, found in ways.items()}
        over = None
        if len(vertices) == 1:
            over = self._body(vertices[0], self._jumping(stage)).beside
        return Fork(bodies, arrive, leave, best, over)

    def _jumping(self, stage: int) -> Fraction:
        """Return the size of the tensors that jump over the single vertex of a fork."""
        (before, inside), (behind, _) = self.stages[stage : stage + 2]
        if self.series.instance.model.memory != "refcount":
            return Fraction(0)
        graph = self.series.instance.graph
        sent = graph.edge_source == before
        tensors = (set(graph.edge_tensor[sent & (graph.edge_target == v)].tolist())
                   for v in (behind, *inside))  # fmt: skip
        jumping, read = tensors
        return sum((graph.tensor_size[x] for x in jumping - read), Fraction(0))

    def _ways(
        self,
        bodies: list[Body],
        arrive: dict[tuple[int, int], int],
        leave: dict[tuple[int, int], int],
        ends: tuple[int, int],
    ) -> list[Way]:
        """Return all devices that the vertices of a fork may have.

        They reach a device at the same time, and leave it alike, so that their order there does not
        matter: the last one ends when all their time has passed.
        """
        d, e = ends
        usable = {
            f: (0 if d == f else arrive[d, f]) + (0 if f == e else leave[f, e])
            for f in range(self.series.devices)
            if (d == f or (d, f) in arrive) and (f == e or (f, e) in leave)
        }
        found = []
        for devices in product(*([f for f in body.time if f in usable] for body in bodies)):
            load = Counter[int]()
            for body, f in zip(bodies, devices, strict=True):
                load[f] += body.time[f]
            found.append(Way(max(usable[f] + load[f] for f in load), devices))
        return found

    def _best(self, bodies: list[Body], ways: list[Way]) -> list[Way]:
        """Return the ways that no other one beats in time and in memory that may bind."""
        if not ways:
            return []
        rows = np.zeros((len(ways), 1 + self.series.devices), dtype=np.int64)
        for row, way in zip(rows, ways, strict=True):
            row[0] = way.ticks
            for body, d in zip(bodies, way.devices, strict=True):
                # What a single vertex holds besides counts, too, however little it needs.
                row[1 + d] += max(body.need, len(bodies) == 1) if d in self.rooms else 0
        order = np.lexsort(rows.T[::-1])
        kept: list[int] = []
        for i in order.tolist():
            if not kept or not (rows[kept] <= rows[i]).all(axis=1).any():
                kept.append(i)
        return [ways[i] for i in kept]


def _crossings(series: Series, row: int) -> dict[tuple[int, int], int]:
    """Return the delays of a row; of row -1, after the last vertex, none."""
    if row == _FREE:
        return dict.fromkeys(permutations(range(series.devices), 2), 0)
    if row < 0:
        return {}
    delays = series.links.delays[row].tolist()
    return {
        (d, e): delays[d][e]
        for d, e in permutations(range(series.devices), 2)
        if delays[d][e] < NEVER
    }
