"""Model parallelism without search: round-robin and blocks."""

from __future__ import annotations

from itertools import accumulate

from optpart.training.groups import positions
from optpart.training.makers.base import DEFAULT, Budget, Made, best_of
from optpart.training.problem import StrategyProblem
from optpart.training.strategy import Decision


def round_robin(problem: StrategyProblem, *, budget: Budget = DEFAULT, seed: int = 0) -> Made:
    """Place the groups along the forward pass on the devices in turn."""
    return best_of(problem, [in_turn(problem)])


def blocks(problem: StrategyProblem, *, budget: Budget = DEFAULT, seed: int = 0) -> Made:
    """Cut the groups along the forward pass into one block of about equal time per device.

    Times are means over the kinds of devices: the blocks do not care which device is faster.
    """
    return best_of(problem, [in_blocks(problem)])


def in_turn(problem: StrategyProblem) -> list[Decision]:
    """Return the strategy of :func:`round_robin`."""
    k = len(problem.cluster)
    return placed(problem, {g: i % k for i, g in enumerate(groups_along(problem))})


def in_blocks(problem: StrategyProblem) -> list[Decision]:
    """Return the strategy of :func:`blocks`."""
    k, order = len(problem.cluster), groups_along(problem)
    time = problem.graph.times(problem.batch).mean(axis=1)
    lengths = [float(time[list(problem.groups[g])].sum()) for g in order]
    total = sum(lengths)
    if not total:
        lengths, total = [1.0] * len(order), float(len(order))
    ends = accumulate(lengths)
    # The middle of a group decides to which block it belongs.
    return placed(
        problem,
        {
            g: min(k - 1, int(k * (end - length / 2) / total))
            for g, length, end in zip(order, lengths, ends, strict=True)
        },
    )


def groups_along(problem: StrategyProblem) -> list[int]:
    """Return the groups in the order of the forward pass."""
    position = positions(problem.graph)
    return sorted(
        range(len(problem.groups)), key=lambda g: (max(position[o] for o in problem.groups[g]), g)
    )


def placed(problem: StrategyProblem, device: dict[int, int]) -> list[Decision]:
    """Return the strategy that puts every group on the given device."""
    k = len(problem.cluster)
    return [Decision.on(device[g], k) for g in range(len(problem.groups))]
