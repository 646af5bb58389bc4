"""Edits of imported graphs: colocate the operations of a cell, break cycles."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

import networkx as nx

from optpart.base.errors import InputError
from optpart.problem.graph import Graph

#: Source, output index (``None`` for a control dependency) and target.
NamedEdge: TypeAlias = tuple[str, int | None, str]


def colocate_cells(graph: Graph, pattern: str) -> Graph:
    r"""Colocate the vertices of each cell, recognised by prefixes of names ([B] §4.1, §5.1.1).

    Parameters
    ----------
    pattern : str
        A regular expression, matched at the beginning of names. Vertices form a cell if its groups
        capture the same text or, if it has no groups, if it matches the same text:
        ``r"layer_\d+/step_\d+/"`` makes a group of each step of each layer, and
        ``r"(?:gradients/)?(layer_\d+/step_\d+)/"`` adds the gradients to it.

    Returns
    -------
    Graph
        With one more colocation group for every cell of at least two vertices.

    Raises
    ------
    InputError
        If the pattern is not a regular expression, or matches no vertex.
    """
    try:
        begins = re.compile(pattern).match
    except (re.error, OverflowError, RecursionError) as error:
        raise InputError(
            "pattern", f"{pattern!r} is not a regular expression ({error})", "correct it"
        ) from None
    cells: dict[object, list[int]] = {}
    for v, name in enumerate(graph.names):
        match = begins(name)
        if match is not None:
            cells.setdefault(match.groups() or match[0], []).append(v)
    if not cells:
        raise InputError(
            "pattern",
            f"{pattern!r} matches no vertex",
            "give one that matches the beginnings of names",
        )
    groups = (tuple(members) for members in cells.values() if len(members) > 1)
    return replace(graph, colocation=(*graph.colocation, *groups))


def break_cycles(
    vertices: Sequence[str], edges: Iterable[NamedEdge], closing: Collection[str] = ()
) -> tuple[list[NamedEdge], list[NamedEdge]]:
    """Remove edges until the rest is acyclic ([B] §4.1).

    First, edges that lie on a cycle and leave one of the vertices ``closing``, which exist to close
    loops; then every edge that closes a cycle in a depth-first traversal, which starts at vertices
    without inputs in their order, then at all others, and follows edges in their order.

    Parameters
    ----------
    vertices : sequence of str
        Further vertices named by edges come after them.
    edges : iterable of NamedEdge
    closing : collection of str

    Returns
    -------
    kept, removed : list of NamedEdge
        In their original order. All copies of a repeated edge are removed together, and so are all
        edges from one vertex to another if one of them closes a cycle.
    """
    listed = list(edges)
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(vertices)
    graph.add_edges_from((source, target) for source, _, target in listed)
    loops = nx.strongly_connected_components(graph)
    loop = {v: i for i, members in enumerate(loops) for v in members}
    back = {(u, v) for u in closing if u in graph for v in graph[u] if loop[u] == loop[v]}
    graph.remove_edges_from(back)
    back.update(_closing_pairs(graph))
    kept = [edge for edge in listed if (edge[0], edge[2]) not in back]
    removed = [edge for edge in listed if (edge[0], edge[2]) in back]
    return kept, removed


def _closing_pairs(graph: nx.DiGraph[str]) -> Iterator[tuple[str, str]]:
    """Yield the pairs that close a cycle in a depth-first traversal."""
    in_order: nx.DiGraph[str] = nx.DiGraph()
    in_order.add_nodes_from(v for v in graph if not graph.in_degree(v))
    in_order.add_nodes_from(graph)
    in_order.add_edges_from(graph.edges)
    on_path: set[str] = set()
    for u, v, label in nx.dfs_labeled_edges(in_order):
        if label == "forward":
            on_path.add(v)
        elif label == "reverse":
            on_path.discard(v)
        elif v in on_path:
            yield u, v
