"""Hashing ([L] §4.2): colocation groups in turn, then single vertices in turn."""

from __future__ import annotations

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.strategies.base import NoPlacementError
from optpart.strategies.partition.hashing import hashing


def placement(instance: Instance) -> list[int]:
    partition = hashing(instance, np.random.default_rng(0))
    assert partition.order is None
    return [int(device) for device in partition.placement]


def singles(n: int) -> GraphBuilder:
    builder = GraphBuilder()
    for v in range(n):
        builder.vertex(f"v{v}", 1, memory=1)
    return builder


def test_vertices_go_to_devices_in_turn() -> None:
    assert placement(Instance(singles(7).build(), Cluster.uniform(3))) == [0, 1, 2, 0, 1, 2, 0]


def test_groups_come_first_and_both_count_from_0() -> None:
    """Groups of v1 and v2 take d0 and d1; v0, v5 and v6 then start at d0 again."""
    graph = singles(7).colocate("v1", "v4").colocate("v2", "v3").build()
    assert placement(Instance(graph, Cluster.uniform(3))) == [0, 0, 1, 1, 0, 1, 2]


def test_groups_count_in_order_of_their_first_vertex() -> None:
    graph = singles(4).colocate("v3", "v1").colocate("v2", "v0").build()
    assert placement(Instance(graph, Cluster.uniform(2))) == [0, 1, 0, 1]


def test_a_device_of_the_wrong_type_is_passed_over() -> None:
    """v1 would be on d1 and goes to d2; v2 keeps its own turn and v5 wraps round to d0."""
    graph = singles(2).vertex("v2", device_type="CPU").vertex("v3").vertex("v4")
    graph.vertex("v5", device_type="CPU")
    devices = [Device("d0", 1, "CPU"), Device("d1", 1, "GPU"), Device("d2", 1, "GPU")]
    assert placement(Instance(graph.build(), Cluster.of(devices))) == [0, 1, 0, 0, 1, 0]


def test_a_device_that_is_full_is_passed_over() -> None:
    cluster = Cluster.of([Device("d0", memory=1), Device("d1", memory=2), Device("d2", memory=9)])
    instance = Instance(singles(6).build(), cluster, Model(memory="estimate"))
    assert placement(instance) == [0, 1, 2, 1, 2, 2]


def test_a_group_needs_room_for_all_its_members() -> None:
    cluster = Cluster.of([Device("d0", memory=2), Device("d1", memory=3)])
    graph = singles(5).colocate("v1", "v2", "v3").build()
    assert placement(Instance(graph, cluster, Model(memory="estimate"))) == [0, 1, 1, 1, 0]


def test_capacity_may_be_used_up_to_the_last_bit() -> None:
    cluster = Cluster.of([Device("d0", memory="1/3"), Device("d1", memory="2/3")])
    graph = GraphBuilder().vertex("a", memory="1/3").vertex("b", memory="2/3").build()
    assert placement(Instance(graph, cluster, Model(memory="estimate"))) == [0, 1]


def test_separated_vertices_are_kept_apart() -> None:
    graph = singles(4).separate("v0", "v2").build()
    assert placement(Instance(graph, Cluster.uniform(2))) == [0, 1, 1, 1]


def test_a_consumer_stays_where_its_tensors_can_come_from() -> None:
    graph = GraphBuilder().vertex("a", outputs=[1]).vertex("b", outputs=[1]).vertex("c")
    graph.edge("a", "b").edge("b", "c")
    links = [[None, 1, 0], [0, None, 0], [0, 0, None]]
    assert placement(Instance(graph.build(), Cluster.of([*map(Device, "xyz")], links))) == [0, 1, 1]


def test_no_device_left_is_an_error_that_names_the_unit() -> None:
    instance = Instance(
        singles(5).colocate("v2", "v4").build(),
        Cluster.uniform(2, memory=2),
        Model(memory="estimate"),
    )
    with pytest.raises(NoPlacementError, match="no device was left for v3"):
        placement(instance)
