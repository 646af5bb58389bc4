"""Hashing: assignment units to devices in turn ([L] §4.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from optpart.compiled import Arrays, arrays, assign, fits, kernel
from optpart.instance import Instance
from optpart.partition.base import Partition, placement_of


def hashing(instance: Instance, rng: np.random.Generator) -> Partition:
    """Assign unit number ``i`` to device ``i mod k``, or the next that is feasible.

    Colocation groups come first, then single vertices, each counted from 0.
    """
    size = np.bincount(instance.unit_of, minlength=len(instance.units))
    groups = np.flatnonzero(size > 1).astype(np.int32)
    singles = np.flatnonzero(size == 1).astype(np.int32)
    return Partition(placement_of(instance, _in_turn(arrays(instance), groups, singles)))


@kernel
def _in_turn(a: Arrays, groups: Any, singles: Any) -> Any:
    k = a.speed.shape[0]
    device = np.full(a.need.shape[0], -1, np.int32)
    used = np.zeros(k, np.int64)
    for units in (groups, singles):
        for i in range(units.shape[0]):
            for step in range(k):
                d = (i + step) % k
                if fits(a, units[i], d, device, used):
                    assign(a, units[i], d, device, used)
                    break
            else:
                return device
    return device
