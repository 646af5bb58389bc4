"""Why a schedule is as long as it is: the choices along a longest path, in exact time.

No schedule with the same choices is shorter. Excluding them closes the gap that rounding leaves: on
a rounded grid, the solver looks for a schedule that is shorter than the best known one. If what it
finds is not shorter in exact time, its longest path is excluded, and the solver looks again. This
is a combinatorial Benders decomposition (Codato and Fischetti 2006) in which rounded times are the
master problem.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from fractions import Fraction

from optpart.problem.instance import Instance
from optpart.solution.schedule import Schedule


@dataclass(frozen=True)
class Choices:
    """Choices that together bound the makespan from below.

    Attributes
    ----------
    placed : frozenset of (unit, device)
    ordered : frozenset of (vertex, vertex)
        Pairs on one device of which the first runs before the second.
    """

    placed: frozenset[tuple[int, int]]
    ordered: frozenset[tuple[int, int]]


def longest_path(instance: Instance, schedule: Schedule) -> Choices | None:
    """Return the choices along a longest path of a schedule under ``delay``.

    Every schedule with these choices is at least as long: vertices of the path that run on one
    device, between two crossings, take the sum of their run times in any order in which the first
    and the last remain where they are.

    Returns
    -------
    Choices or None
        None if no path is as long as the schedule: a vertex starts later than it could.
    """
    runs = _runs(instance, schedule)
    if runs is None:
        return None
    unit, where = instance.unit_of.tolist(), schedule.placement.tolist()
    placed = frozenset((unit[v], where[v]) for run in runs for v in run)
    ordered = {(run[0], v) for run in runs[1:] for v in run[1:]}
    ordered |= {(v, run[-1]) for run in runs[:-1] for v in run[:-1]}
    return Choices(placed, frozenset(ordered))


def _runs(instance: Instance, schedule: Schedule) -> list[list[int]] | None:
    """Return a longest path, cut where it crosses from one device to another."""
    where, start = schedule.placement.tolist(), schedule.start.fractions()
    end = [schedule.end(instance, v) for v in range(instance.vertices)]
    moves = schedule.transfers
    keys = zip(moves.tensor.tolist(), moves.target.tolist(), strict=True)
    arrival = dict(zip(keys, moves.end.fractions(), strict=True))
    graph = instance.graph
    inputs: dict[int, list[tuple[int, int]]] = defaultdict(list)
    edges = (graph.edge_source.tolist(), graph.edge_target.tolist(), graph.edge_tensor.tolist())
    for u, v, tensor in zip(*edges, strict=True):
        inputs[v].append((u, tensor))
    ending: dict[tuple[int, Fraction], list[int]] = defaultdict(list)
    for u, d in enumerate(where):
        ending[d, end[u]].append(u)

    # Breadth first, for a path of few vertices: fewer choices exclude more schedules. Among
    # vertices without length, a walk that never turns back might end in a dead end.
    last = max(range(instance.vertices), key=lambda v: end[v])
    after = {last: -1}
    waiting = deque([last])
    while waiting:
        v = waiting.popleft()
        if start[v] == 0:
            return _from(v, after, where)
        before = [u for u, tensor in inputs[v] if arrival.get((tensor, where[v])) == start[v]]
        for u in ending[where[v], start[v]] + before:
            if u not in after:
                after[u] = v
                waiting.append(u)
    return None


def _from(v: int, after: dict[int, int], where: list[int]) -> list[list[int]]:
    """Follow a path to its end."""
    runs = [[v]]
    while (v := after[v]) >= 0:
        if where[v] == where[runs[-1][0]]:
            runs[-1].append(v)
        else:
            runs.append([v])
    return runs
