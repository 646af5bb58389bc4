"""Critical path ([L] §4.6, [M] §3.2.2): the heaviest path on the fastest device, rest by load."""

from __future__ import annotations

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, InputError, Instance, Model
from optpart.strategies.partition.common import Variant
from optpart.strategies.partition.critical_path import critical_path, heaviest_path
from optpart.strategies.partition.ranks import operations_rank

VARIANTS: list[Variant] = ["thesis", "paper"]


def placement(instance: Instance, variant: Variant = "thesis") -> list[int]:
    partition = critical_path(instance, np.random.default_rng(0), variant=variant)
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
    def test_thesis_ends_in_the_sink_of_largest_source_rank(self) -> None:
        """Source ranks of the sinks d and e: 7 and 5."""
        assert heaviest_path(Instance(diamond().build(), cluster())).tolist() == [0, 1, 3]

    def test_paper_ends_in_the_sink_of_largest_downward_rank(self) -> None:
        """Of the sinks d and e: 8 and 9."""
        instance = Instance(diamond().build(), cluster())
        assert heaviest_path(instance, variant="paper").tolist() == [0, 2, 4]

    def test_a_single_heavy_vertex_is_the_path_of_the_paper_alone(self) -> None:
        instance = Instance(diamond().vertex("heavy", 10).build(), cluster())
        assert heaviest_path(instance, variant="paper").tolist() == [5]
        assert heaviest_path(instance).tolist() == [0, 1, 3]

    def test_of_equally_heavy_ways_the_paper_takes_the_longer(self) -> None:
        """x (3) or p (1) → q (2) before z."""
        builder = GraphBuilder()
        for name, ops in zip("xpqz", (3, 1, 2, 1), strict=True):
            builder.vertex(name, ops)
        for u, v in ("xz", "pq", "qz"):
            builder.edge(u, v, None)
        instance = Instance(builder.build(), cluster())
        assert heaviest_path(instance).tolist() == [0, 3]
        assert heaviest_path(instance, variant="paper").tolist() == [1, 2, 3]

    def test_of_equally_heavy_sinks_the_paper_takes_the_one_of_the_longer_path(self) -> None:
        graph = GraphBuilder().vertex("x", 3).vertex("p", 1).vertex("q", 2).edge("p", "q", None)
        instance = Instance(graph.build(), cluster())
        assert heaviest_path(instance, variant="paper").tolist() == [1, 2]

    @pytest.mark.parametrize("variant", VARIANTS)
    def test_transfers_do_not_count(self, variant: Variant) -> None:
        builder = GraphBuilder().vertex("a", 2).vertex("b", 3).vertex("c", 1).vertex("d", 3)
        graph = builder.edge("a", "b", size=1).edge("c", "d", size=1000).build()
        instance = Instance(graph, Cluster.uniform(2, bandwidth=1))
        assert heaviest_path(instance, variant=variant).tolist() == [0, 1]

    @pytest.mark.parametrize("variant", VARIANTS)
    def test_of_an_empty_graph(self, variant: Variant) -> None:
        instance = Instance(GraphBuilder().build(), cluster())
        assert heaviest_path(instance, variant=variant).tolist() == []


