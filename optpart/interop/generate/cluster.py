"""Random clusters of unlike devices ([L] §6.2)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from optpart.base.limits import MOST_DEVICES, check_devices
from optpart.interop.generate import draw
from optpart.interop.generate.draw import Range, Seed
from optpart.interop.generate.option import Option
from optpart.problem.cluster import Cluster, Device


def drawn_cluster(
    seed: Seed = 0,
    devices: Annotated[int, Option(1, MOST_DEVICES)] = 10,
    *,
    cpu: float = 0.6,
    speed: Range = (10, 100),
    rate: Range = (10, 60),
    memory: Range | None = None,
) -> Cluster:
    """Draw a cluster with the ranges of [L] §6.2 and [M] §5.1.

    Parameters
    ----------
    seed : int or numpy.random.Generator
    devices : int
        Named ``d0``, ``d1``, …
    cpu : float
        Probability that a device is a ``CPU``; otherwise it is a ``GPU``. See
        :func:`device_types`.
    speed : (int, int)
        Range of the operations per time unit.
    rate : (int, int)
        Range of the bandwidths, which are the same in both directions.
    memory : (int, int), optional
        Range of the capacities; faster devices have less memory ([L] §6.2). By default, memory is
        unlimited.

    Raises
    ------
    InputError
        If a number is out of its range.
    """
    rng = draw.generator(seed)
    check_devices(devices)
    types = device_types(rng, devices, cpu)
    speeds = draw.integers(rng, draw.bounds(speed, "speed", least=1), devices)
    rates = symmetric(draw.integers(rng, draw.bounds(rate, "rate", least=1), (devices, devices)))
    capacities: list[int] | list[None] = [None] * devices
    if memory is not None:
        drawn = draw.integers(rng, draw.bounds(memory, "memory"), devices)
        capacities = _less_for_faster(drawn, speeds).tolist()
    return Cluster.of(
        [
            Device(f"d{d}", speed, kind, capacity)
            for d, (speed, kind, capacity) in enumerate(
                zip(speeds.tolist(), types, capacities, strict=True)
            )
        ],
        rates.tolist(),
    )


def device_types(rng: np.random.Generator, devices: int, cpu: float) -> list[str]:
    """Draw device types.

    If both types are possible and there are at least two devices, both types occur: if all draws
    agree, one random device gets the other type. So a graph that needs both types fits any such
    cluster.
    """
    draw.probability(cpu, "cpu")
    is_cpu = rng.random(devices) < cpu
    if devices >= 2 and 0 < cpu < 1 and (is_cpu.all() or not is_cpu.any()):
        is_cpu[rng.integers(devices)] ^= True
    return ["CPU" if one else "GPU" for one in is_cpu.tolist()]


def symmetric(matrix: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the upper triangle of a square matrix, mirrored; 0 on the diagonal."""
    upper = np.triu(matrix, 1)
    return upper + upper.T


def _less_for_faster(capacities: NDArray[np.int64], speeds: NDArray[np.int64]) -> NDArray[np.int64]:
    slowest_first = np.argsort(speeds, kind="stable")
    result = np.empty_like(capacities)
    result[slowest_first] = np.sort(capacities)[::-1]
    return result
