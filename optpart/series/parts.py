"""Parts of a graph: the stretches between vertices that every path of time must pass."""

from __future__ import annotations

from dataclasses import dataclass

from optpart.problem.graph import Graph


@dataclass(frozen=True)
class Part:
    """The vertices after one cut vertex, up to and including the next.

    Attributes
    ----------
    vertices : tuple of int
        In topological order; if the part ends in a cut vertex, it comes last.
    closed : bool
        Whether the part ends in a cut vertex; only the last part of a graph may not.
    """

    vertices: tuple[int, ...]
    closed: bool


def cut_vertices(graph: Graph) -> list[int]:
    """Return the vertices that a path connects with every other vertex, in topological order.

    Everything before such a vertex has ended when it starts, and everything after it starts once it
    has ended, in every schedule. Unlike an articulation in the sense of design §10, edges may jump
    over it.
    """
    n = len(graph)
    before = _counts(graph)
    reverse = _counts_after(graph)
    return [v for v in graph.topological_order.tolist() if before[v] + reverse[v] == n - 1]


def parts(graph: Graph) -> list[Part]:
    """Split a graph into its parts, in the order of time."""
    cut = set(cut_vertices(graph))
    found: list[Part] = []
    current: list[int] = []
    for v in graph.topological_order.tolist():
        current.append(v)
        if v in cut:
            found.append(Part(tuple(current), closed=True))
            current = []
    if current:
        found.append(Part(tuple(current), closed=False))
    return found


def _counts(graph: Graph) -> list[int]:
    """Return the number of ancestors of each vertex."""
    above = [0] * len(graph)
    before: list[set[int]] = [set() for _ in above]
    for u, v in zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True):
        before[v].add(u)
    for v in graph.topological_order.tolist():
        reach = 0
        for u in before[v]:
            reach |= above[u] | 1 << u
        above[v] = reach
    return [reach.bit_count() for reach in above]


def _counts_after(graph: Graph) -> list[int]:
    """Return the number of descendants of each vertex."""
    below = [0] * len(graph)
    after: list[set[int]] = [set() for _ in below]
    for u, v in zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True):
        after[u].add(v)
    for v in graph.topological_order.tolist()[::-1]:
        reach = 0
        for w in after[v]:
            reach |= below[w] | 1 << w
        below[v] = reach
    return [reach.bit_count() for reach in below]
