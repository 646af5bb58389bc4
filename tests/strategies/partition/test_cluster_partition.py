"""Clustering by random contraction ([B] §4.4, §5.6)."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, InputError, Instance, Model
from optpart.strategies.partition.cluster import Version, best_clusters, cluster
from optpart.strategies.partition.unit_graph import unit_graph

VERSIONS: list[Version] = ["load", "comm", "cap"]


def graph(vertices: int, *edges: tuple[int, int]) -> GraphBuilder:
    builder = GraphBuilder()
    for v in range(vertices):
        builder.vertex(f"v{v}", 1, memory=1)
    for u, v in edges:
        builder.edge(f"v{u}", f"v{v}", None)
    return builder


def cliques() -> GraphBuilder:
    """v0 to v3 and v4 to v7, all linked among themselves, and v3 → v4."""
    return graph(8, *combinations(range(4), 2), *combinations(range(4, 8), 2), (3, 4))


def star(leaves: int) -> GraphBuilder:
    return graph(leaves + 1, *((0, leaf) for leaf in range(1, leaves + 1)))


def placement(
    builder: GraphBuilder, devices: int | Cluster = 2, seed: int = 0, **options: Any
) -> list[int]:
    cluster_of = Cluster.uniform(devices) if isinstance(devices, int) else devices
    model = Model(memory="none" if cluster_of.memory[0] is None else "estimate")
    instance = Instance(builder.build(), cluster_of, model)
    partition = cluster(instance, np.random.default_rng(seed), **options)
    return [int(d) for d in partition.placement]


def sizes(builder: GraphBuilder, clusters: int, version: Version, tries: int = 1) -> list[int]:
    units = unit_graph(Instance(builder.build(), Cluster.uniform(clusters)))
    label = best_clusters(units, clusters, np.random.default_rng(0), version, tries)
    return sorted(Counter(label.tolist()).values())


class TestContraction:
    @pytest.mark.parametrize("version", VERSIONS)
    def test_finds_the_two_clusters_of_a_graph_that_has_two(self, version: Version) -> None:
        assert placement(cliques(), version=version) == [0] * 4 + [1] * 4

    @pytest.mark.parametrize("version", VERSIONS)
    def test_there_are_as_many_clusters_as_devices(self, version: Version) -> None:
        for k in range(1, 8):
            assert len(sizes(cliques(), k, version, 20)) == k

    @pytest.mark.parametrize("version", VERSIONS)
    def test_or_as_many_as_units_if_these_are_fewer(self, version: Version) -> None:
        assert sizes(star(2), 5, version) == [1, 1, 1]

    def test_colocated_vertices_are_one_unit(self) -> None:
        """Of the eight, v0 to v5 are one: three units, and the other two are linked."""
        builder = cliques().colocate(*(f"v{v}" for v in range(6)))
        found = placement(builder, version="load")
        assert len(set(found[:6])) == 1
        assert len(set(found)) == 2

    def test_without_edges_the_two_smallest_are_merged_again_and_again(self) -> None:
        """1 1 1 1 1 1 → 2 1 1 1 1 → 2 2 1 1 → 2 2 2 → 4 2."""
        assert sizes(graph(6), 2, "load") == [2, 4]
        assert sizes(graph(7), 3, "load") == [2, 2, 3]

    def test_all_components_are_contracted_before_any_two_are_merged(self) -> None:
        """A path of four and four single vertices: 4 1 1 1 1 → 4 2 1 1 → 4 2 2 → 4 4."""
        path = graph(8, (0, 1), (1, 2), (2, 3))
        assert placement(path, version="load", tries=1) == [0] * 4 + [1] * 4


class TestVersions:
    def test_load_keeps_the_most_even_try(self) -> None:
        """A path falls into two halves, with enough tries."""
        path = graph(8, *pairwise(range(8)))
        assert sizes(path, 2, "load", 100) == [4, 4]

    def test_comm_keeps_the_try_with_fewest_edges_between_clusters(self) -> None:
        def crossing(tries: int) -> int:
            rng = np.random.default_rng(2)
            edges = [(int(u), int(v)) for u, v in rng.integers(40, size=(90, 2)) if u < v]
            found = placement(graph(40, *edges), 3, version="comm", tries=tries)
            return sum(found[u] != found[v] for u, v in set(edges))

        counts = [crossing(tries) for tries in (1, 10, 100, 1000)]
        assert counts == sorted(counts, reverse=True)
        assert counts[-1] < counts[0]

    def test_comm_contracts_to_100_clusters_and_merges_the_smallest_then(self) -> None:
        """301 of 400 leaves are contracted with the centre; the other 99 are merged."""
        assert sizes(star(400), 2, "comm") == [99, 302]
        assert sizes(star(400), 2, "load") == [1, 400]

    def test_comm_contracts_smaller_graphs_to_half(self) -> None:
        """20 of 39 leaves with the centre; 19 single leaves are merged."""
        assert sizes(star(39), 2, "comm") == [19, 21]

    def test_cap_makes_no_cluster_larger_than_one_and_a_half_shares(self) -> None:
        """[B] figure 4.5: six of eight with the centre, the two leaves left are merged."""
        assert sizes(star(7), 2, "cap") == [2, 6]

    def test_cap_may_have_to_merge_beyond_it(self) -> None:
        """Five paths of two: at most 1.5 · 10/4, and yet there are only four clusters."""
        paths = graph(10, *((v, v + 1) for v in range(0, 10, 2)))
        assert sizes(paths, 4, "cap") == [2, 2, 2, 4]


class TestDevices:
    def test_the_largest_cluster_goes_to_the_fastest_device(self) -> None:
        cluster_of = Cluster.of([Device("d0", 1), Device("d1", 3), Device("d2", 2)])
        path = graph(6, (0, 1), (1, 2), (3, 4))
        assert placement(path, cluster_of, version="load", tries=1) == [1, 1, 1, 2, 2, 0]

    def test_or_to_the_fastest_that_may_run_all_of_it(self) -> None:
        builder = graph(2, (0, 1)).vertex("v2", device_type="CPU").vertex("v3", device_type="CPU")
        builder.vertex("v4").edge("v2", "v3", None).edge("v3", "v4", None)
        cluster_of = Cluster.of([Device("d0", 1, "CPU"), Device("d1", 9, "GPU")])
        assert placement(builder, cluster_of, version="load", tries=1) == [1, 1, 0, 0, 0]

    def test_a_unit_that_may_not_run_there_goes_to_the_next_slower_device(self) -> None:
        """No device may run all of v0 to v3, so they get the fastest, d1; v1 goes on to d2."""
        builder = graph(1).vertex("v1", devices=["d0", "d2"]).vertex("v2", devices=["d0", "d1"])
        builder.vertex("v3", devices=["d1", "d2"]).vertex("v4").vertex("v5")
        builder.edge("v0", "v1", None).edge("v1", "v2", None).edge("v2", "v3", None)
        cluster_of = Cluster.of([Device("d0", 1), Device("d1", 3), Device("d2", 2)])
        assert placement(builder, cluster_of, version="load", tries=1) == [1, 2, 1, 1, 2, 0]

    def test_memory_that_is_full_moves_units_on(self) -> None:
        """v0 to v3 have d1, where they fit; the others d0, but for v7."""
        cluster_of = Cluster.of([Device("d0", 2, memory=3), Device("d1", 1, memory=9)])
        found = placement(cliques(), cluster_of, version="comm")
        assert found == [1] * 4 + [0] * 3 + [1]

    def test_nothing_is_torn_apart_where_nothing_can_cross(self) -> None:
        path = graph(8, *pairwise(range(8)))
        assert len(set(placement(path, Cluster.uniform(3, bandwidth=0), version="load"))) == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_one_seed_gives_one_placement(version: Version) -> None:
    builder = graph(30, *pairwise(range(30)))
    one, again, other = (
        placement(builder, 4, seed, version=version, tries=3) for seed in (1, 1, 2)
    )
    assert one == again != other


@pytest.mark.parametrize("option", [{"version": "best"}, {"tries": 0}])
def test_a_bad_option_is_named(option: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(option))):
        placement(graph(3), **option)
