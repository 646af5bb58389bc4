"""Critical path: the heaviest path on the fastest device, the rest by load ([L] §4.6)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from optpart.compiled import Arrays, State, arrays, assign, fits, kernel, nothing_placed, run_time
from optpart.instance import Instance
from optpart.partition.base import Partition, partition_of
from optpart.partition.ranks import devices_by_speed, operations_rank, work


def critical_path(instance: Instance, rng: np.random.Generator) -> Partition:
    """Assign the path of most operations to the fastest feasible devices, then balance the load.

    Vertices colocated with the path go with it. Every further unit goes to the feasible device of
    least execution time so far, its own included ([M] eq. 7; [L] eq. 4.5), in topological order of
    its first vertex.
    """
    path = heaviest_path(instance)
    return partition_of(instance, _assign(arrays(instance), path, devices_by_speed(instance)))


def heaviest_path(instance: Instance) -> NDArray[np.int32]:
    """Vertices of the path of most operations, source first ([L] §4.5, step 1)."""
    if not instance.vertices:
        return np.zeros(0, dtype=np.int32)
    graph, ops = instance.graph, work(instance)
    source = operations_rank(instance).source
    start, edges = graph.in_edges
    path = [int(np.argmax(source + ops))]
    while True:
        v = path[-1]
        before = graph.edge_source[edges[start[v] : start[v + 1]]]
        if not len(before):
            return np.array(path[::-1], dtype=np.int32)
        path.append(int(before[np.argmax(source[before] + ops[before])]))


@kernel
def _assign(a: Arrays, path: Any, by_speed: Any) -> Any:
    k = a.speed.shape[0]
    state = nothing_placed(a)
    load = np.zeros(k)
    for v in path:
        unit = a.unit[v]
        if state.device[unit] >= 0:
            continue
        for d in by_speed:
            if fits(a, unit, d, state):
                _add(a, unit, d, state, load)
                break
        else:
            return state
    for v in a.order:
        unit = a.unit[v]
        if state.device[unit] >= 0:
            continue
        best, chosen = np.inf, -1
        for d in range(k):
            if load[d] < best and fits(a, unit, d, state):
                total = load[d] + _time(a, unit, d)
                if total < best:
                    best, chosen = total, d
        if chosen < 0:
            return state
        _add(a, unit, chosen, state, load)
    return state


@kernel
def _time(a: Arrays, unit: int, d: int) -> Any:
    total = 0.0
    for i in range(a.unit_start[unit], a.unit_start[unit + 1]):
        total += run_time(a, a.unit_vertex[i], d)
    return total


@kernel
def _add(a: Arrays, unit: int, d: int, state: State, load: Any) -> None:
    load[d] += _time(a, unit, d)
    assign(a, unit, d, state)
