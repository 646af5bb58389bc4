"""Everything on the fastest feasible device: trivial, and often hard to beat."""

from __future__ import annotations

import numpy as np

from optpart.kernels.compiled import arrays
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition, partition_of
from optpart.strategies.partition.common import first_fit
from optpart.strategies.partition.ranks import devices_by_speed


def fastest(instance: Instance, rng: np.random.Generator) -> Partition:
    """Put every unit on the fastest device that can still take it, larger groups first.

    If run times are given per vertex and device, the fastest device is the one on which the
    vertices that it may run take the least time on average.
    """
    size = np.bincount(instance.unit_of, minlength=len(instance.units))
    units = np.argsort(-size, kind="stable").astype(np.int32)
    fastest_first = np.zeros(len(units), dtype=np.int64)
    state = first_fit(arrays(instance), units, fastest_first, devices_by_speed(instance))
    return partition_of(instance, state)
