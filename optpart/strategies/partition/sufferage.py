"""Sufferage: what would lose most without its best device goes first (Maheswaran et al. 1999)."""

from __future__ import annotations

import numpy as np

from optpart.problem.instance import Instance
from optpart.strategies.base import Partition
from optpart.strategies.partition.ready_list import schedule_ready


def sufferage(instance: Instance, rng: np.random.Generator) -> Partition:
    """Run next the ready vertex whose second-best finish is the farthest behind its best.

    A vertex that only one device can run has no second-best finish, and comes before those that
    have. One vertex is placed in each step, as H. Casanova et al. do (Heuristics for scheduling
    parameter sweep applications, HCW 2000); in one step of M. Maheswaran et al. (Dynamic mapping of
    a class of independent tasks, JPDC 59, 1999), every device may get one. The papers have
    independent tasks; here, the tasks to choose from are those whose predecessors are placed. See
    :func:`~optpart.strategies.partition.ready_list.schedule_ready`.
    """
    return schedule_ready(instance, regret=1.0)
