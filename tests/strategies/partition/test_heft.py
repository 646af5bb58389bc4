"""HEFT with the constraints of [L] §4.3: ranks, insertion, and groups that stay together."""

from __future__ import annotations

import numpy as np
import pytest
from task_graphs import devices_and_starts

from optpart import Cluster, Device, GraphBuilder, Instance, Model, load
from optpart.kernels.compiled import arrays
from optpart.problem.cluster import Matrix
from optpart.strategies.partition.heft import heft
from optpart.strategies.partition.ranks import upward_rank


def ranks(instance: Instance) -> list[float]:
    """Upward ranks in time units."""
    return [float(rank) / arrays(instance).scale for rank in upward_rank(instance)]


def placed_and_started(instance: Instance) -> tuple[list[int], list[float]]:
    return devices_and_starts(instance, heft(instance, np.random.default_rng(0)))


class TestUpwardRank:
    """[L] eq. 4.1 and 4.2."""

    def chain(self, bandwidth: Matrix, latency: Matrix = 0) -> Instance:
        """a (6) → b (4) by a tensor of 12, a → c (2) by a control edge; mean speed 2."""
        builder = GraphBuilder().vertex("a", 6, outputs=[12]).vertex("b", 4).vertex("c", 2)
        devices = [Device("d0", 1), Device("d1", 3)]
        graph = builder.edge("a", "b").edge("a", "c", None).build()
        return Instance(graph, Cluster.of(devices, bandwidth, latency))

    def test_mean_speed_and_mean_bandwidth(self) -> None:
        assert ranks(self.chain([[None, 2], [4, None]])) == [3 + 12 / 3 + 2, 2, 1]

    def test_mean_latency(self) -> None:
        assert ranks(self.chain([[None, 2], [4, None]], [[0, 3], [5, 0]])) == [3 + 4 + 4 + 2, 2, 1]

    def test_only_links_count(self) -> None:
        assert ranks(self.chain([[None, 2], [0, None]])) == [3 + 12 / 2 + 2, 2, 1]
        assert ranks(self.chain(0)) == [3 + 2, 2, 1]

    def test_infinite_bandwidth_takes_no_time(self) -> None:
        """Half of the pairs take 12/2, the other half nothing."""
        assert ranks(self.chain([[None, 2], [None, None]])) == [3 + 3 + 2, 2, 1]
        assert ranks(self.chain(None)) == [3 + 2, 2, 1]

    def test_the_largest_successor_counts(self) -> None:
        builder = GraphBuilder().vertex("a", 1, outputs=[1, 5]).vertex("b", 7).vertex("c", 4)
        graph = builder.edge("a", "b", 0).edge("a", "c", 1).build()
        assert ranks(Instance(graph, Cluster.uniform(2, bandwidth=1))) == [1 + 5 + 4, 7, 4]

    def test_given_times_count_by_their_mean(self) -> None:
        builder = GraphBuilder().vertex("a").vertex("b")
        builder.output("a", 0, [[0, 3, 4], [None, 0, 5], [6, 7, 0]])
        graph = builder.edge("a", "b").build()
        instance = Instance(graph, Cluster.uniform(3), durations=[[1, 2, 6], [4, None, 8]])
        assert ranks(instance) == [3 + 5 + 6, 6]

    def test_ten_tasks(self) -> None:
        """Topcuoglu et al. 2002, table 3."""
        expected = [108, 77, 80, 80, 69, 63.333, 42.667, 35.667, 44.333, 14.667]
        assert ranks(load("heft-10")) == pytest.approx(expected, abs=1e-3)


class TestChoice:
    def test_the_earliest_finish_decides(self) -> None:
        """c would end at 7 behind b and a on the fast device, and ends at 6 on the slow one."""
        builder = GraphBuilder().vertex("a", 6).vertex("b", 9).vertex("c", 6)
        devices = [Device("slow", 1), Device("fast", 3)]
        instance = Instance(builder.build(), Cluster.of(devices))
        # Falling rank: b (9), then a and c (6) by number.
        assert placed_and_started(instance) == ([1, 1, 0], [3, 0, 0])

    def test_transfer_time_counts(self) -> None:
        """b ends on the fast device at 4 + δ + 1, on the slow one at 4 + 3."""

        def device_of_b(size: int) -> int:
            builder = GraphBuilder().vertex("a", 4, devices=["slow"], outputs=[size])
            graph = builder.vertex("b", 3).edge("a", "b").build()
            devices = [Device("slow", 1), Device("fast", 3)]
            return placed_and_started(Instance(graph, Cluster.of(devices, bandwidth=2)))[0][1]

        assert device_of_b(3) == 1
        assert device_of_b(4) == 0  # both end at 7: the first device
        assert device_of_b(5) == 0

    def test_a_tensor_shared_by_consumers_arrives_once_for_all(self) -> None:
        builder = GraphBuilder().vertex("a", 4, outputs=[6]).vertex("b", 5).vertex("c", 5)
        graph = builder.edge("a", "b").edge("a", "c").build()
        instance = Instance(graph, Cluster.uniform(2, bandwidth=2))
        assert placed_and_started(instance) == ([0, 0, 1], [0, 4, 7])

    def test_a_full_device_is_not_chosen(self) -> None:
        builder = GraphBuilder().vertex("a", 6, memory=2).vertex("b", 6, memory=2)
        devices = [Device("slow", 1), Device("fast", 9, memory=3)]
        instance = Instance(builder.build(), Cluster.of(devices), Model(memory="estimate"))
        assert placed_and_started(instance)[0] == [1, 0]

    def test_a_device_without_link_is_not_chosen(self) -> None:
        """Control signals need links too."""
        for output in (0, None):
            builder = GraphBuilder().vertex("a", 4, devices=["slow"], outputs=[1])
            graph = builder.vertex("b", 9).edge("a", "b", output).build()
            devices = [Device("slow", 1), Device("fast", 9)]
            assert placed_and_started(Instance(graph, Cluster.of(devices, 0)))[0] == [0, 0]


