"""ZB-H2: no bubble between the passes of a stage, for twice the memory."""

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


def zb_h2(instance: Instance, rng: np.random.Generator) -> Partition:
    """Begin with forward passes until the first gradient arrives (ZB-H2, Qi et al. 2023).

    Stage ``s`` of ``p`` runs ``2(p − s) − 1`` of them, and delays gradients of weights by ``2s``
    microbatches, so that it holds at most ``2p − 1``.
    """
    passes = one_stage_per_device(instance)
    check_split(passes)
    p = len(passes.device)
    queues = [one_forward_one_backward(passes, s, 2 * (p - s) - 1, 2 * s) for s in range(p)]
    return ordered(instance, passes, queues)
