"""CPoP: the critical path on one device, all else where it ends first (Topcuoglu et al. 2002)."""

from __future__ import annotations

import numpy as np
from task_graphs import devices_and_starts

from optpart import Cluster, Device, GraphBuilder, Instance, Model, retime
from optpart.strategies.partition.cpop import cpop, critical_path
from optpart.strategies.partition.ranks import mean_transfer, upward_rank
from optpart.study.library import load


def placed_and_started(instance: Instance) -> tuple[list[int], list[float]]:
    return devices_and_starts(instance, cpop(instance, np.random.default_rng(0)))


def path(instance: Instance) -> list[int]:
    return [int(v) for v in critical_path(instance, upward_rank(instance), mean_transfer(instance))]


def diamond() -> GraphBuilder:
    """a → b → d and a → c → d; the path over b is the longer one by its tensor."""
    builder = GraphBuilder().vertex("a", 2, outputs=[2, 6])
    builder.vertex("b", 3).vertex("c", 4).vertex("d", 1)
    builder.edge("a", "b", 1).edge("a", "c", 0)
    return builder.edge("b", "d", None).edge("c", "d", None)


class TestTenTasks:
    """The example of the paper: figures 2 and 4 (b)."""

    def test_critical_path(self) -> None:
        assert path(load("heft-10")) == [0, 1, 8, 9]

    def test_schedule(self) -> None:
        instance = load("heft-10")
        placement, start = placed_and_started(instance)
        assert placement == [1, 1, 0, 2, 1, 2, 0, 2, 1, 1]
        assert start == [0, 16, 28, 25, 35, 42, 39, 54, 65, 79]

    def test_makespan(self) -> None:
        instance = load("heft-10")
        partition = cpop(instance, np.random.default_rng(0))
        assert retime(instance, partition.placement, partition.order).makespan(instance) == 86


class TestPath:
    def test_transfers_count(self) -> None:
        """At mean speed 1, b is reached at 2 + 6 and c at 2 + 2, 3 and 4 long."""
        instance = Instance(diamond().build(), Cluster.uniform(2, bandwidth=1))
        assert path(instance) == [0, 1, 3]
        assert path(Instance(diamond().build(), Cluster.uniform(2))) == [0, 2, 3]

    def test_of_equal_paths_that_of_smaller_numbers(self) -> None:
        builder = GraphBuilder().vertex("a", 1).vertex("b", 2).vertex("c", 1).vertex("d", 2)
        graph = builder.edge("a", "d", None).edge("a", "b", None).build()
        assert path(Instance(graph, Cluster.uniform(2))) == [0, 1]

    def test_of_an_empty_graph(self) -> None:
        empty = Instance(GraphBuilder().build(), Cluster.uniform(2))
        assert path(empty) == []
        assert placed_and_started(empty) == ([], [])


class TestDeviceOfThePath:
    def test_is_the_fastest_for_all_of_it(self) -> None:
        """a and b: 1 + 9 on d0, 4 + 4 on d1, 2 + 7 on d2."""
        graph = GraphBuilder().vertex("a").vertex("b").edge("a", "b", None).build()
        times = [[1, 4, 2], [9, 4, 7]]
        assert placed_and_started(Instance(graph, Cluster.uniform(3), durations=times)) == (
            [1, 1],
            [0, 4],
        )

    def test_may_run_as_much_of_it_as_any(self) -> None:
        """d1 may run both; b alone would end first on d2."""
        graph = GraphBuilder().vertex("a").vertex("b").edge("a", "b", None).build()
        times = [[1, 4, None], [None, 9, 1]]
        instance = Instance(graph, Cluster.uniform(3), durations=times)
        assert placed_and_started(instance)[0] == [1, 1]

    def test_what_may_not_run_there_goes_where_it_ends_first(self) -> None:
        graph = GraphBuilder().vertex("a", 6).vertex("b", 6, devices=["slow", "middle"])
        devices = [Device("slow", 1), Device("fast", 6), Device("middle", 2)]
        graph.vertex("c", 6).edge("a", "b", None).edge("b", "c", None)
        instance = Instance(graph.build(), Cluster.of(devices))
        assert placed_and_started(instance) == ([2, 2, 2], [0, 3, 6])

    def test_what_finds_no_room_there_goes_where_it_ends_first(self) -> None:
        builder = GraphBuilder()
        for name in "abc":
            builder.vertex(name, 6, memory=1)
        graph = builder.edge("a", "b", None).edge("b", "c", None).build()
        devices = [Device("slow", 1), Device("fast", 6, memory=2), Device("middle", 2)]
        instance = Instance(graph, Cluster.of(devices), Model(memory="estimate"))
        assert placed_and_started(instance) == ([1, 1, 2], [0, 1, 2])


class TestRest:
    def test_goes_where_it_ends_first(self) -> None:
        """c ends at 2 + 2 + 4 on d0, and at 2 + 4 on d1, where the path leaves a gap for it."""
        instance = Instance(diamond().build(), Cluster.uniform(2, bandwidth=1))
        assert placed_and_started(instance) == ([0, 0, 1, 0], [0, 2, 4, 8])

    def test_in_order_of_both_ranks(self) -> None:
        """b is ready with c, but c and d are on the longer path and go first."""
        builder = GraphBuilder().vertex("a", 1).vertex("b", 5).vertex("c", 1).vertex("d", 9)
        graph = builder.edge("a", "b", None).edge("a", "c", None).edge("c", "d", None).build()
        assert placed_and_started(Instance(graph, Cluster.uniform(1))) == (
            [0, 0, 0, 0],
            [0, 11, 1, 2],
        )


class TestColocation:
    def test_what_is_colocated_with_the_path_goes_with_it(self) -> None:
        """x has its turn before c and b; by itself it ends on the slow device first."""

        def placement(*group: str) -> list[int]:
            builder = GraphBuilder().vertex("a", 9).vertex("b", 9).vertex("c", 1).vertex("x", 12)
            builder.edge("a", "b", None).edge("c", "b", None).colocate(*group)
            devices = [Device("slow", 2), Device("fast", 3)]
            return placed_and_started(Instance(builder.build(), Cluster.of(devices)))[0]

        assert placement("x", "b")[3] == 1
        assert placement("x")[3] == 0

    def test_the_path_goes_only_where_all_members_may(self) -> None:
        builder = GraphBuilder().vertex("x", 1, devices=["slow"]).vertex("a", 9).vertex("b", 9)
        builder.edge("a", "b", None).colocate("x", "b")
        devices = [Device("slow", 1), Device("fast", 3)]
        placement, _ = placed_and_started(Instance(builder.build(), Cluster.of(devices)))
        assert placement == [0, 0, 0]
