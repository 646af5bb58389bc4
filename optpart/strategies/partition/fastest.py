"""Everything on the fastest feasible device: trivial, and often hard to beat."""

from __future__ import annotations

from typing import Any

import numpy as np

from optpart.kernels.compiled import Arrays, arrays, assign, fits, nothing_placed, short_kernel
from optpart.kernels.struct import Ints
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition, partition_of
from optpart.strategies.partition.ranks import devices_by_speed


def fastest(instance: Instance, rng: np.random.Generator) -> Partition:
    """Put every unit on the fastest device that can still take it, larger groups first.

    If run times are given per vertex and device, the fastest device is the one on which the
    vertices that it may run take the least time on average.
    """
    size = np.bincount(instance.unit_of, minlength=len(instance.units))
    units = np.argsort(-size, kind="stable").astype(np.int32)
    a = arrays(instance)
    return partition_of(instance, _first_fit(a, units, devices_by_speed(instance)))


@short_kernel
def _first_fit(a: Arrays, units: Ints, devices: Ints) -> Any:
    state = nothing_placed(a)
    for unit in units:
        for d in devices:
            if fits(a, unit, d, state):
                assign(a, unit, d, state)
                break
        else:
            return state
    return state
