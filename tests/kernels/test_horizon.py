"""No optimum is beyond the horizon, in any model and on any grid."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from optpart.exact.enumeration import enumerate_all
from optpart.kernels import ticks
from optpart.kernels.horizon import horizon, horizon_without_queues
from optpart.kernels.ticks import Grid
from optpart.problem.model import Communication, Memory
from optpart.solution.result import Budget
from optpart.testing.draw import draw_instance


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(
    ("communication", "memory"), list(product(get_args(Communication), get_args(Memory)))
)
def test_an_optimum_is_within_the_horizon(
    communication: Communication, memory: Memory, exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not exact:
        monkeypatch.setattr(ticks, "MAX_HORIZON", 1)
    for seed in range(5):
        instance = draw_instance(seed, communication, memory, vertices=(3, 4))
        grid = Grid.of(instance, ticks=100)
        found = enumerate_all(instance, budget=Budget(60, 1))
        if found.makespan is not None:
            assert grid.floor(found.makespan) <= horizon(instance, grid)
            if exact and communication == "delay":
                assert grid.floor(found.makespan) <= horizon_without_queues(grid)
