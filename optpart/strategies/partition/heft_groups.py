"""HEFT for colocation groups: they are placed by load first, and ranked as if each had a device.

The first member of a group that :func:`~optpart.strategies.partition.heft.heft` meets decides for
all, and upward ranks let members of a group run at the same time. Where groups have dozens of
members in many levels of the graph, as in [L] table 7.1, both cost more than all transfers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.kernels.compiled import (
    Arrays,
    arrays,
    fits,
    nothing_placed,
    run_time,
    short_kernel,
)
from optpart.kernels.heap import heap_pop, heap_push
from optpart.kernels.struct import Floats, Longs
from optpart.problem.graph import inverse
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition, partition_of
from optpart.strategies.partition.common import take, unit_time
from optpart.strategies.partition.heft import heft
from optpart.strategies.partition.insertion import (
    Inserted,
    in_order,
    inserted,
)
from optpart.strategies.partition.ranks import mean_transfer, upward

#: What a transfer counts in the ranks, as a share of its mean time.
_TRANSFERS = (0.5, 1.0)

#: How much more than an even share of the work a device takes, as long as another has room.
_SHARES = (1.05, np.inf)

#: Schedules backwards and forwards from which the ranks are taken.
_ROUNDS = 4


def heft_groups(instance: Instance, rng: np.random.Generator) -> Partition:
    """Place colocation groups by falling work where load ends first, then all else like HEFT.

    Vertices go in the order of their tails in a relaxation, in which every unit has the fastest of
    its devices for itself: list schedules backwards and forwards take turns, each by the times of
    the one before, and the tails of the shortest count. Of several weights of transfers and limits
    of load, the shortest schedule is returned. Without groups of several vertices, or if no
    place is left beside them, this is HEFT.
    """
    if len(instance.units) == instance.vertices:
        return heft(instance, rng)
    a = arrays(instance)
    fastest, even = run_times(a)
    size = np.bincount(instance.unit_of)
    work = np.bincount(instance.unit_of, weights=fastest)
    groups = np.flatnonzero(size > 1)
    placed = _spread(a, groups[np.argsort(-work[groups], kind="stable")])
    transfer, position = mean_transfer(instance), instance.graph.position
    best = None
    for weight in _TRANSFERS:
        tail = relaxed(instance, fastest, weight * transfer).tail
        turn = np.lexsort((position, -tail)).astype(np.int32)
        for share in _SHARES:
            found = inserted(instance, turn, placed=placed, most=share * even)
            if best is None or _length(found) < _length(best):
                best = found
    if best is None or _length(best) == np.inf:
        return heft(instance, rng)
    return partition_of(instance, best.state, in_order(instance, best))


def _length(found: Inserted) -> float:
    """Return when the last vertex ends; infinity if a vertex has no place."""
    return float(found.end.max()) if (found.state.device >= 0).all() else np.inf


class Relaxed(NamedTuple):
    """A schedule in which every unit has the fastest of its devices for itself.

    Attributes
    ----------
    length : float
        Its makespan, in the unit of :class:`~optpart.kernels.compiled.Arrays`.
    tail : ndarray of float64, length n
        From the start of each vertex to the end.
    """

    length: float
    tail: NDArray[np.float64]


def relaxed(instance: Instance, run: NDArray[np.float64], transfer: NDArray[np.float64]) -> Relaxed:
    """Return the shortest schedule found of the relaxation, and the tails that gave it.

    Parameters
    ----------
    run : ndarray of float64, length n
        Run times.
    transfer : ndarray of float64, length t
        Times of tensors from one unit to another.
    """
    a = arrays(instance)
    tail = upward(instance, run, transfer)
    best = Relaxed(np.inf, tail)
    for _ in range(_ROUNDS):
        end = _schedule(a, run, transfer, _ranked(-tail), False) + run
        if end.max() <= best.length:  # of equal ones the latest, which knows of groups
            best = Relaxed(float(end.max()), tail)
        tail = _schedule(a, run, transfer, _ranked(-end), True) + run
    return best


def _ranked(key: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the place of each vertex in ascending order of a key."""
    return inverse(np.argsort(key, kind="stable"))


