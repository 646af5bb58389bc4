"""Task parallel: operations that are ready together go to different devices ([B] §4.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from optpart.kernels.compiled import Arrays, arrays, assign, fits, inner, kernel, nothing_placed
from optpart.kernels.heap import pop, push
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition, partition_of
from optpart.strategies.partition.unit_graph import (
    UnitGraph,
    first_ready,
    release,
    take_ready,
    unit_graph,
)


def task_parallel(instance: Instance, rng: np.random.Generator) -> Partition:
    """Place the ready units of highest up-rank, one per device in each round.

    [B] Alg. 4.2. A unit is ready when all units that it depends on are placed. In each round, the
    pair of a unit and a device with the most inputs of the unit on the device is chosen repeatedly;
    unit and device then leave the round. Ties go to the unit of higher up-rank (then lower number),
    then to the device of lower number.

    [B] has no constraints beyond colocation. Here a pair counts only if the unit fits; a unit that
    fits on none of the devices left in its round waits for the next.
    """
    return partition_of(instance, _place(arrays(instance), unit_graph(instance)))


@kernel
def _place(a: Arrays, graph: UnitGraph) -> Any:
    k = a.speed.shape[0]
    state = nothing_placed(a)
    queue, size, waiting = first_ready(graph)
    fringe = np.empty(k, np.int32)
    inputs = np.zeros((k, k), np.int64)
    pairs = np.empty(k * k, np.int64)
    free, left = np.empty(k, np.bool_), np.empty(k, np.bool_)
    while size:
        width = take_ready(graph, queue, size, fringe)
        size -= width
        for i in range(k):
            free[i] = left[i] = True
        placed = 0
        found = _pairs(graph, state.device, fringe, width, inputs, pairs)
        # Pairs with inputs on the device come first, then all others by number.
        for step in range(found + width * k):
            pair = pop(pairs, found - step) % (k * k) if step < found else step - found
            i, d = pair // k, pair % k
            if left[i] and free[d] and fits(a, fringe[i], d, state):
                assign(a, fringe[i], d, state)
                free[d] = left[i] = False
                placed += 1
        if placed == 0:
            return state
        for i in range(width):
            if left[i]:
                push(queue, size, graph.turn[fringe[i]])
                size += 1
            else:
                size = release(graph, fringe[i], queue, size, waiting)
    return state


@inner
def _pairs(graph: UnitGraph, device: Any, fringe: Any, width: int, inputs: Any, pairs: Any) -> Any:
    """Fill a heap with the pairs that have inputs, those with most first; return its length.

    The pair of the ``i``-th unit of the fringe and device ``d`` is ``i · k + d``, modulo ``k²``.
    """
    k = inputs.shape[0]
    most = graph.rank.shape[0]
    found = 0
    for i in range(width):
        for d in range(k):
            inputs[i, d] = 0
        for e in range(graph.in_start[fringe[i]], graph.in_start[fringe[i] + 1]):
            inputs[i, device[graph.in_source[e]]] += 1
        for d in range(k):
            if inputs[i, d]:
                push(pairs, found, (most - inputs[i, d]) * k * k + i * k + d)
                found += 1
    return found
