"""Min-Min: what can finish first goes first (Ibarra and Kim 1977; Braun et al. 2001)."""

from __future__ import annotations

import numpy as np

from optpart.problem.instance import Instance
from optpart.strategies.base import Partition
from optpart.strategies.partition.ready_list import schedule_ready


def min_min(instance: Instance, rng: np.random.Generator) -> Partition:
    """Run next, of all ready vertices, the one whose earliest finish on any device is the least.

    The papers have independent tasks: O. Ibarra and C. Kim, Heuristic algorithms for scheduling
    independent tasks on nonidentical processors, JACM 24 (1977), and T. Braun et al., A comparison
    of eleven static heuristics, JPDC 61 (2001). With dependencies, the tasks to choose from are
    those whose predecessors are placed, as J. Blythe et al. do for workflows (CCGrid 2005). See
    :func:`~optpart.strategies.partition.ready_list.schedule_ready`.
    """
    return schedule_ready(instance, finish=-1.0)
