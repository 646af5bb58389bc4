"""Shared parts of the strategies of [B]: the graph of operations, up-rank, the ready queue."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from optpart.kernels.compiled import (
    Arrays,
    State,
    arrays,
    inner,
    kernel,
    nothing_placed,
)
from optpart.kernels.heap import pop, push
from optpart.kernels.struct import Ints, Longs, Struct
from optpart.problem.graph import grouped, inverse
from optpart.problem.instance import Instance
from optpart.strategies.partition.common import place_from


class UnitGraph(Struct):
    """Assignment units as single operations, without cycles ([B] §4.1).

    There is at most one edge from a unit to another, regardless of the number of tensors and
    control dependencies between their members.

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
    by_rank : ndarray of int32, one per unit
        Units by falling up-rank; ties by number.
    turn : ndarray of int64, one per unit
        The position of each unit in ``by_rank``.
    """

    source: Ints
    target: Ints
    out_start: Ints
    in_start: Ints
    in_source: Ints
    rank: Ints
    by_rank: Ints
    turn: Longs


def unit_graph(instance: Instance) -> UnitGraph:
    """Merge colocated vertices, break the cycles that arise, and compute the up-rank.

    Cycles are broken as in [B] §4.1, by dropping edges that close a cycle in a traversal. The
    traversal visits units in topological order of their first vertex: of the edges that lie on a
    cycle, it drops those that lead back in this order.

    Notes
    -----
    [B] does not give the order of its traversal. A depth-first one would reach weights, which are
    colocated with their update, through the update, and drop the edges through which they are read.

    The formula of [B] §4.1 sums costs ``c_i`` along a path; Alg. 4.1 and the text count edges, as
    is done here.
    """
    units = len(instance.units)
    unit, graph = instance.unit_of, instance.graph
    source, target = unit[graph.edge_source].astype(np.int64), unit[graph.edge_target]
    pairs = np.sort(source * units + target)
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]
    source, target = np.divmod(pairs, max(1, units))
    between = source != target
    source, target = source[between].astype(np.int32), target[between].astype(np.int32)
    closing = _closes_cycle(source, target, by_first_vertex(instance))
    source, target = source[~closing], target[~closing]
    out_start, _ = grouped(source, units)
    in_start, in_edges = grouped(target, units)
    in_source = source[in_edges]
    rank = _up_rank(out_start, in_start, in_source)
    by_rank = np.argsort(-rank, kind="stable").astype(np.int32)
    turn = inverse(by_rank)
    return UnitGraph(source, target, out_start, in_start, in_source, rank, by_rank, turn)


def _closes_cycle(
    source: NDArray[np.int32], target: NDArray[np.int32], order: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """Return which edges lie on a cycle and lead back in ``order``."""
    units = len(order)
    position = inverse(order)
    back = position[source] > position[target]
    if not back.any():
        return back
    # Loaded here because it takes long, and few instances need it.
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges = coo_array((np.ones(len(source), dtype=np.int8), (source, target)), (units, units))
    _, component = connected_components(edges, connection="strong")
    closing: NDArray[np.bool_] = back & (component[source] == component[target])
    return closing


def by_first_vertex(instance: Instance) -> NDArray[np.int32]:
    """Return units in topological order of their first vertex."""
    unit = instance.unit_of[instance.graph.topological_order]
    return np.argsort(np.unique(unit, return_index=True)[1]).astype(np.int32)


@kernel
def _up_rank(out_start: Ints, in_start: Ints, in_source: Ints) -> Any:
    """Run [B] Alg. 4.1, queueing every unit once: when the ranks of its successors are known."""
    units = out_start.shape[0] - 1
    rank = np.zeros(units, np.int32)
    queue, size = np.empty(units, np.int32), 0
    unknown = np.empty(units, np.int32)
    for u in range(units):
        unknown[u] = out_start[u + 1] - out_start[u]
        if unknown[u] == 0:
            queue[size] = u
            size += 1
    first = 0
    while first < size:
        v = queue[first]
        first += 1
        for e in range(in_start[v], in_start[v + 1]):
            u = in_source[e]
            rank[u] = max(rank[u], rank[v] + 1)
            unknown[u] -= 1
            if unknown[u] == 0:
                queue[size] = u
                size += 1
    return rank


@inner
def first_ready(graph: UnitGraph) -> Any:
    """Return the ready queue of all sources, its length, and each unit's number of missing inputs.

    The queue is a heap of positions in ``by_rank``, so that units leave it by falling up-rank.
    """
    units = graph.rank.shape[0]
    queue = np.empty(units, np.int64)
    size = 0
    waiting = np.empty(units, np.int32)
    for unit in range(units):
        waiting[unit] = graph.in_start[unit + 1] - graph.in_start[unit]
        if waiting[unit] == 0:
            push(queue, size, graph.turn[unit])
            size += 1
    return queue, size, waiting


@inner
def take_ready(graph: UnitGraph, queue: Any, size: int, fringe: Any) -> Any:
    """Move the first units of the ready queue to ``fringe`` until it is full; return how many."""
    width = min(size, fringe.shape[0])
    for i in range(width):
        fringe[i] = graph.by_rank[pop(queue, size - i)]
    return width


@inner
def release(graph: UnitGraph, unit: int, queue: Any, size: int, waiting: Any) -> Any:
    """Queue the units whose last input was the one just placed; return the new length."""
    for e in range(graph.out_start[unit], graph.out_start[unit + 1]):
        successor = graph.target[e]
        waiting[successor] -= 1
        if waiting[successor] == 0:
            push(queue, size, graph.turn[successor])
            size += 1
    return size


def place_preferred(
    instance: Instance,
    graph: UnitGraph,
    units: NDArray[np.int32],
    preferred: NDArray[np.int64],
    devices: NDArray[np.int32],
) -> State:
    """Place units in turn, each on the device it prefers or the next feasible one.

    Parameters
    ----------
    units : ndarray of int32
        All units, in the order in which they are placed.
    preferred : ndarray of int64, one per unit
        Position in ``devices``; −1 for the device that holds most of the unit's inputs so far, or
        the first of ``devices`` if none holds any.
    devices : ndarray of int32
        The devices to choose among; the first follows the last.

    Returns
    -------
    State
        If a unit fits nowhere, it and those after it are not placed.
    """
    state: State = _place_preferred(arrays(instance), graph, units, preferred, devices)
    return state


@kernel
def _place_preferred(
    a: Arrays, graph: UnitGraph, units: Ints, preferred: Longs, devices: Ints
) -> Any:
    state = nothing_placed(a)
    choices = devices.shape[0]
    inputs = np.zeros(a.speed.shape[0], np.int64)
    for unit in units:
        first = preferred[unit]
        if first < 0:
            first = 0
            inputs[:] = 0
            for e in range(graph.in_start[unit], graph.in_start[unit + 1]):
                d = state.device[graph.in_source[e]]
                if d >= 0:
                    inputs[d] += 1
            for i in range(choices):
                if inputs[devices[i]] > inputs[devices[first]]:
                    first = i
        if place_from(a, unit, first, devices, state) < 0:
            break
    return state
