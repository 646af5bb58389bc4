"""The ring of exo: contiguous parts in proportion to memory or bandwidth."""

from __future__ import annotations

import numpy as np

from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.strategies.partition.exo import By, exo


def placement(instance: Instance, by: By = "memory") -> list[int]:
    partition = exo(instance, np.random.default_rng(0), by=by)
    assert partition.order is None
    return partition.placement.tolist()


def path(*vertices: tuple[int, int]) -> GraphBuilder:
    """v0 → v1 → v2 → …, with operations and memory."""
    builder = GraphBuilder()
    for v, (ops, memory) in enumerate(vertices):
        builder.vertex(f"v{v}", ops, memory=memory)
        if v:
            builder.edge(f"v{v - 1}", f"v{v}", None)
    return builder


def layers(count: int) -> GraphBuilder:
    return path(*[(1, 1)] * count)


class TestByMemory:
    def test_the_largest_device_comes_first(self) -> None:
        """Shares 1/2, 3/10 and 1/5 of ten layers."""
        devices = [Device("a", memory=20), Device("b", memory=50), Device("c", memory=30)]
        instance = Instance(layers(10).build(), Cluster.of(devices))
        assert placement(instance) == [1] * 5 + [2] * 3 + [0] * 2

    def test_a_layer_that_a_share_covers_in_part_goes_to_the_next_device(self) -> None:
        """exo rounds the ends of shares down: 3.33 of 5 layers are 3."""
        devices = [Device("a", memory=2), Device("b", memory=1)]
        assert placement(Instance(layers(5).build(), Cluster.of(devices))) == [0, 0, 0, 1, 1]

    def test_thirds(self) -> None:
        devices = [Device(name, memory=7) for name in "abc"]
        instance = Instance(layers(9).build(), Cluster.of(devices))
        assert placement(instance) == [0] * 3 + [1] * 3 + [2] * 3

    def test_unlike_units_are_weighed_by_memory(self) -> None:
        devices = [Device("a", memory=6), Device("b", memory=6)]
        graph = path((1, 4), (1, 1), (1, 1), (1, 2)).build()
        assert placement(Instance(graph, Cluster.of(devices))) == [0, 1, 1, 1]

    def test_or_equally_if_they_need_none(self) -> None:
        graph = path((9, 0), (1, 0), (1, 0), (1, 0)).build()
        assert placement(Instance(graph, Cluster.uniform(2, memory=3))) == [0, 0, 1, 1]

    def test_an_unlimited_device_counts_as_the_largest(self) -> None:
        devices = [Device("a", memory=1), Device("b"), Device("c", memory=2)]
        instance = Instance(layers(5).build(), Cluster.of(devices))
        assert placement(instance) == [1, 1, 2, 2, 0]


class TestByBandwidth:
    def test_of_devices_in_the_library(self) -> None:
        """936 GB/s to 448 GB/s, whatever the speeds: 2.03 of 3 layers and the rest."""
        devices = [Device("rtx-3070", 9), Device("rtx-3090", 1)]
        instance = Instance(layers(3).build(), Cluster.of(devices))
        assert placement(instance, "bandwidth") == [1, 1, 0]

    def test_by_speed_of_others(self) -> None:
        devices = [Device("rtx-3090", 1), Device("mine", 2)]
        instance = Instance(layers(3).build(), Cluster.of(devices))
        assert placement(instance, "bandwidth") == [1, 1, 0]

    def test_by_speed_in_the_given_run_times(self) -> None:
        """d1 is four times as fast, although it is said to be as fast."""
        times = [[8, 2]] * 5
        instance = Instance(layers(5).build(), Cluster.uniform(2), durations=times)
        assert placement(instance, "bandwidth") == [1, 1, 1, 1, 0]

    def test_unlike_units_are_weighed_by_operations(self) -> None:
        graph = path((3, 1), (1, 9), (1, 9), (1, 9)).build()
        assert placement(Instance(graph, Cluster.uniform(2)), "bandwidth") == [0, 1, 1, 1]


class TestConstraints:
    def test_a_full_device_is_passed_over(self) -> None:
        """By speed, three layers on a, but it has room for two."""
        devices = [Device("a", 3, memory=2), Device("b", 1, memory=9)]
        instance = Instance(layers(4).build(), Cluster.of(devices), Model(memory="estimate"))
        assert placement(instance, "bandwidth") == [0, 0, 1, 1]
