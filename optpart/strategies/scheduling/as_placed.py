"""As placed: a device runs its executable tasks in the order in which they were placed."""

from __future__ import annotations

import numpy as np

from optpart.kernels.tasks import Tasks
from optpart.problem.graph import inverse
from optpart.strategies.base import Partition
from optpart.strategies.simulator import Priority


def as_placed(work: Tasks, partition: Partition, rng: np.random.Generator) -> Priority:
    """Prefer the vertex that was placed first; transfers follow, by number.

    If the strategy gives no placement times, the topological order stands for them.
    """
    n = len(partition.placement)
    topological = inverse(work.order)
    placed = topological.astype(np.float64)
    if partition.placed is not None:
        placed[:n] = partition.placed
    return Priority(-placed, topological)
