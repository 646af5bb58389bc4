"""MemoryUnits of memory in the whole units of a solver."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.problem.instance import Instance

#: Amount times horizon must stay below this for the solver's integers.
_MOST = 2**60


class MemoryUnits(NamedTuple):
    """Memory in whole units: per tensor, per unit and per device (−1 means no limit)."""

    size: NDArray[np.int64]
    need: NDArray[np.int64]
    capacity: NDArray[np.int64]


def memory_units(instance: Instance, horizon: int) -> MemoryUnits:
    """Return sizes, static needs and capacities in one unit.

    If exact numbers would be too large for the solver, everything is rounded down: amounts that add
    up to at most a capacity still do when all are rounded.
    """
    sizes, static = instance.graph.tensor_size, instance.static_memory
    limits = [m for m in instance.cluster.memory if m is not None]
    common = math.lcm(sizes.denominator, static.denominator, *(m.denominator for m in limits))
    size = [int(x) * (common // sizes.denominator) for x in sizes.numerators.tolist()]
    need = [int(x) * (common // static.denominator) for x in static.numerators.tolist()]
    coarse = max(1, math.gcd(*size, *need))
    if instance.model.memory == "edges":
        total = sum(size[tensor] for tensor in instance.graph.edge_tensor.tolist())
    else:
        total = sum(size) + sum(need)
    divide = coarse * max(1, -(-(total // coarse + 1) * max(1, horizon) // _MOST))
    capacity = [
        -1 if m is None or m * common >= total else int(m * common) // divide
        for m in instance.cluster.memory
    ]
    return MemoryUnits(
        np.array([x // divide for x in size], dtype=np.int64),
        np.array([x // divide for x in need], dtype=np.int64),
        np.array(capacity, dtype=np.int64),
    )
