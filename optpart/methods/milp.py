"""The methods ``milp`` and ``milp-cbc``: heuristic starts, then a mixed-integer program."""

from __future__ import annotations

from optpart.exact.milp import solve_milp
from optpart.exact.milp_job import Solver
from optpart.exact.pruning import NONE, Pruning
from optpart.methods.starts import heuristic_schedules
from optpart.problem.instance import Instance
from optpart.solution.goal import Goal
from optpart.solution.result import Budget, Result, Watch
from optpart.solution.schedule import Schedule

_MAKESPAN = Goal()


def milp(
    instance: Instance,
    *,
    budget: Budget | None = None,
    seed: int = 0,
    start: Schedule | None = None,
    watch: Watch | None = None,
    goal: Goal = _MAKESPAN,
    solver: Solver = "HiGHS",
    without: frozenset[Pruning] = NONE,
) -> Result:
    """Solve as a mixed-integer program, from the best heuristic schedule that meets the goal.

    See :func:`optpart.exact.milp.solve_milp` for supported models, parameters and errors.
    """
    return solve_milp(
        instance,
        budget=budget,
        seed=seed,
        start=start,
        watch=watch,
        goal=goal,
        solver=solver,
        without=without,
        starts=heuristic_schedules,
    )
