"""The colours of vertices, by scope or by depth."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optpart.problem.instance import Instance

# Okabe and Ito's colours, which colour-blind readers can tell apart, without black and the colour
# of the bound.
QUALITATIVE = ("#56b4e9", "#e69f00", "#009e73", "#f0e442", "#0072b2", "#cc79a7")
_OTHER = "#bdbdbd"
# ColorBrewer's YlGnBu: ordered by lightness, so that depth is readable without the legend.
_SEQUENTIAL = ("#c7e9b4", "#7fcdbb", "#41b6c4", "#1d91c0", "#225ea8", "#0c2c84")


@dataclass(frozen=True)
class Colouring:
    """Colours with their meanings, and the colour of each vertex."""

    labels: Sequence[str]
    colours: Sequence[str]
    of: NDArray[np.int64]


def colouring_of(instance: Instance) -> Colouring:
    """Return a colouring by scope if most names have scopes, otherwise by depth."""
    names = instance.graph.names
    scoped = sum("/" in name for name in names)
    return _by_scope(names) if 2 * scoped > len(names) else _by_depth(instance)


def _by_scope(names: Sequence[str]) -> Colouring:
    """Return a colouring by scope; a scope that contains most of the graph is split.

    If there are more scopes than colours, ``Variable_1`` and ``Variable_2`` count as one.
    """
    paths = [tuple(name.split("/")) for name in names]
    if len({path[0] for path in paths}) > len(QUALITATIVE):
        paths = [tuple(re.sub(r"_\d+$", "", part) for part in path) for path in paths]
    scopes = [path[:1] for path in paths]
    for _ in range(6):
        largest, size = Counter(scopes).most_common(1)[0]
        finer = [
            path[: len(largest) + 1] if scope == largest else scope
            for path, scope in zip(paths, scopes, strict=True)
        ]
        coloured = sum(count for _, count in Counter(finer).most_common(len(QUALITATIVE)))
        if 2 * size <= len(names) or 2 * coloured < len(names):
            break
        scopes = finer
    ranked = sorted(Counter(scopes).items(), key=lambda item: (-item[1], item[0]))
    shown = {scope: rank for rank, (scope, _) in enumerate(ranked[: len(QUALITATIVE)])}
    labels = ["/".join(scope) or "/" for scope in shown]
    colours = list(QUALITATIVE[: len(shown)])
    if len(ranked) > len(shown):
        labels.append("other")
        colours.append(_OTHER)
    return Colouring(labels, colours, np.array([shown.get(s, len(shown)) for s in scopes]))


def _by_depth(instance: Instance) -> Colouring:
    """Return a colouring by depth, the longest path from a source, in ranges of equal width."""
    graph = instance.graph
    start, edges = (array.tolist() for array in graph.out_edges)
    target = graph.edge_target.tolist()
    depth = [0] * len(graph)
    for v in graph.topological_order.tolist():
        for e in edges[start[v] : start[v + 1]]:
            depth[target[e]] = max(depth[target[e]], depth[v] + 1)
    levels = max(depth, default=-1) + 1
    width = max(1, math.ceil(levels / len(_SEQUENTIAL)))
    ranges = [(low, min(low + width, levels) - 1) for low in range(0, levels, width)]
    labels = [f"depth {low}" if low == high else f"depth {low}–{high}" for low, high in ranges]
    return Colouring(labels, _SEQUENTIAL[: len(ranges)], np.array(depth, dtype=np.int64) // width)
