"""The integer program over actions: between the linear program and the joint optimum."""

from dataclasses import replace
from fractions import Fraction

import pytest

from optpart.applications.training.bounds.milp import integer_bound
from optpart.applications.training.bounds.program import strategy_bound
from optpart.applications.training.problem import Choices, StrategyProblem
from optpart.applications.training.strategy import Decision
from optpart.testing.chains import chain, cluster
from optpart.testing.choices import best_strategy, tiny_choices


def bounds(choices):
    known = strategy_bound(choices)
    return known, integer_bound(choices, known)


@pytest.mark.parametrize("seed", range(16))
def test_it_is_between_the_linear_program_and_the_optimum(seed):
    choices = tiny_choices(seed)
    best = best_strategy(choices)
    known, found = bounds(choices)
    assert found.closed
    if found.value is None:
        assert best is None
    else:
        assert known.value <= found.value
        assert best is None or found.value <= best


def test_it_exceeds_the_linear_program():
    gains = []
    for seed in range(10):
        known, found = bounds(tiny_choices(seed))
        gains.append(found.value > known.value)
    assert any(gains)


def test_one_action_each_leaves_the_longest_row():
    choices = tiny_choices(1)
    alone = replace(choices, actions=tuple(row[:1] for row in choices.actions))
    known, found = bounds(alone)
    assert found.chosen == (0,) * len(alone.actions)
    assert found.value - known.value < Fraction(1, 100) * found.value


def test_parameters_that_do_not_fit_together_are_infeasible():
    # Parameters and Adam's two copies take 300 bytes a layer: of three, one fits on no device.
    graph = chain(3, ("a",), weights=100)
    groups = tuple(tuple(sorted(group)) for group in graph.tied)
    actions = ((Decision.on(0, 2), Decision.on(1, 2)),) * 3
    problem = StrategyProblem(graph, cluster(("a", "a"), memory=[300] * 2), 8, groups)
    choices = Choices(problem, actions)
    known, found = bounds(choices)
    assert known.value is not None
    assert found.value is None
    known, found = bounds(
        replace(choices, problem=replace(problem, cluster=cluster(("a", "a"), memory=[600, 300])))
    )
    assert known.value <= found.value


def test_without_time_it_returns_the_bound_of_the_linear_program():
    choices = tiny_choices(3)
    known = strategy_bound(choices)
    found = integer_bound(choices, known, seconds=0.0)
    assert found.value == known.value
    assert not found.closed
