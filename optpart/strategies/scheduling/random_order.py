"""Random order: the behaviour that [H] §2 observes if transfers are not ordered."""

from __future__ import annotations

import numpy as np

from optpart.kernels.tasks import Tasks
from optpart.strategies.base import Partition
from optpart.strategies.simulator import Priority


def random_order(work: Tasks, partition: Partition, rng: np.random.Generator) -> Priority:
    """Run executable tasks in a random order of all tasks, drawn once."""
    total = len(work.duration)
    return Priority(np.zeros(total), rng.permutation(total))
