"""The search, against the enumeration of all strategies of small problems."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import cache
from importlib import import_module

import numpy as np
import pytest

from optpart.applications.training.actions import ActionRules, actions
from optpart.applications.training.compiled import Options
from optpart.applications.training.evaluator import Evaluator
from optpart.applications.training.graph import Line
from optpart.applications.training.groups import contiguous_groups
from optpart.applications.training.makers import MAKERS
from optpart.applications.training.makers.base import Clock, evaluate_exactly
from optpart.applications.training.makers.baselines import spread
from optpart.applications.training.problem import StrategyProblem
from optpart.applications.training.question import ordered
from optpart.base.clock import OutOfTimeError
from optpart.solution.result import Budget
from optpart.testing.chains import chain, cluster
from optpart.testing.training import random_training_cluster, random_training_graph


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


@pytest.mark.parametrize("seed", range(12))
def test_it_finds_the_best_of_all_strategies(seed: int) -> None:
    problem = random_problem(seed)
    found = MAKERS["search"](problem, budget=Budget(deterministic=6.0), seed=seed)
    best = optimum(problem)
    assert found.makespan is not None
    assert best is not None
    # It may go beyond the M + 4 actions of the enumeration.
    assert found.makespan <= best


@pytest.mark.parametrize("seed", range(10))
def test_it_respects_memory(seed: int) -> None:
    problem = random_problem(seed, memory=900)
    found = MAKERS["search"](problem, budget=Budget(deterministic=6.0), seed=seed)
    best = optimum(problem)
    if best is None:
        assert found.feasible or "memory" in found.reason or "parameters" in found.reason
    else:
        assert found.makespan is not None
        assert found.makespan <= best


BUDGETS = [
    Budget(0.001),
    Budget(0.1),
    *(Budget(deterministic=moves / 1000) for moves in (0, 1, 40, 900)),
]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("memory", [None, 900, 1500])
def test_it_is_never_worse_than_a_start(budget: Budget, memory: int | None) -> None:
    for seed in range(2):
        problem = random_problem(seed, memory=memory)
        found = MAKERS["search"](problem, budget=budget, seed=seed)
        for name, start in starts(seed, memory).items():
            if start is not None:
                assert found.makespan is not None, name
                assert found.makespan <= start, name


@cache
def starts(seed: int, memory: int | None) -> dict[str, Fraction | None]:
    """Return the makespan of each start on a random problem."""
    names = ("ev-ps", "ev-ar", "cp-ps", "cp-ar", "single", "blocks", "round-robin", "stages")
    return {name: MAKERS[name](random_problem(seed, memory)).makespan for name in names}


@pytest.mark.parametrize("late", ["cost_of", "anneal", "rebuild"])
def test_what_compiles_beyond_the_limit_costs_no_start(
    late: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait(*_: object) -> None:
        raise OutOfTimeError("time limit")

    module = import_module(
        "optpart.applications.training.makers.search"
    )  # of the same name as its function
    monkeypatch.setattr(module, late, wait)
    test_it_is_never_worse_than_a_start(Budget(0.1), None)


@pytest.mark.parametrize("seed", range(4))
def test_it_is_never_worse_than_pipedream_and_alpa(seed: int) -> None:
    problem = random_problem(seed)
    moves = (len(problem.groups) * len(problem.cluster)) ** 2
    found = MAKERS["search"](problem, budget=Budget(deterministic=moves / 1000))
    for name in ("pipedream", "alpa"):
        peer = MAKERS[name](problem, budget=Budget(deterministic=1.0)).makespan
        if peer is not None:
            assert found.makespan is not None
            assert found.makespan <= peer, name


@pytest.mark.parametrize("moves", [1, 600])
def test_what_fits_memory_is_better_than_what_does_not(moves: int) -> None:
    # The first device would be a hundred times faster, but cannot hold the parameters.
    times = [Line(beta=Fraction(1)), Line(beta=Fraction(100))]
    graph = chain(1, ("fast", "slow"), forward=[times], weights=300)
    here = cluster(["fast", "slow"], bandwidth=2, memory=[700, 10**6])
    found = MAKERS["search"](
        StrategyProblem(graph, here, 12), budget=Budget(deterministic=moves / 1000)
    )
    assert found.feasible
    assert found.strategy is not None
    assert found.strategy.decisions[0].devices == (1,)


@pytest.mark.parametrize("counts", [(1, 1, 1), (2, 0, 1)])
def test_servers_share_the_gradients(counts: tuple[int, ...]) -> None:
    graph = chain(6, ("a",), weights=300)
    problem = StrategyProblem(graph, cluster(["a", "a", "a"], bandwidth=2), 12)
    found = spread(problem, counts)
    assert found is not None
    servers = [one.sync for one in found if isinstance(one.sync, int)]
    used = [d for d, count in enumerate(counts) if count]
    assert sorted(servers) == sorted(used * (6 // len(used)))


def test_starts_that_were_not_judged_are_said() -> None:
    problem = random_problem(4)
    asked = StrategyProblem(
        problem.graph, problem.cluster, 12, problem.groups, Options(replicas="separate")
    )
    found = MAKERS["search"](asked, budget=Budget(0.001))
    assert found.feasible
    assert "starts not judged for want of time" in found.reason
    counted = MAKERS["search"](asked, budget=Budget(deterministic=0.001))
    assert "not judged" not in counted.reason


def test_a_limit_of_moves_makes_it_repeatable() -> None:
    problem = random_problem(3)
    one, two = (
        MAKERS["search"](problem, budget=Budget(deterministic=0.7), seed=5) for _ in range(2)
    )
    assert one.strategy == two.strategy
    assert one.moves == two.moves
    assert one.moves <= 710


def test_other_options_are_judged_as_asked() -> None:
    problem = random_problem(4)
    asked = StrategyProblem(
        problem.graph, problem.cluster, 12, problem.groups, Options(replicas="separate")
    )
    found = MAKERS["search"](asked, budget=Budget(deterministic=0.3))
    assert found.feasible
    assert "separate" in found.reason
    assert found.compiled is not None
    assert found.compiled.options.replicas == "separate"
    for name in ("ev-ps", "cp-ar", "single"):
        start = MAKERS[name](asked).makespan
        assert found.makespan is not None
        assert start is None or found.makespan <= start


@pytest.mark.parametrize("seed", range(4))
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


def test_more_bandwidth_never_worsens_the_optimum_in_the_best_order() -> None:
    graph = chain(1, forward=Line(Fraction(1), Fraction(4)), activation=2, weights=40)
    values = []
    for rate in (1, 2, 5, 20):
        problem = StrategyProblem(graph, cluster(["a", "a"], bandwidth=rate, latency=1), 6)
        makespans = []
        for action in actions(problem)[0]:
            made = evaluate_exactly(problem, [action.decision], Clock())
            best = ordered(made, methods=("cpsat",), budget=Budget(60, 1))
            assert best.optimal
            makespans.append(best.makespan)
        values.append(min(makespans))
    assert values == sorted(values, reverse=True)
    assert values[-1] < values[0]
