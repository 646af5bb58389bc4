"""As received: first come, first served, and what comes together in the order of its number."""

from __future__ import annotations

import numpy as np

from optpart.kernels.tasks import Tasks
from optpart.strategies.base import Partition
from optpart.strategies.simulator import Priority


def as_received(work: Tasks, partition: Partition, rng: np.random.Generator) -> Priority:
    """Prefer what has been executable longest, then the lower number; draws nothing.

    Of a worker all transfers are executable at once ([H] §2.4), so they run in the order in which
    the graph lists them.
    """
    return Priority(None, np.arange(len(work.duration)))
