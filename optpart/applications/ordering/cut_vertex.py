"""Splitting an assigned graph at a cut vertex: one that every other one comes before or after.

The loss of a training step is one: the forward pass and all transfers to the worker come before it,
the backward pass and all transfers from the worker after it. If results cross without delay, the
least makespan of the whole is the sum of the least makespans of both parts and the time of the cut
vertex; otherwise, it is at least that. Solvers prove the two parts much faster than the whole.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.applications.ordering.efficiency import assigned
from optpart.exact.series.parts import is_cut
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.solution.result import Result
from optpart.solution.schedule import Schedule, retime


class Split(NamedTuple):
    """The results for an instance from its two parts."""

    bound: Fraction  # proven, of the makespan of the whole
    schedule: Schedule | None  # of the whole, if both parts have one


def middle_cut_vertex(instance: Instance) -> int | None:
    """Return the cut vertex that divides the others most evenly; ``None`` if none divides them."""
    n, order = instance.vertices, instance.graph.topological_order
    place = np.flatnonzero(is_cut(instance.graph)[order])
    smaller = np.minimum(place, n - 1 - place)
    return int(order[place[smaller.argmax()]]) if smaller.max(initial=0) > 0 else None


def split(instance: Instance, v: int, solve: Callable[[Instance], Result]) -> Split:
    """Solve the parts before and after a cut vertex, and join them.

    The parts have the times and devices of the whole, and its edges without delays, so their bounds
    are valid for the whole.
    """
    device, everything = assigned(instance), instance.graph.topological_order
    at = int(np.flatnonzero(everything == v)[0])
    bound = instance.duration(v, int(device[v]))
    order: list[int] | None = []
    for part, then in ((everything[:at], [v]), (everything[at + 1 :], [])):
        found = solve(_restricted(instance, part, device))
        bound += found.lower_bound or Fraction(0)
        if found.schedule is None or order is None:
            order = None
        else:
            order += [int(part[w]) for w in _sequence(found.instance, found.schedule)] + then
    return Split(bound, None if order is None else retime(instance, device, order))


def _sequence(instance: Instance, schedule: Schedule) -> list[int]:
    """Return the vertices by start, then by end, then topologically."""
    order = instance.graph.topological_order.tolist()
    return sorted(order, key=lambda w: (schedule.start[w], schedule.end(instance, w)))


def _restricted(instance: Instance, part: NDArray[np.int32], device: NDArray[np.int32]) -> Instance:
    """Return the sub-instance of some vertices and the edges between them, without limits."""
    graph, devices = instance.graph, instance.cluster.names
    builder, inside = GraphBuilder(), set(part.tolist())
    for w in part.tolist():
        d = int(device[w])
        builder.vertex(graph.names[w], instance.duration(w, d), devices=[devices[d]])
    for u, w in graph.pairs():
        if u in inside and w in inside:
            builder.edge(graph.names[u], graph.names[w], None)
    cluster = Cluster.of([Device(name) for name in devices])
    return Instance(builder.build(), cluster, name=instance.name)
