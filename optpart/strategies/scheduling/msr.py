"""Maximum successor rank first ([L] §5.4, [M] §4.2)."""

from __future__ import annotations

import numpy as np

from optpart.kernels.tasks import Tasks
from optpart.strategies.base import Partition
from optpart.strategies.scheduling.pct import path_computation_time
from optpart.strategies.simulator import Priority

#: α, β, γ, δ of [M] eq. 13, as in [L] eq. 5.2 and [M] §5.2.
WEIGHTS = (1.0, 1.0, 1.0, 5.0)


def msr(
    work: Tasks,
    partition: Partition,
    rng: np.random.Generator,
    *,
    weights: tuple[float, float, float, float] = WEIGHTS,
) -> Priority:
    """Prefer the task of largest successor rank, whose end enables most work elsewhere.

    Each distinct successor adds α; β more if it is on another device; γ more if the task is its
    only unfinished predecessor; and in that case δ more if its device is idle. The device that
    decides is not idle, since it is about to run something. Equal ranks are compared by path
    computation time, as in [L] §5.4, then by number.
    """
    return Priority(path_computation_time(work), np.arange(len(work.duration)), np.array(weights))
