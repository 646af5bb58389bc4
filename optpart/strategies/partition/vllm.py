"""vLLM's stages of a pipeline: as many blocks for every card."""

from __future__ import annotations

import numpy as np

from optpart.problem.instance import Instance
from optpart.strategies.base import Partition
from optpart.strategies.partition.layers import layers_of


def vllm(instance: Instance, rng: np.random.Generator) -> Partition:
    """Give every card as many blocks, and the last but one and those before it what remains.

    Cards come as the cluster lists them, all of them; without cards, processors. The embedding is
    with the first block, the output with the last.

    Raises
    ------
    NoPlacementError
        If a card would exceed its memory.

    Notes
    -----
    ``get_pp_indices`` of vLLM since 0.7.4 (<https://github.com/vllm-project/vllm/pull/13839>), with
    ``--pipeline-parallel-size`` as the number of cards and without ``VLLM_PP_LAYER_PARTITION``.
    """
    layers = layers_of(instance)
    devices = (layers.cards or layers.hosts)[: layers.blocks]
    each, more = divmod(layers.blocks, len(devices))
    counts = [each] * len(devices)
    for stage in range(2, more + 2):
        counts[-stage] += 1
    return layers.placed(layers.stages(devices, counts))
