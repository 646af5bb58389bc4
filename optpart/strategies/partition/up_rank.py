"""Up-rank: the operations farthest from the end first, to devices in turn ([B] §4.1)."""

from __future__ import annotations

import numpy as np

from optpart.problem.instance import Instance
from optpart.strategies.base import Partition, partition_of
from optpart.strategies.partition.unit_graph import place_preferred, unit_graph


def up_rank(instance: Instance, rng: np.random.Generator) -> Partition:
    """Assign units by falling up-rank to devices in turn, each to the next that is feasible.

    The up-rank is [B] Alg. 4.1 on assignment units (see
    :class:`~optpart.strategies.partition.unit_graph.UnitGraph`); of equal ranks the lower number
    goes first. [B] uses it inside other strategies only. This is the plainest strategy that it
    defines: unit number ``i`` of that order goes to device ``i mod k``, so that units equally far
    from the end come to different devices.
    """
    k = instance.devices
    graph = unit_graph(instance)
    devices = np.arange(k, dtype=np.int32)
    state = place_preferred(instance, graph, graph.by_rank, graph.turn % k, devices)
    return partition_of(instance, state)
