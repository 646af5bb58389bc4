"""Linear deterministic greedy: neighbours count, less so where a device is full (2012)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from naive_placing import NaivePlacing

from optpart import Cluster, Device, GraphBuilder, InputError, Instance, Model
from optpart.problem.model import Memory
from optpart.strategies.base import NoPlacementError
from optpart.strategies.partition.linear_greedy import Capacity, linear_greedy
from optpart.strategies.partition.unit_graph import by_first_vertex
from optpart.testing.draw import random_instance


def placement(instance: Instance, capacity: Capacity = "speed") -> list[int]:
    partition = linear_greedy(instance, np.random.default_rng(0), capacity=capacity)
    assert partition.order is None
    return partition.placement.tolist()


def path(*ops: int) -> GraphBuilder:
    """v0 → v1 → v2 → …"""
    builder = GraphBuilder()
    for v, amount in enumerate(ops):
        builder.vertex(f"v{v}", amount, memory=1)
        if v:
            builder.edge(f"v{v - 1}", f"v{v}", None)
    return builder


class TestScore:
    def test_a_path_stays_together_until_its_device_is_full(self) -> None:
        """Each of two devices has room for 3 of 6."""
        assert placement(Instance(path(*[1] * 6).build(), Cluster.uniform(2))) == [0, 0, 0, 1, 1, 1]

    def test_counts_neighbours_times_room_left(self) -> None:
        """Room for 4 of 8. Of x's neighbours, two are on d0 and one is on d1.

        With 2 of 4 on d0 and 1 on d1, that makes 2 · 1/2 against 1 · 3/4; with 3 on d0, 2 · 1/4.
        """

        def device_of_x(ops_on_d0: int) -> int:
            builder = GraphBuilder().vertex("a", 1, devices=["d0"])
            builder.vertex("b", ops_on_d0 - 1, devices=["d0"]).vertex("c", 1, devices=["d1"])
            builder.vertex("x", 1).vertex("rest", 6 - ops_on_d0, devices=["d1"])
            for name in "abc":
                builder.edge(name, "x", None)
            graph = builder.edge("x", "rest", None).build()
            return placement(Instance(graph, Cluster.uniform(2)))[3]

        assert device_of_x(2) == 0
        assert device_of_x(3) == 1

    def test_neighbours_count_in_both_directions(self) -> None:
        """The group of a and c is placed on d1 before b, which feeds c."""
        builder = GraphBuilder().vertex("a", 1, devices=["d1"]).vertex("b", 1).vertex("c", 1)
        builder.vertex("d", 3).edge("b", "c", None).edge("c", "d", None).colocate("a", "c")
        assert placement(Instance(builder.build(), Cluster.uniform(2)))[1] == 1

    def test_a_neighbour_counts_once_however_many_tensors_it_sends(self) -> None:
        """x has two neighbours on d1, and one on d0 with three tensors."""
        builder = GraphBuilder().vertex("a", 1, devices=["d0"], outputs=[1, 1, 1])
        builder.vertex("b", 1, devices=["d1"]).vertex("c", 1, devices=["d1"]).vertex("x", 1)
        for output in range(3):
            builder.edge("a", "x", output)
        builder.edge("b", "x", None).edge("c", "x", None).vertex("rest", 50)
        assert placement(Instance(builder.build(), Cluster.uniform(2, bandwidth=1)))[3] == 1

    def test_a_group_has_the_neighbours_of_all_its_members(self) -> None:
        builder = GraphBuilder().vertex("a", 1, devices=["d0"]).vertex("b", 1, devices=["d1"])
        builder.vertex("c", 1, devices=["d1"]).vertex("x", 1).vertex("y", 1).vertex("rest", 50)
        builder.edge("a", "x", None).edge("b", "y", None).edge("c", "y", None).colocate("x", "y")
        assert placement(Instance(builder.build(), Cluster.uniform(2)))[3:5] == [1, 1]


class TestTies:
    def test_the_device_of_least_load_wins(self) -> None:
        graph = GraphBuilder().vertex("a", 3).vertex("b", 2).vertex("c", 2).vertex("d", 4)
        assert placement(Instance(graph.build(), Cluster.uniform(3))) == [0, 1, 2, 1]

    def test_relative_to_its_capacity(self) -> None:
        """Capacities 8 and 4: 2 of 8 is less than 2 of 4, 4 of 8 is not."""
        graph = GraphBuilder().vertex("a", 2).vertex("b", 2).vertex("c", 2).vertex("d", 6)
        devices = [Device("fast", 2), Device("slow", 1)]
        assert placement(Instance(graph.build(), Cluster.of(devices))) == [0, 1, 0, 0]

    def test_full_devices_are_equal(self) -> None:
        """x goes where the load is least, not to its neighbour, when all are full."""
        builder = GraphBuilder().vertex("a", 6, devices=["d0"]).vertex("b", 4, devices=["d1"])
        graph = builder.vertex("x", 0).edge("a", "x", None).edge("b", "x", None).build()
        devices = [Device("d0", 1), Device("d1", 1), Device("d2", 1)]
        instance = Instance(graph, Cluster.of(devices))
        assert placement(instance)[2] == 2


class TestCapacity:
    def test_by_speed(self) -> None:
        """Room for 6 and 3 of 9 operations."""
        devices = [Device("fast", 2), Device("slow", 1)]
        instance = Instance(path(3, 2, 1, 1, 1, 1).build(), Cluster.of(devices))
        assert placement(instance) == [0, 0, 0, 1, 1, 1]

    def test_equal_counts_vertices(self) -> None:
        devices = [Device("fast", 9), Device("slow", 1)]
        instance = Instance(path(9, 9, 1, 1).build(), Cluster.of(devices))
        assert placement(instance, "equal") == [0, 0, 1, 1]

    def test_another_is_an_error(self) -> None:
        instance = Instance(path(1).build(), Cluster.uniform(1))
        with pytest.raises(
            InputError, match="capacity: unknown 'none'; choose one of speed, equal"
        ):
            placement(instance, "none")  # type: ignore[arg-type]


def naively(instance: Instance) -> list[int]:
    """Equal capacities; every unit is compared on all devices."""
    graph, placing = instance.graph, NaivePlacing(instance)
    neighbours = {
        (int(u), int(v)) for u, v in zip(graph.edge_source, graph.edge_target, strict=True)
    }
    capacity = Fraction(instance.vertices, instance.devices)
    for unit in by_first_vertex(instance).tolist():
        members = set(instance.units[unit].tolist())
        around = [u for u, v in neighbours if v in members] + [
            v for u, v in neighbours if u in members
        ]

        def key(d: int, around: list[int] = around) -> tuple[Fraction, Fraction, int]:
            there = sum(placing.device.get(int(instance.unit_of[v])) == d for v in around)
            load = sum(len(instance.units[u]) for u, e in placing.device.items() if e == d)
            return -there * max(Fraction(0), 1 - load / capacity), load / capacity, d

        first = min(members)
        devices = [d for d in range(instance.devices) if placing.may_run(first, d)]
        if not devices:
            raise NoPlacementError("found no feasible placement")
        placing.device[unit] = min(devices, key=key)
    return placing.placement()


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("memory", ["none", "estimate"])
def test_is_what_comparing_everything_gives(seed: int, memory: Memory) -> None:
    rng = np.random.default_rng(seed)
    instance = random_instance(rng, 9, 4, memory=memory)
    try:
        expected = naively(instance)
    except NoPlacementError:
        with pytest.raises(NoPlacementError):
            placement(instance, "equal")
        return
    assert placement(instance, "equal") == expected


class TestConstraints:
    def test_a_full_device_is_passed_over(self) -> None:
        cluster = Cluster.of([Device("d0", memory=1), Device("d1", memory=9)])
        instance = Instance(path(1, 1, 1).build(), cluster, Model(memory="estimate"))
        assert placement(instance) == [0, 1, 1]
