"""The state that local search changes: a placement, one order of all vertices, and their times.

The order is topological, so that every placement goes with it: a device runs its vertices in this
order, each as early as possible. No semi-active schedule is lost, because sorting one by start
times gives an order that reproduces it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.exact.series.parts import is_cut
from optpart.kernels.compiled import Arrays, arrays, crossing_time, kernel, run_time
from optpart.kernels.struct import Struct
from optpart.problem.graph import Graph, grouped, inverse
from optpart.problem.instance import Instance
from optpart.search.load_ratio import is_large, is_load_bound

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]

#: Share of draws of a device that prefer fast ones, and the power of speed that they follow.
_BY_SPEED, _PREFERENCE = 0.8, 3.0

#: How often the device that is drawn least stands among the targets, before all are divided.
_REPEATS = 8


#: Share of moves to another device that are late, in large graphs whose devices are crowded.
_LATER = 0.35


class Layout(NamedTuple):
    """The decisions that define a plan; see :class:`Plan`."""

    device: Ints
    order: Ints
    eager: NDArray[np.bool_]


class Plan(Struct):
    """A schedule under change; times in the unit of :class:`~optpart.kernels.compiled.Arrays`.

    Attributes
    ----------
    device, order, position : length n
        ``order[position[v]] = v``.
    before, after : length n
        Neighbours on the device; −1 for none.
    first, last, number : length k
        First and last vertex and number of vertices of each device.
    start, end, run : length n
        Under ``delay`` always those of the order.
    tail : length n
        Longest path from the end of a vertex to the end of the schedule.
    delay : one per in-edge
        Transfer time under the placement.
    used : length k
        Static memory.
    eager : length t
        Whether copies of a tensor queue once it is produced; otherwise once they are needed.
    """

    device: Ints
    order: Ints
    position: Ints
    before: Ints
    after: Ints
    first: Ints
    last: Ints
    number: Ints
    start: Floats
    end: Floats
    run: Floats
    tail: Floats
    delay: Floats
    used: NDArray[np.int64]
    eager: NDArray[np.bool_]


class Links(Struct):
    """Graph data that :class:`~optpart.kernels.compiled.Arrays` lacks.

    Attributes
    ----------
    in_of_out : one per out-edge
        The same edge among the in-edges.
    made_start, made : tensors by producer
    used_start, used_by : consumers by tensor
    cut_vertex : length n
    cut_vertices : int
        Number of cut vertices.
    entering, leaving : length n
        Sizes of all tensors that cross from before a vertex, and from it or before it, to what
        comes later in topological order.
    targets : ndarray of int32
        Devices, fast ones repeated: a uniform draw from it draws devices by speed.
        Not in large graphs whose devices are crowded: there, slow ones have as much to do.
    later : float
        Share of moves to another device that are as late as possible, not as early.
    """

    in_of_out: Ints
    made_start: Ints
    made: Ints
    used_start: Ints
    used_by: Ints
    cut_vertex: NDArray[np.bool_]
    cut_vertices: int
    entering: Floats
    leaving: Floats
    targets: Ints
    later: float


def links(instance: Instance) -> Links:
    """Build the graph data that the search needs besides the arrays."""
    graph = instance.graph
    # As in the arrays, in-edges are sorted by target, then source, out-edges the other way round.
    in_edges = np.lexsort((graph.edge_source, graph.edge_target))
    out_edges = np.lexsort((graph.edge_target, graph.edge_source))
    place = np.empty(len(in_edges), dtype=np.int32)
    place[in_edges] = np.arange(len(in_edges), dtype=np.int32)
    made_start, made = grouped(graph.tensor_vertex, instance.vertices)
    used_start, used_edges = graph.tensor_edges
    cut_vertex = is_cut(graph)
    loaded = is_large(instance.vertices) and is_load_bound(arrays(instance))
    speed = np.ones(instance.devices) if loaded else _speeds(instance)
    return Links(
        place[out_edges],
        made_start,
        made,
        used_start.copy(),
        graph.edge_target[used_edges].astype(np.int32),
        cut_vertex,
        int(cut_vertex.sum()),
        *_crossing_sizes(graph),
        drawn_by_speed(speed),
        _LATER if loaded else 0.0,
    )


def _speeds(instance: Instance) -> Floats:
    """Return the speed of each device; all are the same if run times are given instead."""
    if instance.given_durations is not None:
        return np.ones(instance.devices)
    return instance.cluster.speed.floats


def drawn_by_speed(speed: Floats) -> Ints:
    """Return devices, each as often as it is to be drawn; once each if all are equally fast.

    Parameters
    ----------
    speed : ndarray of float64
        By device.
    """
    weight = (speed / speed.max()) ** _PREFERENCE
    share = _BY_SPEED * weight / weight.sum() + (1.0 - _BY_SPEED) / len(speed)
    times = np.rint(_REPEATS * share / share.min()).astype(np.int64)
    times //= np.gcd.reduce(times)
    return np.repeat(np.arange(len(speed), dtype=np.int32), times)


def _crossing_sizes(graph: Graph) -> tuple[Floats, Floats]:
    """Return the sizes of all tensors made before each vertex, or at most at it, and needed later.

    Before and after are those of the topological order.
    """
    n, order = len(graph), graph.topological_order
    position = inverse(order)
    made = position[graph.tensor_vertex]
    last = made.copy()
    np.maximum.at(last, graph.edge_tensor, position[graph.edge_target])
    change = np.zeros(n + 1)
    np.add.at(change, made + 1, graph.tensor_size.floats)
    np.add.at(change, last + 1, -graph.tensor_size.floats)
    alive = np.cumsum(change)
    return alive[position], alive[position + 1]


def empty_plan(instance: Instance) -> Plan:
    """Allocate a plan; :func:`load` fills it."""
    n, k = instance.vertices, instance.devices
    return Plan(
        device=_whole(n),
        order=_whole(n),
        position=_whole(n),
        before=_whole(n),
        after=_whole(n),
        first=_whole(k),
        last=_whole(k),
        number=_whole(k),
        start=np.zeros(n),
        end=np.zeros(n),
        run=np.zeros(n),
        tail=np.zeros(n),
        delay=np.zeros(len(instance.graph.edge_source)),
        used=np.zeros(k, dtype=np.int64),
        eager=np.ones(instance.graph.tensors, dtype=np.bool_),
    )


def _whole(length: int) -> Ints:
    return np.zeros(length, dtype=np.int32)


def load(p: Plan, layout: Layout) -> None:
    """Set the decisions from which :func:`rebuild` starts."""
    p.device[:], p.order[:], p.eager[:] = layout
    p.position[p.order] = np.arange(len(p.order), dtype=np.int32)


@kernel
def rebuild(a: Arrays, g: Links, p: Plan) -> None:
    """Compute everything from placement and order."""
    n = p.device.shape[0]
    p.first[:] = -1
    p.last[:] = -1
    p.number[:] = 0
    p.used[:] = 0
    for u in range(a.need.shape[0]):
        p.used[p.device[a.unit_vertex[a.unit_start[u]]]] += a.need[u]
    for i in range(n):
        v = p.order[i]
        d = p.device[v]
        p.position[v] = i
        p.before[v] = p.last[d]
        p.after[v] = -1
        if p.last[d] >= 0:
            p.after[p.last[d]] = v
        else:
            p.first[d] = v
        p.last[d] = v
        p.number[d] += 1
        p.run[v] = run_time(a, v, d)
        at = 0.0
        if p.before[v] >= 0:
            at = p.end[p.before[v]]
        for e in range(a.in_start[v], a.in_start[v + 1]):
            u = a.in_source[e]
            p.delay[e] = max(0.0, crossing_time(a, a.in_tensor[e], p.device[u], d))
            at = max(at, p.end[u] + p.delay[e])
        p.start[v] = at
        p.end[v] = at + p.run[v]
    for i in range(n - 1, -1, -1):
        v = p.order[i]
        rest = 0.0
        if p.after[v] >= 0:
            rest = p.run[p.after[v]] + p.tail[p.after[v]]
        for e in range(a.out_start[v], a.out_start[v + 1]):
            w = a.out_target[e]
            rest = max(rest, p.delay[g.in_of_out[e]] + p.run[w] + p.tail[w])
        p.tail[v] = rest


def by_start(p: Plan) -> Ints:
    """Sort vertices by start, the order that best predicts when a vertex runs."""
    return np.lexsort((p.position, p.end, p.start)).astype(np.int32)
