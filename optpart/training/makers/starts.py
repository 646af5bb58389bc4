"""Strategies that a search begins with."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from optpart.training.actions import even, gradients, proportional
from optpart.training.makers.alpa import least_sum
from optpart.training.makers.base import Budget
from optpart.training.makers.baselines import replicated, singles
from optpart.training.makers.parallel import in_blocks, in_turn
from optpart.training.makers.pipedream import least_bottleneck
from optpart.training.makers.stages import staged
from optpart.training.problem import StrategyProblem
from optpart.training.strategy import Decision

#: The programmes of PipeDream and Alpa take time by the square of groups × devices. They are left
#: out if that square is larger than this times the seconds, or larger than the number of moves.
_SQUARE = 10_000

#: Limits of Alpa's program: its share of the seconds; its nodes, if moves are counted.
_SHARE = 0.1
_NODES = 100


def simple(problem: StrategyProblem) -> Iterable[list[Decision]]:
    """Yield the strategies that take no search."""
    for counts in (proportional(problem), even(problem)):
        for found in (
            replicated(problem, counts, "allreduce"),
            replicated(problem, counts, "ps"),
            spread(problem, counts),
        ):
            if found is not None:
                yield found
    yield from singles(problem)
    yield in_blocks(problem)
    yield in_turn(problem)
    yield from staged(problem)


def spread(problem: StrategyProblem, counts: tuple[int, ...]) -> list[Decision] | None:
    """Return the strategy of the same replicas for all groups, whose servers share the gradients.

    The group with the most bytes of gradients comes first, and goes to the server that has the
    fewest. ``None`` if parameter servers are impossible.
    """
    found = replicated(problem, counts, "ps")
    if found is None:
        return None
    sizes = [sum(size for _, _, size in gradients(problem, g)) for g in range(len(found))]
    load = dict.fromkeys(found[0].devices, Fraction(0))
    for g in sorted(range(len(found)), key=lambda g: -sizes[g]):
        if isinstance(found[g].sync, int):
            server = min(load, key=lambda d: load[d])
            load[server] += sizes[g]
            found[g] = Decision(counts, server)
    return found


def from_peers(problem: StrategyProblem, budget: Budget) -> Iterable[list[Decision]]:
    """Yield the strategies of PipeDream and Alpa if they take a small part of the budget."""
    square = (len(problem.groups) * len(problem.cluster)) ** 2
    timed = budget.moves is None
    if square > (budget.seconds * _SQUARE if timed else budget.moves or 0):
        return
    stages = least_bottleneck(problem)
    if stages is not None:
        yield stages.decisions(problem)
    found, _ = least_sum(problem, *((_SHARE * budget.seconds, None) if timed else (None, _NODES)))
    if found is not None:
        yield found
