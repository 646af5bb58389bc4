"""ZB-H1: 1F1B whose gradients of weights fill the end, within the same memory."""

from __future__ import annotations

import numpy as np

from optpart.problem.instance import Instance
from optpart.strategies.base import Partition
from optpart.strategies.partition.passes import (
    check_split,
    one_forward_one_backward,
    one_stage_per_device,
    ordered,
)


def zb_h1(instance: Instance, rng: np.random.Generator) -> Partition:
    """Delay gradients of weights by as many microbatches as there are stages before (ZB-H1).

    Every stage holds at most ``p`` microbatches, as the first one does under 1F1B (Qi et al. 2023).
    """
    passes = one_stage_per_device(instance)
    check_split(passes)
    p = len(passes.device)
    queues = [one_forward_one_backward(passes, s, p - s, s) for s in range(p)]
    return ordered(instance, passes, queues)
