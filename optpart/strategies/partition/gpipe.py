"""GPipe: all forward passes, then all backward passes."""

from __future__ import annotations

import numpy as np

from optpart.interop.formats.pipeline_parts import FORWARD, Pass, passes_of
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition
from optpart.strategies.partition.passes import ordered


def gpipe(instance: Instance, rng: np.random.Generator) -> Partition:
    """Order all forward passes before all gradients, stage by stage (Huang et al. 2019).

    Gradients of the input and of the weights follow one another.
    """
    passes = passes_of(instance)
    count = range(passes.microbatches)
    queues = [
        [Pass(s, FORWARD, m) for s in stages for m in count]
        + [Pass(s, kind, m) for s in reversed(stages) for m in count for kind in passes.backward]
        for stages in passes.stages_of_rank
    ]
    return ordered(instance, passes, queues)
