"""One placement and one order for several instances that differ in their times only.

The model has a copy of :class:`~optpart.exact.model.ScheduleModel` per instance. All copies share
the literals of the placement. For every two tasks that no path of the graph orders, and that may
use the same device, link or port, one literal says which comes first, in all copies. So a solution
is a plan, with its starts in every instance.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from optpart.exact.cp_sat import Value
from optpart.exact.memory_units import memory_units
from optpart.exact.messages import Incumbent
from optpart.exact.model import ScheduleModel, uses
from optpart.exact.task import Task
from optpart.kernels.compiled import UNLIMITED, whole_memory
from optpart.kernels.horizon import horizon
from optpart.kernels.ticks import Grid
from optpart.lower_bounds.windows import windows
from optpart.problem.graph import Graph
from optpart.problem.instance import Instance
from optpart.solution.goal import Task as PlanTask

WORKER = "optpart.exact.shared_worker"


@dataclass(frozen=True, eq=False)
class SharedTask:
    """The job for the solver.

    It minimises the sum of ``weights`` times makespans and ``worst`` times the longest makespan of
    those with ``counts``, or, if there is a limit of that, the makespan of the first instance.

    Attributes
    ----------
    tasks : tuple of Task
        One per instance, all with the same possible devices.
    weights : tuple of int, one per instance
    counts : tuple of bool, one per instance
    worst : int
    limit : int, optional
    """

    tasks: tuple[Task, ...]
    weights: tuple[int, ...]
    counts: tuple[bool, ...]
    worst: int
    limit: int | None = None


def shared_tasks(
    instances: list[Instance],
    scale: Fraction,
    longest: list[int | None],
    lower: list[int],
    *,
    exact: bool,
) -> tuple[Task, ...] | None:
    """Return the task of every instance; ``None`` if no plan keeps all the limits.

    Parameters
    ----------
    scale : Fraction
        Ticks per unit of time.
    longest : list of int or None
        Upper limits of makespans in ticks, for plans that are of use; ``None`` is no limit.
    lower : list of int
        Lower bounds of makespans in ticks.
    exact : bool
        Whether all times are whole numbers of ticks.
    """
    grids = [Grid.at(instance, scale, exact=exact) for instance in instances]
    upper = [
        horizon(instance, grid) if limit is None else limit
        for instance, grid, limit in zip(instances, grids, longest, strict=True)
    ]
    window = [windows(*each, seconds=10.0) for each in zip(instances, grids, upper, strict=True)]
    possible: NDArray[np.bool_] = np.logical_and.reduce([each.possible for each in window])
    if not possible.any(axis=1).all():
        return None
    return tuple(
        _task(
            instance, grid, head=found.head, tail=found.tail, possible=possible,
            lower=least, upper=most,
        )
        for instance, grid, found, least, most in zip(
            instances, grids, window, lower, upper, strict=True)
    )  # fmt: skip


def _task(
    instance: Instance,
    grid: Grid,
    *,
    head: NDArray[np.int64],
    tail: NDArray[np.int64],
    possible: NDArray[np.bool_],
    lower: int,
    upper: int,
) -> Task:
    nothing = np.zeros(instance.graph.tensors, dtype=np.int64)
    if instance.model.timed_memory:
        size, need, capacity = memory_units(instance, upper)
    else:
        need, capacity = whole_memory(instance, relax=True)
        size, capacity = nothing, np.where(capacity < UNLIMITED, capacity, -1)
    return Task(
        instance=instance, grid=grid, head=head, tail=tail, possible=possible, lower=lower,
        upper=upper, need=need, capacity=capacity, alike=[], load_cuts=True, size=size, known=None,
        turn=np.arange(len(instance.units)), identical=False, asked="makespan", timed=True,
        order=(), weight=nothing, most_traffic=-1, contiguous=False, device_order=(), loads=(0, 0),
    )  # fmt: skip


class SharedPlan:
    """The model."""

    def __init__(self, task: SharedTask) -> None:
        first = ScheduleModel(task.tasks[0])
        self.copies = [first, *(ScheduleModel(each, first) for each in task.tasks[1:])]
        self.model = first.model
        if len(self.copies) > 1:
            self._one_order()
        self._minimise(task)

    def _one_order(self) -> None:
        """Let every two tasks that may use the same come in one order in all copies."""
        first = self.copies[0]
        graph = first.instance.graph
        ordered = paths(graph)
        tasks: list[PlanTask] = [*range(len(graph))]
        if first.crossings is not None:
            tasks += first.crossings.begin
        for one, other in combinations(tasks, 2):
            if isinstance(one, int) and isinstance(other, int) and (
                ordered[one, other] or ordered[other, one]
            ):  # fmt: skip
                continue
            before: cp_model.IntVar | None = None
            for copy in self.copies:
                theirs = uses(copy, copy.crossings, other)
                for use in uses(copy, copy.crossings, one):
                    for its in theirs:
                        if use.resource != its.resource or self._shared(use.resource):
                            continue
                        if before is None:
                            before = self.model.new_bool_var("")
                        both = use.literal, its.literal
                        copy.no_later(use.end, its.start, *both, before)
                        copy.no_later(its.end, use.start, *both, ~before)

    def _shared(self, resource: tuple[str, int, int]) -> bool:
        """Return whether a resource carries several tasks at a time."""
        return resource[0] != "device" and self.copies[0].instance.model.parallel > 1

    def _minimise(self, task: SharedTask) -> None:
        spans = [copy.makespan for copy in self.copies]
        terms, factors = [*spans], [*task.weights]
        if task.worst:
            longest = self.model.new_int_var(0, max(each.upper for each in task.tasks), "longest")
            for span, counts in zip(spans, task.counts, strict=True):
                if counts:
                    self.model.add(longest >= span)
            terms.append(longest)
            factors.append(task.worst)
        aim = cp_model.LinearExpr.weighted_sum(terms, factors)
        if task.limit is None:
            self.model.minimize(aim)
        else:
            self.model.add(aim <= task.limit)
            self.model.minimize(spans[0])

    def found(self, value: Value) -> Incumbent:
        """Return the placement, and sums of starts over all instances, in the plan's order."""
        each = [copy.found(value) for copy in self.copies]
        starts = [found.start for found in each if found.start is not None]
        begin = {key: sum(found.begin[key] for found in each) for key in each[0].begin}
        return Incumbent(each[0].placement, np.sum(starts, axis=0, dtype=np.int64), begin)


def paths(graph: Graph) -> NDArray[np.bool_]:
    """Return whether a path leads from one vertex to another, n × n."""
    found = np.zeros((len(graph), len(graph)), dtype=np.bool_)
    made: nx.DiGraph[int] = nx.DiGraph(graph.pairs())
    for u in reversed(graph.topological_order.tolist()):
        for v in made.successors(u) if u in made else ():
            found[u] |= found[v]
            found[u, v] = True
    return found