@short_kernel
def run_times(a: Arrays) -> Any:
    """Return the least run time of each vertex, and the load if all devices share all vertices."""
    n, k = a.order.shape[0], a.speed.shape[0]
    fastest = np.empty(n)
    even = 0.0
    for v in range(n):
        fastest[v], rate = np.inf, 0.0
        for d in range(k):
            if a.allowed[a.unit[v], d]:
                p = run_time(a, v, d)
                fastest[v] = min(fastest[v], p)
                if p > 0.0:
                    rate += 1.0 / p
        if rate > 0.0 and fastest[v] > 0.0:
            even += 1.0 / rate
    return fastest, even


@short_kernel
def _spread(a: Arrays, groups: Longs) -> Any:
    """Return the device of each group, which ends there first after those before it; −1 of none."""
    k = a.speed.shape[0]
    state = nothing_placed(a)
    load = np.zeros(k)
    for unit in groups:
        best, target = np.inf, -1
        for d in range(k):
            if fits(a, unit, d, state):
                ends = load[d] + unit_time(a, unit, d)
                if ends < best:
                    best, target = ends, d
        if target >= 0:
            take(a, unit, target, state, load)
    return state.device.astype(np.int64)


@short_kernel
def _schedule(a: Arrays, run: Floats, transfer: Floats, place: Longs, backwards: bool) -> Any:
    """Schedule units that each have a device of their own; return when each vertex starts.

    Parameters
    ----------
    run : ndarray of float64, length n
    transfer : ndarray of float64, length t
        From one unit to another.
    place : ndarray of int64, length n
        Of the vertices of a unit that are ready, the one with the least runs.
    backwards : bool
        Whether edges count in the opposite direction.
    """
    n = run.shape[0]
    before, after = a.in_start, a.out_start
    target, tensor = a.out_target, a.out_tensor
    if backwards:
        before, after = a.out_start, a.in_start
        target, tensor = a.in_source, a.in_tensor
    start, arrived = np.zeros(n), np.zeros(n)
    waiting, touched = np.empty(n, np.int64), np.empty(2 * n, np.int64)
    ready, busy = np.zeros(n, np.bool_), np.zeros(a.need.shape[0], np.bool_)
    key, item = np.empty(2 * n), np.empty(2 * n, np.int64)
    size = count = 0
    for v in range(n):
        waiting[v] = before[v + 1] - before[v]
        if waiting[v] == 0:
            size = heap_push(key, item, size, 0.0, n + v)
    while size > 0:  # an item is a vertex that ends, or n more than one that is ready
        at, v = key[0], item[0]
        size = heap_pop(key, item, size)
        if v < n:
            busy[a.unit[v]] = False
            for e in range(after[v], after[v + 1]):
                w = target[e]
                crossing = transfer[tensor[e]] if a.unit[w] != a.unit[v] else 0.0
                arrived[w] = max(arrived[w], at + crossing)
                waiting[w] -= 1
                if waiting[w] == 0:
                    size = heap_push(key, item, size, arrived[w], n + w)
        else:
            v -= n
            ready[v] = True
        touched[count] = a.unit[v]
        count += 1
        if size > 0 and key[0] == at:
            continue  # all that is ready at a moment is known before a unit chooses
        for unit in touched[:count]:
            first = -1
            if not busy[unit]:
                for i in range(a.unit_start[unit], a.unit_start[unit + 1]):
                    w = a.unit_vertex[i]
                    if ready[w] and (first < 0 or place[w] < place[first]):
                        first = w
            if first >= 0:
                start[first], busy[unit], ready[first] = at, True, False
                size = heap_push(key, item, size, at + run[first], first)
        count = 0
    return start
