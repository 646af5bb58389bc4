"""Highest path computation time first ([L] §5.3, [M] §4.1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optpart.kernels.longest_paths import longest_from
from optpart.kernels.tasks import Tasks
from optpart.strategies.base import Partition
from optpart.strategies.simulator import Priority


def pct(work: Tasks, partition: Partition, rng: np.random.Generator) -> Priority:
    """Prefer the task with the longest remaining path; ties go to the lower number."""
    return Priority(path_computation_time(work), np.arange(len(work.duration)))


def path_computation_time(work: Tasks) -> NDArray[np.float64]:
    """Return the longest time from the start of each task to the end of the last dependent one.

    [L] eq. 5.1, [M] eq. 12: run time, plus the largest of transfer time and path computation time
    over the successors.
    """
    times: NDArray[np.float64] = longest_from(
        work.order, work.out_start, work.out_target, work.out_delay, work.duration
    )
    return times
