"""The methods ``milp`` and ``milp-cbc``: heuristic starts, then a mixed-integer program."""

from __future__ import annotations

from functools import partial

from optpart.exact.milp import solve_milp
from optpart.exact.milp_task import Solver
from optpart.methods.starts import heuristic_schedules
from optpart.solution.job import Job, method
from optpart.solution.result import Result, Watch


@method
def milp(job: Job, watch: Watch | None = None, *, solver: Solver = "HiGHS") -> Result:
    """Solve as a mixed-integer program, from the best heuristic schedule that meets the goal.

    See :func:`optpart.exact.milp.solve_milp` for supported models, parameters and errors.
    """
    starts = partial(heuristic_schedules, goal=job.goal)
    return solve_milp(job, watch, solver=solver, starts=starts)
