"""ZB-V: two stages per device, there and back, without bubbles in the memory of 1F1B."""

from __future__ import annotations

import numpy as np

from optpart.interop.formats.pipeline_parts import FORWARD, INPUT, WEIGHT
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition
from optpart.strategies.partition.passes import Taken, check_split, ordered, v_shape

_BACKWARD = INPUT + WEIGHT


def zb_v(instance: Instance, rng: np.random.Generator) -> Partition:
    """Let the way back of a microbatch begin where its way there ends (Qi et al. 2024).

    Of ``p`` devices, device ``r`` takes ``2(p − r) − 1`` forward passes of its first stage, ``r``
    of both in turns, then ``p − r`` of its second with their gradients; then gradients and forward
    passes of both stages in turns, and in the end those of weights that were left. It holds at most
    ``2p`` halves of a microbatch.
    """
    passes = v_shape(instance)
    check_split(passes)
    p, queues = len(passes.devices), []
    for r, stages in enumerate(passes.stages_of_rank):
        taken = Taken(stages, passes.microbatches)
        taken.take(0, FORWARD, 2 * (p - r) - 1)
        for _ in range(r):
            taken.take(1, FORWARD)
            taken.take(0, FORWARD)
        for _ in range(p - r):
            taken.take(1, FORWARD + _BACKWARD)
        while taken.left(1, FORWARD) or taken.left(0, FORWARD):
            taken.take(0, FORWARD)
            taken.take(0, _BACKWARD)
            taken.take(1, FORWARD)
            taken.take(1, _BACKWARD)
        for _ in range(r):
            taken.take(0, INPUT)
            taken.take(1, INPUT)
        for _ in range(p - r):
            taken.take(0, _BACKWARD)
        for chunk in (1, 0):
            taken.take(chunk, INPUT, taken.left(chunk, INPUT))
        for chunk in (1, 0):
            taken.take(chunk, WEIGHT, taken.left(chunk, WEIGHT))
        queues.append(taken.order)
    return ordered(instance, passes, queues)
