"""Everything on the fastest device that may still take it."""

from __future__ import annotations

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.strategies.base import NoPlacementError
from optpart.strategies.partition.fastest import fastest
from optpart.strategies.partition.ranks import devices_by_speed


def placement(instance: Instance) -> list[int]:
    partition = fastest(instance, np.random.default_rng(0))
    assert partition.order is None
    return [int(device) for device in partition.placement]


def cluster(*memory: int | None) -> Cluster:
    """Speeds 2, 5 and 3."""
    speeds, types = (2, 5, 3), ("CPU", "GPU", "GPU")
    return Cluster.of(
        [Device(f"d{d}", speeds[d], types[d], memory[d] if memory else None) for d in range(3)]
    )


def vertices(n: int) -> GraphBuilder:
    builder = GraphBuilder()
    for v in range(n):
        builder.vertex(f"v{v}", 1, memory=1)
    return builder


def test_all_on_the_fastest() -> None:
    assert placement(Instance(vertices(4).build(), cluster())) == [1, 1, 1, 1]


def test_equally_fast_devices_count_in_their_order() -> None:
    assert placement(Instance(vertices(2).build(), Cluster.uniform(3))) == [0, 0]


def test_what_must_be_elsewhere_is_on_the_fastest_of_those() -> None:
    graph = vertices(1).vertex("a", device_type="CPU").vertex("b", devices=["d0", "d2"]).build()
    assert placement(Instance(graph, cluster())) == [1, 0, 2]


def test_a_full_device_is_followed_by_the_next_fastest() -> None:
    instance = Instance(vertices(5).build(), cluster(None, 2, 2), Model(memory="estimate"))
    assert placement(instance) == [1, 1, 2, 2, 0]


def test_larger_groups_choose_first() -> None:
    """Three on d1, then two on d2, and what is left fills up by speed."""
    graph = vertices(7).colocate("v1", "v2").colocate("v4", "v5", "v6").build()
    instance = Instance(graph, cluster(None, 4, 2), Model(memory="estimate"))
    assert placement(instance) == [1, 2, 2, 0, 1, 1, 1]


def test_a_tensor_that_cannot_cross_keeps_its_consumer_on_the_slower_device() -> None:
    graph = GraphBuilder().vertex("a", device_type="CPU", outputs=[1]).vertex("b").edge("a", "b")
    devices = [Device("d0", 1, "CPU"), Device("d1", 9, "GPU")]
    assert placement(Instance(graph.build(), Cluster.of(devices, bandwidth=1))) == [0, 1]
    # b comes first where it is larger; then nothing is left for a.
    linked = [[None, 0], [1, None]]
    with pytest.raises(NoPlacementError, match="no device was left"):
        placement(
            Instance(graph.vertex("c").colocate("b", "c").build(), Cluster.of(devices, linked))
        )


class TestDevicesBySpeed:
    def test_by_speed(self) -> None:
        assert devices_by_speed(Instance(vertices(1).build(), cluster())).tolist() == [1, 2, 0]

    def test_by_given_run_times_relative_to_the_mean_of_each_vertex(self) -> None:
        """2/3 + 20/11 against 4/3 + 2/11."""
        instance = Instance(vertices(2).build(), Cluster.uniform(2), durations=[[2, 4], [10, 1]])
        assert devices_by_speed(instance).tolist() == [1, 0]

    def test_only_by_what_a_device_can_run(self) -> None:
        """d2 runs v1 alone, twice as fast as the others on average; d1 runs nothing at all."""
        instance = Instance(
            vertices(2).build(), cluster(), durations=[[4, None, None], [3, None, 1]]
        )
        assert devices_by_speed(instance).tolist() == [2, 0, 1]
        assert placement(instance) == [0, 2]
