"""One decision for all groups: the baselines of [G], and the best single device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

from optpart.training.actions import decision, even, proportional
from optpart.training.makers.base import DEFAULT, Budget, Made, better, judge
from optpart.training.problem import StrategyProblem
from optpart.training.strategy import Decision


def ev_ps(problem: StrategyProblem, *, budget: Budget = DEFAULT, seed: int = 0) -> Made:
    """Run one replica of the model on every device, with parameter servers (EV-PS of [G])."""
    return _replicated(problem, even(problem), "ps")


def ev_ar(problem: StrategyProblem, *, budget: Budget = DEFAULT, seed: int = 0) -> Made:
    """Run one replica of the model on every device, with AllReduce (EV-AR of [G])."""
    return _replicated(problem, even(problem), "allreduce")


def cp_ps(problem: StrategyProblem, *, budget: Budget = DEFAULT, seed: int = 0) -> Made:
    """Run replicas in proportion to the speeds, with parameter servers (CP-PS of [G])."""
    return _replicated(problem, proportional(problem), "ps")


def cp_ar(problem: StrategyProblem, *, budget: Budget = DEFAULT, seed: int = 0) -> Made:
    """Run replicas in proportion to the speeds, with AllReduce (CP-AR of [G])."""
    return _replicated(problem, proportional(problem), "allreduce")


def single(problem: StrategyProblem, *, budget: Budget = DEFAULT, seed: int = 0) -> Made:
    """Run everything on one device: the one where the iteration ends first and memory holds."""
    k, groups = len(problem.cluster), len(problem.groups)
    return best_of(problem, ([Decision.on(d, k)] * groups for d in range(k)))


def best_of(
    problem: StrategyProblem, candidates: Iterable[Sequence[Decision] | None], reason: str = ""
) -> Made:
    """Judge several strategies and return the best feasible one, else the first.

    Parameters
    ----------
    reason : str
        Why there is none, in case that there is none.
    """
    clock = DEFAULT.clock()
    best = None
    for candidate in candidates:
        clock.moves += 1
        made = judge(problem, candidate, clock)
        if best is None or better(made, best):
            best = made
    best = best or judge(problem, None, clock, reason)
    return replace(best, moves=clock.moves, seconds=clock.seconds)


def _replicated(
    problem: StrategyProblem, counts: tuple[int, ...], sync: Literal["ps", "allreduce"]
) -> Made:
    clock = DEFAULT.clock()
    clock.moves += 1
    chosen = [decision(problem, g, counts, sync) for g in range(len(problem.groups))]
    found = [one for one in chosen if one is not None]
    if len(found) == len(chosen):
        return judge(problem, found, clock)
    if sum(counts) > problem.batch:
        reason = f"{sum(counts)} replicas for a batch of {problem.batch}"
    else:
        reason = "links are missing for the synchronisation of gradients"
    return judge(problem, None, clock, reason)
