"""Machines and weights whose run times and delays are all whole numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from optpart.base.errors import InputError
from optpart.interop.generate.cluster import device_types, symmetric
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import Graph
from optpart.problem.rational import RationalArray

# All speeds divide the unit of operations and all rates the unit of sizes: whole-number times.
_SPEEDS = np.array([10, 20, 50])
_OPS_UNIT = 100
_RATES = np.array([10, 12, 15, 20, 30, 60])
_SIZE_UNIT = 60

#: Operations and sizes are drawn from 1 to this, scaled, and then rounded to 1 to _COARSE units.
FINE = 1000
_COARSE = 20

#: Least and greatest ratio of communication to computation.
LEAST_CCR, MOST_CCR = 1e-6, 1e6


@dataclass(frozen=True)
class Machines:
    """A cluster before its memory is chosen."""

    types: list[str]
    speeds: NDArray[np.int64]
    rates: NDArray[np.int64]

    @classmethod
    def drawn(cls, rng: np.random.Generator, devices: int) -> Machines:
        """Draw CPUs and GPUs of speed 10, 20 or 50 with symmetric bandwidths from 10 to 60."""
        return cls(
            types=device_types(rng, devices, cpu=0.6),
            speeds=rng.choice(_SPEEDS, devices),
            rates=symmetric(rng.choice(_RATES, (devices, devices))),
        )

    def cluster(self, memory: list[int] | None = None) -> Cluster:
        """Return the cluster with these capacities; without them, memory is unlimited."""
        return Cluster.of(
            [
                Device(f"d{d}", int(speed), self.types[d], None if memory is None else memory[d])
                for d, speed in enumerate(self.speeds)
            ],
            self.rates.tolist(),
        )


def check_ccr(ccr: float) -> float:
    """Return a ratio of communication to computation if it is in range."""
    if not LEAST_CCR <= ccr <= MOST_CCR:
        raise InputError("ccr", f"{ccr} is out of range", "give a ratio from 1e-6 to 1e6")
    return ccr


def scaled(graph: Graph, machines: Machines, ccr: float) -> Graph:
    """Scale operations and sizes to whole multiples of their units and to the requested ratio.

    The smaller side becomes 1 to 20 units, so that rounding changes neither side much. What is 0
    remains 0.
    """
    ops, sizes = graph.ops.numerators, graph.tensor_size.numerators
    pairs = ~np.eye(len(machines.speeds), dtype=np.bool_)
    run_time = ops.mean() * (_OPS_UNIT / machines.speeds).mean()
    delay = sizes.mean() * (_SIZE_UNIT / machines.rates[pairs]).mean()
    factor = ccr * run_time / delay
    return replace(
        graph,
        ops=_multiples(ops * max(1.0, 1 / factor), _OPS_UNIT),
        tensor_size=_multiples(sizes * max(1.0, factor), _SIZE_UNIT),
    )


def _multiples(values: NDArray[np.float64], unit: int) -> RationalArray:
    units = np.rint(values * (_COARSE / FINE)).astype(np.int64)
    return RationalArray(np.where(values > 0, np.maximum(1, units), 0) * unit)
