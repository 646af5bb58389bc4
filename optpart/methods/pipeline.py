"""The method ``pipeline``: contiguous placements by dynamic programming over downsets."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from optpart.base import clock
from optpart.base.errors import UnsupportedError
from optpart.exact.pipeline.path import Measure as Minimised
from optpart.exact.pipeline.problem import limits
from optpart.exact.pipeline.solve import best_contiguous, require_path
from optpart.problem.feasibility import contradiction, excluded
from optpart.problem.instance import Instance
from optpart.solution.goal import Goal, Measure
from optpart.solution.job import Job, method
from optpart.solution.result import Progress, Result, Watch, conclude
from optpart.solution.schedule import Schedule, crossings, retime
from optpart.solution.termination import Termination
from optpart.solution.verifier import verify


@method
def pipeline(job: Job, watch: Watch | None = None) -> Result:
    """Find the least bottleneck, or for a chain the least makespan, of contiguous blocks.

    The programme is deterministic, and of the budget only the seconds have an effect. A start is
    kept if it is better, which it is at most where optimality is not proven.

    Returns
    -------
    Result
        Optimal or infeasible with an order of devices, and on chains; see
        :mod:`optpart.exact.pipeline.solve`.

    Raises
    ------
    UnsupportedError
        If the goal or the instance is not in scope, or has too many downsets.
    """
    instance, goal = job.instance, job.goal
    check_scope(instance, goal)
    begin = clock.now()
    conclusion = partial(conclude, instance, "pipeline", seed=job.seed, goal=goal)
    reason = contradiction(instance) or goal.contradiction(instance)
    if reason:
        return conclusion(None, infeasible=reason)
    start = job.require_kept_start()
    narrowed = goal.narrowed(instance)
    measure: Minimised = "bottleneck" if goal.objective == "bottleneck" else "makespan"
    found = best_contiguous(narrowed, measure, goal.device_order, begin + job.budget.seconds)
    seconds = clock.now() - begin
    if found.infeasible:
        why = excluded(narrowed, "pipeline", goal.given)
        return conclusion(None, infeasible=why, seconds=seconds)
    bounds: dict[Measure, Fraction] = {} if found.bound is None else {measure: found.bound}
    schedule = None if found.placement is None else _scheduled(instance, found.placement)
    results = [
        conclusion(
            each,
            bound=bounds,
            termination=Termination.TIME_LIMIT if found.time_up else Termination.COMPLETED,
            reason="time limit" if found.time_up else found.reason,
            seconds=seconds,
        )
        for each in (schedule, start)
        if each is None or (not verify(instance, each, most=1) and not goal.broken(instance, each))
    ]
    best = min(results, key=lambda result: _value(result, measure))
    if watch is not None:
        watch(Progress(seconds, best.values.get(measure), found.bound))
    return best


def check_scope(instance: Instance, goal: Goal) -> None:
    """Raise :class:`UnsupportedError` if the method does not support a goal on an instance."""
    if not goal.blocks:
        raise UnsupportedError(
            "goal",
            "pipeline places contiguous blocks only",
            "ask for contiguous blocks, or an order of devices",
        )
    if goal.objective not in ("bottleneck", "makespan"):
        raise UnsupportedError(
            "goal.objective",
            f"pipeline does not minimise {goal.objective}",
            "use bottleneck or makespan",
        )
    if goal.order or goal.makespan is not None or goal.traffic is not None:
        raise UnsupportedError(
            "goal", "pipeline supports no given order and no limits", "leave them out"
        )
    limits(instance)
    if goal.objective == "makespan":
        require_path(instance)


def _value(result: Result, measure: Measure) -> tuple[bool, Fraction]:
    value = result.values.get(measure)
    return value is None, value or Fraction(0)


def _scheduled(instance: Instance, placement: NDArray[np.int32]) -> Schedule:
    """Return the schedule in topological order; of transfers ready at once, the longest first."""
    leaving: dict[int, list[tuple[int, int]]] = {}
    graph = instance.graph

    def delay(crossing: tuple[int, int]) -> Fraction:
        tensor, target = crossing
        found = instance.delay(tensor, int(placement[graph.tensor_vertex[tensor]]), target)
        assert found is not None
        return found

    def longest_first(moves: list[tuple[int, int]]) -> list[tuple[int, int]]:
        return sorted(moves, key=delay, reverse=True)

    for crossing in crossings(instance, placement):
        leaving.setdefault(int(graph.tensor_vertex[crossing[0]]), []).append(crossing)
    order: list[int | tuple[int, int]] = []
    for v in graph.topological_order.tolist():
        order.append(v)
        order.extend(longest_first(leaving.get(v, [])))
    return retime(instance, placement, order)
