"""Parts: what precedes a cut vertex has ended when it starts, and what follows starts after it."""

import networkx as nx
import pytest

from optpart.problem.graph import Graph
from optpart.series.parts import cut_vertices, parts
from optpart.testing.modules import draw_modules


def _closure(graph: Graph) -> nx.DiGraph:
    found: nx.DiGraph = nx.DiGraph()
    found.add_nodes_from(range(len(graph)))
    found.add_edges_from(zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True))
    return nx.transitive_closure_dag(found)


@pytest.mark.parametrize("seed", range(60))
def test_a_cut_vertex_is_connected_with_every_other_vertex(seed):
    graph = draw_modules(seed, vertices=12).graph
    closure = _closure(graph)
    expected = [
        v
        for v in graph.topological_order.tolist()
        if all(
            closure.has_edge(u, v) or closure.has_edge(v, u) for u in range(len(graph)) if u != v
        )
    ]

    assert cut_vertices(graph) == expected


@pytest.mark.parametrize("seed", range(60))
def test_parts_hold_every_vertex_once_and_end_in_cut_vertices(seed):
    graph = draw_modules(seed, vertices=12).graph
    found = parts(graph)

    assert sorted(v for part in found for v in part.vertices) == list(range(len(graph)))
    assert [part.vertices[-1] for part in found if part.closed] == cut_vertices(graph)
    assert all(part.closed for part in found[:-1])
