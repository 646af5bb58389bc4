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

from optpart.kernels.compiled import Arrays, arrays, kernel
from optpart.kernels.rng import below, source, uniform
from optpart.kernels.tasks import Tasks, _times
from optpart.problem.instance import Instance
from optpart.solution.schedule import Schedule
from optpart.strategies.base import Partition
from optpart.strategies.partition.ranks import upward_rank
from optpart.strategies.simulator import Priority, _execute, simulate

#: First and last temperature as shares of the makespan.
HOT, COLD = 0.01, 0.0001

#: Moves between two looks at the clock.
MOVES = 500


def anneal(instance: Instance, start: Schedule, seconds: float, seed: int) -> Fraction:
    """Return the makespan of the best schedule."""
    a = arrays(instance)
    rank, tie = upward_rank(instance), np.arange(instance.vertices)
    state = source(np.random.default_rng(seed))
    device = start.placement.copy()
    best = device.copy()
    value = np.array([_makespan(a, device, rank, tie)] * 2)
    begin = time.perf_counter()
    while (share := (time.perf_counter() - begin) / seconds) < 1:
        heat = value[1] * HOT * (COLD / HOT) ** share
        _anneal(a, device, best, value, rank, tie, state, heat, MOVES)

    def ranked(work: Tasks, partition: Partition, rng: np.random.Generator) -> Priority:
        return Priority(rank, tie)

    found = simulate(instance, Partition(best), ranked).makespan(instance)
    return min(found, start.makespan(instance))


@kernel
def _makespan(a: Arrays, device: Any, rank: Any, tie: Any) -> Any:
    duration, delay = _times(a, device)
    start, _ = _execute(
        device, duration, a.out_start, a.out_target, delay, a.in_start[1:] - a.in_start[:-1],
        a.speed.shape[0], rank, False, tie, np.zeros(0),
    )  # fmt: skip
    return (start + duration).max()


@kernel
def _anneal(
    a: Arrays, device: Any, best: Any, value: Any, rank: Any, tie: Any, state: Any, heat: float,
    moves: int,
) -> None:  # fmt: skip
    for _ in range(moves):
        unit = below(state, a.need.shape[0])
        d = below(state, a.speed.shape[0])
        members = a.unit_vertex[a.unit_start[unit] : a.unit_start[unit + 1]]
        home = device[members[0]]
        if d == home or not a.allowed[unit, d]:
            continue
        device[members] = d
        now = _makespan(a, device, rank, tie)
        if now > value[0] - heat * math.log(1.0 - uniform(state)):
            device[members] = home
            continue
        value[0] = now
        if now < value[1]:
            value[1] = now
            best[:] = device
