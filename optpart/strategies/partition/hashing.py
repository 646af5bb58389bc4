"""Hashing: assignment units go to devices in turn ([L] §4.2)."""

from __future__ import annotations

import numpy as np

from optpart.kernels.compiled import arrays
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition, partition_of
from optpart.strategies.partition.common import first_fit, groups_first


def hashing(instance: Instance, rng: np.random.Generator) -> Partition:
    """Assign unit number ``i`` to device ``i mod k``, or the next feasible one.

    Colocation groups come first, then single vertices, each counted from 0.
    """
    units, count = groups_first(instance), len(instance.units)
    size = np.bincount(instance.unit_of, minlength=count)
    turn = np.arange(count)
    turn[units] = np.where(size[units] > 1, turn, turn - int((size > 1).sum()))
    devices = np.arange(instance.devices, dtype=np.int32)
    state = first_fit(arrays(instance), units, turn % instance.devices, devices)
    return partition_of(instance, state)
