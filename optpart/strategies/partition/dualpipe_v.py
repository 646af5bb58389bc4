"""DualPipe on a V: forward passes of one stage beside backward passes of the other."""

from __future__ import annotations

from collections import deque

import numpy as np

from optpart.base.errors import UnsupportedError
from optpart.interop.formats.pipeline_parts import FORWARD, INPUT, WEIGHT
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition
from optpart.strategies.partition.passes import Taken, check_split, ordered, v_shape


def dualpipe_v(instance: Instance, rng: np.random.Generator) -> Partition:
    """Pair a forward pass of one stage with a backward pass of the other (DeepSeek-AI 2024).

    This is the half of DualPipe that a V holds: microbatches enter at one end only, and weights are
    kept once. A pair, which the authors let overlap, is one pass after the other here. Gradients of
    weights are delayed while the pipeline fills and drains only.
    """
    passes = v_shape(instance)
    check_split(passes)
    p, count, queues = len(passes.devices), passes.microbatches, []
    if count < 2 * p:
        problem = f"{count}, where this order fills the pipeline with {2 * p}"
        raise UnsupportedError("microbatches", problem, "use at least two per device, or zb-v")
    for r, stages in enumerate(passes.stages_of_rank):
        taken = Taken(stages, count)
        delayed: deque[int] = deque()
        later = p - r - 1  # devices between this one and the turn of the V
        taken.take(0, FORWARD, 2 * later)
        for _ in range(r + 1):
            taken.take(0, FORWARD)
            taken.take(1, FORWARD)
        for _ in range(later):
            taken.take(1, INPUT + WEIGHT + FORWARD)
        for _ in range(count - 2 * p + r + 1):
            for chunk in (0, 1):
                taken.take(chunk, FORWARD)
                taken.take(1 - chunk, INPUT + WEIGHT)
        for _ in range(later):
            taken.take(1, INPUT + WEIGHT + FORWARD)
            taken.take(0, INPUT + WEIGHT)
        # Of the last r + 1 backward passes of each stage, the second half delays weights.
        for each in range(2 * (r + 1)):
            chunk = 1 - each % 2
            taken.take(chunk, INPUT)
            if each > r:
                delayed.append(chunk)
            else:
                taken.take(chunk, WEIGHT)
        for _ in range(later):
            taken.take(delayed.popleft(), WEIGHT)
            taken.take(0, INPUT)
            delayed.append(0)
        for chunk in delayed:
            taken.take(chunk, WEIGHT)
        queues.append(taken.order)
    return ordered(instance, passes, queues)
