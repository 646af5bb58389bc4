"""As received: first come, first served, ties by number."""

from __future__ import annotations

import numpy as np

from optpart.kernels.tasks import Tasks
from optpart.strategies.base import Partition
from optpart.strategies.simulator import Priority


def as_received(work: Tasks, partition: Partition, rng: np.random.Generator) -> Priority:
    """Prefer the task that has been executable longest; ties go to the lower number.

    All transfers of a worker are executable at once ([H] §2.4), so they run in the order in which
    the graph lists them.
    """
    return Priority(None, np.arange(len(work.duration)))