class TestPath:
    def test_is_on_the_fastest_device(self) -> None:
        """a, b and d; then c on the first idle device, and e on the other."""
        assert placement(Instance(diamond().build(), cluster())) == [1, 1, 0, 1, 2]

    def test_is_on_the_fastest_device_in_the_paper(self) -> None:
        """a, c and e make 9/4; b takes 5/2 on d2, d 1 on d0."""
        assert placement(Instance(diamond().build(), cluster()), "paper") == [1, 2, 1, 0, 1]

    @pytest.mark.parametrize("variant", VARIANTS)
    def test_takes_colocated_vertices_along(self, variant: Variant) -> None:
        graph = diamond().colocate("c", "b").build()
        device = placement(Instance(graph, cluster()), variant)
        assert device[:3] == [1, 1, 1]

    @pytest.mark.parametrize(("memory", "devices"), [(3, "111"), (2, "112"), (0, "222")])
    def test_is_cut_where_memory_ends(self, memory: int, devices: str) -> None:
        instance = Instance(diamond().build(), cluster(memory), Model(memory="estimate"))
        a, b, _, d, _ = placement(instance)
        assert f"{a}{b}{d}" == devices

    @pytest.mark.parametrize(("memory", "devices"), [(3, "111"), (2, "222"), (0, "222")])
    def test_is_whole_on_a_slower_device_in_the_paper(self, memory: int, devices: str) -> None:
        instance = Instance(diamond().build(), cluster(memory), Model(memory="estimate"))
        a, _, c, _, e = placement(instance, "paper")
        assert f"{a}{c}{e}" == devices

    def test_is_divided_in_the_paper_only_where_no_device_can_hold_it(self) -> None:
        """Two on d1, one on d2."""
        devices = [Device("d0", 1, memory=2), Device("d1", 4, memory=2), Device("d2", 2, memory=2)]
        instance = Instance(diamond().build(), Cluster.of(devices), Model(memory="estimate"))
        a, _, c, _, e = placement(instance, "paper")
        assert [a, c, e] == [1, 1, 2]

    @pytest.mark.parametrize("variant", VARIANTS)
    def test_goes_around_a_device_constraint(self, variant: Variant) -> None:
        graph = GraphBuilder().vertex("a", 2).vertex("b", 3, devices=["d0", "d2"]).vertex("c", 4)
        instance = Instance(graph.edge("a", "b", None).edge("b", "c", None).build(), cluster())
        assert placement(instance, variant) == ([1, 2, 1] if variant == "thesis" else [2, 2, 2])


class TestRest:
    def test_goes_where_the_load_so_far_is_least(self) -> None:
        """[L] eq. 4.5; on d0, d1 and d2 there are, before

        c: **0**, 4, 0; e: 2, 4, **0**; f: 2, 4, **1**; g: **2**, 4, 3.
        """
        builder = GraphBuilder().vertex("a", 8).vertex("b", 8).edge("a", "b", None)
        for name, ops in zip("cefg", (2, 2, 4, 3), strict=True):
            builder.vertex(name, ops)
        assert placement(Instance(builder.build(), cluster())) == [1, 1, 0, 2, 2, 0]

    def test_goes_where_its_own_time_included_the_load_is_least_in_the_paper(self) -> None:
        """[M] eq. 7; on d0, d1 and d2 it would end at

        c: 2, 4.5, **1**; e: **2**, 4.5, 2; f: 6, 5, **3**; g: 5, 4.75, **4.5**.
        """
        builder = GraphBuilder().vertex("a", 8).vertex("b", 8).edge("a", "b", None)
        for name, ops in zip("cefg", (2, 2, 4, 3), strict=True):
            builder.vertex(name, ops)
        assert placement(Instance(builder.build(), cluster()), "paper") == [1, 1, 2, 0, 2, 2]

    def test_goes_in_topological_order(self) -> None:
        """With z first, y ends on d2 at 2/2 + 3/2; with y first, z ends on d0 at 2."""
        builder = GraphBuilder().vertex("heavy", 40).vertex("y", 3).vertex("z", 2)
        instance = Instance(builder.edge("z", "y", None).build(), cluster())
        assert placement(instance, "paper") == [1, 2, 2]
        builder = GraphBuilder().vertex("heavy", 40).vertex("y", 3).vertex("z", 2)
        assert placement(Instance(builder.build(), cluster()), "paper") == [1, 2, 0]

    def test_a_group_counts_as_one(self) -> None:
        """Together 6 on d0 or 3 on d2."""
        builder = GraphBuilder().vertex("heavy", 40).vertex("x", 3).vertex("y", 2).vertex("z", 3)
        instance = Instance(builder.colocate("x", "z").build(), cluster())
        assert placement(instance, "paper") == [1, 2, 0, 2]

    def test_counts_given_run_times(self) -> None:
        """In the thesis the first of three idle vertices is the path."""
        graph = GraphBuilder().vertex("heavy").vertex("x").vertex("y").build()
        instance = Instance(graph, cluster(), durations=[[9, 9, 9], [5, 1, 4], [None, 1, 3]])
        assert placement(instance, "paper") == [1, 2, 2]
        assert placement(instance) == [1, 0, 2]


def test_an_unknown_variant_is_refused() -> None:
    instance = Instance(diamond().build(), cluster())
    with pytest.raises(InputError, match="variant: unknown 'book'; choose one of thesis, paper"):
        critical_path(instance, np.random.default_rng(0), variant="book")  # type: ignore[arg-type]
