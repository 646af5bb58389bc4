"""llama.cpp without ``--fit``: all layers on the cards, in proportion to their memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optpart.problem.instance import Instance
from optpart.strategies.base import Partition
from optpart.strategies.partition.layers import Layers, layers_of


def llama_tensor_split(instance: Instance, rng: np.random.Generator) -> Partition:
    """Give every card adjacent layers in proportion to its memory, the last one the output.

    The embedding is on the processor. Cards come as the cluster lists them. Without cards,
    everything is on the processor.

    Raises
    ------
    NoPlacementError
        If a card would hold more than it can: llama.cpp ends there.

    Notes
    -----
    ``load_tensors`` of llama.cpp (<https://github.com/ggml-org/llama.cpp>, commit 08033df0) with
    ``--n-gpu-layers all`` and without ``--tensor-split``. There, memory is what is free when it
    starts; here, what the instance leaves to the model.
    """
    layers = layers_of(instance)
    return layers.placed(by_memory(layers, layers.cards))


def by_memory(layers: Layers, cards: list[int]) -> NDArray[np.int64]:
    """Return the device of each layer; layer ``i`` of ``m`` is where ``i / m`` of all memory is."""
    home = np.full(layers.blocks + 2, layers.host)
    if cards:
        share = np.cumsum(layers.shares[cards])
        begin = np.arange(layers.blocks + 1) / (layers.blocks + 1)
        at = np.searchsorted(share / share[-1], begin, side="right")
        home[1:] = np.array(cards)[np.minimum(at, len(cards) - 1)]
    return home
