"""Cut vertices are the vertices that every other one leads to or is reached from."""

from __future__ import annotations

import numpy as np
import pytest

from optpart import GraphBuilder, load
from optpart.exact.series.parts import is_cut
from optpart.problem.graph import Graph
from optpart.testing.draw import draw_instance


def by_definition(graph: Graph) -> list[bool]:
    """Compare every vertex with every other one."""
    n = len(graph)
    leads = np.eye(n, dtype=np.bool_)
    for v in graph.topological_order[::-1]:
        for w in graph.edge_target[graph.edge_source == v]:
            leads[v] |= leads[w]
    return (leads | leads.T).all(axis=1).tolist()


def test_cut_vertices_of_a_chain_with_a_fork() -> None:
    builder = GraphBuilder()
    for name in "abcde":
        builder.vertex(name, 1)
    for source, target in ("ab", "bc", "bd", "ce", "de"):
        builder.edge(source, target, None)
    assert is_cut(builder.build()).tolist() == [True, True, False, False, True]


@pytest.mark.parametrize("seed", range(12))
def test_cut_vertices_satisfy_the_definition(seed: int) -> None:
    graph = draw_instance(seed, vertices=9, devices=2).graph
    assert is_cut(graph).tolist() == by_definition(graph)


def test_cut_vertices_of_real_networks() -> None:
    for name in ("squeezenet-edge-free", "inception-v1-edge-free"):
        graph = load(name).graph
        assert is_cut(graph).tolist() == by_definition(graph)


def test_a_graph_without_vertices_has_none() -> None:
    assert is_cut(GraphBuilder().build()).tolist() == []
