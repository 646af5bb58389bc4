"""ollama: a single card if it holds the model, otherwise what llama.cpp fits."""

from __future__ import annotations

import numpy as np

from optpart.problem.instance import Instance
from optpart.strategies.base import Partition
from optpart.strategies.partition.layers import layers_of
from optpart.strategies.partition.llama_fit import fit


def ollama(instance: Instance, rng: np.random.Generator, *, part: float = 0.8) -> Partition:
    """Use the largest card alone if the model fits a part of its memory, otherwise all cards.

    The cards that are used are filled as in
    :func:`~optpart.strategies.partition.llama_fit.llama_fit`.

    Parameters
    ----------
    part : float
        Of the memory of a card.

    Raises
    ------
    NoPlacementError
        If the processor cannot hold the rest.

    Notes
    -----
    ``selectLlamaServerPlacement`` in ``server/sched.go`` of ollama
    (<https://github.com/ollama/ollama>, commit fb307609), which has run llama.cpp's server with
    ``--fit`` since May 2026; 80% is its constant. It chooses among the cards of one library, such
    as CUDA; here they count as of the same. Its memory is what is free, here what the instance
    leaves to the model, and it estimates the need of the model from above.
    """
    layers = layers_of(instance)
    cards = layers.cards
    if cards:
        largest = cards[int(np.argmax(layers.memory[cards]))]
        if layers.whole.sum() <= part * layers.memory[largest]:
            cards = [largest]
    return layers.placed(*fit(layers, cards, 0.0))
