"""The interface of strategy makers, and the exact evaluation of a strategy by the verifier."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

from optpart.applications.training.compiled import Compiled, by_rank
from optpart.applications.training.compiler import compile_strategy, memory_violation
from optpart.applications.training.problem import StrategyProblem
from optpart.applications.training.strategy import Decision, Strategy
from optpart.base.errors import InputError
from optpart.base.rounding import number
from optpart.solution.result import Budget
from optpart.solution.schedule import Schedule

DEFAULT = Budget()


class Clock:
    """A budget that is being spent.

    Attributes
    ----------
    limit : int or None
        Strategies evaluated at most, 1,000 per unit of a deterministic limit. With it the clock is
        not read, so that every run with the same seed gives the same result.
    moves : int
        Strategies evaluated so far.
    """

    def __init__(self, budget: Budget = DEFAULT) -> None:
        self.budget = budget
        counted = budget.deterministic
        self.limit = None if counted is None else round(1000 * counted)
        self.moves = 0
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._start

    @property
    def seconds_left(self) -> float:
        """Seconds until the limit; infinite if moves are counted instead."""
        if self.limit is not None:
            return math.inf
        return max(0.0, self.budget.seconds - self.seconds)

    @property
    def spent(self) -> bool:
        """True if nothing is left."""
        if self.limit is not None:
            return self.moves >= self.limit
        return self.seconds >= self.budget.seconds

    @property
    def share(self) -> float:
        """The share that is spent, from 0 to 1."""
        limit = self.budget.seconds if self.limit is None else self.limit
        used = self.seconds if self.limit is None else self.moves
        return min(1.0, used / limit) if limit else 1.0


@dataclass(frozen=True, eq=False)
class Made:
    """The result of a maker.

    Attributes
    ----------
    strategy : Strategy or None
        The best found, even if it does not fit the memory; ``None`` if there is not even one that
        the links allow.
    makespan : Fraction or None
        Nanoseconds of one iteration in [G]'s order, of a schedule that the verifier accepts;
        ``None`` if the strategy is not feasible.
    compiled : Compiled or None
        The strategy as an instance.
    schedule : Schedule or None
        That of :attr:`makespan`; if memory does not suffice, the one that would take too much.
    reason : str
        Why there is no makespan, or any other remark for the user.
    moves : int
        Strategies evaluated.
    """

    strategy: Strategy | None
    makespan: Fraction | None = None
    compiled: Compiled | None = None
    schedule: Schedule | None = None
    reason: str = ""
    moves: int = 0
    seconds: float = 0.0

    def __repr__(self) -> str:
        value = self.reason if self.makespan is None else f"{number(self.makespan, up=True)} ns"
        return f"<Made: {value}>"

    @property
    def feasible(self) -> bool:
        """True if the strategy respects links and memory."""
        return self.makespan is not None


class Maker(Protocol):
    """Makes a strategy. Options of its own are keyword arguments with defaults."""

    def __call__(
        self, problem: StrategyProblem, *, budget: Budget = DEFAULT, seed: int = 0
    ) -> Made:
        """Make a strategy within a budget; the same seed gives the same one."""
        ...


def evaluate_exactly(
    problem: StrategyProblem, decisions: Sequence[Decision] | None, clock: Clock, reason: str = ""
) -> Made:
    """Compile, order by [G]'s rank and verify one strategy; every maker returns through here.

    Parameters
    ----------
    decisions : sequence of Decision or None
        One per group; ``None`` if the maker found none.
    reason : str
        A remark for the user; if there are no decisions, why.
    """
    spent = clock.moves, clock.seconds
    if decisions is None:
        reason = reason or "found no strategy that the links allow"
        return Made(None, None, None, None, reason, *spent)
    strategy = problem.strategy(decisions)
    try:
        compiled = compile_strategy(problem.graph, problem.cluster, strategy, problem.options)
    except InputError as error:
        return Made(strategy, None, None, None, str(error), *spent)
    schedule = by_rank(compiled)
    violation = memory_violation(compiled, schedule)
    makespan = None if violation else schedule.makespan(compiled.instance)
    if violation:
        reason = f"out of memory: {violation.message}"
    return Made(strategy, makespan, compiled, schedule, reason, *spent)


def best_of(
    problem: StrategyProblem, candidates: Iterable[Sequence[Decision] | None], reason: str = ""
) -> Made:
    """Judge several strategies and return the best feasible one, else the first.

    ``reason`` says why all candidates are ``None``, in case that they are.
    """
    clock = Clock()
    best = None
    for candidate in candidates:
        if candidate is not None:
            clock.moves += 1
            made = evaluate_exactly(problem, candidate, clock)
            if best is None or better(made, best):
                best = made
    best = best or evaluate_exactly(problem, None, clock, reason)
    return replace(best, moves=clock.moves, seconds=clock.seconds)


def better(one: Made, two: Made) -> bool:
    """Return whether the first is feasible, and the second is longer or not feasible."""
    if one.makespan is None:
        return False
    return two.makespan is None or one.makespan < two.makespan
