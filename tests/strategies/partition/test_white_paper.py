"""The white paper's greedy placement: as vertices become ready, where they would end first."""

from __future__ import annotations

import numpy as np
import pytest
from naive_placing import NaivePlacing
from task_graphs import devices_and_starts

from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.problem.model import Memory
from optpart.strategies.base import NoPlacementError, Partition
from optpart.strategies.partition.white_paper import white_paper
from optpart.testing.draw import random_instance

DEVICES = [Device("slow", 1), Device("fast", 3)]


def found(instance: Instance) -> Partition:
    return white_paper(instance, np.random.default_rng(0))


def placed_and_started(instance: Instance) -> tuple[list[int], list[float]]:
    return devices_and_starts(instance, found(instance))


def naively(instance: Instance) -> tuple[list[int], list[int]]:
    """Placement and order by comparing all ready vertices, and then all devices, in every step."""
    position = instance.graph.position
    placing, order = NaivePlacing(instance), []
    while len(order) < instance.vertices:
        _, _, v = min(
            (max((placing.end[u] for u in placing.predecessors(v)), default=0), position[v], v)
            for v in range(instance.vertices)
            if placing.is_ready(v)
        )
        devices = [d for d in range(instance.devices) if placing.may_run(v, d)]
        if not devices:
            raise NoPlacementError("found no feasible placement")
        placing.place(v, min(devices, key=lambda d: placing.finish(v, d)))
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


class TestOrder:
    def test_what_is_ready_first_goes_first_however_urgent_the_rest(self) -> None:
        """b is ready at 1 and c at 2, from where on 90 more have to run."""
        builder = GraphBuilder().vertex("a", 1, devices=["d0"]).vertex("e", 2, devices=["d1"])
        builder.vertex("b", 9, devices=["d2"]).vertex("c", 9, devices=["d2"]).vertex("d", 90)
        builder.edge("a", "b", None).edge("e", "c", None).edge("c", "d", None)
        instance = Instance(builder.build(), Cluster.uniform(3))
        assert placed_and_started(instance)[1] == [0, 0, 1, 10, 19]

    def test_of_what_is_ready_together_the_topologically_first(self) -> None:
        graph = GraphBuilder().vertex("a", 6).vertex("b", 3).build()
        assert placed_and_started(Instance(graph, Cluster.uniform(1)))[1] == [0, 6]

    def test_ready_means_that_the_last_predecessor_has_ended(self) -> None:
        """c waits for a and b, until 3; d only for a, until 1."""
        builder = GraphBuilder().vertex("a", 1).vertex("b", 3).vertex("c", 5).vertex("d", 5)
        builder.edge("a", "c", None).edge("b", "c", None).edge("a", "d", None)
        graph = builder.colocate("c", "d").build()
        assert placed_and_started(Instance(graph, Cluster.uniform(2))) == (
            [0, 1, 0, 0],
            [0, 0, 6, 1],
        )


class TestDevice:
    def test_is_where_the_vertex_ends_first(self) -> None:
        """Behind a, which ends at 3, b would end at 4 or at 6, c at 5 or 4."""
        graph = GraphBuilder().vertex("a", 9).vertex("b", 3).vertex("c", 4).build()
        assert placed_and_started(Instance(graph, Cluster.of(DEVICES))) == ([1, 0, 1], [0, 0, 3])

    def test_is_the_first_of_equals(self) -> None:
        graph = GraphBuilder().vertex("a", 9).build()
        assert placed_and_started(Instance(graph, Cluster.uniform(3)))[0] == [0]

    def test_transfers_count(self) -> None:
        """b ends on the fast device at 4 + δ + 1, on the slow one at 4 + 3."""

        def device_of_b(size: int) -> int:
            builder = GraphBuilder().vertex("a", 4, devices=["slow"], outputs=[size])
            graph = builder.vertex("b", 3).edge("a", "b").build()
            return placed_and_started(Instance(graph, Cluster.of(DEVICES, bandwidth=2)))[0][1]

        assert device_of_b(3) == 1
        assert device_of_b(4) == 0  # both end at 7: the first device
        assert device_of_b(5) == 0

    def test_gaps_are_not_used(self) -> None:
        """x is ready at 4 and goes behind b, which runs from 10 to 15 once a tensor is there."""
        builder = GraphBuilder().vertex("a", 4, devices=["d0"], outputs=[6])
        builder.vertex("b", 5, devices=["d1"]).vertex("x", 2, devices=["d1"])
        graph = builder.edge("a", "b").edge("a", "x", None).build()
        instance = Instance(graph, Cluster.uniform(2, bandwidth=1))
        assert placed_and_started(instance)[1] == [0, 10, 15]


class TestConstraints:
    def test_members_of_a_group_share_the_devices_that_all_may_use(self) -> None:
        builder = GraphBuilder().vertex("a", 30).vertex("b", 3, devices=["slow"])
        instance = Instance(builder.colocate("a", "b").build(), Cluster.of(DEVICES))
        assert placed_and_started(instance) == ([0, 0], [0, 30])

    def test_a_full_device_is_not_feasible(self) -> None:
        builder = GraphBuilder().vertex("a", 6, memory=2).vertex("b", 6, memory=2)
        devices = [Device("slow", 1), Device("fast", 9, memory=3)]
        instance = Instance(builder.build(), Cluster.of(devices), Model(memory="estimate"))
        assert placed_and_started(instance)[0] == [1, 0]
