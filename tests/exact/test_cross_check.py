"""Small proofs are checked by a method that shares no mathematics with the one that proved."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from optpart import Cluster, GraphBuilder, Instance, Model
from optpart.base.errors import ContradictionError
from optpart.exact import cross_check
from optpart.exact.cross_check import confirmed
from optpart.methods.cpsat import cpsat
from optpart.solution.goal import Goal, Objective
from optpart.solution.result import Budget, Result, Status

ONE = Budget(seconds=20, workers=1)


def apart() -> Instance:
    """a hands 2 to b on another device: makespan 1 + 2 + 1, traffic 2."""
    builder = GraphBuilder().vertex("a", 1, outputs=[2]).vertex("b", 1).edge("a", "b")
    graph = builder.separate("a", "b").build()
    return Instance(graph, Cluster.uniform(2, bandwidth=1), Model(), name="apart")


def proven(objective: Objective = "makespan") -> Result:
    result = cpsat(apart(), budget=ONE, goal=Goal(objective))
    assert result.status is Status.OPTIMAL
    return result


def reached(**values: Fraction | int) -> dict[str, Any]:
    """Values and equal bounds."""
    exact = {measure: Fraction(value) for measure, value in values.items()}
    return {"values": exact, "bounds": exact}


@pytest.mark.parametrize("objective", ["makespan", "traffic", "lexicographic"])
def test_correct_results_pass(objective: Objective) -> None:
    result = proven(objective)
    assert confirmed(result, Goal(objective)) is result


def test_an_optimum_too_high_is_contradicted() -> None:
    wrong = replace(proven(), **reached(makespan=5, traffic=2))
    with pytest.raises(ContradictionError, match="apart: cpsat has lower bound 5, enumerate has"):
        confirmed(wrong)


def test_an_optimum_too_low_is_contradicted() -> None:
    wrong = replace(proven(), **reached(makespan=3, traffic=2))
    with pytest.raises(ContradictionError, match="enumerate has lower bound 4, cpsat has"):
        confirmed(wrong)


def test_a_false_infeasibility_is_contradicted() -> None:
    wrong = replace(proven(), status=Status.INFEASIBLE, schedule=None, values={})
    with pytest.raises(ContradictionError, match="cpsat says INFEASIBLE, enumerate has a schedule"):
        confirmed(wrong)


@pytest.mark.parametrize("objective", ["traffic", "lexicographic"])
def test_a_traffic_too_high_is_contradicted(objective: Objective) -> None:
    wrong = replace(proven(objective), **reached(makespan=4, traffic=3))
    with pytest.raises(ContradictionError, match="traffic bound 3"):
        confirmed(wrong, Goal(objective))


def test_a_bottleneck_too_high_is_contradicted() -> None:
    right = proven("bottleneck")
    assert right.bottleneck is not None
    high = right.bottleneck + 1
    wrong = replace(right, **reached(makespan=4, traffic=2, bottleneck=high))
    with pytest.raises(ContradictionError, match=f"bottleneck bound {high}, enumerate has"):
        confirmed(wrong, Goal("bottleneck"))


def test_large_instances_and_mere_schedules_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*given: object, **options: object) -> Result:
        raise AssertionError("enumeration was asked")

    monkeypatch.setattr(cross_check, "enumerate_all", never)
    feasible = replace(proven(), status=Status.FEASIBLE)
    assert confirmed(feasible) is feasible
    builder = GraphBuilder()
    for v in range(10):
        builder.vertex(f"v{v}", 1)
    large = cpsat(Instance(builder.build(), Cluster.uniform(2)), budget=ONE)
    assert confirmed(large) is large
