"""The method ``series``: heuristic starts, then a dynamic programme over the parts of the graph."""

from __future__ import annotations

from optpart.methods.starts import heuristic_schedules
from optpart.problem.instance import Instance
from optpart.series.solve import solve_series
from optpart.solution.goal import Goal
from optpart.solution.result import Budget, Result, Watch
from optpart.solution.schedule import Schedule

_MAKESPAN = Goal()


def series(
    instance: Instance,
    *,
    budget: Budget | None = None,
    seed: int = 0,
    start: Schedule | None = None,
    watch: Watch | None = None,
    goal: Goal = _MAKESPAN,
) -> Result:
    """Solve by dynamic programming over the parts of the graph, from the heuristic schedules.

    See :func:`optpart.series.solve.solve_series` for supported goals, parameters and errors.
    """
    return solve_series(
        instance,
        budget=budget,
        seed=seed,
        start=start,
        watch=watch,
        goal=goal,
        starts=heuristic_schedules,
    )
