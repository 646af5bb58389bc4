"""Parts of a graph: the stretches between vertices that every path of time must pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optpart.problem.graph import Graph, inverse


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


def is_cut(graph: Graph, without: NDArray[np.bool_] | None = None) -> NDArray[np.bool_]:
    """Return whether a path connects each vertex with every other vertex.

    Everything before such a vertex has ended when it starts, and everything after it starts once it
    has ended, in every schedule. Its position is the same in every topological order. Unlike at an
    articulation point, edges may jump over it.

    Parameters
    ----------
    without : ndarray of bool, length n, optional
        Vertices without edges that do not count; they are cut vertices themselves.

    Returns
    -------
    ndarray of bool, length n

    Notes
    -----
    Of the vertices up to some position, each leads to one without successors among them. So all of
    them lead to the last one exactly if no other is without successors there; and likewise in the
    opposite direction. That takes time linear in vertices and edges.
    """
    n, order = len(graph), graph.topological_order
    position = inverse(order)
    source, target = position[graph.edge_source], position[graph.edge_target]
    next_use = np.full(n, n, dtype=np.int64)
    np.minimum.at(next_use, source, target)
    last_input = np.full(n, -1, dtype=np.int64)
    np.maximum.at(last_input, target, source)
    if without is not None:
        next_use[position[without]], last_input[position[without]] = -1, n
    # Over the vertices before each position, and over those after it.
    latest = np.maximum.accumulate(np.r_[-1, next_use])[:n]
    earliest = np.minimum.accumulate(np.r_[last_input, n][::-1])[::-1][1:]
    place = np.arange(n)
    found = np.empty(n, dtype=np.bool_)
    found[order] = (latest <= place) & (earliest >= place)
    if without is not None:
        found |= without
    return found


def parts(graph: Graph) -> list[Part]:
    """Split a graph into its parts, in the order of time."""
    cut = is_cut(graph)
    found: list[Part] = []
    current: list[int] = []
    for v in graph.topological_order.tolist():
        current.append(v)
        if cut[v]:
            found.append(Part(tuple(current), closed=True))
            current = []
    if current:
        found.append(Part(tuple(current), closed=False))
    return found
