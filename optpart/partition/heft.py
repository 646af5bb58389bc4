"""Heterogeneous earliest finish time, with the constraints of [L] §4.3 (Topcuoglu et al. 2002)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from optpart.compiled import (
    Arrays,
    arrays,
    assign,
    crossing_time,
    fits,
    kernel,
    nothing_placed,
    run_time,
)
from optpart.instance import Instance
from optpart.partition.base import Partition, partition_of
from optpart.partition.ranks import upward_rank


def heft(instance: Instance, rng: np.random.Generator) -> Partition:
    """Place vertices by falling upward rank where they finish first, in gaps where they fit.

    The first member of a colocation group that has its turn chooses among the devices that all
    members may use and that have memory for all of them; the others follow it, each scheduled when
    its own turn comes. Finish times are those of the ``delay`` model, whatever model the instance
    has.
    """
    return insertion(instance, upward_rank(instance))


def insertion(instance: Instance, rank: NDArray[np.float64]) -> Partition:
    """Place and schedule as :func:`heft` does, by a rank of one's own.

    Parameters
    ----------
    rank : ndarray of float64, length n
        Must not rise along an edge; of equal ranks the topologically first goes first.
    """
    position = np.empty(instance.vertices, dtype=np.int64)
    position[instance.graph.topological_order] = np.arange(instance.vertices)
    # Ranks never rise along an edge, so with ties broken topologically this order is topological.
    turn = np.lexsort((position, -rank)).astype(np.int32)
    state, start, end = _insert(arrays(instance), turn)
    return partition_of(instance, state, np.lexsort((position, end, start)).tolist())


@kernel
def _insert(a: Arrays, turn: Any) -> Any:
    n, k = turn.shape[0], a.speed.shape[0]
    state = nothing_placed(a)
    start, end = np.zeros(n), np.zeros(n)
    # Idle gaps of each device, ascending, side by side in one pool; a device whose room is full
    # moves to twice the room at the pool's end.
    room = np.full(k, 4, np.int64)
    base = np.arange(k) * 4
    count = np.ones(k, np.int64)
    pool = 4 * k
    gap_from, gap_to = np.zeros(8 * n + 4 * k), np.full(8 * n + 4 * k, np.inf)
    ready = np.zeros(k)
    for i in range(n):
        v = turn[i]
        unit = a.unit[v]
        chosen = state.device[unit]
        _arrivals(a, v, state.device, end, ready, chosen)
        best, best_gap, best_start = np.inf, -1, 0.0
        free = chosen < 0
        target = -1
        for d in range(k):
            if (not free and d != chosen) or (free and not a.allowed[unit, d]):
                continue
            p = run_time(a, v, d)
            if ready[d] + p >= best or (free and not fits(a, unit, d, state)):
                continue
            low, high = base[d], base[d] + count[d] - 1
            while low < high:
                middle = (low + high) >> 1
                if gap_to[middle] < ready[d] + p:
                    low = middle + 1
                else:
                    high = middle
            at = max(gap_from[low], ready[d])
            while at + p > gap_to[low] and at + p < best:
                low += 1
                at = max(gap_from[low], ready[d])
            if at + p < best:
                best, best_gap, best_start, target = at + p, low, at, d
        d = target
        if d < 0:
            return state, start, end
        if free:
            assign(a, unit, d, state)
        start[v], end[v] = best_start, best
        if count[d] == room[d]:
            for j in range(count[d]):
                gap_from[pool + j] = gap_from[base[d] + j]
                gap_to[pool + j] = gap_to[base[d] + j]
            best_gap += pool - base[d]
            base[d] = pool
            room[d] *= 2
            pool += room[d]
        count[d] += _fill(gap_from, gap_to, best_gap, base[d] + count[d], best_start, best)
    return state, start, end


@kernel
def _arrivals(a: Arrays, v: int, device: Any, end: Any, ready: Any, chosen: int) -> None:
    """Earliest time per device at which all inputs of ``v`` are there."""
    k = ready.shape[0]
    for d in range(k):
        ready[d] = 0.0
    for e in range(a.in_start[v], a.in_start[v + 1]):
        u = a.in_source[e]
        tensor = a.in_tensor[e]
        sender = device[a.unit[u]]
        if chosen >= 0:
            delay = crossing_time(a, tensor, sender, chosen)
            ready[chosen] = max(ready[chosen], end[u] + delay)
        elif a.measured_row[tensor] >= 0:
            for d in range(k):
                ready[d] = max(ready[d], end[u] + crossing_time(a, tensor, sender, d))
        else:
            here = ready[sender]
            size, since = a.size[tensor], end[u]
            for d in range(k):
                rate = a.bandwidth[sender, d]
                lasts = size / rate if size > 0.0 else 0.0
                ready[d] = max(ready[d], since + a.latency[sender, d] + lasts)
            ready[sender] = max(here, since)


@kernel
def _fill(gap_from: Any, gap_to: Any, gap: int, past: int, start: float, end: float) -> Any:
    """Take ``[start, end)`` out of a gap; return by how many the gaps have grown."""
    if end == start:
        return 0
    if gap_from[gap] == start:
        gap_from[gap] = end
        return 0
    if gap_to[gap] == end:
        gap_to[gap] = start
        return 0
    for j in range(past, gap + 1, -1):
        gap_from[j] = gap_from[j - 1]
        gap_to[j] = gap_to[j - 1]
    gap_from[gap + 1] = end
    gap_to[gap + 1] = gap_to[gap]
    gap_to[gap] = start
    return 1
