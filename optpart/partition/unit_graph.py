"""What the strategies of [B] share: the graph of operations, its up-rank, and the ready queue."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.compiled import Arrays, arrays, assign, fits, kernel, nothing_placed
from optpart.graph import grouped
from optpart.instance import Instance


class UnitGraph(NamedTuple):
    """Assignment units as single operations, without cycles ([B] §4.1).

    There is one edge between two units, however many tensors and control dependencies go from the
    members of one to those of the other.

    Attributes
    ----------
    source, target : ndarray of int32, one per edge
        Ascending by source, then target.
    out_start : ndarray of int32, units + 1
        Edges ``out_start[u]`` to ``out_start[u + 1]`` leave ``u``.
    in_start, in_source : ndarray of int32
        Units ``in_source[in_start[u]:in_start[u + 1]]`` precede ``u``.
    rank : ndarray of int32, one per unit
        Up-rank: number of edges on the longest path to a sink ([B] Alg. 4.1).
    """

    source: NDArray[np.int32]
    target: NDArray[np.int32]
    out_start: NDArray[np.int32]
    in_start: NDArray[np.int32]
    in_source: NDArray[np.int32]
    rank: NDArray[np.int32]


def unit_graph(instance: Instance) -> UnitGraph:
    """Merge colocated vertices, break the cycles that arise, and compute the up-rank.

    Cycles are broken as in [B] §4.1, by dropping the edge with which a traversal closes one. The
    traversal is depth first, from units in topological order of their first vertex, to successors
    by number.

    Notes
    -----
    [B] prints ``max(upRank(v_j) + c_i)``; this is Alg. 4.1 and figure 4.3, where every edge counts
    1 and a sink has rank 0.
    """
    units = len(instance.units)
    unit, graph = instance.unit_of, instance.graph
    source, target = unit[graph.edge_source].astype(np.int64), unit[graph.edge_target]
    pairs = np.unique(source * units + target)
    source, target = np.divmod(pairs, max(1, units))
    between = source != target
    source, target = source[between].astype(np.int32), target[between].astype(np.int32)
    start, _ = grouped(source, units)
    kept, rank = _traverse(start, target, by_first_vertex(instance))
    source, target = source[kept], target[kept]
    in_start, in_edges = grouped(target, units)
    return UnitGraph(source, target, grouped(source, units)[0], in_start, source[in_edges], rank)


def by_first_vertex(instance: Instance) -> NDArray[np.int32]:
    """Units in topological order of their first vertex."""
    unit = instance.unit_of[instance.graph.topological_order]
    return np.argsort(np.unique(unit, return_index=True)[1]).astype(np.int32)


@kernel
def _traverse(start: Any, target: Any, roots: Any) -> Any:
    """Depth first; return which edges close no cycle, and the up-rank."""
    units = start.shape[0] - 1
    new, on_path = -1, -2
    kept = np.ones(target.shape[0], np.bool_)
    rank = np.full(units, new, np.int32)
    edge = start[:-1].copy()
    path = np.empty(units, np.int32)
    for root in roots:
        if rank[root] != new:
            continue
        path[0], depth = root, 0
        rank[root] = on_path
        while depth >= 0:
            u = path[depth]
            if edge[u] < start[u + 1]:
                v = target[edge[u]]
                if rank[v] == on_path:
                    kept[edge[u]] = False
                elif rank[v] == new:
                    depth += 1
                    path[depth] = v
                    rank[v] = on_path
                edge[u] += 1
            else:
                rank[u] = 0
                for e in range(start[u], start[u + 1]):
                    if kept[e]:
                        rank[u] = max(rank[u], rank[target[e]] + 1)
                depth -= 1
    return kept, rank


@kernel
def first_ready(graph: UnitGraph) -> Any:
    """Return the ready queue with all sources, its length, and how many inputs each unit awaits.

    The queue holds units by falling up-rank, equal ones by number.
    """
    units = graph.rank.shape[0]
    queue, size = np.empty(units, np.int64), 0
    waiting = np.empty(units, np.int32)
    for unit in range(units):
        waiting[unit] = graph.in_start[unit + 1] - graph.in_start[unit]
        if waiting[unit] == 0:
            size = add_ready(graph, unit, queue, size)
    return queue, size, waiting


@kernel
def add_ready(graph: UnitGraph, unit: int, queue: Any, size: int) -> Any:
    """Add a unit to the ready queue; return its new length."""
    units = graph.rank.shape[0]
    push(queue, size, (units - graph.rank[unit]) * np.int64(units) + unit)
    return size + 1


@kernel
def take_ready(graph: UnitGraph, queue: Any, size: int, fringe: Any) -> Any:
    """Move the first units of the ready queue to ``fringe`` until it is full; return how many."""
    width = min(size, fringe.shape[0])
    for i in range(width):
        fringe[i] = pop(queue, size - i) % graph.rank.shape[0]
    return width


@kernel
def release(graph: UnitGraph, unit: int, queue: Any, size: int, waiting: Any) -> Any:
    """Queue the units for which the one just placed was the last input; return the new length."""
    for e in range(graph.out_start[unit], graph.out_start[unit + 1]):
        successor = graph.target[e]
        waiting[successor] -= 1
        if waiting[successor] == 0:
            size = add_ready(graph, successor, queue, size)
    return size


@kernel
def push(heap: Any, size: int, key: int) -> None:
    """Add a key to a binary heap of ``size`` keys, the smallest first."""
    i = size
    while i > 0 and heap[(i - 1) >> 1] > key:
        heap[i] = heap[(i - 1) >> 1]
        i = (i - 1) >> 1
    heap[i] = key


@kernel
def pop(heap: Any, size: int) -> Any:
    """Take the smallest of ``size`` keys."""
    smallest, key = heap[0], heap[size - 1]
    i, child = 0, 1
    while child < size - 1:
        if child + 1 < size - 1 and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= key:
            break
        heap[i] = heap[child]
        i, child = child, 2 * child + 1
    heap[i] = key
    return smallest


def place_preferred(
    instance: Instance,
    units: NDArray[np.int32],
    preferred: NDArray[np.int32],
    devices: NDArray[np.int32],
) -> Any:
    """Place units in turn, each on the device it prefers or the next that is feasible.

    Parameters
    ----------
    units : ndarray of int32
        All units, in the order in which they are placed.
    preferred : ndarray of int32, one per unit
        Position in ``devices``; −1 for the device that holds most of the inputs placed so far, or
        the first of ``devices`` if there are none.
    devices : ndarray of int32
        The devices to choose among; after the last comes the first.

    Returns
    -------
    State
        Where a unit fits nowhere, it and those after it are not placed.
    """
    return _place_preferred(arrays(instance), units, preferred, devices)


@kernel
def _place_preferred(a: Arrays, units: Any, preferred: Any, devices: Any) -> Any:
    state = nothing_placed(a)
    choices = devices.shape[0]
    for unit in units:
        first = preferred[unit]
        if first < 0:
            first = _most_inputs(a, unit, state.device, devices)
        for step in range(choices):
            d = devices[(first + step) % choices]
            if fits(a, unit, d, state):
                assign(a, unit, d, state)
                break
        else:
            return state
    return state


@kernel
def _most_inputs(a: Arrays, unit: int, device: Any, devices: Any) -> Any:
    """Position of the device with most in-edges of a unit; the first of equals."""
    inputs = np.zeros(a.speed.shape[0], np.int64)
    for i in range(a.unit_start[unit], a.unit_start[unit + 1]):
        v = a.unit_vertex[i]
        for e in range(a.in_start[v], a.in_start[v + 1]):
            d = device[a.unit[a.in_source[e]]]
            if d >= 0:
                inputs[d] += 1
    best = 0
    for position in range(devices.shape[0]):
        if inputs[devices[position]] > inputs[devices[best]]:
            best = position
    return best
