"""Earliest task first (Hwang, Chow, Anger and Lee 1989)."""

from __future__ import annotations

from typing import Any

import numpy as np

from optpart.kernels.compiled import (
    Arrays,
    State,
    arrays,
    assign,
    fits,
    inner,
    kernel,
    nothing_placed,
    run_time,
)
from optpart.kernels.heap import heap_pop, heap_push, pop, push
from optpart.kernels.struct import FloatMatrix, Ints, LongMatrix, Longs, Struct
from optpart.problem.graph import inverse
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition, partition_of
from optpart.strategies.partition.insertion import arrivals, in_degrees
from optpart.strategies.partition.ranks import operations_rank


def etf(instance: Instance, rng: np.random.Generator) -> Partition:
    """Run the ready vertex next that can start first on any device.

    A vertex is ready when all its predecessors are placed; it can start on a device when its inputs
    have arrived and the vertices placed there before have ended. If several pairs can start at the
    same time, the vertex of highest static level goes first, then the topologically first, on the
    device where it finishes first, then on that of smallest number. The static level is the largest
    sum of operations (of mean run times, if these are given) on a path that starts with the vertex.

    The paper has identical devices and no constraints; the last two rules are added for others.
    The first member of a colocation group that is placed chooses among the devices that all members
    may use and that have memory for all of them. Start times are those of the ``delay`` model,
    regardless of the instance's model.
    """
    level = operations_rank(instance).sink
    by_level = np.lexsort((instance.graph.position, -level)).astype(np.int32)
    place = inverse(by_level)
    queue = _none_ready(instance.devices, instance.vertices)
    state, order = _earliest_first(arrays(instance), by_level, place, queue)
    return partition_of(instance, state, order.tolist())


class _Ready(Struct):
    """The ready vertices, by their rank in the order of levels: two heaps per device.

    Attributes
    ----------
    now : ndarray of int64, k × n
        Vertices that could start when the device is idle, the highest level first.
    time, later : ndarray of float64 and of int64, k × n
        Vertices that must wait longer for their inputs, by arrival of these, then by level.
    now_size, later_size : ndarray of int64, length k
    """

    now: LongMatrix
    time: FloatMatrix
    later: LongMatrix
    now_size: Longs
    later_size: Longs


def _none_ready(devices: int, vertices: int) -> _Ready:
    return _Ready(
        now=np.empty((devices, vertices), dtype=np.int64),
        time=np.empty((devices, vertices)),
        later=np.empty((devices, vertices), dtype=np.int64),
        now_size=np.zeros(devices, dtype=np.int64),
        later_size=np.zeros(devices, dtype=np.int64),
    )


@kernel
def _earliest_first(a: Arrays, by_level: Ints, place: Longs, queue: _Ready) -> Any:
    n, k = place.shape[0], a.speed.shape[0]
    state = nothing_placed(a)
    order = np.empty(n, np.int32)
    waiting = in_degrees(a)
    done = np.zeros(n, np.bool_)
    end, idle, arrival = np.zeros(n), np.zeros(k), np.zeros(k)
    for v in a.order:
        if waiting[v] == 0:
            _offer(a, v, place[v], state.device, end, idle, arrival, queue)
    for i in range(n):
        start, first, finish, target = np.inf, n, np.inf, -1
        for d in range(k):
            candidate = _next(a, d, by_level, done, idle[d], state, queue)
            if candidate < 0:
                continue
            at = idle[d] if queue.now_size[d] else queue.time[d, 0]
            until = at + run_time(a, by_level[candidate], d)
            if at < start or (
                at == start and (candidate < first or (candidate == first and until < finish))
            ):
                start, first, finish, target = at, candidate, until, d
        if target < 0:
            return state, order
        v = by_level[first]
        unit = int(a.unit[v])
        if state.device[unit] < 0:
            assign(a, unit, target, state)
        done[v], end[v], idle[target], order[i] = True, finish, finish, v
        for e in range(a.out_start[v], a.out_start[v + 1]):
            w = a.out_target[e]
            waiting[w] -= 1
            if waiting[w] == 0:
                _offer(a, w, place[w], state.device, end, idle, arrival, queue)
    return state, order


@inner
def _offer(
    a: Arrays, v: int, place: int, device: Any, end: Any, idle: Any, arrival: Any, queue: _Ready
) -> None:
    """Queue a vertex that has become ready on every device where it may run."""
    unit = a.unit[v]
    chosen = int(device[unit])
    arrivals(a, v, device, end, arrival, chosen)
    for d in range(idle.shape[0]):
        if (d != chosen) if chosen >= 0 else not a.allowed[unit, d]:
            continue
        if arrival[d] <= idle[d]:
            push(queue.now[d], queue.now_size[d], place)
            queue.now_size[d] += 1
        else:
            queue.later_size[d] = heap_push(
                queue.time[d], queue.later[d], queue.later_size[d], arrival[d], place
            )


@inner
def _next(
    a: Arrays, d: int, by_level: Any, done: Any, idle: float, state: State, queue: _Ready
) -> Any:
    """Return the vertex that can start first on ``d``, the head of its heap; −1 if none."""
    while queue.later_size[d] and queue.time[d, 0] <= idle:
        push(queue.now[d], queue.now_size[d], queue.later[d, 0])
        queue.now_size[d] += 1
        queue.later_size[d] = heap_pop(queue.time[d], queue.later[d], queue.later_size[d])
    while queue.now_size[d] or queue.later_size[d]:
        place = queue.now[d, 0] if queue.now_size[d] else queue.later[d, 0]
        unit = a.unit[by_level[place]]
        device = state.device[unit]
        # Vertices that have run, or no longer fit here, leave the heap lazily.
        if not done[by_level[place]] and (device == d or (device < 0 and fits(a, unit, d, state))):
            return place
        if queue.now_size[d]:
            pop(queue.now[d], queue.now_size[d])
            queue.now_size[d] -= 1
        else:
            queue.later_size[d] = heap_pop(queue.time[d], queue.later[d], queue.later_size[d])
    return -1
