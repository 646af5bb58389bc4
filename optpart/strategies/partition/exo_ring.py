"""The ring of exo since 1.0: blocks in proportion to memory, on as few devices as hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optpart.base.errors import UnsupportedError
from optpart.problem.instance import Instance
from optpart.strategies.base import NoPlacementError, Partition
from optpart.strategies.partition.exo import By
from optpart.strategies.partition.layers import layers_of
from optpart.strategies.partition.ranks import speed_share

if TYPE_CHECKING:
    from optpart.solution.goal import Goal


def exo_ring(instance: Instance, rng: np.random.Generator, *, by: By = "memory") -> Partition:
    """Give each of the fewest devices that hold the model together blocks by its share.

    These devices are the ones with the most memory, in the order of the cluster. Shares are rounded
    down, the remaining blocks go to the largest remainders, and a device without any takes one from
    the device with the most.

    Parameters
    ----------
    by : {"memory", "bandwidth"}
        What the share of a device is in proportion to. With ``bandwidth`` it is its speed in the
        runs of the instance, which for decoding is that of its memory; exo has no such share.

    Raises
    ------
    NoPlacementError
        If all devices together, or one for its blocks, have too little memory.

    Notes
    -----
    ``place_instance`` and ``allocate_layers_proportionally`` in ``exo/master`` of exo
    (<https://github.com/exo-explore/exo>, commit b5375f8c). There, a device is a computer, so
    that no cluster of processors and cards is supported; memory is what is free, and the model
    counts without keys and values.
    :func:`~optpart.strategies.partition.exo.exo` is the rule of versions up to 0.0.15.
    """
    layers = layers_of(instance)
    largest = np.argsort(-layers.memory, kind="stable")
    enough = np.flatnonzero(np.cumsum(layers.memory[largest]) >= layers.whole.sum())
    if not len(enough):
        raise NoPlacementError("exceeds the memory of all devices together")
    ring = np.sort(largest[: enough[0] + 1])[: layers.blocks]
    share = (layers.shares if by == "memory" else speed_share(instance))[ring]
    return layers.placed(layers.stages(ring.tolist(), _counts(share, layers.blocks)))


def _counts(share: NDArray[np.float64], blocks: int) -> list[int]:
    exact = share / share.sum() * blocks
    counts = np.floor(exact).astype(np.int64)
    largest = np.argsort(counts - exact, kind="stable")
    counts[largest[: blocks - int(counts.sum())]] += 1
    for device in np.flatnonzero(counts == 0).tolist():
        counts[np.argmax(counts)] -= 1
        counts[device] = 1
    return [int(count) for count in counts]


def check_scope(instance: Instance, goal: Goal) -> None:
    """Refuse devices that are parts of computers."""
    layers = layers_of(instance)
    if layers.cards and layers.hosts:
        problem = "has processors and cards, and exo counts computers"
        raise UnsupportedError("cluster", problem, "give one device per computer")
