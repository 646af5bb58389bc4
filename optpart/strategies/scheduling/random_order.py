"""Random order: the behaviour that [H] §2 finds if nothing orders transfers."""

from __future__ import annotations

import numpy as np

from optpart.kernels.tasks import Tasks
from optpart.strategies.base import Partition
from optpart.strategies.simulator import Priority


def random_order(work: Tasks, partition: Partition, rng: np.random.Generator) -> Priority:
    """Run any executable task, by an order of all tasks that is drawn once."""
    total = len(work.duration)
    return Priority(np.zeros(total), rng.permutation(total))
