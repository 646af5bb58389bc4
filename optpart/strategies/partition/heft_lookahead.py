"""HEFT that looks ahead at the successors (Bittencourt, Sakellariou and Madeira 2010)."""

from __future__ import annotations

from typing import Any

import numpy as np

from optpart.base.clock import check_time
from optpart.kernels.compiled import (
    Arrays,
    State,
    arrays,
    assign,
    crossing_time,
    fits,
    inner,
    kernel,
    nothing_placed,
    run_time,
)
from optpart.kernels.struct import FloatMatrix, Floats, Ints, Longs, Struct
from optpart.problem.graph import inverse
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition, partition_of
from optpart.strategies.partition.ranks import upward_rank

#: Triples of an edge and two devices to look at between two looks at the clock.
_WORK = 2**20


def heft_lookahead(instance: Instance, rng: np.random.Generator) -> Partition:
    """Place vertices by falling upward rank where the last of their successors can finish first.

    On every device that may run the vertex, it is scheduled in the first gap, and then its direct
    successors, by falling rank, each where it finishes first, in a gap if it fits. Of their inputs,
    those from vertices that are not yet scheduled do not count. The device whose last successor
    finishes first is the choice; of equal ones, the one where the vertex itself finishes first,
    then that of smallest number. The successors are then taken back. A vertex without successors
    goes where it finishes first, as in :func:`~optpart.strategies.partition.heft.heft`.

    Source: L. Bittencourt, R. Sakellariou and E. Madeira, DAG scheduling using a lookahead variant
    of the heterogeneous earliest finish time algorithm, PDP 2010; the variant that takes the
    largest finish of all children. The paper has no constraints. Here, the first member of a
    colocation group chooses among the devices that all members may use and that have memory for all
    of them; a device that leaves a successor none is the last choice. Finish times are those of the
    ``delay`` model, regardless of the instance's model.

    Notes
    -----
    Time is proportional to the edges times the devices, times the devices and the gaps that are
    looked at on them, plus the in-edges of the successor.
    """
    a = arrays(instance)
    position = instance.graph.position
    turn = np.lexsort((position, -upward_rank(instance))).astype(np.int32)
    place = inverse(turn)
    source = np.repeat(np.arange(instance.vertices), np.diff(a.out_start))
    by_turn = np.lexsort((a.out_tensor, place[a.out_target], source))
    target, tensor = a.out_target[by_turn], a.out_tensor[by_turn]
    state, found = nothing_placed(a), _nothing_scheduled(instance, target)
    done = 0
    while done < instance.vertices:
        check_time()
        before = done
        done = _look_ahead(a, turn, tensor, state, found, done, _WORK)
        if done == before:  # no device was left for the next vertex
            break
    order = np.lexsort((position, found.end, found.start)).tolist()
    return partition_of(instance, state, order)


class _Busy(Struct):
    """The intervals at which devices are busy, ascending.

    Attributes
    ----------
    since, until : ndarray of float64, k × n
        Only the pages that are used take memory.
    counts : ndarray of int64, length k
    """

    since: FloatMatrix
    until: FloatMatrix
    counts: Longs


class _Partial(Struct):
    """A schedule of some of the vertices.

    Attributes
    ----------
    start, end : ndarray of float64, length n
    ready : ndarray of float64, n × k
        Arrival of the inputs of each vertex from the predecessors placed so far.
    tried : ndarray of float64, length n
        The ends of vertices that are scheduled for trial, −1 for all others.
    target : ndarray of int32
        The targets of the out-edges of each vertex, by falling rank.
    """

    start: Floats
    end: Floats
    busy: _Busy
    ready: FloatMatrix
    tried: Floats
    target: Ints


def _nothing_scheduled(instance: Instance, target: Ints) -> _Partial:
    n, k = instance.vertices, instance.devices
    return _Partial(
        start=np.zeros(n),
        end=np.zeros(n),
        busy=_Busy(np.empty((k, n)), np.empty((k, n)), np.zeros(k, dtype=np.int64)),
        ready=np.zeros((n, k)),
        tried=np.full(n, -1.0),
        target=target,
    )


