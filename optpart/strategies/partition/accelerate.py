"""``device_map="auto"`` of accelerate: cards in turn, each with an equal share of the model."""

from __future__ import annotations

import numpy as np

from optpart.problem.instance import Instance
from optpart.strategies.base import NoPlacementError, Partition
from optpart.strategies.partition.layers import layers_of, settled
from optpart.strategies.partition.sequential_fill import accelerators_first


def accelerate(instance: Instance, rng: np.random.Generator, *, buffer: float = 1.25) -> Partition:
    """Fill the cards one after another, then the processor, and never split a block.

    Of several cards, all but the last take no more than an equal share of the model and a buffer.
    The first card and the processor keep room for the largest of what is still to come, which may
    have to be computed there. What does not fit closes a device for good.

    Parameters
    ----------
    buffer : float
        How many blocks a card takes beyond its share.

    Raises
    ------
    NoPlacementError
        If what is left when all devices are closed would go to disk.

    Notes
    -----
    ``infer_auto_device_map`` and ``get_balanced_memory`` of accelerate
    (<https://github.com/huggingface/accelerate>, commit 16cb6eb8), told the memory that the
    instance leaves to the model. accelerate counts weights; here, keys and values count with their
    blocks. :func:`~optpart.strategies.partition.sequential_fill.sequential_fill` is the rule for
    any graph, without the room that is kept.
    """
    layers = layers_of(instance)
    unit, of = instance.unit_of, layers.of
    inner = (of > 0) & (of <= layers.blocks)
    # What is treated together: the units of a block, or what shares its weights with the embedding.
    group = np.where(inner, of, layers.blocks + 1 + unit)
    order = instance.graph.topological_order
    groups = list(dict.fromkeys(group[order].tolist()))
    size = np.bincount(group, instance.graph.memory.floats)
    devices = accelerators_first(instance).tolist()
    limit = layers.room.copy()
    share = size.sum() / max(1, len(layers.cards)) + buffer * layers.whole[1:-1].max()
    for card in layers.cards[:-1]:
        limit[card] = min(limit[card], share)
    main = (*layers.cards[:1], *layers.hosts[:1])
    device, at, used = np.zeros(len(instance.units), np.int64), 0, 0.0
    for position, each in enumerate(groups):
        to_come = max((size[later] for later in groups[position + 1 :]), default=0.0)
        while at < len(devices):
            d = devices[at]
            kept = to_come if d in main else 0.0
            if used + size[each] <= limit[d] - kept:
                break
            at, used = at + 1, 0.0
        if at == len(devices):
            raise NoPlacementError("exceeds the memory of all devices, and leaves the rest to disk")
        used += size[each]
        device[unit[group == each]] = devices[at]
    return settled(instance, device)
