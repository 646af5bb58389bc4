"""Articulations of a graph: vertices that every path passes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optpart.problem.graph import Graph


def articulations(graph: Graph) -> NDArray[np.bool_]:
    """Return whether each vertex is an articulation.

    An articulation is a vertex to which every vertex before it leads, and that leads to every
    vertex after it: it depends, directly or not, on all vertices that do not depend on it. Its
    position is the same in every topological order.

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
    position = np.empty(n, dtype=np.int64)
    position[order] = np.arange(n)
    source, target = position[graph.edge_source], position[graph.edge_target]
    next_use = np.full(n, n, dtype=np.int64)
    np.minimum.at(next_use, source, target)
    last_input = np.full(n, -1, dtype=np.int64)
    np.maximum.at(last_input, target, source)
    # Over the vertices before each position, and over those after it.
    latest = np.maximum.accumulate(np.r_[-1, next_use])[:n]
    earliest = np.minimum.accumulate(np.r_[last_input, n][::-1])[::-1][1:]
    place = np.arange(n)
    found = np.empty(n, dtype=np.bool_)
    found[order] = (latest <= place) & (earliest >= place)
    return found
