"""Longest paths through an acyclic graph: the ranks of list scheduling."""

from __future__ import annotations

from typing import Any

import numpy as np

from optpart.kernels.compiled import short_kernel
from optpart.kernels.struct import Floats, Ints


@short_kernel
def longest_from(order: Ints, out_start: Ints, out_target: Ints, delay: Floats, run: Floats) -> Any:
    """Return the longest path that starts with each vertex, its own run time included.

    Parameters
    ----------
    order : ndarray of int32, length n
        All vertices, topologically sorted.
    out_start : ndarray of int32, length n + 1
        Edges ``out_start[v]`` to ``out_start[v + 1]`` leave ``v``.
    out_target, delay : ndarray, one per edge
    run : ndarray of float64, length n
    """
    rank = np.empty(run.shape[0])
    for i in range(run.shape[0] - 1, -1, -1):
        v = order[i]
        best = 0.0
        for e in range(out_start[v], out_start[v + 1]):
            best = max(best, delay[e] + rank[out_target[e]])
        rank[v] = run[v] + best
    return rank


@short_kernel
def longest_before(order: Ints, in_start: Ints, in_source: Ints, delay: Floats, run: Floats) -> Any:
    """Return the longest path that ends before each vertex; edges are those that enter it."""
    rank = np.zeros(run.shape[0])
    for v in order:
        for e in range(in_start[v], in_start[v + 1]):
            u = in_source[e]
            rank[v] = max(rank[v], rank[u] + run[u] + delay[e])
    return rank
