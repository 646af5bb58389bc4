"""The evaluator says exactly what compiler, [G]'s rank, simulator and verifier say."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from optpart.applications.training.actions import ActionRules, actions
from optpart.applications.training.compiled import Options
from optpart.applications.training.evaluator import Evaluator, Outcome, unsupported
from optpart.applications.training.graph import Line
from optpart.applications.training.makers.base import Clock, evaluate_exactly
from optpart.applications.training.problem import StrategyProblem
from optpart.applications.training.strategy import Decision
from optpart.base.errors import InputError
from optpart.testing.chains import chain, cluster
from optpart.testing.training import random_strategy, random_training_cluster, random_training_graph


def assert_equal(problem: StrategyProblem, decisions: tuple[Decision, ...], found: Outcome) -> None:
    """Check an outcome against the compiled strategy."""
    made = evaluate_exactly(problem, decisions, Clock())
    if made.schedule is None or made.compiled is None:
        assert "link" in made.reason
        assert found.makespan is None
        return
    assert found.makespan == made.schedule.makespan(made.compiled.instance)
    assert found.feasible == made.feasible


@pytest.mark.parametrize("seed", range(16))
def test_random_strategies(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = random_training_graph(rng, int(rng.integers(1, 7)))
    here = random_training_cluster(rng, int(rng.integers(1, 6)), missing=0.05 * (seed % 2))
    auxiliary = "free" if seed % 3 == 0 else "memory"
    tick = [Fraction(1), Fraction(1, 2), Fraction(3)][seed % 3]
    for _ in range(3):
        strategy = random_strategy(rng, graph, len(here), groups=int(rng.integers(1, 9)))
        problem = StrategyProblem(
            graph, here, strategy.batch, strategy.groups, Options(auxiliary=auxiliary, tick=tick)
        )
        assert_equal(problem, strategy.decisions, Evaluator(problem).of(strategy.decisions))


@pytest.mark.parametrize("seed", range(12))
def test_memory_is_exact_to_the_last_byte(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = random_training_graph(rng, int(rng.integers(1, 5)))
    size, state = int(rng.integers(1, 4)), rng.bit_generator.state
    strategy = random_strategy(rng, graph, size)

    def limited(memory: Fraction) -> StrategyProblem:
        rng.bit_generator.state = state
        here = random_training_cluster(rng, size, memory=memory)
        return StrategyProblem(graph, here, strategy.batch, strategy.groups)

    # Large enough for the parameters, so that the compiler does not refuse the cluster.
    enough = 3 * sum(parameter.size for parameter in graph.parameters) + 1
    need = Evaluator(limited(enough)).of(strategy.decisions).excess
    if not need:
        pytest.skip("needs no more than its parameters")
    for room, fits in ((enough + need, True), (enough + need - Fraction(1, 1000), False)):
        problem = limited(room)
        evaluator = Evaluator(problem)
        outcome = evaluator.of(strategy.decisions)
        assert evaluator.exact_memory
        assert outcome.feasible == fits
        assert_equal(problem, strategy.decisions, outcome)


def tiny_problem(memory: int | None = None) -> StrategyProblem:
    """Return three layers on a fast and a slow device."""
    times = [Line(Fraction(3), Fraction(10)), Line(Fraction(2), Fraction(21))]
    graph = chain(3, ("a", "b"), forward=[times] * 3, weights=50)
    here = cluster(["a", "b"], bandwidth=3, latency=2, copying=7, memory=[memory] * 2)
    return StrategyProblem(graph, here, 6)


@pytest.mark.parametrize("memory", [None, 600])
def test_all_strategies_of_a_tiny_problem(memory: int | None) -> None:
    problem = tiny_problem(memory)
    rules = ActionRules(counts=2)
    choices = [[action.decision for action in found] for found in actions(problem, rules)]
    evaluator = Evaluator(problem)
    every = [*itertools.product(*choices)]
    assert len(every) == 8**3
    rows = np.array([evaluator.actions(decisions) for decisions in every])
    # Every seventh is compiled; together they use every pair of actions.
    outcomes = [evaluator.outcome(row) for row in evaluator.many(rows)]
    for decisions, outcome in [*zip(every, outcomes, strict=True)][::7]:
        assert_equal(problem, decisions, outcome)
    if memory is not None:
        assert {outcome.feasible for outcome in outcomes} == {True, False}


def test_groups_do_not_matter() -> None:
    problem = tiny_problem()
    together = replace(problem, groups=((0, 1, 3, 4, 6, 7), (2, 5, 8)))
    one, two = Decision((2, 1), "allreduce"), Decision((0, 1))
    assert Evaluator(problem).of([one, one, two]) == Evaluator(together).of([one, two])


def test_a_missing_link_makes_a_strategy_impossible() -> None:
    graph = chain(2)
    here = cluster(["a", "a"], bandwidth=0)
    evaluator = Evaluator(StrategyProblem(graph, here, 4))
    alone, other = Decision.on(0, 2), Decision.on(1, 2)
    assert evaluator.of([alone, alone]).feasible
    assert evaluator.of([alone, other]).makespan is None
    assert evaluator.of([Decision((1, 1), 0)] * 2).makespan is None
    assert evaluator.of([Decision((1, 1), "allreduce")] * 2).makespan is None


def test_huge_denominators_round_memory_to_the_safe_side() -> None:
    graph = chain(2, activation=Fraction(1, 3**40), weights=Fraction(7, 2**60))
    here = cluster(["a", "a"], memory=[Fraction(1, 5**20)] * 2)
    evaluator = Evaluator(StrategyProblem(graph, here, 4))
    outcome = evaluator.of([Decision.on(0, 2), Decision((1, 1), 0)])
    assert not evaluator.exact_memory
    assert not outcome.feasible


def test_more_replicas_than_samples_are_refused() -> None:
    evaluator = Evaluator(tiny_problem())
    with pytest.raises(InputError, match="batch of 6"):
        evaluator.action(Decision((6, 1), "allreduce"))


@pytest.mark.parametrize(
    "options",
    [
        Options(replicas="separate"),
        Options(resharding="heterog"),
        Options(collectives="ring"),
        Options(topology="shared"),
        Options(microbatches=2),
        Options(tick=None),
    ],
)
def test_options_that_it_does_not_know_are_refused(options: Options) -> None:
    problem = tiny_problem()
    other = StrategyProblem(problem.graph, problem.cluster, 6, options=options)
    assert unsupported(other)
    with pytest.raises(InputError, match="compile"):
        Evaluator(other)
