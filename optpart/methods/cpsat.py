"""The method ``cpsat``: heuristic starts, search if the instance is large, then CP-SAT."""

from __future__ import annotations

from functools import partial

from optpart.exact.solve import solve
from optpart.methods.starts import heuristic_schedules
from optpart.problem.instance import Instance
from optpart.solution.job import Job, method
from optpart.solution.result import Budget, Result, Watch
from optpart.solution.schedule import Schedule


@method
def cpsat(job: Job, watch: Watch | None = None, *, searches: bool = True) -> Result:
    """Solve an instance with CP-SAT.

    Supports every communication and memory model, and every goal.

    Parameters
    ----------
    searches : bool
        Whether a search precedes the solver if the instance is large.

    Raises
    ------
    InputError
        If the start contradicts the placement or order that the goal gives.
    """
    improve = _by_search if searches else None
    return solve(job, watch, starts=partial(heuristic_schedules, goal=job.goal), improve=improve)


#: Solves as :func:`cpsat` does, but without a search before it, however large the instance.
alone = partial(cpsat, searches=False)


def _by_search(instance: Instance, budget: Budget, seed: int, start: Schedule) -> Result:
    from optpart.methods.search import search

    return search(Job(instance, budget=budget, seed=seed, start=start))
