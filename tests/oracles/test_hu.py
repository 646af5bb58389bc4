"""Trees of tasks of equal length on equal machines: highest level first is optimal (Hu 1961).

T. C. Hu, Parallel sequencing and assembly line problems, Operations Research 9 (1961). For
out-trees turn time round.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from oracles.proving import agree, prove
from oracles.unit_tasks import LENGTH, list_length, unit_tasks

from optpart import Budget
from optpart.lower_bounds.energy import energy_bound
from optpart.methods import registry

Arcs = list[tuple[int, int]]


def in_forest(n: int, width: int, rng: np.random.Generator) -> Arcs:
    """Every vertex has one successor among the next few, but for the last and a few roots."""
    return [
        (v, int(rng.integers(v + 1, min(n, v + 1 + width))))
        for v in range(n - 1)
        if rng.integers(12)
    ]


def levels(n: int, arcs: Arcs) -> list[int]:
    """Number of tasks from each to its root, both included; arcs lead to higher numbers."""
    after = dict(arcs)
    level = [1] * n
    for v in reversed(range(n)):
        if v in after:
            level[v] += level[after[v]]
    return level


def highest_level_first(n: int, arcs: Arcs, machines: int) -> int:
    return list_length(n, arcs, machines, levels(n, arcs))


def closed_form(n: int, arcs: Arcs, machines: int) -> int:
    """Hu's bound, which in-forests reach: what is above level h ends before the last h steps."""
    count = Counter(levels(n, arcs))
    return max(
        h - (-sum(number for level, number in count.items() if level > h) // machines)
        for h in range(max(count))
    )


SIZES = [(6, 2), (7, 3), (7, 2), (12, 3), (20, 4), (30, 4), (40, 5), (60, 4), (90, 6), (120, 8)]


@pytest.mark.parametrize(("n", "machines"), SIZES)
def test_in_forests(n: int, machines: int) -> None:
    rng = np.random.default_rng([n, machines])
    arcs = in_forest(n, 2 * machines, rng)
    steps = highest_level_first(n, arcs, machines)
    assert steps == closed_form(n, arcs, machines)
    instance = unit_tasks(n, arcs, machines, rng, f"in-forest-{n}-{machines}")
    prove(instance, steps * LENGTH, "enumerate", "milp")


@pytest.mark.parametrize(("n", "machines"), SIZES)
def test_out_forests(n: int, machines: int) -> None:
    rng = np.random.default_rng([n, machines, 1])
    arcs = in_forest(n, 2 * machines, rng)
    steps = highest_level_first(n, arcs, machines)
    backwards = [(v, u) for u, v in arcs]
    instance = unit_tasks(n, backwards, machines, rng, f"out-forest-{n}-{machines}")
    prove(instance, steps * LENGTH, "enumerate", "milp")


@pytest.mark.parametrize(("n", "machines"), [(30, 3), (31, 3), (60, 4)])
def test_energy_bounds_reach_it(n: int, machines: int) -> None:
    """What is above level h has to run before the last h steps, which is more than load says."""
    rng = np.random.default_rng([n, machines])
    arcs = in_forest(n, 2 * machines, rng)
    optimum = highest_level_first(n, arcs, machines) * LENGTH
    for name, directed in (("in", arcs), ("out", [(v, u) for u, v in arcs])):
        instance = unit_tasks(n, directed, machines, rng, f"{name}-forest-{n}-{machines}")
        assert energy_bound(instance) == optimum
        budget = Budget(seconds=60, workers=1, deterministic=0.1)
        agree(registry.get("cpsat")(instance, budget=budget), optimum)


def test_both_ways_to_compute_it_agree() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        n, machines = int(rng.integers(1, 40)), int(rng.integers(1, 6))
        arcs = in_forest(n, int(rng.integers(1, 12)), rng)
        assert highest_level_first(n, arcs, machines) == closed_form(n, arcs, machines)
