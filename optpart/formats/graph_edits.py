"""Edits of graphs that come from elsewhere: colocate the operations of a cell, break cycles."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

import networkx as nx

from optpart.errors import InputError
from optpart.problem.graph import Graph

#: Source, output index (``None`` for a control dependency) and target.
NamedEdge: TypeAlias = tuple[str, int | None, str]


def colocate_cells(graph: Graph, pattern: str) -> Graph:
    r"""Colocate the vertices of each cell, recognised by prefixes of names ([B] §4.1, §5.1.1).

    Parameters
    ----------
    pattern : str
        A regular expression that the beginnings of names match. Vertices are of one cell where its
        groups capture the same, or where it has no groups, where it matches the same text:
        ``r"layer_\d+/step_\d+/"`` makes a group of each step of each layer, and
        ``r"(?:gradients/)?(layer_\d+/step_\d+)/"`` adds the gradients to it.

    Returns
    -------
    Graph
        With one colocation group more for every cell of two vertices and more.

    Raises
    ------
    InputError
        If the pattern is not a regular expression, or matches no vertex.
    """
    try:
        begins = re.compile(pattern).match
    except (re.error, OverflowError, RecursionError) as error:
        raise InputError(
            "pattern", f"{pattern!r} is no regular expression ({error})", "correct it"
        ) from None
    cells: dict[object, list[int]] = {}
    for v, name in enumerate(graph.names):
        match = begins(name)
        if match is not None:
            cells.setdefault(match.groups() or match[0], []).append(v)
    if not cells:
        raise InputError(
            "pattern", f"{pattern!r} fits no vertex", "give one that the beginnings of names match"
        )
    groups = (tuple(members) for members in cells.values() if len(members) > 1)
    return replace(graph, colocation=(*graph.colocation, *groups))


def break_cycles(
    vertices: Sequence[str], edges: Iterable[NamedEdge], closing: Collection[str] = ()
) -> tuple[list[NamedEdge], list[NamedEdge]]:
    """Remove edges until the rest is acyclic ([B] §4.1).

    First those that lie on a cycle and leave one of the vertices ``closing``, which exist to close
    loops; then every edge with which a traversal closes a cycle. The traversal is depth first, from
    vertices without inputs in their order, then from all others, along edges in their order.

    Parameters
    ----------
    vertices : sequence of str
        Others that edges name come after them.
    edges : iterable of NamedEdge
    closing : collection of str

    Returns
    -------
    kept, removed : list of NamedEdge
        In their old order. An edge that is given several times is removed as often. Where one edge
        between two vertices closes a cycle, all edges from the one to the other do.
    """
    listed = list(edges)
    successors: dict[str, dict[str, None]] = {v: {} for v in vertices}
    for source, _, target in listed:
        successors.setdefault(source, {})[target] = None
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_edges_from((source, target) for source, _, target in listed)
    loops = nx.strongly_connected_components(graph)
    loop = {v: i for i, members in enumerate(loops) for v in members}
    back = {(u, v) for u in closing for v in successors.get(u, ()) if loop[u] == loop[v]}
    for u, v in back:
        del successors[u][v]
    back.update(_closing_pairs(successors))
    kept = [edge for edge in listed if (edge[0], edge[2]) not in back]
    removed = [edge for edge in listed if (edge[0], edge[2]) in back]
    return kept, removed


def _closing_pairs(successors: dict[str, dict[str, None]]) -> Iterator[tuple[str, str]]:
    """Yield the pairs with which a depth-first traversal closes a cycle."""
    entered = {target for targets in successors.values() for target in targets}
    sources = [v for v in successors if v not in entered]
    seen: set[str] = set()
    on_path: set[str] = set()
    for root in (*sources, *successors):
        if root in seen:
            continue
        seen.add(root)
        on_path.add(root)
        path = [(root, iter(successors[root]))]
        while path:
            u, rest = path[-1]
            v = next(rest, None)
            if v is None:
                path.pop()
                on_path.remove(u)
            elif v in on_path:
                yield u, v
            elif v not in seen:
                seen.add(v)
                on_path.add(v)
                path.append((v, iter(successors.get(v, ()))))
