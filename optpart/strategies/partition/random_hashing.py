"""Random hashing: units go to random devices, in proportion to their capacity ([M] §3.1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from optpart.kernels.compiled import UNLIMITED, Arrays, arrays, assign, kernel, nothing_placed
from optpart.kernels.struct import Floats, Ints
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition, partition_of
from optpart.strategies.partition.common import find_feasible, groups_first


def random_hashing(instance: Instance, rng: np.random.Generator) -> Partition:
    """Assign every unit to a random feasible device, colocation groups before single vertices.

    A device is chosen with a probability proportional to its memory or, if any device has no memory
    limit, to its speed, since memory and speed have no common measure.
    """
    a = arrays(instance)
    weight = a.speed if (a.capacity == UNLIMITED).any() else a.capacity.astype(np.float64)
    turn = groups_first(instance)
    return partition_of(instance, _scatter(a, turn, weight, rng.random(len(turn))))


@kernel
def _scatter(a: Arrays, turn: Ints, weight: Floats, chance: Floats) -> Any:
    k = weight.shape[0]
    state = nothing_placed(a)
    share, feasible = np.empty(k), np.empty(k, np.bool_)
    for i in range(turn.shape[0]):
        total, chosen = 0.0, -1
        find_feasible(a, turn[i], state, feasible)
        for d in range(k):
            share[d] = 0.0
            if feasible[d]:
                share[d] = weight[d]
                total += weight[d]
                chosen = d  # unless one of a positive share is drawn
        if chosen < 0:
            return state
        left = chance[i] * total
        for d in range(k):
            left -= share[d]
            if left < 0.0:
                chosen = d
                break
        assign(a, turn[i], chosen, state)
    return state
