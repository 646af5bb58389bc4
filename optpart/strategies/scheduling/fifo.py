"""First in, first out: the task that has been executable longest ([L] §5.2)."""

from __future__ import annotations

import numpy as np

from optpart.kernels.tasks import Tasks
from optpart.strategies.base import Partition
from optpart.strategies.simulator import Priority


def fifo(work: Tasks, partition: Partition, rng: np.random.Generator) -> Priority:
    """Prefer the task that became executable first; ties are broken at random ([M] §5.1)."""
    return Priority(None, rng.permutation(len(work.duration)))
