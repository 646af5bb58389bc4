"""The lower bounds that CP-SAT proves."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from optpart.lower_bounds.best import Bound
from optpart.problem.instance import Instance
from optpart.problem.model import Model
from optpart.search.bounding import intervals
from optpart.solution.result import Budget, Status


def solver_bound(
    instance: Instance,
    seconds: float,
    workers: int = 2,
    seed: int = 0,
    memory: int | None = None,
) -> Fraction | None:
    """Return the lower bound of the makespan that CP-SAT proves within a budget.

    It bounds a relaxation: transfers never wait, sending takes no time of a device, and memory
    that depends on time has no limit.

    Returns
    -------
    Fraction or None
        ``None`` if it proves that there is no schedule.
    """
    from optpart.methods.cpsat import cpsat

    static = instance.model.memory == "estimate"
    model = Model(memory="estimate" if static else "none")
    # The same instance keeps what is already computed of it.
    relaxed = instance if instance.model == model else replace(instance, model=model)
    result = cpsat(relaxed, budget=Budget(seconds, workers, memory=memory), seed=seed)
    if result.status is Status.INFEASIBLE:
        return None
    return result.lower_bound or Fraction(0)


def solver_rows(workers: int = 2, seed: int = 0, memory: int | None = None) -> tuple[Bound, ...]:
    """Return the bounds that need a solver, for :func:`~optpart.lower_bounds.best.each_bound`."""

    def whole(
        instance: Instance, /, *, seconds: float, makespan: Fraction | None
    ) -> Fraction | None:
        return solver_bound(instance, seconds, workers, seed, memory)

    return (intervals(workers, seed), Bound("cpsat", "anytime", whole))
