"""Interleaved 1F1B: several stages per device, one after another around all devices."""

from __future__ import annotations

import numpy as np

from optpart.base.errors import UnsupportedError
from optpart.interop.formats.pipeline_parts import FORWARD, Pass, passes_of
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition
from optpart.strategies.partition.passes import ordered


def interleaved(instance: Instance, rng: np.random.Generator) -> Partition:
    """Run as many microbatches as there are devices through one stage, then through the next.

    The order of Megatron-LM (Narayanan et al. 2021): of ``p`` devices with ``v`` stages each, the
    device ``r`` begins with ``2(p − r − 1) + (v − 1)p + 1`` forward passes. Microbatches are a
    multiple of devices, and stages go round.
    """
    passes = passes_of(instance)
    p, count = len(passes.devices), passes.microbatches
    v = len(passes.device) // p
    if passes.device != passes.devices * v:
        raise UnsupportedError("stages", "do not go round all devices", "use another order")
    if count % p:
        problem = f"{count}, which is no multiple of {p} devices"
        raise UnsupportedError("microbatches", problem, "use another order")
    turns = [
        (chunk, m)
        for first in range(0, count, p)
        for chunk in range(v)
        for m in range(first, first + p)
    ]
    queues = []
    for r, stages in enumerate(passes.stages_of_rank):
        ahead = min(2 * (p - r - 1) + (v - 1) * p + 1, len(turns))
        order = [Pass(stages[chunk], FORWARD, m) for chunk, m in turns[:ahead]]
        for i, (chunk, m) in enumerate(turns):
            order += [Pass(stages[v - 1 - chunk], kind, m) for kind in passes.backward]
            order += [Pass(stages[c], FORWARD, n) for c, n in turns[ahead + i : ahead + i + 1]]
        queues.append(order)
    return ordered(instance, passes, queues)
