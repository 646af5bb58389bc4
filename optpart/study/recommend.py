"""Which heuristic suits an instance: a small decision tree that proven optima have grown.

The tree is data (``recommend.json`` beside this module), made by ``bench/recommend.py``. Each leaf
has the mean logarithm of ``makespan / optimum`` of every strategy, over the instances that fell
into it; the strategy with the least is recommended. For instances unlike those, it is a guess.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optpart.problem.instance import Instance

_TREE = Path(__file__).with_name("recommend.json")

#: A strategy that finds no schedule counts as this ratio.
FAILED = 10.0

#: Delays of more tensors and pairs of devices than this are sampled at equal distances.
_MOST_DELAYS = 100_000


@dataclass(frozen=True)
class Recommendation:
    """A strategy, and why.

    Attributes
    ----------
    strategy : str
        Valid as a method.
    expected : mapping from str to float
        Geometric mean of ``makespan / optimum`` of every strategy, over the instances of the leaf,
        where one without a schedule counts as 10; the least first.
    instances : int
        How many these are.
    because : tuple of str
        What led to the leaf, such as ``ccr > 1.2``.
    beyond : tuple of str
        Features outside of the range of all instances that the tree has seen.
    held_out : mapping
        By what was held out (``seed``, ``family``): the geometric mean that the recommended
        strategies (``tree``), the best single one (``single``, by name ``best``) and the best for
        each instance (``oracle``) have on instances that the tree had not seen.
    """

    strategy: str
    expected: Mapping[str, float]
    instances: int
    because: tuple[str, ...]
    beyond: tuple[str, ...]
    held_out: Mapping[str, Mapping[str, Any]]


def recommend(instance: Instance) -> Recommendation:
    """Recommend a heuristic for an instance; see the module."""
    tree, known = _tree(), features(instance)
    node, because = tree["root"], []
    while "feature" in node:
        name, limit = node["feature"], node["limit"]
        low = known[name] <= limit
        because.append(f"{name} {'≤' if low else '>'} {limit}")
        node = node["low" if low else "high"]
    expected = dict(zip(tree["strategies"], map(math.exp, node["mean_log"]), strict=True))
    ordered = dict(sorted(expected.items(), key=lambda pair: pair[1]))
    beyond = tuple(name for name, value in known.items()
                   if not tree["ranges"][name][0] <= value <= tree["ranges"][name][1])  # fmt: skip
    return Recommendation(
        next(iter(ordered)), ordered, node["instances"], tuple(because), beyond, tree["held_out"]
    )


@cache
def _tree() -> Any:
    return json.loads(_TREE.read_text(encoding="utf-8"))


def features(instance: Instance) -> dict[str, float]:
    """Return figures of an instance that no unit of time or memory changes.

    Returns
    -------
    dict from str to float
        ``devices``; ``vertices per device``; ``depth``, the vertices on the longest path, and
        ``width``, the most vertices at one depth, as shares of all; ``edges per vertex``; ``ccr``,
        mean delay over mean run time; ``spread of run times`` and ``spread of delays``, standard
        deviation over mean; ``unlike devices``, the longest over the shortest run time of a vertex,
        on average; ``memory``, need over capacity, 0 if it is not limited; ``colocated`` and
        ``restricted``, shares of vertices in groups, and of pairs of a vertex and a device that are
        not allowed; ``queues``, 1 if transfers do.
    """
    graph, n, k = instance.graph, instance.vertices, instance.devices
    allowed = instance.vertex_allowed
    times = np.full((n, k), np.nan)
    for v, d in np.argwhere(allowed).tolist():
        times[v, d] = float(instance.duration(v, d))
    some = allowed.any(axis=1)
    run = np.nanmean(times[some], axis=1) if some.any() else np.zeros(0)
    shortest = np.nanmin(times[some], axis=1) if some.any() else run
    longest = np.nanmax(times[some], axis=1) if some.any() else run
    timed = shortest > 0
    delays = _delays(instance)
    level = np.zeros(n, dtype=np.int64)
    start, edges = (array.tolist() for array in graph.in_edges)
    for v in graph.topological_order.tolist():
        before = graph.edge_source[edges[start[v] : start[v + 1]]]
        level[v] = level[before].max(initial=-1) + 1
    count = np.bincount(level) if n else np.zeros(1)
    capacity = [c for c in instance.cluster.memory if c is not None]
    need = sum(instance.static_memory.fractions())
    limited = instance.model.memory != "none" and len(capacity) == k and sum(capacity) > 0
    groups = np.bincount(instance.unit_of) if n else np.zeros(0)
    return {
        "devices": float(k),
        "vertices per device": n / k,
        "depth": len(count) / max(1, n),
        "width": float(count.max()) / max(1, n),
        "edges per vertex": len(graph.edge_source) / max(1, n),
        "ccr": _ratio(_mean(delays), _mean(run)),
        "spread of run times": _spread(run),
        "spread of delays": _spread(delays),
        "unlike devices": _mean(longest[timed] / shortest[timed]) if timed.any() else 1.0,
        "memory": float(need / sum(capacity)) if limited else 0.0,
        "colocated": float(groups[groups > 1].sum()) / max(1, n),
        "restricted": 1 - float(allowed.mean()) if n else 0.0,
        "queues": float(instance.model.queues),
    }


def _delays(instance: Instance) -> NDArray[np.float64]:
    """Return the delays of all tensors that are consumed, over pairs of linked devices."""
    tensors = np.unique(instance.graph.edge_tensor).tolist()
    pairs = [(d, e) for d in range(instance.devices) for e in range(instance.devices) if d != e]
    step = 1 + len(tensors) * len(pairs) // _MOST_DELAYS
    found = [instance.delay(t, d, e) for t in tensors[::step] for d, e in pairs]
    return np.array([float(time) for time in found if time is not None])


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else 0.0


def _spread(values: NDArray[np.float64]) -> float:
    return _ratio(float(values.std()), _mean(values)) if len(values) else 0.0


def _ratio(one: float, other: float) -> float:
    return one / other if other else 0.0
