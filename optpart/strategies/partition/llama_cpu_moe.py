"""llama.cpp with ``--n-cpu-moe``: the experts of the first blocks are on the processor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optpart.base.errors import UnsupportedError
from optpart.problem.instance import Instance
from optpart.strategies.base import NoPlacementError, Partition
from optpart.strategies.partition.layers import layers_of
from optpart.strategies.partition.llama_tensor_split import by_memory

if TYPE_CHECKING:
    from optpart.solution.goal import Goal


def llama_cpu_moe(instance: Instance, rng: np.random.Generator) -> Partition:
    """Split layers by memory, and move the experts of as few first blocks as memory permits.

    Raises
    ------
    NoPlacementError
        If the cards cannot hold their layers even without any experts.

    Notes
    -----
    The option of llama.cpp (``common/arg.cpp``, commit 08033df0) takes the number of blocks from
    its user, who tries until the model fits; here it is the least with which it does. Layers are
    split as in :func:`~optpart.strategies.partition.llama_tensor_split.llama_tensor_split`, by
    memory alone: experts that are moved count there as well.
    """
    layers = layers_of(instance)
    home = by_memory(layers, layers.cards)
    for moved in range(layers.blocks):
        try:
            return layers.placed(home, np.arange(layers.blocks + 2) <= moved)
        except NoPlacementError:
            continue
    return layers.placed(home, np.full(layers.blocks + 2, True))


def check_scope(instance: Instance, goal: Goal) -> None:
    """Refuse what has no experts that could be moved."""
    if not layers_of(instance).is_expert.any():
        problem = "has no experts as vertices of their own"
        remedy = "import a mixture of experts with --granularity attention+mlp+experts"
        raise UnsupportedError(instance.name, problem, remedy)
