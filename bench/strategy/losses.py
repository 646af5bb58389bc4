"""What a strategy in the order of [G] loses against a bound: by the order, by places of servers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from optpart.applications.training.actions import gradients
from optpart.applications.training.evaluator import Evaluator, Outcome, unsupported
from optpart.applications.training.makers.base import DEFAULT, Clock, Made, better, evaluate_exactly
from optpart.applications.training.problem import StrategyProblem
from optpart.applications.training.question import ORDERING_METHODS, Ordered, ordered
from optpart.applications.training.strategy import Decision
from optpart.base.errors import InputError
from optpart.solution.result import Budget


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


def placed_servers(problem: StrategyProblem, made: Made, *, budget: Budget | None = None) -> Made:
    """Move the parameter servers of a strategy, one group after another, while that helps.

    By rank, until no single server is better elsewhere or the budget is spent.
    """
    if made.strategy is None:
        return made
    clock = Clock(budget or DEFAULT)
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
    moved = evaluate_exactly(problem, decisions, clock)
    return moved if better(moved, made) else replace(made, moves=clock.moves)


def loss(
    problem: StrategyProblem,
    made: Made,
    bound: Fraction,
    *,
    methods: Sequence[str] = ORDERING_METHODS,
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
    clock, third = Clock(budget), Budget(budget.seconds / 3)
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
        return Outcome(evaluate_exactly(problem, decisions, clock).makespan, Fraction(0))

    return judged


def _shorter(one: Outcome, two: Outcome) -> bool:
    if one.makespan is None or one.excess > two.excess:
        return False
    return two.makespan is None or one.excess < two.excess or one.makespan < two.makespan
