"""Why a schedule is as long as it is: the choices along a longest path, in exact time.

No schedule with the same choices is shorter. Excluding them closes the gap that rounding leaves: on
a rounded grid, the solver looks for a schedule that is shorter than the best known one. If what it
finds is not shorter in exact time, its longest path is excluded, and the solver looks again. This
is a combinatorial Benders decomposition (Codato and Fischetti 2006) in which rounded times are the
master problem.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from optpart.problem.instance import Instance
from optpart.solution.goal import Occupied, Task, occupied
from optpart.solution.schedule import Schedule


@dataclass(frozen=True)
class Choices:
    """Choices that together bound the makespan from below.

    Attributes
    ----------
    placed : frozenset of (unit, device)
    ordered : frozenset of (task, task)
        Pairs on one device, link or port of which the first occupies it before the second.
    """

    placed: frozenset[tuple[int, int]]
    ordered: frozenset[tuple[Task, Task]]


def longest_path(instance: Instance, schedule: Schedule) -> Choices | None:
    """Return the choices along a longest path of a schedule.

    Every schedule with these choices is at least as long: tasks of the path that occupy one
    resource, between two others, take the sum of their times in any order in which the first and
    the last remain where they are. Ports must have one channel.

    Returns
    -------
    Choices or None
        None if no path is as long as the schedule: a task starts later than it could.
    """
    use = dict(occupied(instance, schedule))
    path = _path(instance, schedule, use)
    if path is None:
        return None
    runs = _runs(path, use)
    ordered = {(run[0], task) for run in runs[1:] for task in run[1:]}
    ordered |= {(task, run[-1]) for run in runs[:-1] for task in run[:-1]}
    return Choices(_placed(instance, schedule, path), frozenset(_free(instance, ordered)))


def _path(
    instance: Instance, schedule: Schedule, use: Mapping[Task, Occupied]
) -> list[Task] | None:
    """Return tasks of which each starts as the one before it is over, the first of them at 0."""
    where, moves, graph = schedule.placement.tolist(), schedule.transfers, instance.graph
    producer = graph.tensor_vertex.tolist()
    keys = list(zip(moves.tensor.tolist(), moves.target.tolist(), strict=True))
    start: dict[Task, Fraction] = dict(enumerate(schedule.start.fractions()))
    start |= zip(keys, moves.start.fractions(), strict=True)
    arrival = dict(zip(keys, moves.end.fractions(), strict=True))
    inputs: dict[int, list[int]] = defaultdict(list)
    for v, tensor in zip(graph.edge_target.tolist(), graph.edge_tensor.tolist(), strict=True):
        inputs[v].append(tensor)
    ending_at: dict[tuple[object, Fraction], list[Task]] = defaultdict(list)
    for task, at in use.items():
        for resource in at.what:
            ending_at[resource, at.end].append(task)

    def before(task: Task) -> list[Task]:
        queue = use[task].what if task in use else ()
        found = [other for resource in queue for other in ending_at[resource, start[task]]]
        if isinstance(task, int):
            crossings = ((tensor, where[task]) for tensor in inputs[task])
            found += (each for each in crossings if arrival.get(each) == start[task])
        elif use[producer[task[0]]].end == start[task]:
            found.append(producer[task[0]])
        return found

    # Breadth first, for a path of few tasks: fewer choices exclude more schedules. Among tasks
    # without length, a walk that never turns back might end in a dead end.
    last = max(range(instance.vertices), key=lambda v: use[v].end)
    after: dict[Task, Task | None] = {last: None}
    waiting = deque[Task]([last])
    while waiting:
        task = waiting.popleft()
        if start[task] == 0:
            path = [task]
            while (following := after[path[-1]]) is not None:
                path.append(following)
            return path
        for other in before(task):
            if other not in after:
                after[other] = task
                waiting.append(other)
    return None


def _runs(path: list[Task], use: Mapping[Task, Occupied]) -> list[list[Task]]:
    """Cut a path into runs, each of tasks that occupy one resource.

    A transfer between two ports may end one run and begin the next.
    """
    runs, common = [[path[0]]], _resources(path[0], use)
    for task, following in pairwise(path):
        if common & _resources(following, use):
            runs[-1].append(following)
            common &= _resources(following, use)
        elif shared := _resources(task, use) & _resources(following, use):
            runs.append([task, following])
            common = shared
        else:
            runs.append([following])
            common = _resources(following, use)
    return runs


def _resources(task: Task, use: Mapping[Task, Occupied]) -> frozenset[tuple[str, int, int]]:
    return use[task].what if task in use else frozenset()


def _free(instance: Instance, ordered: set[tuple[Task, Task]]) -> Iterator[tuple[Task, Task]]:
    """Yield the pairs that no path of the graph orders: with the others, there is no choice."""
    graph = instance.graph
    producer, order = graph.tensor_vertex.tolist(), graph.topological_order
    after = [1 << v for v in range(instance.vertices)]  # as bits, a vertex itself and all after it
    successors = defaultdict(list)
    for u, v in graph.pairs():
        successors[u].append(v)
    for u in reversed(order.tolist()):
        for v in successors[u]:
            after[u] |= after[v]
    for first, second in ordered:
        made = second if isinstance(second, int) else producer[second[0]]
        if isinstance(first, tuple) or not after[first] >> made & 1:
            yield first, second


def _placed(instance: Instance, schedule: Schedule, path: list[Task]) -> frozenset[tuple[int, int]]:
    """Return where the vertices of a path are, and those because of which its tensors cross."""
    where, unit, graph = schedule.placement.tolist(), instance.unit_of.tolist(), instance.graph
    consumers: dict[Task, list[int]] = defaultdict(list)
    for v, tensor in zip(graph.edge_target.tolist(), graph.edge_tensor.tolist(), strict=True):
        consumers[tensor, where[v]].append(v)
    vertices = {task for task in path if isinstance(task, int)}
    for task in path:
        if isinstance(task, tuple):
            vertices.add(int(graph.tensor_vertex[task[0]]))
            if vertices.isdisjoint(consumers[task]):
                vertices.add(consumers[task][0])
    return frozenset((unit[v], where[v]) for v in vertices)
