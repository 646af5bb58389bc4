"""Max-Min: the longest of the tasks goes first, where it finishes first (Braun et al. 2001)."""

from __future__ import annotations

import numpy as np

from optpart.problem.instance import Instance
from optpart.strategies.base import Partition
from optpart.strategies.partition.ready_list import schedule_ready


def max_min(instance: Instance, rng: np.random.Generator) -> Partition:
    """Run next, of all ready vertices, the one whose earliest finish on any device is the latest.

    Long tasks begin while others can still fill the devices beside them. Like
    :func:`~optpart.strategies.partition.min_min.min_min`, this is for independent tasks (O. Ibarra
    and C. Kim 1977, T. Braun et al. 2001), applied to those whose predecessors are placed. See
    :func:`~optpart.strategies.partition.ready_list.schedule_ready`.
    """
    return schedule_ready(instance, finish=1.0)
