"""The baseline of search: annealing of placements that builds every schedule from scratch.

A random unit goes to a random device, a list scheduler with upward ranks rebuilds the whole
schedule, and the move is accepted by the usual rule. Communication ``delay``, no memory.
"""

from __future__ import annotations

import math
import time
from fractions import Fraction

import numpy as np

from optpart.kernels.compiled import Arrays, arrays, kernel
from optpart.kernels.rng import below, source, uniform
from optpart.kernels.struct import Floats, Ints, Words
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


def anneal(instance: Instance, start: Schedule, seconds: float, seed: int) -> Fraction:
    """Return the makespan of the best schedule."""
    a, state = arrays(instance), source(np.random.default_rng(seed))
    rank, tie = upward_rank(instance), np.arange(instance.vertices)
    ranking = _Ranking.of(Priority(rank, tie))
    # Times and devices are overwritten at every move.
    work = tasks(instance, start.placement.copy())
    best = start.placement.copy()
    value = np.array([_makespan(a, work, ranking)] * 2)
    begin = time.perf_counter()
    while (share := (time.perf_counter() - begin) / seconds) < 1:
        heat = value[1] * HOT * (COLD / HOT) ** share
        _anneal(a, work, ranking, best, value, state, heat, MOVES)

    def ranked(work: Tasks, partition: Partition, rng: np.random.Generator) -> Priority:
        return Priority(rank, tie)

    found = simulate(instance, Partition(best), ranked).makespan(instance)
    return min(found, start.makespan(instance))


@kernel
def _makespan(a: Arrays, work: Tasks, ranking: _Ranking) -> float:
    duration, delay = _times(a, work.resource)
    work.duration[:] = duration
    work.out_delay[:] = delay
    start, _ = _execute(work, ranking)
    end = 0.0
    for v in range(start.shape[0]):
        end = max(end, start[v] + duration[v])
    return end


@kernel
def _anneal(
    a: Arrays, work: Tasks, ranking: _Ranking, best: Ints, value: Floats, state: Words,
    heat: float, moves: int,
) -> None:  # fmt: skip
    device = work.resource
    for _ in range(moves):
        unit = below(state, a.need.shape[0])
        d = below(state, a.speed.shape[0])
        members = a.unit_vertex[a.unit_start[unit] : a.unit_start[unit + 1]]
        home = device[members[0]]
        if d == home or not a.allowed[unit, d]:
            continue
        for v in members:
            device[v] = d
        now = _makespan(a, work, ranking)
        if now > value[0] - heat * math.log(1.0 - uniform(state)):
            for v in members:
                device[v] = home
            continue
        value[0] = now
        if now < value[1]:
            value[1] = now
            best[:] = device
