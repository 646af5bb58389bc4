"""1F1B: as many microbatches in flight as there are stages from a stage to the last."""

from __future__ import annotations

import numpy as np

from optpart.problem.instance import Instance
from optpart.strategies.base import Partition
from optpart.strategies.partition.passes import (
    one_forward_one_backward,
    one_stage_per_device,
    ordered,
)


def one_f_one_b(instance: Instance, rng: np.random.Generator) -> Partition:
    """Follow each backward pass by a forward pass (PipeDream-Flush, Narayanan et al. 2021).

    Gradients of the input and of the weights follow one another, so that stage ``s`` of ``p`` holds
    at most ``p − s`` microbatches.
    """
    passes = one_stage_per_device(instance)
    p = len(passes.device)
    queues = [one_forward_one_backward(passes, s, p - s) for s in range(p)]
    return ordered(instance, passes, queues)
