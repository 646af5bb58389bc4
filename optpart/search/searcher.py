"""The interface of searchers, and a portfolio in which several take turns."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from optpart.base import clock
from optpart.problem.instance import Instance
from optpart.search.climb import Climb
from optpart.search.evaluator import Evaluator, Value
from optpart.search.plan import Layout
from optpart.solution.goal import Objective

#: The way layouts are changed: by annealing only, or by large neighbourhoods as well.
Manner = Literal["search", "hybrid"]

#: Share of the budget after which a searcher's gain counts half.
_MEMORY = 0.05


class Searcher(Protocol):
    """A method that searches for better layouts.

    Attributes
    ----------
    evaluator : Evaluator
    best : Layout
    value : tuple of float
        Value of the best layout: excess memory, primary and secondary objective; in the unit of
        :class:`~optpart.kernels.compiled.Arrays`.
    """

    evaluator: Evaluator
    best: Layout
    value: Value

    @property
    def moves(self) -> int:
        """Return the number of changes tried."""

    @property
    def effort(self) -> int:
        """Return the effort so far, in equivalent annealing moves."""

    @property
    def improvements(self) -> Counter[str]:
        """Return how often each operator led to a new best."""

    def offer(self, layout: Layout, value: Value) -> None:
        """Take another searcher's best into account."""

    def step(self, share: float) -> bool:
        """Search briefly; return whether the best layout improved.

        Parameters
        ----------
        share : float
            Share of the budget spent so far.
        """


def searcher(
    manner: Manner,
    instance: Instance,
    objective: Objective,
    start: Layout,
    rng: np.random.Generator,
    *,
    seconds: float | None,
    memory: int | None = None,
) -> Searcher:
    """Create a searcher.

    Parameters
    ----------
    seconds : float, optional
        The budget; ``None`` if it counts moves and must not depend on the clock.
    memory : int, optional
        Bytes that this process and the one of its solver may hold together; a solver that holds
        more is stopped, and its part of the schedule stays as it is.
    """
    timed = seconds is not None
    climb = Climb(Evaluator(instance, objective), start, rng, timed=timed)
    if manner == "search":
        return climb
    # The package of operators loads slowly, and only this manner needs it.
    from optpart.search.neighbourhood import Exact, Greedy

    evaluator = Evaluator(instance, objective)
    greedy = Greedy(evaluator, start, rng, timed=timed)
    turns = [Turn(climb, 0.4), Turn(greedy, 0.02)]
    if objective != "traffic":  # the solver minimises only the makespan
        turns.append(Turn(Exact(evaluator, start, rng, seconds=seconds, memory=memory), 0.3))
    return Mixed(turns, timed=timed)


@dataclass
class Turn:
    """A searcher in a portfolio.

    Attributes
    ----------
    least : float
        Its share of the time if it finds nothing.
    spent, gained : float
        Time, and improvement as a share of the value; older contributions count less.
    """

    searcher: Searcher
    least: float
    spent: float = 0.0
    gained: float = 0.0


class Mixed:
    """Searchers that take turns: each has a fixed share; the rest goes to recent success."""

    def __init__(self, turns: list[Turn], *, timed: bool) -> None:
        self._turns = turns
        self._timed = timed
        self._share = 0.0
        self.evaluator = turns[0].searcher.evaluator
        self.best = turns[0].searcher.best
        self.value = turns[0].searcher.value

    @property
    def moves(self) -> int:
        """Return the number of changes tried."""
        return sum(turn.searcher.moves for turn in self._turns)

    @property
    def effort(self) -> int:
        """Return the effort so far, in equivalent annealing moves."""
        return sum(turn.searcher.effort for turn in self._turns)

    @property
    def improvements(self) -> Counter[str]:
        """Return how often each operator led to a new best."""
        return sum((turn.searcher.improvements for turn in self._turns), Counter())

    def offer(self, layout: Layout, value: Value) -> None:
        """Take another searcher's best into account."""
        if value < self.value:
            self.best, self.value = layout, value
            for turn in self._turns:
                turn.searcher.offer(layout, value)

    def step(self, share: float) -> bool:
        """Run the searcher that is furthest behind its share."""
        kept = 0.5 ** (max(0.0, share - self._share) / _MEMORY)
        self._share = share
        for turn in self._turns:
            turn.spent *= kept
            turn.gained *= kept
        now = min(self._turns, key=lambda turn: turn.spent / self._due(turn))
        before = clock.now() if self._timed else now.searcher.effort
        better = now.searcher.step(share)
        after = clock.now() if self._timed else now.searcher.effort
        now.spent += after - before
        if not better or not now.searcher.value < self.value:
            return False
        now.gained += _improvement(self.value, now.searcher.value)
        self.best, self.value = now.searcher.best, now.searcher.value
        for turn in self._turns:
            if turn is not now:
                turn.searcher.offer(self.best, self.value)
        return True

    def _due(self, turn: Turn) -> float:
        """Return the share of the time that a searcher should have."""
        rates = [other.gained / max(other.spent, 1e-9) for other in self._turns]
        rest = 1.0 - sum(other.least for other in self._turns)
        own = turn.gained / max(turn.spent, 1e-9)
        return turn.least + (rest * own / sum(rates) if sum(rates) > 0.0 else 0.0)


def _improvement(before: Value, after: Value) -> float:
    """Return the improvement of the first component that improved, as a share of it."""
    for one, other in zip(before, after, strict=True):
        if other < one:
            return min(1.0, (one - other) / one) if np.isfinite(one) else 1.0
    return 0.0
