"""The search for the least length that a refutation leaves standing."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from optpart import Cluster, GraphBuilder, Instance
from optpart.base import clock
from optpart.kernels.horizon import horizon_without_queues
from optpart.kernels.ticks import Grid
from optpart.lower_bounds.bisection import least_not_refuted
from optpart.testing.brute_force import optimum
from optpart.testing.draw import random_instance

#: Ticks of length 1, and a horizon of 1000.
GRID = Grid.of(Instance(GraphBuilder().vertex("a", 999).vertex("b", 1).build(), Cluster.uniform(1)))


@pytest.mark.parametrize("answer", [1, 2, 3, 37, 500, 999, 1000])
@pytest.mark.parametrize("least", [0, 1, 30])
def test_on_an_exact_grid_it_finds_the_answer(answer: int, least: int) -> None:
    found = least_not_refuted(lambda limit: limit < answer, GRID, least)
    assert found == max(least, answer)


def test_when_the_horizon_is_refuted_there_is_no_schedule() -> None:
    assert least_not_refuted(lambda limit: True, GRID, 5) is None


def test_nothing_is_tried_from_a_known_makespan_on() -> None:
    tried = []

    def refuted(limit: int) -> bool:
        tried.append(limit)
        return True

    assert least_not_refuted(refuted, GRID, 5, makespan=Fraction(40)) == 40
    assert max(tried) == 39


def test_nothing_is_tried_when_bound_and_makespan_meet() -> None:
    def refuted(limit: int) -> bool:
        raise AssertionError

    assert least_not_refuted(refuted, GRID, 40, makespan=Fraction(40)) == 40


def test_without_time_the_bound_stays() -> None:
    assert least_not_refuted(lambda limit: True, GRID, 5, deadline=clock.now()) == 5


def test_an_answer_that_comes_and_goes_stays_proven() -> None:
    """Whatever is refuted, the bound is one more than something refuted, or where it began."""
    rng = np.random.default_rng(1)
    for _ in range(100):
        good = set(rng.integers(0, 1000, 300).tolist())
        found = least_not_refuted(lambda limit, good=good: limit in good, GRID, 7)
        assert found == 7 or (found is not None and found - 1 in good)


def test_no_optimum_is_beyond_the_horizon() -> None:
    rng = np.random.default_rng(2)
    for _ in range(100):
        instance = random_instance(rng, 5, 3)
        best = optimum(instance)
        grid = Grid.of(instance)
        assert best is None or best.makespan <= grid.time(horizon_without_queues(grid))


def tried(
    monkeypatch: pytest.MonkeyPatch, seconds_for: Callable[[int], float], limit: float
) -> list[tuple[int, float]]:
    """Return the lengths that are tried where all can be refuted, and how long each has taken."""
    spent: list[tuple[int, float]] = []
    monkeypatch.setattr(clock, "now", lambda: sum(seconds for _, seconds in spent))

    def refuted(length: int) -> bool:
        spent.append((length, seconds_for(length)))
        return True

    least_not_refuted(refuted, GRID, 100, deadline=limit, makespan=Fraction(1000))
    return spent


def test_steps_are_as_long_as_the_time_left_permits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it is known how the time grows, no length takes more than half of what is left."""
    spent = tried(monkeypatch, lambda length: 1.1 ** (length - 100), 1000.0)
    left = 1000.0
    for number, (_, seconds) in enumerate(spent):
        # The shortest step is taken even if it takes longer: nothing else can be done.
        assert number < 2 or seconds <= 0.5 * left or spent[number][0] == spent[number - 1][0] + 1
        left -= seconds
    longest = max(length for length, _ in spent)
    assert 1.1 ** (longest + 1 - 100) > 100.0, "far short of what the time permits"


def test_steps_double_while_time_is_plentiful(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = [length for length, _ in tried(monkeypatch, lambda length: 1e-6 * length, 1000.0)]
    steps = np.diff(lengths[:8])
    assert steps.tolist() == [1, 2, 4, 8, 16, 32, 64]


def test_steps_do_not_double_before_it_is_known_how_the_time_grows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lengths = [length for length, _ in tried(monkeypatch, lambda length: length - 99.0, 10.0)]
    assert lengths[:2] == [100, 101]
