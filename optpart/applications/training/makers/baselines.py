"""Strategies without search: one decision for all groups, or one device for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Literal

from optpart.applications.training.actions import decision, even, gradients, proportional
from optpart.applications.training.groups import along
from optpart.applications.training.makers.base import DEFAULT, Made, Maker, best_of
from optpart.applications.training.problem import StrategyProblem
from optpart.applications.training.strategy import Decision
from optpart.solution.result import Budget

Counts = tuple[int, ...]

_MISSING = "more replicas than samples, or links are missing for the gradients"


def best_candidate(
    candidates: Callable[[StrategyProblem], Iterable[Sequence[Decision] | None]], reason: str = ""
) -> Maker:
    """Return the maker that takes the best of some strategies, or says ``reason`` without any."""

    def make(problem: StrategyProblem, *, budget: Budget = DEFAULT, seed: int = 0) -> Made:
        return best_of(problem, candidates(problem), reason)

    return make


def singles(problem: StrategyProblem) -> list[list[Decision]]:
    """Return the strategies that use one device, of which memory may not hold all."""
    k, groups = len(problem.cluster), len(problem.groups)
    return [[Decision.on(d, k)] * groups for d in range(k)]


def replicated(
    problem: StrategyProblem, counts: Counts, sync: Literal["ps", "allreduce"]
) -> list[Decision] | None:
    """Return the strategy of the same replicas for all groups; ``None`` if it is impossible."""
    found = []
    for g in range(len(problem.groups)):
        chosen = decision(problem, g, counts, sync)
        if chosen is None:
            return None
        found.append(chosen)
    return found


def spread(problem: StrategyProblem, counts: Counts) -> list[Decision] | None:
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


def in_turn(problem: StrategyProblem) -> list[Decision]:
    """Place the groups along the forward pass on the devices in turn."""
    k = len(problem.cluster)
    return placed(problem, {g: i % k for i, g in enumerate(along(problem.graph, problem.groups))})


def in_blocks(problem: StrategyProblem) -> list[Decision]:
    """Cut the groups along the forward pass into one block of about equal time per device.

    Times are means over the kinds of devices: the blocks do not care which device is faster.
    """
    k, order = len(problem.cluster), along(problem.graph, problem.groups)
    time = problem.graph.times(problem.batch).mean(axis=1)
    lengths = [float(time[list(problem.groups[g])].sum()) for g in order]
    total = sum(lengths)
    if not total:
        lengths, total = [1.0] * len(order), float(len(order))
    # The middle of a group decides to which block it belongs.
    middles = (end - length / 2 for end, length in zip(accumulate(lengths), lengths, strict=True))
    return placed(
        problem, {g: min(k - 1, int(k * at / total)) for g, at in zip(order, middles, strict=True)}
    )


def placed(problem: StrategyProblem, device: dict[int, int]) -> list[Decision]:
    """Return the strategy that puts every group on the given device."""
    k = len(problem.cluster)
    return [Decision.on(device[g], k) for g in range(len(problem.groups))]


#: The baselines of [G]: one replica of the model on every device (EV), or replicas in proportion to
#: the speeds (CP), with parameter servers or AllReduce.
ev_ps = best_candidate(lambda problem: [replicated(problem, even(problem), "ps")], _MISSING)
ev_ar = best_candidate(lambda problem: [replicated(problem, even(problem), "allreduce")], _MISSING)
cp_ps = best_candidate(lambda problem: [replicated(problem, proportional(problem), "ps")], _MISSING)
cp_ar = best_candidate(
    lambda problem: [replicated(problem, proportional(problem), "allreduce")], _MISSING
)

#: Everything on the device where the iteration ends first and memory holds; contiguous blocks; and
#: groups on the devices in turn.
single = best_candidate(singles)
blocks = best_candidate(lambda problem: [in_blocks(problem)])
round_robin = best_candidate(lambda problem: [in_turn(problem)])
