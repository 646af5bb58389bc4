"""The greedy placement of the TensorFlow white paper ([L] ch. 8, [B] §6.1.1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from optpart.kernels.compiled import Arrays, arrays, assign, fits, kernel, nothing_placed, run_time
from optpart.kernels.heap import heap_pop, heap_push
from optpart.kernels.struct import Longs
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition, partition_of
from optpart.strategies.partition.insertion import arrivals, in_degrees


def white_paper(instance: Instance, rng: np.random.Generator) -> Partition:
    """Execute the graph, placing each vertex when it becomes ready where it would finish first.

    Abadi et al. 2015, §3.2.1. The execution starts at the sources. A vertex becomes ready when the
    last of its predecessors has ended, ties in topological order; it then queues on the feasible
    device where it would finish first behind the vertices placed there, including its transfers.
    Ties go to the device of smallest number.

    Members of a colocation group share the devices that all of them may use; the first to become
    ready chooses for all. Finish times are those of the ``delay`` model, regardless of the
    instance's model.

    Notes
    -----
    [L] found the description "not precise enough to be able to reimplement it"; the above settles
    the open points. [B] §6.1.1 reads it as a queue without a clock, which vertices leave in the
    order in which their last predecessor was placed.
    """
    state, order = _execute(arrays(instance), instance.graph.position)
    return partition_of(instance, state, order.tolist())


@kernel
def _execute(a: Arrays, position: Longs) -> Any:
    n, k = position.shape[0], a.speed.shape[0]
    state = nothing_placed(a)
    order = np.empty(n, np.int32)
    waiting = in_degrees(a)
    end, since = np.zeros(n), np.zeros(n)
    idle, ready = np.zeros(k), np.zeros(k)
    time, place = np.empty(n), np.empty(n, np.int64)
    size = 0
    for v in range(n):
        if waiting[v] == 0:
            size = heap_push(time, place, size, 0.0, position[v])
    for i in range(n):
        v = a.order[place[0]]
        size = heap_pop(time, place, size)
        unit = a.unit[v]
        chosen = int(state.device[unit])
        arrivals(a, v, state.device, end, ready, chosen)
        if chosen < 0:
            best = np.inf
            for d in range(k):
                finish = max(idle[d], ready[d]) + run_time(a, v, d)
                if finish < best and fits(a, unit, d, state):
                    best, chosen = finish, d
            if chosen < 0:
                return state, order
            assign(a, unit, chosen, state)
        end[v] = max(idle[chosen], ready[chosen]) + run_time(a, v, chosen)
        idle[chosen] = end[v]
        order[i] = v
        for e in range(a.out_start[v], a.out_start[v + 1]):
            w = a.out_target[e]
            waiting[w] -= 1
            since[w] = max(since[w], end[v])
            if waiting[w] == 0:
                size = heap_push(time, place, size, since[w], position[w])
    return state, order
