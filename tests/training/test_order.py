"""The order of a compiled strategy, and where makespan is lost."""

from __future__ import annotations

from fractions import Fraction

import pytest

from optpart.errors import InputError
from optpart.solution.verifier import verify
from optpart.testing.chains import chain, cluster
from optpart.training.graph import Line
from optpart.training.makers import MAKERS
from optpart.training.makers.base import Budget, judge
from optpart.training.order import loss, ordered, placed_servers
from optpart.training.problem import StrategyProblem
from optpart.training.strategy import Decision


def uneven() -> StrategyProblem:
    """Return two layers on three equal devices, of which the first has slow links."""
    rates = [[None, 1, 1], [1, None, 20], [1, 20, None]]
    graph = chain(2, forward=Line(Fraction(1), Fraction(2)), activation=1, weights=60)
    return StrategyProblem(graph, cluster(["a"] * 3, bandwidth=rates), 6)


def test_the_best_order_is_proven_and_verified() -> None:
    graph = chain(1, activation=1, weights=60)
    problem = StrategyProblem(graph, cluster(["a", "a"]), 6)
    made = MAKERS["ev-ps"](problem)
    best = ordered(made, methods=("cpsat",), budget=Budget(60), workers=1)
    assert made.makespan is not None
    assert made.compiled is not None
    assert best.bound <= best.makespan <= made.makespan
    assert best.optimal
    assert not verify(made.compiled.instance, best.schedule)
    assert (best.by == "rank") == (best.makespan == made.makespan)


def test_servers_move_to_better_links() -> None:
    problem = uneven()
    start = judge(problem, [Decision((1, 1, 1), 0)] * 2, Budget().clock())
    moved = placed_servers(problem, start)
    assert start.makespan is not None
    assert moved.makespan is not None
    assert moved.makespan < start.makespan
    assert moved.strategy is not None
    assert {decision.sync for decision in moved.strategy.decisions} & {1, 2}


def test_losses_add_up_to_the_distance_from_the_bound() -> None:
    problem = uneven()
    start = judge(problem, [Decision((1, 1, 1), 0)] * 2, Budget().clock())
    bound = Fraction(30)
    parts, best = loss(problem, start, bound, methods=())
    assert start.makespan is not None
    assert parts.total == start.makespan - bound
    assert best.makespan == bound + parts.strategy
    assert parts.servers > 0
    assert parts.order == 0


def test_a_strategy_out_of_memory_has_no_order() -> None:
    problem = StrategyProblem(chain(2), cluster(["a", "a"], memory=[650] * 2), 6)
    made = MAKERS["single"](problem)
    with pytest.raises(InputError, match="memory"):
        ordered(made)


def test_a_spent_budget_runs_no_method_and_judges_nothing_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = uneven()
    start = judge(problem, [Decision((1, 1, 1), 0)] * 2, Budget().clock())
    monkeypatch.setattr("optpart.training.order.judge", lambda *_: pytest.fail("judged again"))
    best = ordered(start, budget=Budget(0))
    assert (best.by, best.makespan, best.bound) == ("rank", start.makespan, 0)
    assert placed_servers(problem, start, budget=Budget(0)).makespan == start.makespan
