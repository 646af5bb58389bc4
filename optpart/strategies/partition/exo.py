"""The ring of exo: every device runs layers in proportion to its memory, or to its bandwidth."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from optpart.interop.devices import library
from optpart.kernels.compiled import arrays
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition
from optpart.strategies.partition.contiguous import settle
from optpart.strategies.partition.ranks import speed_share, work
from optpart.strategies.partition.unit_graph import by_first_vertex

#: What the share of a device is in proportion to.
By = Literal["memory", "bandwidth"]


def exo(instance: Instance, rng: np.random.Generator, *, by: By = "memory") -> Partition:
    """Give every device a contiguous part of the topological order, in proportion to its share.

    The devices with the largest shares come first; of equal ones, the first of the cluster. A unit
    goes to the first device whose share, with those before it, covers all units up to this one. A
    unit that cannot go there goes to the next device that can take it, the first following the
    last. If it finds none, all units are placed again where they were meant to go or on the next
    device, those that may use the fewest devices first, of these the ones that need most memory.

    Parameters
    ----------
    by : {"memory", "bandwidth"}
        ``memory``: the share of a device is that of its capacity in all capacities. A device
        without capacity counts as the largest that has one; if none has, all are equal. Units are
        weighed by their static memory or, under memory models without any, by resident memory. If
        there is none of both, they weigh the same.
        ``bandwidth``: by memory bandwidth, if every device has the name of one in the library of
        devices (``optpart devices``); otherwise by speed, which for given run times is that of the
        runs. Units are weighed by operations.

    Raises
    ------
    NoPlacementError
        If a unit is left without a device.

    Notes
    -----
    ``RingMemoryWeightedPartitioningStrategy`` and ``map_partitions_to_shards`` of exo
    (<https://github.com/exo-explore/exo>, up to 0.0.15). There, the units are the layers of a
    language model and weigh the same, and there is no share by bandwidth: it is what bounds the
    speed of generating text, one token after the other.
    """
    units = by_first_vertex(instance)
    share, weight = _by_memory(instance) if by == "memory" else _by_bandwidth(instance)
    devices = np.argsort(-share, kind="stable").astype(np.int32)
    covered = np.cumsum(share[devices])
    until = np.cumsum(weight[units])
    total = until[-1] if len(until) else 0.0
    if total == 0:
        until = np.arange(1, len(units) + 1, dtype=np.float64)
        total = float(len(units))
    # Shares are sums of rounded numbers; a unit that ends where a share does belongs to it.
    part = np.searchsorted(covered * (total * (1 + 1e-9)), until)
    device = np.empty(len(units), dtype=np.int32)
    device[units] = devices[np.minimum(part, len(devices) - 1)]
    return settle(instance, units, device, devices)


def _by_memory(instance: Instance) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the share of each device and the weight of each unit."""
    known = [float(m) for m in instance.cluster.memory if m is not None]
    capacity = np.array(
        [max(known, default=1.0) if m is None else float(m) for m in instance.cluster.memory]
    )
    weight = arrays(instance).need.astype(np.float64)
    if not weight.any():
        resident = instance.graph.memory.floats
        weight = np.bincount(instance.unit_of, resident, len(instance.units)).astype(np.float64)
    return _normalised(capacity), weight


def _by_bandwidth(instance: Instance) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    known, names = library.devices(), instance.cluster.names
    weight = np.bincount(instance.unit_of, work(instance), len(instance.units)).astype(np.float64)
    if all(name in known for name in names):
        rates = np.array([float(known[name].bandwidth) for name in names])
        return _normalised(rates), weight
    return speed_share(instance), weight


def _normalised(values: NDArray[np.float64]) -> NDArray[np.float64]:
    total = values.sum()
    return values / total if total else np.full(len(values), 1 / len(values))
