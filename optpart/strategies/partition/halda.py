"""Halda, the planner of prima.cpp: the blocks that each device computes fastest in its memory."""

from __future__ import annotations

import numpy as np

from optpart.problem.instance import Instance
from optpart.strategies.base import NoPlacementError, Partition
from optpart.strategies.partition.layers import layers_of


def halda(instance: Instance, rng: np.random.Generator) -> Partition:
    """Minimise the sum of the run times of all blocks, as if they and their transfers were alike.

    The head is the first processor, or the first device: it has the embedding, the output, as in
    prima.cpp beside CUDA, and the first blocks. Other devices follow as the cluster lists them.

    Raises
    ------
    NoPlacementError
        If all devices together, or the head for the ends, have too little memory.

    Notes
    -----
    Li et al., *Prima.cpp: Fast 30-70B LLM inference on heterogeneous and low-resource home
    clusters*, 2025, and ``common/common.cpp`` (<https://github.com/Lizonghang/prima.cpp>, commit
    bdf9d8e7): an integer program of how many blocks a device has in each of ``k`` rounds. Here all
    is in memory, so that nothing is read from disk (set ``M4``). Then the objective and the limits
    of ``k`` rounds are those of ``k`` times as many blocks in one, so that one round is as good as
    any; and as the cost is linear in numbers of like blocks, the program is solved by filling the
    fastest devices first. A device with a single block is dropped there, so that none must have
    any here. The cost of a block is its mean run time, where Halda divides operations by measured
    rates; its memory is that of the largest.
    """
    layers = layers_of(instance)
    head, block = layers.host, layers.whole[1:-1].max()
    room = layers.room.copy()
    room[head] -= layers.whole[0] + layers.whole[-1]
    if room[head] < 0:
        raise NoPlacementError(f"exceeds the memory of {instance.cluster.names[head]}")
    time = layers.run_time()
    counts, left = np.zeros(instance.devices, np.int64), layers.blocks
    for d in np.argsort(time, kind="stable").tolist():
        most = left if block == 0 or not np.isfinite(room[d]) else int(room[d] // block)
        counts[d] = min(left, max(0, most)) if np.isfinite(time[d]) else 0
        left -= int(counts[d])
    if left:
        raise NoPlacementError("exceeds the memory of all devices together")
    ring = [head, *(d for d in range(instance.devices) if d != head)]
    home = layers.stages(ring, counts[ring].tolist())
    home[0] = home[-1] = head
    return layers.placed(home)
