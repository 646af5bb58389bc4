"""The search, against the enumeration of all strategies of small problems."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from optpart.testing.chains import chain, cluster
from optpart.testing.training import random_training_cluster, random_training_graph
from optpart.training.actions import ActionRules, actions
from optpart.training.compiler import Options
from optpart.training.evaluator import Evaluator
from optpart.training.graph import Line
from optpart.training.groups import contiguous_groups
from optpart.training.makers import MAKERS
from optpart.training.makers.base import Budget
from optpart.training.problem import StrategyProblem


def optimum(problem: StrategyProblem, rules: ActionRules | None = None) -> Fraction | None:
    """Return the least makespan by rank of all strategies; ``None`` if none is feasible."""
    choices = [[action.decision for action in found] for found in actions(problem, rules)]
    evaluator = Evaluator(problem)
    rows = np.array([evaluator.actions(chosen) for chosen in itertools.product(*choices)])
    outcomes = [evaluator.outcome(row) for row in evaluator.many(rows)]
    return min((o.makespan for o in outcomes if o.feasible and o.makespan), default=None)


def random_problem(seed: int, memory: int | None = None) -> StrategyProblem:
    """Draw a problem of at most three groups on two or three devices."""
    rng = np.random.default_rng(seed)
    graph = random_training_graph(rng, int(rng.integers(2, 5)))
    here = random_training_cluster(rng, int(rng.integers(2, 4)), memory=memory)
    return StrategyProblem(graph, here, 12, contiguous_groups(graph, 12, 3))


@pytest.mark.parametrize("seed", range(30))
def test_it_finds_the_best_of_all_strategies(seed: int) -> None:
    problem = random_problem(seed)
    found = MAKERS["search"](problem, budget=Budget(moves=6000), seed=seed)
    best = optimum(problem)
    assert found.makespan is not None
    assert best is not None
    # It may go beyond the M + 4 actions of the enumeration.
    assert found.makespan <= best


@pytest.mark.parametrize("seed", range(10))
def test_it_respects_memory(seed: int) -> None:
    problem = random_problem(seed, memory=900)
    found = MAKERS["search"](problem, budget=Budget(moves=6000), seed=seed)
    best = optimum(problem)
    if best is None:
        assert found.feasible or "memory" in found.reason or "parameters" in found.reason
    else:
        assert found.makespan is not None
        assert found.makespan <= best


def test_it_is_never_worse_than_a_start() -> None:
    times = [[Line(Fraction(2), Fraction(4 + i)), Line(Fraction(1), Fraction(9))] for i in range(6)]
    graph = chain(6, ("a", "b"), forward=times, weights=300)
    here = cluster(["a", "b", "b"], bandwidth=2, latency=5, copying=9)
    problem = StrategyProblem(graph, here, 12)
    found = MAKERS["search"](problem, budget=Budget(moves=100))
    assert found.makespan is not None
    for name in set(MAKERS) - {"search"}:
        start = MAKERS[name](problem, budget=Budget(moves=100)).makespan
        if name in STARTS and start is not None:
            assert found.makespan <= start, name


STARTS = {"ev-ps", "ev-ar", "cp-ps", "cp-ar", "single", "blocks", "round-robin", "stages"}


def test_a_limit_of_moves_makes_it_repeatable() -> None:
    problem = random_problem(3)
    one, two = (MAKERS["search"](problem, budget=Budget(moves=700), seed=5) for _ in range(2))
    assert one.strategy == two.strategy
    assert one.moves == two.moves
    assert one.moves <= 710


def test_other_options_are_judged_as_asked() -> None:
    problem = random_problem(4)
    asked = StrategyProblem(
        problem.graph, problem.cluster, 12, problem.groups, Options(replicas="separate")
    )
    found = MAKERS["search"](asked, budget=Budget(moves=300))
    assert found.feasible
    assert "separate" in found.reason
    assert found.compiled is not None
    assert found.compiled.options.replicas == "separate"
    for name in ("ev-ps", "cp-ar", "single"):
        start = MAKERS[name](asked).makespan
        assert found.makespan is not None
        assert start is None or found.makespan <= start


@pytest.mark.parametrize("seed", range(8))
def test_more_devices_and_more_actions_never_worsen_the_optimum(seed: int) -> None:
    graph = random_training_graph(np.random.default_rng(seed), 3)
    groups = contiguous_groups(graph, 12, 2)
    kinds = ["fast", "slow", "fast"]
    values = []
    for n in (1, 2, 3):
        problem = StrategyProblem(graph, cluster(kinds[:n], bandwidth=4, copying=9), 12, groups)
        some = optimum(problem, ActionRules(counts=1))
        more = optimum(problem, ActionRules(counts=2, servers=True))
        assert some is not None
        assert more is not None
        assert more <= some
        values.append(more)
    assert values == sorted(values, reverse=True)
