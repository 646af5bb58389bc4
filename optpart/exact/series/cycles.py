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
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, permutations
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
from optpart.exact.series.lattice import NEVER
from optpart.exact.series.problem import Series
from optpart.problem.durations import Durations
from optpart.problem.instance import Instance

WORKER = "optpart.exact.series.cycles_worker"

#: With fewer vertices per kind, the model is hardly smaller than others.
_LEAST_LENGTH = 3

#: Kinds that may take turns, and limit on the steps of the model.
_MOST_KINDS, _MOST_STEPS = 32, 16_000


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
    """

    time: dict[int, int]
    need: int
    beside: dict[int, int]
    cross: dict[tuple[int, int], int]


class Cycle(NamedTuple):
    """Consecutive vertices whose kinds take turns.

    Attributes
    ----------
    length : int
        Number of vertices; at least as many as kinds.
    kinds : list of Kind
    after : dict from (device, device) to int
        Ticks to cross from the last vertex to the next cycle.
    """

    length: int
    kinds: list[Kind]
    after: dict[tuple[int, int], int]


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


@dataclass(frozen=True)
class PathResult:
    """An incumbent or bound from the solver.

    Attributes
    ----------
    devices : list of int, optional
        A device for every vertex, in the order of the path.
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
    order = series.instance.graph.topological_order.tolist()
    sent = _sent(series, order)
    if sent is None:
        return None
    held = _held(series.instance)
    split = _split(_kinds(series, order, held), np.array([*sent, -1]))
    size = sum(kinds for _, kinds in split)
    if len(order) < _LEAST_LENGTH * size or size * series.devices**2 > _MOST_STEPS:
        return None
    most = series.unit * int(series.need.sum()) + max(held, default=0)
    rooms = {
        d: math.floor(limit / series.unit)
        for d, limit in enumerate(series.instance.cluster.memory)
        if limit is not None and (series.capacity[d] >= 0 or limit < most)
    }
    links, ends = series.links, [*(first for first, _ in split), len(order)]
    cycle_of = {order[first]: c for c, (first, _) in enumerate(split)}
    return Path(
        [
            _cycle(series, order, [*sent, -1], (rooms, held), (first, end, kinds))
            for (first, kinds), end in zip(split, ends[1:], strict=True)
        ],
        rooms,
        [(cycle_of[v], cycle_of[w]) for v in order for w in links.mates[v] if v < w],
        [(cycle_of[v], cycle_of[w]) for v in order for w in links.apart[v] if v < w],
    )


def repeats(instance: Instance) -> bool:
    """Return whether the graph is a path of few kinds of vertices, which cycles may divide."""
    graph, n = instance.graph, instance.vertices
    if len(graph.edge_source) != n - 1:
        return False
    if (
        max(np.bincount(ends, minlength=n).max() for ends in (graph.edge_source, graph.edge_target))
        > 1
    ):
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


def _sent(series: Series, order: list[int]) -> list[int] | None:
    """Return, for every vertex but the last, the row of delays to the next; ``None`` if no path."""
    after = series.links.after
    found: list[int] = []
    for v, w in pairwise(order):
        if [target for target, _ in after[v]] != [w]:
            return None
        found.append(after[v][0][1])
    return found


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
    """Return a number for what each vertex takes; one of its own if it is tied to others."""
    links, known = series.links, dict[tuple[object, ...], int]()
    return np.array(
        [
            known.setdefault(
                (v,)
                if links.mates[v] or links.apart[v]
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


def _cycle(
    series: Series,
    order: list[int],
    sent: list[int],
    memory: tuple[dict[int, int], list[Fraction]],
    where: tuple[int, int, int],
) -> Cycle:
    """Return the cycle from a first vertex up to an end, of so many kinds."""
    (rooms, held), (first, end, kinds) = memory, where
    limits = series.instance.cluster.memory
    found: list[Kind] = []
    for i in range(first, first + kinds):
        v = order[i]
        time = {d: t for d, t in enumerate(series.duration[v].tolist()) if t >= 0}
        beside = {
            d: room - math.floor((limit - held[v]) / series.unit)
            for d, room in rooms.items()
            # What takes no time holds nothing.
            if (limit := limits[d]) is not None and time.get(d)
        }
        cross = _crossings(series, sent[i]) if i + 1 < end else {}
        found.append(Kind(time, int(series.charge[v]), beside, cross))
    return Cycle(end - first, found, _crossings(series, sent[end - 1]))


def _crossings(series: Series, row: int) -> dict[tuple[int, int], int]:
    """Return the delays of a row; of row -1, after the last vertex, none."""
    if row < 0:
        return {}
    delays = series.links.delays[row].tolist()
    return {
        (d, e): delays[d][e]
        for d, e in permutations(range(series.devices), 2)
        if delays[d][e] < NEVER
    }
