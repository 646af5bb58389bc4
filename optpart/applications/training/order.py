"""The order of a compiled strategy: [G]'s rank, or any method of the project.

A compiled strategy has one device per vertex, so a method decides only the order of execution on
devices, links and the queue of collectives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from optpart.applications.training.makers.base import Budget, Made
from optpart.base.errors import InputError
from optpart.methods import registry
from optpart.methods.fitting import require_memory
from optpart.solution.goal import Goal
from optpart.solution.job import Job
from optpart.solution.result import Budget as SolverBudget
from optpart.solution.schedule import Schedule

#: Methods that order, one after another; each starts from the best schedule so far.
METHODS = ("hybrid", "cpsat")


@dataclass(frozen=True)
class Ordered:
    """A strategy in a better order than [G]'s.

    Attributes
    ----------
    made : Made
        The strategy by rank, as it was given.
    makespan : Fraction
        Of the best order found.
    schedule : Schedule
        That order; the verifier accepts it.
    by : str
        The method that found it; ``rank`` if none found a better one.
    bound : Fraction
        Proven lower bound of any order of this compiled strategy.
    """

    made: Made
    makespan: Fraction
    schedule: Schedule
    by: str
    bound: Fraction
    seconds: float

    @property
    def optimal(self) -> bool:
        """True if no order of this strategy is shorter."""
        return self.makespan == self.bound


def ordered(
    made: Made,
    *,
    methods: Sequence[str] = METHODS,
    budget: Budget | None = None,
    workers: int = 2,
    seed: int = 0,
) -> Ordered:
    """Improve the order of a feasible strategy.

    Parameters
    ----------
    methods : sequence of str
        Names of ``optpart methods``; each has an equal part of the time that is left.

    Raises
    ------
    InputError
        If the strategy is not feasible, or a method is unknown or cannot solve the instance, or
        would need more memory than the budget allows.
    """
    budget = budget or Budget()
    if made.makespan is None or made.compiled is None or made.schedule is None:
        raise InputError("strategy", made.reason, "give one that respects links and memory")
    clock = budget.clock()
    instance = made.compiled.instance
    makespan, schedule, by, bound = made.makespan, made.schedule, "rank", Fraction(0)
    for i, name in enumerate(methods):
        registry.require(name, instance)
        if clock.spent:
            break
        left = max(0.0, budget.seconds - clock.seconds) / (len(methods) - i)
        given = SolverBudget(left, workers, memory=budget.memory)
        require_memory(instance, name, Goal(), given)
        job = Job(instance, budget=given, seed=seed, start=schedule)
        result = registry.run(name, job)
        if result.lower_bound is not None:
            bound = max(bound, result.lower_bound)
        shorter = result.makespan is not None and result.makespan < makespan
        if shorter and result.makespan is not None and result.schedule is not None:
            makespan, schedule, by = result.makespan, result.schedule, name
        if makespan == bound:
            break
    return Ordered(made, makespan, schedule, by, bound, clock.seconds)
