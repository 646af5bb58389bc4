"""Splitting an assigned graph at its waist: a vertex that every other one comes before or after.

The loss of a training step is a waist: the forward pass and all transfers to the worker come before
it, the backward pass and all transfers from the worker after it. If results cross without delay,
the least makespan of the whole is the sum of the least makespans of both parts and the time of the
waist; otherwise, it is at least that. Solvers solve and prove the two parts much faster than the
whole.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.ordering.efficiency import assigned
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.solution.result import Result
from optpart.solution.schedule import Schedule, retime


class Split(NamedTuple):
    """The results for an instance from its two parts.

    Attributes
    ----------
    bound : Fraction
        Proven lower bound of the makespan of the whole.
    schedule : Schedule or None
        A schedule of the whole, if both parts have one.
    """

    bound: Fraction
    schedule: Schedule | None


def waist(instance: Instance) -> int | None:
    """Return the waist that divides the vertices most evenly; ``None`` if there is none.

    The first and the last vertex of a graph do not count: they divide nothing.

    Notes
    -----
    In a topological order, all vertices before position ``i`` lead to the one at ``i`` if and only
    if each of them has a successor at ``i`` or before. The same holds, mirrored, for the vertices
    after it.
    """
    graph, n = instance.graph, instance.vertices
    position = np.empty(n, dtype=np.int64)
    position[graph.topological_order] = np.arange(n)
    source, target = position[graph.edge_source], position[graph.edge_target]
    next_, last = np.full(n, n), np.full(n, -1)
    np.minimum.at(next_, source, target)
    np.maximum.at(last, target, source)
    middle = np.arange(1, n - 1)
    leads_here = np.maximum.accumulate(next_)[middle - 1] <= middle
    leads_from_here = np.minimum.accumulate(last[::-1])[::-1][middle + 1] >= middle
    found = middle[leads_here & leads_from_here]
    if not len(found):
        return None
    return int(graph.topological_order[found[np.minimum(found, n - 1 - found).argmax()]])


def split(instance: Instance, v: int, solve: Callable[[Instance], Result]) -> Split:
    """Solve the parts before and after a waist, and join them.

    Parameters
    ----------
    solve : callable
        Called for both parts. They have the times and devices of the whole, and its edges without
        delays, so their bounds are valid for the whole.
    """
    device = assigned(instance)
    everything = instance.graph.topological_order
    at = int(np.flatnonzero(everything == v)[0])
    bound = instance.duration(v, int(device[v]))
    order: list[int] | None = []
    for part, then in ((everything[:at], [v]), (everything[at + 1 :], [])):
        found = solve(_restricted(instance, part, device))
        bound += found.lower_bound or Fraction(0)
        if found.schedule is None or order is None:
            order = None
        else:
            order += [int(part[w]) for w in _sequence(found)] + then
    return Split(bound, None if order is None else retime(instance, device, order))


def _sequence(result: Result) -> list[int]:
    """Return the vertices by start, then by end, then topologically."""
    schedule, instance = result.schedule, result.instance
    assert schedule is not None
    rank = np.empty(instance.vertices, dtype=np.int64)
    rank[instance.graph.topological_order] = np.arange(instance.vertices)
    return sorted(
        range(instance.vertices),
        key=lambda w: (schedule.start[w], schedule.end(instance, w), rank[w]),
    )


def _restricted(instance: Instance, part: NDArray[np.int32], device: NDArray[np.int32]) -> Instance:
    """Return the sub-instance of some vertices and the edges between them, without limits."""
    names, devices = instance.graph.names, instance.cluster.names
    builder = GraphBuilder()
    for w in part.tolist():
        d = int(device[w])
        builder.vertex(names[w], instance.duration(w, d), devices=[devices[d]])
    inside = set(part.tolist())
    graph = instance.graph
    for u, w in zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True):
        if u in inside and w in inside:
            builder.edge(names[u], names[w], None)
    return Instance(
        builder.build(), Cluster.of([Device(name) for name in devices]), name=instance.name
    )
