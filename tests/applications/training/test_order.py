"""The order of a compiled strategy."""

from __future__ import annotations

import pytest

from optpart.applications.training.makers import MAKERS
from optpart.applications.training.makers.base import Budget
from optpart.applications.training.order import ordered
from optpart.applications.training.problem import StrategyProblem
from optpart.base.errors import InputError
from optpart.solution.verifier import verify
from optpart.testing.chains import chain, cluster


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


def test_a_strategy_out_of_memory_has_no_order() -> None:
    problem = StrategyProblem(chain(2), cluster(["a", "a"], memory=[650] * 2), 6)
    made = MAKERS["single"](problem)
    with pytest.raises(InputError, match="memory"):
        ordered(made)


def test_a_spent_budget_runs_no_method() -> None:
    made = MAKERS["single"](StrategyProblem(chain(2), cluster(["a", "a"]), 6))
    best = ordered(made, budget=Budget(0))
    assert (best.by, best.makespan, best.bound) == ("rank", made.makespan, 0)
