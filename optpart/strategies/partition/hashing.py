"""Hashing: assignment units go to devices in turn ([L] §4.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from optpart.kernels.compiled import Arrays, arrays, assign, fits, nothing_placed, short_kernel
from optpart.kernels.struct import Ints
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition, partition_of


def hashing(instance: Instance, rng: np.random.Generator) -> Partition:
    """Assign unit number ``i`` to device ``i mod k``, or the next feasible one.

    Colocation groups come first, then single vertices, each counted from 0.
    """
    size = np.bincount(instance.unit_of, minlength=len(instance.units))
    groups = np.flatnonzero(size > 1).astype(np.int32)
    singles = np.flatnonzero(size == 1).astype(np.int32)
    return partition_of(instance, _in_turn(arrays(instance), groups, singles))


@short_kernel
def _in_turn(a: Arrays, groups: Ints, singles: Ints) -> Any:
    k = a.speed.shape[0]
    state = nothing_placed(a)
    for units in (groups, singles):
        for i in range(units.shape[0]):
            for step in range(k):
                d = (i + step) % k
                if fits(a, units[i], d, state):
                    assign(a, units[i], d, state)
                    break
            else:
                return state
    return state
