"""Figures of a schedule other than its makespan."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from optpart.instance import Instance
from optpart.schedule import Schedule, crossings


def traffic(instance: Instance, placement: NDArray[np.int32]) -> Fraction:
    """Sum of sizes over crossings, once per tensor and destination device ([L] eq. 2.2, §2.4)."""
    tensors = np.array([tensor for tensor, _ in crossings(instance, placement)], dtype=np.int64)
    return instance.graph.tensor_size.sum(tensors)


def busy(instance: Instance, schedule: Schedule) -> list[Fraction]:
    """Time that each device spends on vertices."""
    total = [Fraction(0)] * instance.devices
    for v, d in enumerate(schedule.placement.tolist()):
        total[d] += instance.duration(v, d)
    return total


def utilisation(instance: Instance, schedule: Schedule) -> list[float]:
    """Share of the makespan that each device spends on vertices; 0 for an empty schedule."""
    makespan = schedule.makespan(instance)
    return [float(time / makespan) if makespan else 0.0 for time in busy(instance, schedule)]
