"""A part as disjoint chains of vertices, for the search over choices of devices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optpart.exact.series.lattice import Links
from optpart.exact.series.parts import Part


@dataclass(frozen=True)
class Chains:
    """The vertices of a part but its cut vertex, chain by chain; edges between chains may exist.

    Attributes
    ----------
    vertices : ndarray, length m
    link : ndarray, length m
        Row of the delays from the vertex before in the same chain; −1 where a chain begins.
    leave : ndarray, length m
        Row of the delays to the cut vertex; −1 without an edge.
    order : ndarray, length m
        Positions in topological order.
    pred_first, pred, pred_row : ndarray
        Positions of the predecessors inside, for each vertex, and the rows of their delays.
    """

    vertices: NDArray[np.int64]
    link: NDArray[np.int64]
    leave: NDArray[np.int64]
    order: NDArray[np.int64]
    pred_first: NDArray[np.int64]
    pred: NDArray[np.int64]
    pred_row: NDArray[np.int64]


def chains(part: Part, before: int, links: Links) -> Chains | None:
    """Split a part into chains; ``None`` if groups or separations restrict its vertices.

    Parameters
    ----------
    before : int
        The cut vertex before the part, or −1.
    """
    concerned = part.vertices if before < 0 else (before, *part.vertices)
    if any(links.mates[v] or links.apart[v] for v in concerned):
        return None
    body = part.vertices[:-1] if part.closed else part.vertices
    inside = set(body)
    row = {(u, v): r for u in body for v, r in links.after[u]}
    last: dict[int, list[int]] = {}
    for v in body:
        for u in links.before[v]:
            if u in last:
                last[v] = [*last.pop(u), v]
                break
        else:
            last[v] = [v]
    found = sorted(last.values(), key=lambda chain: -len(chain))
    vertices = [v for chain in found for v in chain]
    place = {v: x for x, v in enumerate(vertices)}
    link = [row[chain[y - 1], chain[y]] if y else -1 for chain in found for y in range(len(chain))]
    join = part.vertices[-1] if part.closed else -1
    preds = [[(place[u], row[u, v]) for u in links.before[v] if u in inside] for v in vertices]
    return Chains(
        np.array(vertices, dtype=np.int64),
        np.array(link, dtype=np.int64),
        np.array([row.get((v, join), -1) for v in vertices], dtype=np.int64),
        np.array([place[v] for v in body], dtype=np.int64),
        np.cumsum([0, *(len(p) for p in preds)]),
        np.array([u for p in preds for u, _ in p], dtype=np.int64),
        np.array([r for p in preds for _, r in p], dtype=np.int64),
    )
