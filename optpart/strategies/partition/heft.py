"""Heterogeneous earliest finish time, with the constraints of [L] §4.3 (Topcuoglu et al. 2002)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optpart.problem.instance import Instance
from optpart.strategies.base import Partition
from optpart.strategies.partition.insertion import insert
from optpart.strategies.partition.ranks import upward_rank


def heft(instance: Instance, rng: np.random.Generator) -> Partition:
    """Place vertices by falling upward rank where they finish first, in a gap if they fit.

    See :func:`~optpart.strategies.partition.insertion.insert` for the placement of colocation
    groups and for finish times.
    """
    return insertion(instance, upward_rank(instance))


def insertion(instance: Instance, rank: NDArray[np.float64]) -> Partition:
    """Place and schedule like :func:`heft`, by a given rank.

    Parameters
    ----------
    rank : ndarray of float64, length n
        Must not rise along an edge; ties go to the topologically first.
    """
    # Ranks never rise along an edge, so with ties broken topologically this order is topological.
    return insert(instance, np.lexsort((instance.graph.position, -rank)).astype(np.int32))
