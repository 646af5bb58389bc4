"""The graph of operations that the strategies of [B] share: merged, acyclic, ranked (§4.1)."""

from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import given

from optpart import Cluster, Device, GraphBuilder, Instance
from optpart.strategies.partition.unit_graph import (
    UnitGraph,
    by_first_vertex,
    place_preferred,
    unit_graph,
)
from optpart.testing.strategies import instances


def of(
    vertices: str, *edges: str, groups: tuple[str, ...] = (), devices: int | Cluster = 2
) -> Instance:
    builder = GraphBuilder()
    for name in vertices:
        builder.vertex(name, 1)
    for u, v in edges:
        builder.edge(u, v, None)
    for group in groups:
        builder.colocate(*group)
    cluster = Cluster.uniform(devices) if isinstance(devices, int) else devices
    return Instance(builder.build(), cluster)


def edges(graph: UnitGraph) -> set[tuple[int, int]]:
    return set(zip(graph.source.tolist(), graph.target.tolist(), strict=True))


class TestUpRank:
    def test_counts_the_edges_of_the_longest_path_to_a_sink(self) -> None:
        """a → b → c → d and a → d; e → d; f alone."""
        graph = unit_graph(of("abcdef", "ab", "bc", "cd", "ad", "ed"))
        assert graph.rank.tolist() == [3, 2, 1, 0, 1, 0]

    def test_orders_equal_units_by_number(self) -> None:
        graph = unit_graph(of("abcdef", "ab", "bc", "cd", "ad", "ed"))
        assert graph.by_rank.tolist() == [0, 1, 2, 4, 3, 5]
        assert graph.turn.tolist() == [0, 1, 2, 4, 3, 5]

    def test_of_an_empty_graph(self) -> None:
        assert unit_graph(of("")).rank.tolist() == []


class TestMerging:
    def test_neighbours_of_a_member_become_neighbours_of_the_group(self) -> None:
        """[B] figure 4.2: units are 0 = {a, d}, 1 = b, 2 = c, 3 = e."""
        graph = unit_graph(of("abcde", "ab", "bc", "de", groups=("ad",)))
        assert edges(graph) == {(0, 1), (1, 2), (0, 3)}
        assert graph.rank.tolist() == [2, 1, 0, 0]

    def test_two_units_have_one_edge_however_much_goes_over(self) -> None:
        builder = GraphBuilder().vertex("a", outputs=[1, 2]).vertex("b").vertex("c")
        builder.edge("a", "b", 0).edge("a", "b", 1).edge("a", "b", None).edge("a", "c", 0)
        graph = unit_graph(Instance(builder.colocate("b", "c").build(), Cluster.uniform(2)))
        assert edges(graph) == {(0, 1)}

    def test_edges_are_listed_by_both_ends(self) -> None:
        graph = unit_graph(of("abcd", "ac", "bc", "ad", "cd"))
        assert graph.out_start.tolist() == [0, 2, 3, 4, 4]
        assert graph.target.tolist() == [2, 3, 2, 3]
        assert graph.in_start.tolist() == [0, 0, 0, 2, 4]
        assert graph.in_source.tolist() == [0, 1, 0, 2]


