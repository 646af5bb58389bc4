"""Critical path ([L] §4.6): the heaviest path on the fastest device, the rest by load."""

from __future__ import annotations

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.partition.critical_path import critical_path, heaviest_path
from optpart.partition.ranks import operations_rank


def placement(instance: Instance) -> list[int]:
    partition = critical_path(instance, np.random.default_rng(0))
    assert partition.order is None
    return [int(device) for device in partition.placement]


def diamond() -> GraphBuilder:
    """a (2) → b (5) → d (1), a → c (3) → d, c → e (4); c and e are the heavier way."""
    builder = GraphBuilder()
    for name, ops in zip("abcde", (2, 5, 3, 1, 4), strict=True):
        builder.vertex(name, ops, memory=1)
    for u, v in ("ab", "bd", "ac", "cd", "ce"):
        builder.edge(u, v, None)
    return builder


def cluster(memory: int | None = None) -> Cluster:
    """Speeds 1, 4 and 2; ``memory`` is that of the fastest."""
    return Cluster.of([Device("d0", 1), Device("d1", 4, memory=memory), Device("d2", 2)])


class TestOperationsRank:
    def test_source_rank(self) -> None:
        """[L] eq. 4.3."""
        rank = operations_rank(Instance(diamond().build(), cluster()))
        assert rank.source.tolist() == [0, 2, 2, 7, 5]

    def test_sink_rank(self) -> None:
        """[L] eq. 4.4."""
        rank = operations_rank(Instance(diamond().build(), cluster()))
        assert rank.sink.tolist() == [2 + 3 + 4, 5 + 1, 3 + 4, 1, 4]

    def test_given_run_times_count_by_their_mean(self) -> None:
        graph = GraphBuilder().vertex("a").vertex("b").edge("a", "b", None).build()
        instance = Instance(graph, cluster(), durations=[[3, 6, 9], [1, None, 2]])
        assert operations_rank(instance).sink.tolist() == [7.5, 1.5]


class TestHeaviestPath:
    def test_source_first(self) -> None:
        assert heaviest_path(Instance(diamond().build(), cluster())).tolist() == [0, 2, 4]

    def test_a_single_heavy_vertex_is_a_path(self) -> None:
        graph = diamond().vertex("heavy", 10).build()
        assert heaviest_path(Instance(graph, cluster())).tolist() == [5]

    def test_transfers_do_not_count(self) -> None:
        builder = GraphBuilder().vertex("a", 1).vertex("b", 3).vertex("c", 2).vertex("d", 2)
        graph = builder.edge("a", "b", size=1000).edge("c", "d", size=1).build()
        assert heaviest_path(Instance(graph, Cluster.uniform(2, bandwidth=1))).tolist() == [0, 1]

    def test_of_an_empty_graph(self) -> None:
        assert heaviest_path(Instance(GraphBuilder().build(), cluster())).tolist() == []


class TestPath:
    def test_is_on_the_fastest_device(self) -> None:
        """a, c and e make 9/4; b takes 5/2 on d2, d 1 on d0."""
        assert placement(Instance(diamond().build(), cluster())) == [1, 2, 1, 0, 1]

    def test_takes_colocated_vertices_along(self) -> None:
        graph = diamond().colocate("c", "b").build()
        assert placement(Instance(graph, cluster())) == [1, 1, 1, 2, 1]

    @pytest.mark.parametrize(("memory", "devices"), [(3, "111"), (2, "112"), (0, "222")])
    def test_is_cut_where_memory_ends(self, memory: int, devices: str) -> None:
        instance = Instance(diamond().build(), cluster(memory), Model(memory="estimate"))
        a, _, c, _, e = placement(instance)
        assert f"{a}{c}{e}" == devices

    def test_goes_around_a_device_constraint(self) -> None:
        graph = GraphBuilder().vertex("a", 2).vertex("b", 3, devices=["d0", "d2"]).vertex("c", 4)
        instance = Instance(graph.edge("a", "b", None).edge("b", "c", None).build(), cluster())
        assert placement(instance) == [1, 2, 1]


class TestRest:
    def test_goes_where_its_own_time_included_the_load_is_least(self) -> None:
        """[L] eq. 4.5 with [M] eq. 7; on d0, d1 and d2 it would end at

        c: 2, 4.5, **1**; e: **2**, 4.5, 2; f: 6, 5, **3**; g: 5, 4.75, **4.5**.
        """
        builder = GraphBuilder().vertex("a", 8).vertex("b", 8).edge("a", "b", None)
        for name, ops in zip("cefg", (2, 2, 4, 3), strict=True):
            builder.vertex(name, ops)
        assert placement(Instance(builder.build(), cluster())) == [1, 1, 2, 0, 2, 2]

    def test_goes_in_topological_order(self) -> None:
        """With z first, y ends on d2 at 2/2 + 3/2; with y first, z ends on d0 at 2."""
        builder = GraphBuilder().vertex("heavy", 40).vertex("y", 3).vertex("z", 2)
        assert placement(Instance(builder.edge("z", "y", None).build(), cluster())) == [1, 2, 2]
        builder = GraphBuilder().vertex("heavy", 40).vertex("y", 3).vertex("z", 2)
        assert placement(Instance(builder.build(), cluster())) == [1, 2, 0]

    def test_a_group_counts_as_one(self) -> None:
        """Together 6 on d0 or 3 on d2."""
        builder = GraphBuilder().vertex("heavy", 40).vertex("x", 3).vertex("y", 2).vertex("z", 3)
        graph = builder.colocate("x", "z").build()
        assert placement(Instance(graph, cluster())) == [1, 2, 0, 2]

    def test_counts_given_run_times(self) -> None:
        graph = GraphBuilder().vertex("heavy").vertex("x").vertex("y").build()
        instance = Instance(graph, cluster(), durations=[[9, 9, 9], [5, 1, 4], [None, 1, 3]])
        assert placement(instance) == [1, 2, 2]
