"""Iterated critical path: one heaviest path after another, each kept together ([L] §4.5)."""

from __future__ import annotations

from typing import Any

import numpy as np

from optpart.kernels.compiled import Arrays, State, arrays, inner, kernel, nothing_placed
from optpart.kernels.heap import heap_pop, heap_push
from optpart.kernels.struct import Bools, Floats, Ints, Struct
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition, partition_of
from optpart.strategies.partition.common import fit_together, take
from optpart.strategies.partition.ranks import operations_rank, work


def iterated_critical_path(instance: Instance, rng: np.random.Generator) -> Partition:
    """Remove the critical path from the graph until every unit is placed.

    The critical path ends in the sink of largest operations source rank (eq. 4.3) and follows the
    predecessors that determine it. It is cut into subpaths, from the sink: a placed vertex ends a
    subpath, and a vertex that has no device in common with it begins the next. A subpath goes, with
    all colocated vertices, to the feasible device of least execution time so far (eq. 4.5), itself
    not included; if no device can take it, the half nearer the sink is placed first, then the rest.
    The edges of the path are then removed, with all parallel ones. Ties go to the topologically
    first sink, and to the predecessor and device of smallest number.

    Notes
    -----
    Only ranks determined by a removed edge are recomputed. Ranks never rise, so an outdated entry
    in the queue of sinks is noticed when it comes first.
    """
    a, n = arrays(instance), instance.vertices
    left = _Left(
        rank=operations_rank(instance).source,
        before=np.empty(n, dtype=np.int32),
        gone=np.zeros(len(a.in_source), dtype=np.bool_),
        leaving=np.diff(a.out_start),
    )
    return partition_of(instance, _assign(a, work(instance), left))


class _Left(Struct):
    """The remaining graph.

    Attributes
    ----------
    rank : ndarray of float64, length n
        Operations source rank.
    before : ndarray of int32, length n
        Path predecessor; −1 for a source.
    gone : ndarray of bool
        Whether an in-edge has been removed.
    leaving : ndarray of int32, length n
        Out-edges that are left.
    """

    rank: Floats
    before: Ints
    gone: Bools
    leaving: Ints


@kernel
def _assign(a: Arrays, ops: Floats, left: _Left) -> Any:
    """Place the units of one critical path after another.

    Before each path, the ranks are those of the remaining graph, and the heap of sinks holds each
    of its sinks with a rank that is not below its own.
    """
    n, rank = ops.shape[0], left.rank
    state = nothing_placed(a)
    load = np.zeros(a.speed.shape[0])
    met = np.zeros(a.need.shape[0], np.bool_)  # units on a path so far
    # Two heaps of topological positions: sinks by falling rank, and vertices to rank again.
    position = np.empty(n, np.int64)
    key, sink, sinks = np.empty(n + 1), np.empty(n + 1, np.int64), 0
    same, queue, queued = np.empty(n + 1), np.empty(n + 1, np.int64), np.zeros(n, np.bool_)
    for i in range(n):
        v = a.order[i]
        position[v] = i
        _follow(a, ops, left, v)
        if left.leaving[v] == 0:
            sinks = heap_push(key, sink, sinks, -rank[v], i)
    path = np.empty(n, np.int32)
    while sinks and state.placed[-1] < a.need.shape[0]:
        former, v = -key[0], a.order[sink[0]]
        sinks = heap_pop(key, sink, sinks)
        if rank[v] < former:
            sinks = heap_push(key, sink, sinks, -rank[v], position[v])
            continue
        count = 0
        while v >= 0:
            path[count] = v
            count += 1
            v = left.before[v]
        if not _place_path(a, path[:count], state, load, met):
            return state
        waiting = 0
        for i in range(count - 1):
            v, u = path[i], path[i + 1]
            for e in range(a.in_start[v], a.in_start[v + 1]):
                if a.in_source[e] == u:
                    left.gone[e] = True
                    left.leaving[u] -= 1
            queued[v] = True
            waiting = heap_push(same, queue, waiting, 0.0, position[v])
        while waiting:
            v = a.order[queue[0]]
            waiting = heap_pop(same, queue, waiting)
            queued[v] = False
            if _follow(a, ops, left, v):
                for e in range(a.out_start[v], a.out_start[v + 1]):
                    w = a.out_target[e]
                    if left.before[w] == v and not queued[w]:
                        queued[w] = True
                        waiting = heap_push(same, queue, waiting, 0.0, position[w])
        for v in path[:count]:
            if left.leaving[v] == 0 and left.before[v] >= 0:
                sinks = heap_push(key, sink, sinks, -rank[v], position[v])
    return state


@inner
def _follow(a: Arrays, ops: Any, left: _Left, v: int) -> Any:
    """Recompute rank and path predecessor of ``v``; return whether the rank changed."""
    best, chosen = 0.0, -1
    for e in range(a.in_start[v], a.in_start[v + 1]):
        u = a.in_source[e]
        if not left.gone[e] and (chosen < 0 or left.rank[u] + ops[u] > best):
            best, chosen = left.rank[u] + ops[u], u
    changed = best != left.rank[v]
    left.rank[v] = best
    left.before[v] = chosen
    return changed


@inner
def _place_path(a: Arrays, path: Any, state: State, load: Any, met: Any) -> Any:
    """Cut a path, sink first, into subpaths and place them; return whether that was possible."""
    k = load.shape[0]
    common = np.ones(k, np.bool_)
    subpath = np.empty(path.shape[0], np.int32)
    count = 0
    for v in path:
        unit = a.unit[v]
        placed = state.device[unit] >= 0
        if met[unit] and not placed:  # colocated with another vertex of this subpath
            continue
        met[unit] = True
        contradicts = True
        for d in range(k):
            contradicts &= not (common[d] and a.allowed[unit, d])
        if count and (placed or contradicts):
            if not _place_subpath(a, subpath[:count], state, load):
                return False
            count = 0
            common[:] = True
        if not placed:
            subpath[count] = unit
            count += 1
            for d in range(k):
                common[d] &= a.allowed[unit, d]
    return count == 0 or _place_subpath(a, subpath[:count], state, load)


@inner
def _place_subpath(a: Arrays, units: Any, state: State, load: Any) -> Any:
    """Place units together, or in halves; return whether that was possible."""
    low, high = 0, units.shape[0]
    while low < high:
        best, chosen = np.inf, -1
        for d in range(load.shape[0]):
            if (chosen < 0 or load[d] < best) and fit_together(a, units[low:high], d, state):
                best, chosen = load[d], d
        if chosen >= 0:
            for unit in units[low:high]:
                take(a, unit, chosen, state, load)
            low, high = high, units.shape[0]
        elif high - low > 1:
            high -= (high - low) // 2
        else:
            return False
    return True
