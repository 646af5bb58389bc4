"""Task parallel: operations that are ready together go to different devices ([B] §4.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from optpart.compiled import Arrays, arrays, assign, fits, kernel, nothing_placed
from optpart.instance import Instance
from optpart.partition.base import Partition, partition_of
from optpart.partition.unit_graph import (
    UnitGraph,
    add_ready,
    first_ready,
    pop,
    push,
    release,
    take_ready,
    unit_graph,
)


def task_parallel(instance: Instance, rng: np.random.Generator) -> Partition:
    """Place the ready units of highest up-rank, as many as devices at a time, one a device.

    [B] Alg. 4.2. A unit is ready when all units that it depends on are placed. Of such a fringe
    the pair of a unit and a device is chosen, again and again, for which most inputs of the unit
    are on the device already; unit and device then leave the fringe. Of equal pairs, that of the
    unit of higher up-rank (then lower number) goes first, on the device of lower number.

    [B] knows no constraints beyond colocation. Here a pair counts only where the unit fits; a unit
    that fits none of the devices left in its fringe waits for the next.
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
    while size:
        width = take_ready(graph, queue, size, fringe)
        size -= width
        free = np.ones(k, np.bool_)
        chosen = np.full(width, -1, np.int32)
        found = _pairs(graph, state.device, fringe[:width], inputs, pairs)
        while found:
            i, d = divmod(pop(pairs, found) % (k * k), k)
            found -= 1
            if chosen[i] < 0 and free[d] and fits(a, fringe[i], d, state):
                assign(a, fringe[i], d, state)
                chosen[i], free[d] = d, False
        # What is left has no inputs on any device that is left: all pairs are equal.
        for i in range(width):
            d = 0
            while chosen[i] < 0 and d < k:
                if free[d] and fits(a, fringe[i], d, state):
                    assign(a, fringe[i], d, state)
                    chosen[i], free[d] = d, False
                d += 1
        if free.all():
            return state
        for i in range(width):
            if chosen[i] < 0:
                size = add_ready(graph, fringe[i], queue, size)
            else:
                size = release(graph, fringe[i], queue, size, waiting)
    return state


@kernel
def _pairs(graph: UnitGraph, device: Any, fringe: Any, inputs: Any, pairs: Any) -> Any:
    """Fill a heap with the pairs that have inputs, those with most first; return its length."""
    k = inputs.shape[0]
    most = np.int64(graph.rank.shape[0])
    found = 0
    for i in range(fringe.shape[0]):
        inputs[i] = 0
        for e in range(graph.in_start[fringe[i]], graph.in_start[fringe[i] + 1]):
            inputs[i, device[graph.in_source[e]]] += 1
        for d in range(k):
            if inputs[i, d]:
                push(pairs, found, (most - inputs[i, d]) * k * k + i * k + d)
                found += 1
    return found
