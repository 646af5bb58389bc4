"""One device after the other, as accelerate fills them."""

from __future__ import annotations

import numpy as np

from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.strategies.partition.sequential_fill import accelerators_first, sequential_fill

ESTIMATE = Model(memory="estimate")


def placement(instance: Instance, *, balanced: bool = False) -> list[int]:
    partition = sequential_fill(instance, np.random.default_rng(0), balanced=balanced)
    assert partition.order is None
    return partition.placement.tolist()


def path(*memory: int, devices: dict[int, list[str]] | None = None) -> GraphBuilder:
    """v0 → v1 → v2 → …, with this much memory and without tensors."""
    builder = GraphBuilder()
    for v, amount in enumerate(memory):
        builder.vertex(f"v{v}", 1, memory=amount, devices=(devices or {}).get(v))
        if v:
            builder.edge(f"v{v - 1}", f"v{v}", None)
    return builder


def cluster(*memory: int | None) -> Cluster:
    return Cluster.of([Device(f"d{d}", memory=room) for d, room in enumerate(memory)])


class TestDevices:
    def test_come_as_listed_whatever_their_speed(self) -> None:
        instance = Instance(path(1, 1).build(), Cluster.of([Device("slow", 1), Device("fast", 9)]))
        assert placement(instance) == [0, 0]

    def test_processors_come_last(self) -> None:
        devices = [Device("host", type="cpu"), Device("a", type="GPU"), Device("b")]
        instance = Instance(path(1).build(), Cluster.of(devices))
        assert accelerators_first(instance).tolist() == [1, 2, 0]

    def test_the_next_one_begins_when_a_unit_does_not_fit(self) -> None:
        instance = Instance(path(2, 1, 1, 1, 1).build(), cluster(3, 2, 9), ESTIMATE)
        assert placement(instance) == [0, 0, 1, 1, 2]

    def test_a_closed_device_stays_closed(self) -> None:
        """v1 needs 3 of the 2 left on d0; v2 would fit there."""
        instance = Instance(path(2, 3, 1).build(), cluster(4, 9), ESTIMATE)
        assert placement(instance) == [0, 1, 1]

    def test_until_all_are(self) -> None:
        """v2 closes d1; d0 still has room for it."""
        instance = Instance(path(2, 3, 2).build(), cluster(4, 4), ESTIMATE)
        assert placement(instance) == [0, 1, 0]

    def test_without_limits_the_first_takes_everything(self) -> None:
        assert placement(Instance(path(5, 5).build(), cluster(1, 9))) == [0, 0]
        assert placement(Instance(path(5, 5).build(), cluster(None, 9), ESTIMATE)) == [0, 0]

    def test_a_unit_that_may_not_run_there_leaves_the_device_open(self) -> None:
        graph = path(1, 1, 1, devices={1: ["d1"]}).build()
        assert placement(Instance(graph, cluster(2, 2), ESTIMATE)) == [0, 1, 0]


class TestOrder:
    def test_is_topological(self) -> None:
        builder = GraphBuilder().vertex("b", 1, memory=1).vertex("a", 1, memory=1)
        graph = builder.edge("a", "b", None).build()
        assert placement(Instance(graph, cluster(1, 1), ESTIMATE)) == [1, 0]

    def test_groups_come_with_their_first_member(self) -> None:
        builder = path(1, 2, 1).colocate("v0", "v2")
        assert placement(Instance(builder.build(), cluster(2, 2), ESTIMATE)) == [0, 1, 0]


class TestBalanced:
    def test_each_device_gets_its_share_and_some_more(self) -> None:
        """6 / 2 + 5/4 = 4.25 on the first, the rest on the last."""
        assert placement(Instance(path(*[1] * 6).build(), cluster(9, 9)), balanced=True) == [
            0, 0, 0, 0, 1, 1,
        ]  # fmt: skip

    def test_never_more_than_its_memory(self) -> None:
        instance = Instance(path(*[1] * 6).build(), cluster(2, 9), ESTIMATE)
        assert placement(instance, balanced=True) == [0, 0, 1, 1, 1, 1]

    def test_processors_get_no_share(self) -> None:
        """The only accelerator is the last of them, and without a limit."""
        devices = [Device("host", type="CPU"), Device("gpu", type="GPU")]
        instance = Instance(path(1, 1, 1).build(), Cluster.of(devices))
        assert placement(instance, balanced=True) == [1, 1, 1]


class TestConstraints:
    def test_what_fits_nowhere_else_is_placed_first(self) -> None:
        """v1 may only run on d0, which v0 has filled."""
        graph = path(2, 2, devices={1: ["d0"]}).build()
        assert placement(Instance(graph, cluster(2, 2), ESTIMATE)) == [1, 0]
