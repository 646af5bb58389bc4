"""Where the time of a strategy is lost."""

from __future__ import annotations

from fractions import Fraction

import pytest

from bench.strategy.losses import loss, placed_servers
from optpart.applications.training.graph import Line
from optpart.applications.training.makers.base import Clock, Made, evaluate_exactly
from optpart.applications.training.problem import StrategyProblem
from optpart.applications.training.strategy import Decision
from optpart.solution.result import Budget
from optpart.testing.chains import chain, cluster


def uneven() -> tuple[StrategyProblem, Made]:
    """Return two layers on three equal devices, of which the first has slow links and serves."""
    rates = [[None, 1, 1], [1, None, 20], [1, 20, None]]
    graph = chain(2, forward=Line(Fraction(1), Fraction(2)), activation=1, weights=60)
    problem = StrategyProblem(graph, cluster(["a"] * 3, bandwidth=rates), 6)
    return problem, evaluate_exactly(problem, [Decision((1, 1, 1), 0)] * 2, Clock())


def test_servers_move_to_better_links() -> None:
    problem, start = uneven()
    moved = placed_servers(problem, start)
    assert start.makespan is not None
    assert moved.makespan is not None
    assert moved.makespan < start.makespan
    assert moved.strategy is not None
    assert {decision.sync for decision in moved.strategy.decisions} & {1, 2}


def test_losses_add_up_to_the_distance_from_the_bound() -> None:
    problem, start = uneven()
    bound = Fraction(30)
    parts, best = loss(problem, start, bound, methods=())
    assert start.makespan is not None
    assert parts.total == start.makespan - bound
    assert best.makespan == bound + parts.strategy
    assert parts.servers > 0
    assert parts.order == 0


def test_a_spent_budget_judges_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, start = uneven()
    monkeypatch.setattr(
        "bench.strategy.losses.evaluate_exactly", lambda *_: pytest.fail("judged again")
    )
    assert placed_servers(problem, start, budget=Budget(0)).makespan == start.makespan
