"""Families of small graphs, each with small changes that stay within it.

The edges of a graph are pairs of vertex numbers. A change may be applied again and again, and
reaches every graph of its family.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

Edge = tuple[int, int]
Edges = frozenset[Edge]


@dataclass(frozen=True)
class Family:
    """A row of the table of families.

    Attributes
    ----------
    summary : str
    draw : callable
        Returns the edges of a random graph with this many vertices.
    change : callable
        Returns the edges of a graph that differs a little.
    unit : bool
        Whether run times and delays are 1, on equal devices.
    """

    summary: str
    draw: Callable[[int, np.random.Generator], Edges]
    change: Callable[[int, Edges, np.random.Generator], Edges]
    unit: bool = False


def _general(n: int, rng: np.random.Generator) -> Edges:
    """Draw every forward pair with one probability, which is drawn, too."""
    share = rng.random()
    return frozenset(pair for pair in combinations(range(n), 2) if rng.random() < share)


def _general_changed(n: int, edges: Edges, rng: np.random.Generator) -> Edges:
    """Add or remove an edge, from a lower to a higher number."""
    low, high = sorted(rng.choice(n, 2, replace=False).tolist())
    return edges ^ {(low, high)}


def _tree(n: int, rng: np.random.Generator) -> Edges:
    """Draw a predecessor for every vertex but the first; half of the trees are turned around."""
    edges = frozenset((int(rng.integers(v)), v) for v in range(1, n))
    return _turned(edges) if rng.random() < 0.5 else edges


def _tree_changed(n: int, edges: Edges, rng: np.random.Generator) -> Edges:
    """Hang a subtree elsewhere or, one time in ten, turn all edges around."""
    if rng.random() < 0.1:
        return _turned(edges)
    inwards = any(u > v for u, v in edges)
    v = int(rng.integers(1, n))
    outwards = _turned(edges) if inwards else edges
    moved = frozenset(edge for edge in outwards if edge[1] != v) | {(int(rng.integers(v)), v)}
    return _turned(moved) if inwards else moved


def _turned(edges: Edges) -> Edges:
    return frozenset((v, u) for u, v in edges)


def _series_parallel(n: int, rng: np.random.Generator) -> Edges:
    """Put every vertex before, after or beside one of those before it."""
    edges: Edges = frozenset()
    for v in range(1, n):
        edges = _inserted(edges, v, int(rng.integers(v)), rng)
    return edges


def _series_parallel_changed(n: int, edges: Edges, rng: np.random.Generator) -> Edges:
    """Take a vertex out, and put it before, after or beside another one."""
    v, u = rng.choice(n, 2, replace=False).tolist()
    rest = frozenset(edge for edge in edges if v not in edge)
    before, after = (a for a, b in edges if b == v), (b for a, b in edges if a == v)
    gaps = {(a, b) for a, b in product(before, after) if b not in _reached(rest, a)}
    return _inserted(rest | gaps, v, u, rng)


def _inserted(edges: Edges, v: int, u: int, rng: np.random.Generator) -> Edges:
    """Replace a vertex ``u`` by itself and ``v``, in series or in parallel."""
    place = rng.integers(3)
    if place == 0:  # v after u
        return frozenset((v if a == u else a, b) for a, b in edges) | {(u, v)}
    if place == 1:  # v before u
        return frozenset((a, v if b == u else b) for a, b in edges) | {(v, u)}
    beside = {(v if a == u else a, v if b == u else b) for a, b in edges if u in (a, b)}
    return edges | beside


def _reached(edges: Edges, start: int) -> set[int]:
    """Return all vertices to which a path leads."""
    found: set[int] = set()
    waiting = [start]
    while waiting:
        u = waiting.pop()
        new = {b for a, b in edges if a == u} - found
        found |= new
        waiting += new
    return found


#: Every family by name.
FAMILIES = {
    "general": Family("any graph without cycles", _general, _general_changed),
    "series-parallel": Family(
        "vertices composed in series and in parallel (Valdes, Tarjan and Lawler 1982)",
        _series_parallel,
        _series_parallel_changed,
    ),
    "tree": Family("an in-tree or an out-tree", _tree, _tree_changed),
    "unit": Family(
        "any graph; run times and delays are 1, devices equal", _general, _general_changed, True
    ),
}