@kernel
def _look_ahead(
    a: Arrays, turn: Ints, tensor: Ints, state: State, found: _Partial, done: int, work: int
) -> Any:
    """Place vertices from the turn ``done`` on until the work is done; return how many are placed.

    It ends early at a vertex that has no device left.

    Parameters
    ----------
    tensor : ndarray of int32
        The tensors of the out-edges, in the order of ``found.target``.
    """
    n, k = turn.shape[0], a.speed.shape[0]
    busy, ready, target = found.busy, found.ready, found.target
    while done < n and work > 0:
        v = turn[done]
        work -= k + k * k * (a.out_start[v + 1] - a.out_start[v])
        unit = a.unit[v]
        home = state.device[unit]
        best, best_end, best_start, chosen = np.inf, np.inf, 0.0, -1
        for d in range(k):
            if (d != home) if home >= 0 else not fits(a, unit, d, state):
                continue
            at = _earliest(busy, d, ready[v, d], run_time(a, v, d))
            finish = at + run_time(a, v, d)
            last = finish
            if a.out_start[v] < a.out_start[v + 1]:
                last = _last_successor(a, v, d, at, finish, best, state, found)
            if chosen < 0 or last < best or (last == best and finish < best_end):
                best, best_end, best_start, chosen = last, finish, at, d
        if chosen < 0:
            return done
        if home < 0:
            assign(a, unit, chosen, state)
        found.start[v], found.end[v] = best_start, best_end
        _book(busy, chosen, best_start, best_end)
        for e in range(a.out_start[v], a.out_start[v + 1]):
            for d in range(k):
                delay = crossing_time(a, tensor[e], chosen, d)
                ready[target[e], d] = max(ready[target[e], d], best_end + delay)
        done += 1
    return done


@inner
def _last_successor(
    a: Arrays, v: int, d: int, at: float, finish: float, limit: float, state: State, found: _Partial
) -> Any:
    """Return when the last successor of ``v`` on ``d`` finishes.

    That is infinite if a successor has no device left. Above ``limit``, it may be too low.

    Successors are placed and booked for trial, and taken back in the opposite order, so that
    ``state`` and ``found`` are the same before and after.
    """
    busy, ready, tried, target = found.busy, found.ready, found.tried, found.target
    k = a.speed.shape[0]
    first, past = a.out_start[v], a.out_start[v + 1]
    # What to take back: the vertices, whether their unit was placed, and the intervals booked.
    vertices = np.empty(past - first + 1, np.int32)
    placed = np.zeros(past - first + 1, np.bool_)
    numbers = np.empty(past - first + 1, np.int64)
    arrival = np.empty(k)
    if state.device[a.unit[v]] < 0:
        assign(a, a.unit[v], d, state)
        placed[0] = True
    vertices[0], numbers[0], tried[v] = v, _book(busy, d, at, finish), finish
    steps = 1
    last = 0.0
    for e in range(first, past):
        w = target[e]
        if e > first and w == target[e - 1]:
            continue
        for f in range(k):
            arrival[f] = ready[w, f]
        for g in range(a.in_start[w], a.in_start[w + 1]):
            u = a.in_source[g]
            if tried[u] >= 0.0:
                sender = state.device[a.unit[u]]
                for f in range(k):
                    delay = crossing_time(a, a.in_tensor[g], sender, f)
                    arrival[f] = max(arrival[f], tried[u] + delay)
        unit = a.unit[w]
        home = state.device[unit]
        least, since, chosen = np.inf, 0.0, -1
        for f in range(k):
            if (f != home) if home >= 0 else not fits(a, unit, f, state):
                continue
            p = run_time(a, w, f)
            if arrival[f] + p >= least:
                continue
            begin = _earliest(busy, f, arrival[f], p)
            if begin + p < least:
                least, since, chosen = begin + p, begin, f
        last = max(last, least)
        if chosen < 0 or last > limit:
            break
        if home < 0:
            assign(a, unit, chosen, state)
            placed[steps] = True
        vertices[steps], numbers[steps] = w, _book(busy, chosen, since, least)
        tried[w] = least
        steps += 1
    for i in range(steps - 1, -1, -1):
        unit = a.unit[vertices[i]]
        tried[vertices[i]] = -1.0
        if numbers[i] >= 0:
            _cancel(busy, state.device[unit], numbers[i])
        if placed[i]:
            state.used[state.device[unit]] -= a.need[unit]
            state.device[unit], state.placed[unit] = -1, 0
            state.placed[-1] -= 1
    return last


@inner
def _earliest(busy: _Busy, d: int, ready: float, p: float) -> Any:
    """Return the earliest start on ``d``, not before ``ready``, of what takes ``p``."""
    since, until, past = busy.since[d], busy.until[d], busy.counts[d]
    low, high = 0, past
    while low < high:
        middle = (low + high) >> 1
        if until[middle] <= ready:
            low = middle + 1
        else:
            high = middle
    at = ready
    while low < past and at + p > since[low]:
        at = max(at, until[low])
        low += 1
    return at


@inner
def _book(busy: _Busy, d: int, begin: float, end: float) -> Any:
    """Book an interval; return its number among those of ``d``, −1 if it has no length."""
    if end == begin:
        return -1
    since, until, j = busy.since[d], busy.until[d], busy.counts[d]
    while j > 0 and since[j - 1] >= end:
        since[j], until[j] = since[j - 1], until[j - 1]
        j -= 1
    since[j], until[j] = begin, end
    busy.counts[d] += 1
    return j


@inner
def _cancel(busy: _Busy, d: int, number: int) -> None:
    """Remove the interval of this number."""
    since, until = busy.since[d], busy.until[d]
    busy.counts[d] -= 1
    for j in range(number, busy.counts[d]):
        since[j], until[j] = since[j + 1], until[j + 1]