class TestCycles:
    def test_the_edge_that_closes_a_cycle_is_dropped(self) -> None:
        """{a, c} → b → {a, c}: a comes first, so b's edge leads back."""
        graph = unit_graph(of("abc", "ab", "bc", groups=("ac",)))
        assert edges(graph) == {(0, 1)}
        assert graph.rank.tolist() == [1, 0]

    def test_the_traversal_is_topological(self) -> None:
        """Units are 0 = {v, z} and 1 = a; v is listed first, but a → v comes before v → z."""
        builder = GraphBuilder().vertex("v").vertex("a").vertex("y").vertex("z")
        builder.edge("a", "v", None).edge("v", "y", None).edge("y", "z", None)
        graph = builder.colocate("v", "z").colocate("a", "y").build()
        assert edges(unit_graph(Instance(graph, Cluster.uniform(2)))) == {(1, 0)}

    def test_parallel_ways_around_are_dropped_one_by_one(self) -> None:
        """{a, d} → b → {a, d} and {a, d} → c → {a, d}."""
        graph = unit_graph(of("abcd", "ab", "ac", "bd", "cd", groups=("ad",)))
        assert edges(graph) == {(0, 1), (0, 2)}

    def test_weights_keep_the_edges_by_which_they_are_read(self) -> None:
        """i → c, w → c → g → {w, u}; i is first, but a cycle it is not on."""
        graph = unit_graph(of("iwcgu", "ic", "wc", "cg", "gu", groups=("wu",)))
        assert edges(graph) == {(0, 2), (1, 2), (2, 3)}

    def test_an_edge_that_leads_back_on_no_cycle_is_kept(self) -> None:
        """Units 0 = {a, d}, 1 = b, 2 = c: c → d leads back to a's group, b → c does not."""
        graph = unit_graph(of("abcd", "bc", "cd", groups=("ad",)))
        assert edges(graph) == {(1, 2), (2, 0)}

    @given(instances(max_vertices=8))
    def test_what_remains_is_acyclic_and_what_is_dropped_was_on_a_cycle(
        self, instance: Instance
    ) -> None:
        graph = unit_graph(instance)
        unit = instance.unit_of
        whole = {
            (int(unit[u]), int(unit[v]))
            for u, v in zip(instance.graph.edge_source, instance.graph.edge_target, strict=True)
            if unit[u] != unit[v]
        }
        kept = nx.DiGraph(list(edges(graph)))
        kept.add_nodes_from(range(len(graph.rank)))
        assert edges(graph) <= whole
        assert nx.is_directed_acyclic_graph(kept)
        for u, v in whole - edges(graph):
            assert nx.has_path(nx.DiGraph(list(whole)), v, u)
        longest = {
            u: max((longest_from for _, longest_from in _lengths(kept, u)), default=0) for u in kept
        }
        assert graph.rank.tolist() == [longest[u] for u in range(len(graph.rank))]


def _lengths(graph: nx.DiGraph[int], source: int) -> list[tuple[int, int]]:
    found: dict[int, int] = {source: 0}
    for u in nx.topological_sort(graph):
        for v in graph.successors(u) if u in found else ():
            found[v] = max(found.get(v, 0), found[u] + 1)
    return list(found.items())


def test_units_by_first_vertex_follow_the_topological_order() -> None:
    builder = GraphBuilder().vertex("v").vertex("a").vertex("b").edge("b", "v", None)
    graph = builder.colocate("a", "v").build()
    assert graph.topological_order.tolist() == [1, 2, 0]
    assert by_first_vertex(Instance(graph, Cluster.uniform(1))).tolist() == [0, 1]


class TestPreference:
    def placed(self, instance: Instance, preferred: list[int], devices: list[int]) -> list[int]:
        state = place_preferred(
            instance,
            unit_graph(instance),
            by_first_vertex(instance),
            np.array(preferred, dtype=np.int64),
            np.array(devices, dtype=np.int32),
        )
        found: list[int] = state.device.tolist()
        return found

    def test_is_a_position_among_the_devices(self) -> None:
        assert self.placed(of("abc", devices=3), [0, 2, 1], [2, 0, 1]) == [2, 1, 0]

    def test_the_next_device_takes_what_does_not_fit_and_after_the_last_the_first(self) -> None:
        builder = GraphBuilder().vertex("a", devices=["d0"]).vertex("b", devices=["d0", "d1"])
        instance = Instance(builder.build(), Cluster.uniform(3))
        assert self.placed(instance, [1, 2], [0, 1, 2]) == [0, 0]

    def test_none_is_the_device_that_holds_most_inputs(self) -> None:
        """c reads a and b on d1; d reads one input on each, and the first of equals wins."""
        instance = of("abxcd", "ac", "bc", "xc", "ad", "xd", devices=3)
        assert self.placed(instance, [1, 1, 2, -1, -1], [0, 1, 2]) == [1, 1, 2, 1, 1]
        assert self.placed(instance, [1, 1, 0, -1, -1], [2, 1, 0]) == [1, 1, 2, 1, 2]

    def test_none_without_inputs_is_the_first_device(self) -> None:
        assert self.placed(of("a", devices=Cluster.of([*map(Device, "xyz")])), [-1], [2, 0]) == [2]

    def test_what_fits_nowhere_is_not_placed(self) -> None:
        builder = GraphBuilder().vertex("a").vertex("b", devices=["d1"])
        instance = Instance(builder.build(), Cluster.uniform(2))
        assert self.placed(instance, [0, 0], [0]) == [0, -1]
