"""Up-rank: the operations farthest from the end first, to devices in turn ([B] §4.1)."""

from __future__ import annotations

import numpy as np

from optpart.kernels.compiled import arrays
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition, partition_of
from optpart.strategies.partition.common import first_fit
from optpart.strategies.partition.unit_graph import unit_graph


def up_rank(instance: Instance, rng: np.random.Generator) -> Partition:
    """Assign units by falling up-rank to devices in turn, each to the next feasible one.

    The up-rank is [B] Alg. 4.1 on assignment units (see
    :class:`~optpart.strategies.partition.unit_graph.UnitGraph`); ties go to the lower number. [B]
    uses it only inside other strategies. This is the simplest strategy based on it: unit number
    ``i`` of that order goes to device ``i mod k``, so that units equally far from the end get
    different devices.
    """
    k = instance.devices
    graph = unit_graph(instance)
    devices = np.arange(k, dtype=np.int32)
    state = first_fit(arrays(instance), graph.by_rank, graph.turn % k, devices)
    return partition_of(instance, state)
