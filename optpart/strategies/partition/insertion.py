"""List scheduling with insertion: each vertex in turn goes to the best gap of the best device."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.kernels.compiled import (
    Arrays,
    State,
    arrays,
    crossing_time,
    fits,
    inner,
    nothing_placed,
    run_time,
    short_kernel,
)
from optpart.kernels.heap import pop, push
from optpart.kernels.struct import FloatMatrix, Ints, Longs
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition, partition_of
from optpart.strategies.partition.common import take, unit_time


def insert(
    instance: Instance,
    turn: NDArray[np.int32],
    *,
    wanted: NDArray[np.int64] | None = None,
    ahead: NDArray[np.float64] | None = None,
) -> Partition:
    """Place vertices in turn where they finish first, in a gap if they fit.

    Parameters
    ----------
    turn, wanted, ahead
        As of :func:`inserted`.
    """
    found = inserted(instance, turn, wanted=wanted, ahead=ahead)
    return partition_of(instance, found.state, in_order(instance, found))


class Inserted(NamedTuple):
    """Placed and scheduled vertices: the placement, and when each starts and ends."""

    state: State
    start: NDArray[np.float64]
    end: NDArray[np.float64]


def in_order(instance: Instance, found: Inserted) -> list[int]:
    """Return the vertices in the order of their starts, which is topological."""
    order: list[int] = np.lexsort((instance.graph.position, found.end, found.start)).tolist()
    return order


def inserted(
    instance: Instance,
    turn: NDArray[np.int32],
    *,
    wanted: NDArray[np.int64] | None = None,
    ahead: NDArray[np.float64] | None = None,
    placed: NDArray[np.int64] | None = None,
    most: float = np.inf,
) -> Inserted:
    """Place vertices in turn where they finish first, in a gap if they fit.

    The first member of a colocation group in the order chooses among the devices that all members
    may use and that have memory for all of them; the others follow it, each scheduled in its own
    turn. Ties go to the device of smallest number. Finish times are those of the ``delay`` model,
    regardless of the instance's model.

    Parameters
    ----------
    turn : ndarray of int32, length n
        All vertices, topologically sorted.
    wanted : ndarray of int64, one per unit, optional
        The device that a unit goes to if it fits there, regardless of finish time; −1 for none.
    ahead : ndarray of float64, n × k, optional
        Added to the finish time of a vertex on a device when devices are compared, in the
        unit of :class:`~optpart.kernels.compiled.Arrays`.
    placed : ndarray of int64, one per unit, optional
        The device that a unit is on from the beginning, where all of them fit; −1 for none.
    most : float, optional
        A device whose run times would add up to more is left out while there is another, in the
        same unit.
    """
    if wanted is None:
        wanted = np.full(len(instance.units), -1, dtype=np.int64)
    if ahead is None:
        ahead = np.zeros((0, instance.devices))
    if placed is None:
        placed = np.full(len(instance.units), -1, dtype=np.int64)
    return Inserted(*_insert(arrays(instance), turn, wanted, ahead, placed, most))


def by_priority(instance: Instance, priority: NDArray[np.float64]) -> NDArray[np.int32]:
    """Sort vertices like a ready list: of those with no predecessors left, the highest first.

    Ties go to the topologically first.
    """
    highest_first = np.lexsort((instance.graph.position, -priority)).astype(np.int32)
    turn: NDArray[np.int32] = _by_priority(arrays(instance), highest_first)
    return turn


@inner
def in_degrees(a: Arrays) -> Any:
    """Return the number of in-edges of each vertex."""
    count = np.empty(a.order.shape[0], np.int32)
    for v in range(count.shape[0]):
        count[v] = a.in_start[v + 1] - a.in_start[v]
    return count


@short_kernel
def _by_priority(a: Arrays, highest_first: Ints) -> Any:
    n = highest_first.shape[0]
    rank = np.empty(n, np.int64)
    for i in range(n):
        rank[highest_first[i]] = i
    waiting = in_degrees(a)
    ready = np.empty(n, np.int64)
    size = 0
    for v in range(n):
        if waiting[v] == 0:
            push(ready, size, rank[v])
            size += 1
    turn = np.empty(n, np.int32)
    for i in range(n):
        v = highest_first[pop(ready, size)]
        size -= 1
        turn[i] = v
        for e in range(a.out_start[v], a.out_start[v + 1]):
            waiting[a.out_target[e]] -= 1
            if waiting[a.out_target[e]] == 0:
                push(ready, size, rank[a.out_target[e]])
                size += 1
    return turn


@short_kernel
def _insert(
    a: Arrays, turn: Ints, wanted: Longs, ahead: FloatMatrix, placed: Longs, most: float
) -> Any:
    """Run :func:`insert`; return the placement, and when each vertex starts and ends.

    After each vertex, the gaps of a device are all intervals, of positive length or without an
    end, in which none of the vertices placed so far runs there.
    """
    n, k = turn.shape[0], a.speed.shape[0]
    state = nothing_placed(a)
    start, end = np.zeros(n), np.zeros(n)
    # Idle gaps of each device, ascending, side by side in one pool; when a device has no room left,
    # its gaps move to twice the room at the end of the pool.
    room = np.full(k, 4, np.int64)
    base = np.empty(k, np.int64)
    for d in range(k):
        base[d] = 4 * d
    count = np.ones(k, np.int64)
    pool = 4 * k
    gap_from, gap_to = np.zeros(8 * n + 4 * k), np.full(8 * n + 4 * k, np.inf)
    ready = np.zeros(k)
    looks_ahead = ahead.shape[0] > 0
    load = np.zeros(k)
    for unit in range(placed.shape[0]):
        if placed[unit] >= 0:
            take(a, unit, placed[unit], state, load)
    for i in range(n):
        v = turn[i]
        unit = a.unit[v]
        free = state.device[unit] < 0
        chosen = int(state.device[unit])
        if free and wanted[unit] >= 0 and fits(a, unit, wanted[unit], state):
            chosen = wanted[unit]
        arrivals(a, v, state.device, end, ready, chosen)
        limited = False
        if chosen < 0 and most < np.inf:
            for d in range(k):
                if a.allowed[unit, d] and load[d] + unit_time(a, unit, d) <= most:
                    limited = limited or fits(a, unit, d, state)
        best, best_gap, best_start, best_end = np.inf, -1, 0.0, 0.0
        target = -1
        for d in range(k):
            if (d != chosen) if chosen >= 0 else not a.allowed[unit, d]:
                continue
            if limited and load[d] + unit_time(a, unit, d) > most:
                continue
            p = run_time(a, v, d)
            later = ahead[v, d] if looks_ahead else 0.0
            if ready[d] + p + later >= best or (chosen < 0 and not fits(a, unit, d, state)):
                continue
            low, high = base[d], base[d] + count[d] - 1
            while low < high:
                middle = (low + high) >> 1
                if gap_to[middle] < ready[d] + p:
                    low = middle + 1
                else:
                    high = middle
            at = max(gap_from[low], ready[d])
            while at + p > gap_to[low] and at + p + later < best:
                low += 1
                at = max(gap_from[low], ready[d])
            if at + p + later < best:
                best, best_gap, best_start, best_end, target = at + p + later, low, at, at + p, d
        d = target
        if d < 0:
            return state, start, end
        if free:
            take(a, unit, d, state, load)
        start[v], end[v] = best_start, best_end
        if count[d] == room[d]:
            for j in range(count[d]):
                gap_from[pool + j] = gap_from[base[d] + j]
                gap_to[pool + j] = gap_to[base[d] + j]
            best_gap += pool - base[d]
            base[d] = pool
            room[d] *= 2
            pool += room[d]
        count[d] += _fill(gap_from, gap_to, best_gap, base[d] + count[d], best_start, best_end)
    return state, start, end


@inner
def arrivals(a: Arrays, v: int, device: Any, end: Any, ready: Any, chosen: int) -> None:
    """Write into ``ready`` the time per device at which all inputs of ``v`` have arrived.

    Parameters
    ----------
    device : ndarray of int32, one per unit
    end : ndarray of float64, length n
        Of the predecessors.
    ready : ndarray of float64, length k
    chosen : int
        The only device to write for; −1 for all.
    """
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


@inner
def _fill(gap_from: Any, gap_to: Any, gap: int, past: int, start: float, end: float) -> Any:
    """Remove ``[start, end)`` from a gap; return the change in the number of gaps."""
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
