"""The order of a compiled strategy: [G]'s rank, or any method of the project; what is lost where.

A compiled strategy has one device per vertex, so a method decides only the order of execution on
devices, links and the queue of collectives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from optpart.errors import InputError
from optpart.methods import registry
from optpart.methods.fitting import require_memory
from optpart.solution.goal import Goal
from optpart.solution.job import Job
from optpart.solution.result import Budget as SolverBudget
from optpart.solution.schedule import Schedule
from optpart.training.actions import gradients
from optpart.training.evaluator import Evaluator, Outcome, unsupported
from optpart.training.makers.base import Budget, Clock, Made, better, judge
from optpart.training.problem import StrategyProblem
from optpart.training.strategy import Decision

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
    seconds : float
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


@dataclass(frozen=True)
class Loss:
    """The distance of [G]'s order of a strategy from a bound, in nanoseconds, and its causes.

    Attributes
    ----------
    order : Fraction
        What a better order of the same compiled strategy saves.
    servers : Fraction
        What better places of the parameter servers save besides, in the best order found of each;
        0 if none were found.
    strategy : Fraction
        The rest: other decisions, orders that were not found, and the gap of the bound itself.
    """

    order: Fraction
    servers: Fraction
    strategy: Fraction

    @property
    def total(self) -> Fraction:
        """Makespan by rank less the bound."""
        return self.order + self.servers + self.strategy


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
        found = result.makespan, result.schedule
        if found[0] is not None and found[1] is not None and found[0] < makespan:
            makespan, schedule, by = found[0], found[1], name
        if makespan == bound:
            break
    return Ordered(made, makespan, schedule, by, bound, clock.seconds)


def placed_servers(problem: StrategyProblem, made: Made, *, budget: Budget | None = None) -> Made:
    """Move the parameter servers of a strategy, one group after another, while that helps.

    By rank, until no single server is better elsewhere or the budget is spent.
    """
    if made.strategy is None:
        return made
    clock = (budget or Budget()).clock()
    decisions = list(made.strategy.decisions)
    if made.strategy.groups != problem.groups:
        raise InputError("groups", "not those of the problem", "give the strategy's own groups")
    outcome = _outcomes(problem, clock)
    best = outcome(decisions)
    improved = True
    while improved and not clock.spent:
        improved = False
        for g, kept in enumerate(decisions):
            if not isinstance(kept.sync, int) or not gradients(problem, g):
                continue
            for p in kept.devices:
                if p == decisions[g].sync or clock.spent:
                    continue
                clock.moves += 1
                old = decisions[g]
                decisions[g] = Decision(old.replicas, p)
                found = outcome(decisions)
                if _shorter(found, best):
                    best, improved = found, True
                else:
                    decisions[g] = old
    if tuple(decisions) == made.strategy.decisions:
        return replace(made, moves=clock.moves)
    moved = judge(problem, decisions, clock)
    return moved if better(moved, made) else replace(made, moves=clock.moves)


def loss(
    problem: StrategyProblem,
    made: Made,
    bound: Fraction,
    *,
    methods: Sequence[str] = METHODS,
    budget: Budget | None = None,
    seed: int = 0,
) -> tuple[Loss, Ordered]:
    """Split what a strategy in [G]'s order loses against a bound; also return the best order.

    Parameters
    ----------
    bound : Fraction
        A lower bound of every strategy.
    """
    budget = budget or Budget()
    clock, third = budget.clock(), Budget(budget.seconds / 3)
    same = ordered(made, methods=methods, budget=third, seed=seed)
    assert made.makespan is not None
    moved = placed_servers(problem, made, budget=third)
    other = same
    if moved.strategy is not None and moved.strategy != made.strategy:
        left = Budget(max(0.0, budget.seconds - clock.seconds))
        other = ordered(moved, methods=methods, budget=left, seed=seed)
    best = min((same, other), key=lambda found: found.makespan)
    return (
        Loss(
            made.makespan - same.makespan,
            same.makespan - best.makespan,
            best.makespan - bound,
        ),
        best,
    )


def _outcomes(problem: StrategyProblem, clock: Clock) -> Callable[[Sequence[Decision]], Outcome]:
    if not unsupported(problem):
        return Evaluator(problem).of

    def judged(decisions: Sequence[Decision]) -> Outcome:
        return Outcome(judge(problem, decisions, clock).makespan, Fraction(0))

    return judged


def _shorter(one: Outcome, two: Outcome) -> bool:
    if one.makespan is None or one.excess > two.excess:
        return False
    return two.makespan is None or one.excess < two.excess or one.makespan < two.makespan
