"""ETF: what can start first, on whatever device, goes first (Hwang et al. 1989)."""

from __future__ import annotations

import numpy as np
import pytest
from naive_placing import NaivePlacing
from task_graphs import devices_and_starts

from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.problem.model import Memory
from optpart.strategies.base import NoPlacementError, Partition
from optpart.strategies.partition.etf import etf
from optpart.strategies.partition.ranks import operations_rank
from optpart.study.library import load
from optpart.testing.draw import random_instance


def found(instance: Instance) -> Partition:
    return etf(instance, np.random.default_rng(0))


def placed_and_started(instance: Instance) -> tuple[list[int], list[float]]:
    return devices_and_starts(instance, found(instance))


def nine(devices: int) -> Instance:
    """The graph of Kwok and Ahmad 1999."""
    return Instance(load("kwok-ahmad-9-2").graph, Cluster.uniform(devices, bandwidth=1))


def naively(instance: Instance) -> tuple[list[int], list[int]]:
    """Placement and order by comparing all ready vertices on all devices in every step."""
    level, position = operations_rank(instance).sink, instance.graph.position
    placing, order = NaivePlacing(instance), []
    while len(order) < instance.vertices:
        candidates = [
            (placing.start(v, d), -level[v], position[v], placing.finish(v, d), d, v)
            for v in range(instance.vertices)
            if placing.is_ready(v)
            for d in range(instance.devices)
            if placing.may_run(v, d)
        ]
        if not candidates:
            raise NoPlacementError("found no feasible placement")
        *_, d, v = min(candidates)
        placing.place(v, d)
        order.append(v)
    return placing.placement(), order


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("memory", ["none", "estimate"])
def test_is_what_comparing_everything_gives(seed: int, memory: Memory) -> None:
    rng = np.random.default_rng(seed)
    instance = random_instance(rng, 9, 4, memory=memory, rational=False)
    try:
        expected = naively(instance)
    except NoPlacementError:
        with pytest.raises(NoPlacementError):
            found(instance)
        return
    partition = found(instance)
    assert (partition.placement.tolist(), partition.order) == expected


def test_nine_vertices() -> None:
    """19 on as many devices as there are vertices, of which it uses three."""
    instance = nine(9)
    placement, start = placed_and_started(instance)
    assert placement == [0, 0, 1, 0, 2, 0, 1, 1, 1]
    assert max(s + float(instance.graph.ops[v]) for v, s in enumerate(start)) == 19


class TestTies:
    def test_the_higher_level_goes_first(self) -> None:
        builder = GraphBuilder().vertex("a", 5).vertex("b", 1).vertex("c", 6)
        instance = Instance(builder.edge("b", "c", None).build(), Cluster.uniform(1))
        assert placed_and_started(instance)[1] == [7, 0, 1]

    def test_then_the_topologically_first(self) -> None:
        builder = GraphBuilder().vertex("a", 0).vertex("b", 2).vertex("c", 2)
        graph = builder.edge("c", "a", None).build()
        assert placed_and_started(Instance(graph, Cluster.uniform(1)))[1] == [4, 0, 2]

    def test_on_the_device_where_it_ends_first(self) -> None:
        graph = GraphBuilder().vertex("a", 6).vertex("b", 3).build()
        devices = [Device("slow", 1), Device("fast", 3), Device("middle", 2)]
        assert placed_and_started(Instance(graph, Cluster.of(devices))) == ([1, 2], [0, 0])


class TestStart:
    def test_decides_whatever_the_end(self) -> None:
        """b would end at 4 behind a, and ends at 9 on the slow device, where it starts at once."""
        graph = GraphBuilder().vertex("a", 18).vertex("b", 9).build()
        instance = Instance(graph, Cluster.of([Device("slow", 1), Device("fast", 6)]))
        assert placed_and_started(instance) == ([1, 0], [0, 0])

    def test_waits_for_transfers(self) -> None:
        """b can start at 4 where a ran, at 7 elsewhere; then c elsewhere, at 7, not here at 9."""
        builder = GraphBuilder().vertex("a", 4, outputs=[3]).vertex("b", 5).vertex("c", 1)
        graph = builder.edge("a", "b").edge("a", "c").build()
        instance = Instance(graph, Cluster.uniform(2, bandwidth=1))
        assert placed_and_started(instance) == ([0, 0, 1], [0, 4, 7])

    def test_what_starts_early_goes_before_what_is_urgent(self) -> None:
        """x may start at once, y at 4 only; the gap before y is not left for later."""
        builder = GraphBuilder().vertex("a", 4, devices=["d0"]).vertex("x", 9, devices=["d1"])
        builder.vertex("y", 50, devices=["d1"]).edge("a", "y", None)
        instance = Instance(builder.build(), Cluster.uniform(2))
        assert placed_and_started(instance)[1] == [0, 0, 9]


class TestConstraints:
    def test_members_of_a_group_follow_the_first(self) -> None:
        """b could start at once on d0."""
        builder = GraphBuilder().vertex("a", 5, devices=["d1"]).vertex("b", 3).colocate("a", "b")
        assert placed_and_started(Instance(builder.build(), Cluster.uniform(2))) == (
            [1, 1],
            [0, 5],
        )

    def test_a_full_device_is_not_chosen(self) -> None:
        builder = GraphBuilder().vertex("a", 6, memory=2).vertex("b", 6, memory=2)
        devices = [Device("slow", 1), Device("fast", 9, memory=3)]
        graph = builder.edge("a", "b", None).build()
        instance = Instance(graph, Cluster.of(devices), Model(memory="estimate"))
        assert placed_and_started(instance)[0] == [1, 0]
