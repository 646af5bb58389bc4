"""Model parallelism without search: round-robin and blocks."""

from __future__ import annotations

from itertools import accumulate

from optpart.training.groups import positions
from optpart.training.makers.base import DEFAULT, Budget, Made, judge
from optpart.training.problem import StrategyProblem
from optpart.training.strategy import Decision


def round_robin(problem: StrategyProblem, *, budget: Budget = DEFAULT, seed: int = 0) -> Made:
    """Place the groups along the forward pass on the devices in turn."""
    k = len(problem.cluster)
    return _placed(problem, {g: i % k for i, g in enumerate(groups_along(problem))})


def blocks(problem: StrategyProblem, *, budget: Budget = DEFAULT, seed: int = 0) -> Made:
    """Cut the groups along the forward pass into one block of about equal time per device.

    Times are means over the kinds of devices: the blocks do not care which device is faster.
    """
    k, order = len(problem.cluster), groups_along(problem)
    time = problem.graph.times(problem.batch).mean(axis=1)
    lengths = [float(time[list(problem.groups[g])].sum()) for g in order]
    total = sum(lengths)
    if not total:
        lengths, total = [1.0] * len(order), float(len(order))
    ends = accumulate(lengths)
    # The middle of a group decides to which block it belongs.
    return _placed(
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


def _placed(problem: StrategyProblem, device: dict[int, int]) -> Made:
    clock = DEFAULT.clock()
    clock.moves = 1
    k = len(problem.cluster)
    return judge(problem, [Decision.on(device[g], k) for g in range(len(problem.groups))], clock)
