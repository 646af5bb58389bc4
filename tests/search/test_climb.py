"""Rounds of melting and cooling."""

from __future__ import annotations

import numpy as np
import pytest

from optpart.methods.registry import get
from optpart.search import climb as module
from optpart.search.climb import MELTS, Climb, Round
from optpart.search.evaluator import Evaluator
from optpart.search.layout import layout_of
from optpart.solution.goal import Objective
from optpart.testing.draw import draw_instance


def climb(objective: Objective = "makespan", seed: int = 0) -> Climb:
    instance = draw_instance(45, vertices=25, devices=3)
    start = get("hash+fifo")(instance).schedule
    assert start is not None
    evaluator = Evaluator(instance, objective)
    return Climb(evaluator, layout_of(instance, start), np.random.default_rng(seed), timed=False)


def searched(own: Climb, steps: int) -> Climb:
    for number in range(steps):
        own.step(number / steps)
    return own


@pytest.mark.parametrize("objective", ["makespan", "traffic", "lexicographic"])
def test_annealing_returns_the_cost_of_its_final_plan(objective: Objective) -> None:
    own = searched(climb(objective), 20)
    told = own._anneal(0.01, 0.01)
    # Weights are those around the best, not those around the plan.
    weights = own.evaluator.weights(own.value)
    left = own.evaluator.cost(own.evaluator.value(), weights)
    assert left > 0.0
    assert told == pytest.approx(left / own.evaluator.cost(own.value, weights))


def test_the_start_is_improved_before_anything_melts() -> None:
    own = climb()
    before = own.value
    own.step(0.0)
    first = own._round
    assert first is not None
    assert first.melt == 0.0
    assert own.value < before


def rounds_of(own: Climb) -> list[Round]:
    rounds = {}
    for number in range(400):
        own.step(number / 400)
        if own._round is not None:
            rounds[own._round.begin] = own._round
    return list(rounds.values())


def test_every_further_round_melts_by_a_share_and_cools_from_there() -> None:
    first, *further = rounds_of(climb())
    assert len(further) >= 2
    for one in further[:-1]:
        assert one.melt in MELTS
        assert one.cooling is not None
        assert first.temperature < one.temperature <= 0.2


def test_rounds_of_a_large_graph_are_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    own = climb()
    first = rounds_of(own)[1]
    monkeypatch.setattr(module, "_GROWING", own.evaluator.instance.vertices / 2)
    longer = rounds_of(climb())[1]
    assert longer.end - longer.begin == pytest.approx(2 * (first.end - first.begin), rel=0.1)


def test_few_moves_stay_cold() -> None:
    own = climb()
    own.step(0.0)
    for share in (0.02, 0.04):
        own.step(share)
    now = own._round
    assert now is not None
    assert now.end == pytest.approx(1.0)
    assert now.temperature < 1e-3
