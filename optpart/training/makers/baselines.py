"""One decision for all groups: the baselines of [G], and the best single device."""

from __future__ import annotations

from typing import Literal

from optpart.training.actions import decision, even, proportional
from optpart.training.makers.base import DEFAULT, Budget, Made, best_of
from optpart.training.problem import StrategyProblem
from optpart.training.strategy import Decision


def ev_ps(problem: StrategyProblem, *, budget: Budget = DEFAULT, seed: int = 0) -> Made:
    """Run one replica of the model on every device, with parameter servers (EV-PS of [G])."""
    return best_of(problem, [replicated(problem, even(problem), "ps")], _MISSING)


def ev_ar(problem: StrategyProblem, *, budget: Budget = DEFAULT, seed: int = 0) -> Made:
    """Run one replica of the model on every device, with AllReduce (EV-AR of [G])."""
    return best_of(problem, [replicated(problem, even(problem), "allreduce")], _MISSING)


def cp_ps(problem: StrategyProblem, *, budget: Budget = DEFAULT, seed: int = 0) -> Made:
    """Run replicas in proportion to the speeds, with parameter servers (CP-PS of [G])."""
    return best_of(problem, [replicated(problem, proportional(problem), "ps")], _MISSING)


def cp_ar(problem: StrategyProblem, *, budget: Budget = DEFAULT, seed: int = 0) -> Made:
    """Run replicas in proportion to the speeds, with AllReduce (CP-AR of [G])."""
    return best_of(problem, [replicated(problem, proportional(problem), "allreduce")], _MISSING)


def single(problem: StrategyProblem, *, budget: Budget = DEFAULT, seed: int = 0) -> Made:
    """Run everything on one device: the one where the iteration ends first and memory holds."""
    return best_of(problem, singles(problem))


def singles(problem: StrategyProblem) -> list[list[Decision]]:
    """Return the strategies that use one device."""
    k, groups = len(problem.cluster), len(problem.groups)
    return [[Decision.on(d, k)] * groups for d in range(k)]


def replicated(
    problem: StrategyProblem, counts: tuple[int, ...], sync: Literal["ps", "allreduce"]
) -> list[Decision] | None:
    """Return the strategy of the same replicas for all groups; ``None`` if it is impossible."""
    found = []
    for g in range(len(problem.groups)):
        chosen = decision(problem, g, counts, sync)
        if chosen is None:
            return None
        found.append(chosen)
    return found


_MISSING = "more replicas than samples, or links are missing for the gradients"
