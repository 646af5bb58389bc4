"""Groups of vertices: a tree that holds every vertex once."""

from __future__ import annotations

from collections import Counter

import pytest

from optpart.problem.graph import Graph, GraphBuilder
from optpart.study.report.html.groups import UNGROUPED, Groups, groups_of


def graph(names: list[str], edges: list[tuple[int, int]]) -> Graph:
    builder = GraphBuilder()
    for name in names:
        builder.vertex(name, 1, outputs=[1])
    for u, v in edges:
        builder.edge(names[u], names[v])
    return builder.build()


def inside(groups: Groups) -> list[int]:
    """Return the number of vertices and groups directly in each group, and outermost first."""
    count = Counter([*groups.parent, *groups.of])
    return [count[g] for g in range(-1, len(groups.names))]


def test_a_small_graph_has_no_groups() -> None:
    groups = groups_of(graph([f"a/{v}" for v in range(UNGROUPED)], []))
    assert (groups.by, groups.names) == ("", [])


def test_scopes_become_groups_without_the_scope_that_all_share() -> None:
    names = [f"model/block{v // 500}/layer{v // 25}/op{v}" for v in range(2000)]
    groups = groups_of(graph(names, []))
    assert groups.by == "scope"
    outermost = [n for n, p in zip(groups.names, groups.parent, strict=True) if p < 0]
    assert outermost == [f"model/block{b}" for b in range(4)]
    innermost = groups.names[groups.of[1999]]
    assert innermost == "model/block3/layer79"


@pytest.mark.parametrize("by", ["part", "depth", "scope"])
def test_no_group_is_too_large_and_parents_come_first(by: str) -> None:
    n = 5000
    names = [f"s{v % 7}/t{v % 300}/{v}" if by == "scope" else f"v{v}" for v in range(n)]
    edges = [(v, v + 1) for v in range(n - 1)] if by == "part" else []
    groups = groups_of(graph(names, edges))
    assert groups.by == by
    assert min(groups.of) >= 0
    assert max(inside(groups)) <= 80
    assert all(parent < group for group, parent in enumerate(groups.parent))
