"""Heterogeneous earliest finish time, with the constraints of [L] §4.3 (Topcuoglu et al. 2002)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optpart.problem.instance import Instance
from optpart.strategies.base import Partition
from optpart.strategies.partition.insertion import insert, topological_position
from optpart.strategies.partition.ranks import upward_rank


def heft(instance: Instance, rng: np.random.Generator) -> Partition:
    """Place vertices by falling upward rank where they finish first, in gaps where they fit.

    How colocation groups are placed and what a finish time is, says
    :func:`~optpart.strategies.partition.insertion.insert`.
    """
    return insertion(instance, upward_rank(instance))


def insertion(instance: Instance, rank: NDArray[np.float64]) -> Partition:
    """Place and schedule as :func:`heft` does, by a rank of one's own.

    Parameters
    ----------
    rank : ndarray of float64, length n
        Must not rise along an edge; of equal ranks the topologically first goes first.
    """
    # Ranks never rise along an edge, so with ties broken topologically this order is topological.
    return insert(instance, np.lexsort((topological_position(instance), -rank)).astype(np.int32))
