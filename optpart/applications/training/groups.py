"""Groups of operations that get one decision ([G] §4.1.1).

The members of one of :attr:`~optpart.applications.training.graph.TrainingGraph.tied`, which share
parameters, are never separated. They are called a unit here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise

from optpart.applications.training.graph import Role, TrainingGraph
from optpart.base.errors import InputError

Groups = tuple[tuple[int, ...], ...]


def nearest_groups(graph: TrainingGraph, batch: int, most: int) -> Groups:
    """Group every operation with the nearest of the ``most`` that take longest.

    [G] §4.1.1, of units in place of operations: the centres are the units of largest time, in the
    mean over the kinds of devices; every other unit joins the centre that is fewest hops away, in
    whichever direction of the edges. Of several, the one with the longer time; a unit that no edge
    connects to any centre joins the longest.

    Returns
    -------
    tuple of tuple of int
        At most ``most`` groups, in the order of their first operations.
    """
    _check(most)
    units = graph.tied
    time = _unit_times(graph, batch)
    centres = sorted(range(len(units)), key=lambda u: (-time[u], u))[:most]
    neighbours = _unit_neighbours(graph)
    home: dict[int, int] = {centre: c for c, centre in enumerate(centres)}
    # Breadth first from all centres at once; of equally near ones, the first in the queue wins.
    queue = deque(centres)
    while queue:
        unit = queue.popleft()
        for other in neighbours[unit]:
            if other not in home:
                home[other] = home[unit]
                queue.append(other)
    members: list[list[int]] = [[] for _ in centres]
    for unit, operations in enumerate(units):
        members[home.get(unit, 0)].extend(operations)
    return _ordered(members)


def contiguous_groups(graph: TrainingGraph, batch: int, most: int) -> Groups:
    """Cut the forward pass into ``most`` runs whose longest takes as little as possible.

    Runs that may still be split without more groups than ``most`` are: the longest first, where its
    halves are most equal. Units are in the order of the forward pass. A backward operation without
    parameters stands with the forward operation that it reads, so a run is a part of the model with
    its backward pass.

    Returns
    -------
    tuple of tuple of int
        Groups along the forward pass: ``most``, or every unit by itself if there are fewer.
    """
    _check(most)
    units = graph.tied
    order = along(graph, units)
    time = _unit_times(graph, batch)
    ordered = [time[unit] for unit in order]
    low, high = max(ordered), sum(ordered)
    for _ in range(60):  # halves the interval to the precision of doubles
        middle = (low + high) / 2
        if len(_cut(ordered, middle)) <= most:
            high = middle
        else:
            low = middle
    cuts = [0, *_cut(ordered, high)]
    while len(cuts) - 1 < min(most, len(order)):
        first, last = max(
            (run for run in pairwise(cuts) if run[1] - run[0] > 1),
            key=lambda run: (sum(ordered[run[0] : run[1]]), -run[0]),
        )
        cuts = sorted([*cuts, _middle(ordered, first, last)])
    runs = ([o for unit in order[a:b] for o in units[unit]] for a, b in pairwise(cuts))
    return tuple(tuple(sorted(run)) for run in runs)


def along(graph: TrainingGraph, groups: Sequence[Iterable[int]]) -> list[int]:
    """Return the numbers of groups in the order of the forward pass."""
    position = positions(graph)
    return sorted(range(len(groups)), key=lambda g: (max(position[o] for o in groups[g]), g))


def positions(graph: TrainingGraph) -> tuple[int, ...]:
    """Return the place of every operation along the forward pass.

    That of a backward operation or an apply is the last of the forward operations that it reads, or
    else the first of the places of what it reads.
    """
    found = [0] * len(graph)
    for place, o in enumerate(graph.topological_order):
        if graph.operations[o].role is Role.FORWARD:
            found[o] = place
            continue
        producers = [edge.producer for edge in graph.in_edges[o]]
        forward = [found[p] for p in producers if graph.operations[p].role is Role.FORWARD]
        found[o] = max(forward) if forward else min((found[p] for p in producers), default=place)
    return tuple(found)


def _check(most: int) -> None:
    if most < 1:
        raise InputError("groups", f"{most} groups", "ask for at least one")


def _unit_times(graph: TrainingGraph, batch: int) -> list[float]:
    mean = graph.times(batch).mean(axis=1)
    return [float(mean[list(unit)].sum()) for unit in graph.tied]


def _unit_neighbours(graph: TrainingGraph) -> list[list[int]]:
    unit_of = {o: u for u, unit in enumerate(graph.tied) for o in unit}
    found: list[set[int]] = [set() for _ in graph.tied]
    for edge in graph.edges:
        one, two = unit_of[edge.producer], unit_of[edge.consumer]
        if one != two:
            found[one].add(two)
            found[two].add(one)
    return [sorted(others) for others in found]


def _cut(times: list[float], limit: float) -> list[int]:
    """Return the ends of the fewest runs of at most ``limit`` each."""
    ends: list[int] = []
    total = 0.0
    for i, time in enumerate(times):
        if total + time > limit and total:
            ends.append(i)
            total = 0.0
        total += time
    return [*ends, len(times)]


def _middle(times: list[float], first: int, last: int) -> int:
    """Return where a run of at least two is cut into the most equal parts."""
    ends = [*accumulate(times[first:last])]
    return first + 1 + min(range(last - first - 1), key=lambda i: abs(2 * ends[i] - ends[-1]))


def _ordered(members: list[list[int]]) -> Groups:
    return tuple(sorted((tuple(sorted(group)) for group in members), key=lambda group: group[0]))
