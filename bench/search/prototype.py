"""The baseline of search: annealing of placements that builds every schedule from scratch.

A random unit goes to a random device, a list scheduler with upward ranks rebuilds the whole
schedule, and the move is accepted by the usual rule. Communication ``delay``, no memory.
"""

from __future__ import annotations

import math
import time
from fractions import Fraction
from typing import Any

import numpy as np

from optpart.kernels.compiled import Arrays, arrays, inner, kernel
from optpart.kernels.rng import below, source, uniform
from optpart.kernels.struct import Floats, Ints, Struct, Words
from optpart.kernels.tasks import Tasks, _times, tasks
from optpart.problem.instance import Instance
from optpart.solution.schedule import Schedule
from optpart.strategies.base import Partition
from optpart.strategies.partition.ranks import upward_rank
from optpart.strategies.simulator import Priority, _execute, _Ranking, simulate

#: First and last temperature as shares of the makespan.
HOT, COLD = 0.01, 0.0001

#: Moves between two looks at the clock.
MOVES = 500


class Walk(Struct):
    """Where the annealing is.

    Attributes
    ----------
    arrays : Arrays
    work : Tasks
        Of the current placement, which is its ``resource``.
    ranking : _Ranking
    best : ndarray of int32
        The best placement.
    value : ndarray of float64, 2
        Makespans of the current and the best placement.
    """

    arrays: Arrays
    work: Tasks
    ranking: _Ranking
    best: Ints
    value: Floats


def anneal(instance: Instance, start: Schedule, seconds: float, seed: int) -> Fraction:
    """Return the makespan of the best schedule."""
    priority = Priority(upward_rank(instance), np.arange(instance.vertices))
    state = source(np.random.default_rng(seed))
    walk = Walk(
        arrays=arrays(instance),
        work=tasks(instance, start.placement.copy()),
        ranking=_Ranking.of(priority),
        best=start.placement.copy(),
        value=np.zeros(2),
    )
    value = walk.value
    value[:] = _makespan(walk)
    begin = time.perf_counter()
    while (share := (time.perf_counter() - begin) / seconds) < 1:
        heat = value[1] * HOT * (COLD / HOT) ** share
        _anneal(walk, state, heat, MOVES)

    def ranked(work: Tasks, partition: Partition, rng: np.random.Generator) -> Priority:
        return priority

    found = simulate(instance, Partition(walk.best), ranked).makespan(instance)
    return min(found, start.makespan(instance))


@kernel
def _makespan(w: Walk) -> float:
    """Time the tasks of the current placement, and return the end of the last one."""
    work = w.work
    duration, delay = _times(w.arrays, work.resource)
    for v in range(duration.shape[0]):
        work.duration[v] = duration[v]
    for e in range(delay.shape[0]):
        work.out_delay[e] = delay[e]
    start, _ = _execute(work, w.ranking)
    end = 0.0
    for v in range(duration.shape[0]):
        end = max(end, start[v] + duration[v])
    return end


@inner
def _place(w: Walk, unit: int, d: Any) -> None:
    a = w.arrays
    for i in range(a.unit_start[unit], a.unit_start[unit + 1]):
        w.work.resource[a.unit_vertex[i]] = d


@kernel
def _anneal(w: Walk, state: Words, heat: float, moves: int) -> None:
    a, device, best, value = w.arrays, w.work.resource, w.best, w.value
    for _ in range(moves):
        unit = below(state, a.need.shape[0])
        d = below(state, a.speed.shape[0])
        home = device[a.unit_vertex[a.unit_start[unit]]]
        if d == home or not a.allowed[unit, d]:
            continue
        _place(w, unit, d)
        now = _makespan(w)
        if now > value[0] - heat * math.log(1.0 - uniform(state)):
            _place(w, unit, home)
            continue
        value[0] = now
        if now < value[1]:
            value[1] = now
            for v in range(device.shape[0]):
                best[v] = device[v]
