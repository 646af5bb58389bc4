"""The method ``cpsat``: heuristic starts, search if the instance is large, then CP-SAT."""

from __future__ import annotations

from functools import partial

from optpart.exact.pruning import NONE, Pruning
from optpart.exact.solve import solve
from optpart.methods.starts import heuristic_schedules
from optpart.problem.instance import Instance
from optpart.solution.goal import Goal
from optpart.solution.result import Budget, Result, Watch
from optpart.solution.schedule import Schedule


def cpsat(
    instance: Instance,
    *,
    budget: Budget | None = None,
    seed: int = 0,
    start: Schedule | None = None,
    watch: Watch | None = None,
    goal: Goal | None = None,
    without: frozenset[Pruning] = NONE,
    searches: bool = True,
) -> Result:
    """Solve an instance with CP-SAT.

    Supports every communication and memory model, and every goal.

    Parameters
    ----------
    start : Schedule, optional
        A start in addition to the heuristics.
    goal : Goal, optional
        The question; by default, the least makespan.
    without : frozenset of Pruning
        Rules to leave out. This is slower; the answer is the same if every rule is sound.
    searches : bool
        Whether a search precedes the solver if the instance is large.

    Raises
    ------
    InputError
        If the goal names something that the instance does not have, ``start`` contradicts the
        placement or order that the goal gives, or the seed is out of range.
    """
    return solve(
        instance,
        budget=budget,
        seed=seed,
        start=start,
        watch=watch,
        goal=goal,
        without=without,
        starts=heuristic_schedules,
        improve=_by_search if searches else None,
    )


#: Solves as :func:`cpsat` does, but without a search before it, however large the instance.
alone = partial(cpsat, searches=False)


def _by_search(instance: Instance, budget: Budget, seed: int, start: Schedule) -> Result:
    from optpart.methods.search import search

    return search(instance, budget=budget, seed=seed, start=start)
