"""One number per strategy, for makers that sample or walk; only choices depend on it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from optpart.applications.training.actions import Action
from optpart.applications.training.evaluator import Evaluator, unsupported
from optpart.applications.training.makers.base import Clock, evaluate_exactly
from optpart.applications.training.problem import StrategyProblem
from optpart.applications.training.strategy import Decision

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Scorer:
    """Evaluates strategies that are given by the numbers of their actions.

    Parameters
    ----------
    actions : sequence of sequence of Action
        Of each group.
    penalty : float
        By how much the time of a strategy that runs out of memory is multiplied.
    """

    def __init__(
        self, problem: StrategyProblem, actions: Sequence[Sequence[Action]], penalty: float
    ) -> None:
        self.problem, self.actions, self.penalty = problem, actions, penalty
        self._evaluator = None if unsupported(problem) else Evaluator(problem)
        if self._evaluator is not None:
            add = self._evaluator.actions
            self._number = [add(action.decision for action in choices) for choices in actions]

    def decisions(self, chosen: Sequence[int]) -> list[Decision]:
        """Return the decisions of one action per group."""
        return [choices[a].decision for choices, a in zip(self.actions, chosen, strict=True)]

    def scores(self, chosen: Ints, clock: Clock) -> Floats:
        """Return nanoseconds, times the penalty if memory does not suffice; ∞ without a link.

        Parameters
        ----------
        clock : Clock
            Counts the strategies.
        """
        clock.moves += len(chosen)
        if self._evaluator is None:
            return np.array([self._simulated(row) for row in chosen.tolist()])
        numbers = np.stack([self._number[g][chosen[:, g]] for g in range(len(self.actions))], 1)
        outcomes = map(self._evaluator.outcome, self._evaluator.many(numbers))
        return np.array(
            [
                math.inf if time is None else float(time) * (self.penalty if excess else 1.0)
                for time, excess in outcomes
            ]
        )

    def _simulated(self, chosen: Sequence[int]) -> float:
        """Score what the evaluator does not know by compiling it."""
        made = evaluate_exactly(self.problem, self.decisions(chosen), Clock())
        if made.schedule is None or made.compiled is None:
            return math.inf
        time = float(made.schedule.makespan(made.compiled.instance))
        return time * (1.0 if made.feasible else self.penalty)
