"""PEFT: what must follow decides as well (Arabnejad and Barbosa 2014)."""

from __future__ import annotations

import numpy as np
from peft_example import example
from task_graphs import devices_and_starts

from optpart import Cluster, Device, GraphBuilder, Instance, Model, retime
from optpart.kernels.compiled import arrays
from optpart.strategies.partition.heft import heft
from optpart.strategies.partition.peft import optimistic_costs, peft


def placed_and_started(instance: Instance) -> tuple[list[int], list[float]]:
    return devices_and_starts(instance, peft(instance, np.random.default_rng(0)))


def costs(instance: Instance) -> list[list[float]]:
    table: list[list[float]] = (optimistic_costs(instance) / arrays(instance).scale).tolist()
    return table


class TestExample:
    def test_optimistic_costs(self) -> None:
        assert costs(example()) == [
            [64, 68, 86],
            [42, 39, 42],
            [27, 41, 43],
            [42, 39, 50],
            [28, 37, 28],
            [42, 39, 44],
            [13, 16, 22],
            [13, 16, 33],
            [13, 16, 20],
            [0, 0, 0],
        ]

    def test_schedule(self) -> None:
        placement, start = placed_and_started(example())
        assert placement == [0, 0, 0, 0, 2, 1, 0, 1, 2, 1]
        assert start == [0, 29, 51, 22, 35, 29, 83, 54, 81, 106]

    def test_makespan_is_122_and_that_of_heft_133(self) -> None:
        instance = example()
        for strategy, makespan in ((peft, 122), (heft, 133)):
            found = strategy(instance, np.random.default_rng(0))
            assert retime(instance, found.placement, found.order).makespan(instance) == makespan


class TestOptimisticCosts:
    def test_a_successor_runs_here_or_after_a_mean_transfer_elsewhere(self) -> None:
        """b takes 8 or 2, and a transfer 3 or 5, 4 on average."""
        graph = GraphBuilder().vertex("a").vertex("b").edge("a", "b", size=15).build()
        cluster = Cluster.uniform(2, bandwidth=[[None, 5], [3, None]])
        instance = Instance(graph, cluster, durations=[[1, 1], [8, 2]])
        assert costs(instance) == [[2 + 15 / 4, 2], [0, 0]]

    def test_the_costliest_successor_counts(self) -> None:
        builder = GraphBuilder().vertex("a").vertex("b").vertex("c")
        graph = builder.edge("a", "b", None).edge("a", "c", None).build()
        instance = Instance(graph, Cluster.uniform(2), durations=[[1, 1], [3, 4], [6, 5]])
        assert costs(instance)[0] == [5, 5]

    def test_only_devices_that_its_group_may_use_count(self) -> None:
        """b would take 1 on d1, where c may not run."""
        builder = GraphBuilder().vertex("a").vertex("b").vertex("c").edge("a", "b", None)
        graph = builder.colocate("b", "c").build()
        times = [[1, 1], [7, 1], [1, None]]
        assert costs(Instance(graph, Cluster.uniform(2), durations=times))[0] == [7, 7]


class TestChoice:
    def test_of_devices_looks_ahead(self) -> None:
        """a ends at 3 or 4; then b takes 9 on d0, or 1 on d1 but 6 more to get there."""
        graph = GraphBuilder().vertex("a").vertex("b").edge("a", "b", size=6).build()
        instance = Instance(graph, Cluster.uniform(2, bandwidth=1), durations=[[3, 4], [9, 1]])
        assert placed_and_started(instance) == ([1, 1], [0, 4])

    def test_of_vertices_looks_ahead(self) -> None:
        """x is longer, but more must follow y."""
        builder = GraphBuilder().vertex("x", 5).vertex("y", 1).vertex("z", 3).edge("y", "z", None)
        instance = Instance(builder.build(), Cluster.uniform(1))
        assert placed_and_started(instance) == ([0, 0, 0], [1, 0, 6])

    def test_gaps_are_used(self) -> None:
        """x, which nothing follows, runs on d1 while b waits there for what a sends."""
        builder = GraphBuilder().vertex("a", 4, devices=["d0"]).vertex("x", 3, devices=["d1"])
        builder.vertex("b", 5, devices=["d1"]).vertex("c", 1).edge("a", "b", size=6)
        instance = Instance(builder.edge("b", "c", None).build(), Cluster.uniform(2, bandwidth=1))
        assert placed_and_started(instance)[1][:3] == [0, 0, 10]


class TestConstraints:
    def test_members_of_a_group_follow_the_first(self) -> None:
        builder = GraphBuilder().vertex("a", 30).vertex("b", 3).colocate("a", "b").vertex("c", 9)
        devices = [Device("slow", 1), Device("fast", 3)]
        graph = builder.edge("a", "c", None).build()
        assert placed_and_started(Instance(graph, Cluster.of(devices)))[0] == [1, 1, 1]

    def test_a_full_device_is_not_chosen(self) -> None:
        builder = GraphBuilder().vertex("a", 6, memory=2).vertex("b", 6, memory=2)
        devices = [Device("slow", 1), Device("fast", 9, memory=3)]
        instance = Instance(builder.build(), Cluster.of(devices), Model(memory="estimate"))
        assert placed_and_started(instance)[0] == [1, 0]