class TestInsertion:
    def gap(self, length: int) -> float:
        """Start of a vertex ``x`` on d1, which idles from 0 to 10 while a tensor comes from d0.

        b follows on d1 from 10 to 15 and e, 20 long, until 35; both rank above x.
        """
        builder = GraphBuilder().vertex("a", 4, devices=["d0"], outputs=[6])
        builder.vertex("b", 5, devices=["d1"]).vertex("e", 20, devices=["d1"])
        builder.vertex("x", length, devices=["d1"]).edge("a", "b").edge("b", "e", None)
        instance = Instance(builder.build(), Cluster.uniform(2, bandwidth=1))
        return placed_and_started(instance)[1][3]

    def test_a_vertex_fits_into_a_gap_of_its_length(self) -> None:
        assert self.gap(3) == 0
        assert self.gap(10) == 0

    def test_a_longer_one_goes_behind(self) -> None:
        assert self.gap(11) == 35

    def test_a_gap_may_be_used_twice(self) -> None:
        """x and y share the gap from 0 to 10 in order of rank; z does not fit any more."""
        builder = GraphBuilder().vertex("a", 4, devices=["d0"], outputs=[6])
        builder.vertex("b", 9, devices=["d1"])
        for name, ops in zip("xyz", (6, 4, 1), strict=True):
            builder.vertex(name, ops, devices=["d1"])
        instance = Instance(builder.edge("a", "b").build(), Cluster.uniform(2, bandwidth=1))
        assert placed_and_started(instance)[1] == [0, 10, 0, 6, 19]

    def test_an_insertion_waits_for_its_inputs(self) -> None:
        """x (3) has its input at 6 and fits from there; with 5 it does not."""

        def start(length: int) -> float:
            builder = GraphBuilder().vertex("a", 4, devices=["d0"], outputs=[6, 2])
            builder.vertex("b", 9, devices=["d1"]).edge("a", "b", 0)
            builder.vertex("x", length, devices=["d1"]).edge("a", "x", 1)
            instance = Instance(builder.build(), Cluster.uniform(2, bandwidth=1))
            return placed_and_started(instance)[1][2]

        assert start(3) == 6
        assert start(4) == 6
        assert start(5) == 19

    def test_many_gaps(self) -> None:
        """Every second unit of d1 is taken; 40 vertices of length 1 fill the 40 gaps between."""
        builder = GraphBuilder().vertex("a", 0, devices=["d0"])
        for i in range(40):
            output = builder.output("a", 2 * i + 1)
            builder.vertex(f"b{i}", 1, devices=["d1"]).edge("a", f"b{i}", output)
            builder.vertex(f"after{i}", 5, devices=["d2"]).edge(f"b{i}", f"after{i}", None)
        for i in range(40):
            builder.vertex(f"x{i}", 1, devices=["d1"])
        instance = Instance(builder.build(), Cluster.uniform(3, bandwidth=1))
        _, start = placed_and_started(instance)
        assert sorted(start[-40:]) == list(range(0, 80, 2))


class TestColocation:
    def test_members_follow_the_first_that_has_its_turn(self) -> None:
        """a takes the fast device; b waits for it there, though the slow one is free."""
        builder = GraphBuilder().vertex("a", 30).vertex("b", 3).colocate("a", "b")
        devices = [Device("slow", 1), Device("fast", 3)]
        instance = Instance(builder.build(), Cluster.of(devices))
        assert placed_and_started(instance) == ([1, 1], [0, 10])

    def test_the_first_chooses_what_all_may_use(self) -> None:
        builder = GraphBuilder().vertex("a", 30).vertex("b", 3, devices=["slow"])
        devices = [Device("slow", 1), Device("fast", 3)]
        instance = Instance(builder.colocate("a", "b").build(), Cluster.of(devices))
        assert placed_and_started(instance)[0] == [0, 0]

    def test_the_first_chooses_where_there_is_memory_for_all(self) -> None:
        builder = GraphBuilder().vertex("a", 30, memory=1).vertex("b", 3, memory=2)
        devices = [Device("slow", 1), Device("fast", 3, memory=2)]
        instance = Instance(
            builder.colocate("a", "b").build(), Cluster.of(devices), Model(memory="estimate")
        )
        assert placed_and_started(instance)[0] == [0, 0]

    def test_members_may_use_gaps(self) -> None:
        """b runs from 10 on; its companion c before that."""
        builder = GraphBuilder().vertex("a", 4, devices=["d0"], outputs=[6])
        builder.vertex("b", 9, devices=["d1"]).vertex("c", 3).colocate("b", "c").edge("a", "b")
        instance = Instance(builder.build(), Cluster.uniform(2, bandwidth=1))
        assert placed_and_started(instance) == ([0, 1, 1], [0, 10, 0])


def test_the_order_is_that_of_the_starts() -> None:
    builder = GraphBuilder().vertex("a", 4, devices=["d0"], outputs=[6])
    builder.vertex("b", 9, devices=["d1"]).vertex("x", 3, devices=["d1"]).edge("a", "b")
    instance = Instance(builder.build(), Cluster.uniform(2, bandwidth=1))
    assert heft(instance, np.random.default_rng(0)).order == [2, 0, 1]
