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

    Notes
    -----
    Li et al., *Prima.cpp: Fast 30-70B LLM inference on heterogeneous and low-resource home
    clusters*, 2025, and ``common/common.cpp`` (<https://github.com/Lizonghang/prima.cpp>, commit
    bdf9d8e7): an integer program of how many blocks a device has in each of ``k`` rounds. Here
    nothing is read from disk (set ``M4``). Then ``k`` rounds cost and hold as much as one with
    ``k`` times the blocks, so that one is enough; and since the cost is linear in numbers of like
    blocks, filling the fastest devices first solves the program. A device with a single block is
    dropped there, so that none must have any here. Blocks count with their mean run time, where
    Halda divides operations by measured rates, and with the memory of the largest.
    """
    layers = layers_of(instance)
    head, block = layers.host, layers.whole[1:-1].max()
    room = layers.room.copy()
    room[head] -= layers.whole[0] + layers.whole[-1]
    if room[head] < 0:
        raise NoPlacementError(f"exceeds the memory of {instance.cluster.names[head]}")
    given, inner = instance.given_durations, (layers.of > 0) & (layers.of <= layers.blocks)
    if given is None:
        times = instance.graph.ops.floats[:, None] / instance.cluster.speed.floats
    else:
        times = np.where(given.possible, given.times.floats, np.inf)
    time = times[inner].sum(axis=0)
    counts, left = np.zeros(instance.devices, np.int64), layers.blocks
    for d in np.argsort(time, kind="stable").tolist():
        if np.isfinite(time[d]) and room[d] >= 0:
            counts[d] = int(min(left, room[d] / block if block else left))
            left -= int(counts[d])
    if left:
        raise NoPlacementError("exceeds the memory of all devices together")
    ring = [head, *(d for d in range(instance.devices) if d != head)]
    home = layers.stages(ring, counts[ring].tolist())
    home[0] = home[-1] = head
    return layers.placed(home)
