"""Random hashing ([M] §3.1): by chance, in proportion to the capacity of the devices."""

from __future__ import annotations

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.strategies.partition.random_hashing import random_hashing


def placement(instance: Instance, seed: int = 0) -> list[int]:
    partition = random_hashing(instance, np.random.default_rng(seed))
    return [int(device) for device in partition.placement]


def singles(n: int, memory: int = 0) -> GraphBuilder:
    builder = GraphBuilder()
    for v in range(n):
        builder.vertex(f"v{v}", 1, memory=memory)
    return builder


def drawn(seed: int, n: int, weights: list[int]) -> list[int]:
    """Devices as a table of cumulated weights says."""
    chance = np.random.default_rng(seed).random(n) * sum(weights)
    return [int(d) for d in np.searchsorted(np.cumsum(weights), chance, side="right")]


@pytest.mark.parametrize("seed", range(3))
def test_devices_are_drawn_by_memory(seed: int) -> None:
    devices = [Device("d0", 9, memory=10), Device("d1", 5, memory=30), Device("d2", 1, memory=60)]
    instance = Instance(singles(50).build(), Cluster.of(devices))
    assert placement(instance, seed) == drawn(seed, 50, [10, 30, 60])


@pytest.mark.parametrize("seed", range(3))
def test_where_one_is_unlimited_by_speed(seed: int) -> None:
    devices = [Device("d0", 9, memory=10), Device("d1", 5), Device("d2", 1, memory=60)]
    instance = Instance(singles(50).build(), Cluster.of(devices))
    assert placement(instance, seed) == drawn(seed, 50, [9, 5, 1])


def test_only_feasible_devices_take_part() -> None:
    builder = GraphBuilder()
    for v in range(50):
        builder.vertex(f"v{v}", devices=["d0", "d2"])
    devices = [Device("d0", 3), Device("d1", 5), Device("d2", 1)]
    chosen = placement(Instance(builder.build(), Cluster.of(devices)))
    assert chosen == [2 * d for d in drawn(0, 50, [3, 1])]


def test_a_device_without_spare_memory_is_left_out() -> None:
    devices = [Device("d0", memory=30), Device("d1", memory=5)]
    instance = Instance(
        singles(35, memory=1).build(), Cluster.of(devices), Model(memory="estimate")
    )
    assert np.bincount(placement(instance)).tolist() == [30, 5]


def test_a_device_without_memory_takes_what_needs_none_where_nothing_else_can() -> None:
    builder = singles(20).vertex("a", devices=["d1", "d2"])
    devices = [Device("d0", memory=3), Device("d1", memory=0), Device("d2", memory=0)]
    *others, last = placement(Instance(builder.build(), Cluster.of(devices)))
    assert others == [0] * 20
    assert last in (1, 2)


def test_a_group_stays_together_and_comes_first() -> None:
    """Otherwise no device would have room for it."""
    graph = singles(30, memory=1).colocate("v7", "v9", "v29").build()
    cluster = Cluster.uniform(10, memory=3)
    for seed in range(20):
        chosen = placement(Instance(graph, cluster, Model(memory="estimate")), seed)
        assert chosen[7] == chosen[9] == chosen[29]
        assert np.bincount(chosen).tolist() == [3] * 10
