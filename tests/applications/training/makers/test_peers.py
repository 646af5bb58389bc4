"""Makers of other systems on small problems with known answers."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from optpart.applications.training.actions import actions
from optpart.applications.training.graph import Line
from optpart.applications.training.makers import MAKERS
from optpart.applications.training.makers.alpa import LeastSum
from optpart.applications.training.makers.base import Clock, evaluate_exactly
from optpart.applications.training.makers.flexflow import flexflow, replicated
from optpart.applications.training.makers.pipedream import StageCosts, pipedream
from optpart.applications.training.makers.policy_gradient import (
    entropy_gradient,
    expected,
    policy_gradient,
    sample,
    softmax,
)
from optpart.applications.training.makers.scoring import Scorer
from optpart.applications.training.problem import StrategyProblem
from optpart.applications.training.strategy import Decision
from optpart.solution.result import Budget
from optpart.testing.chains import chain, cluster

PEERS = ("policy-gradient", "flexflow", "alpa", "pipedream")
MOVES = Budget(deterministic=0.2)


def drawn(seed: int, layers: int = 4, devices: int = 3) -> StrategyProblem:
    """Return a chain of unlike layers on unlike devices."""
    rng = np.random.default_rng(seed)
    kinds = ("a", "b", "c")[:devices]
    forward = [
        [Line.of(int(rng.integers(0, 9)), int(rng.integers(1, 9))) for _ in kinds]
        for _ in range(layers)
    ]
    graph = chain(
        layers,
        kinds,
        forward=forward,
        activation=int(rng.integers(1, 9)),
        weights=int(rng.integers(1, 99)),
    )
    bandwidth = [[int(rng.integers(1, 5)) for _ in kinds] for _ in kinds]
    return StrategyProblem(graph, cluster(kinds, bandwidth=bandwidth, latency=1, copying=8), 12)


def lonely() -> StrategyProblem:
    """Return a problem whose single best strategy is everything on the first device."""
    graph = chain(3, ("fast", "slow"), forward=[[Line.of(10), Line.of(1000)]] * 3, activation=1)
    return StrategyProblem(graph, cluster(("fast", "slow"), bandwidth=1), 4)


def best_of_all(problem: StrategyProblem) -> Fraction:
    """Return the least makespan over all strategies."""
    choices = [[a.decision for a in each] for each in actions(problem)]
    made = (
        evaluate_exactly(problem, chosen, Clock(MOVES)) for chosen in itertools.product(*choices)
    )
    return min(each.makespan for each in made if each.makespan is not None)


# --- all peers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PEERS)
def test_the_same_seed_makes_the_same_strategy(name: str) -> None:
    one, two = (MAKERS[name](drawn(1), budget=MOVES, seed=7) for _ in range(2))
    assert one.feasible
    assert (one.strategy, one.makespan, one.moves) == (two.strategy, two.makespan, two.moves)


@pytest.mark.parametrize("name", PEERS)
def test_everything_on_the_only_good_device(name: str) -> None:
    made = MAKERS[name](lonely(), budget=Budget(deterministic=0.6), seed=0)
    assert made.strategy is not None
    assert made.strategy.decisions == (Decision.on(0, 2),) * 3


@pytest.mark.parametrize("name", PEERS)
def test_no_strategy_without_memory(name: str) -> None:
    graph = chain(2, ("a",), weights=100)
    tight = StrategyProblem(graph, cluster(("a", "a"), memory=[50, 50]), 4)
    made = MAKERS[name](tight, budget=MOVES, seed=0)
    assert not made.feasible
    assert made.reason


@pytest.mark.parametrize("name", PEERS)
def test_devices_without_links_are_not_combined(name: str) -> None:
    problem = StrategyProblem(chain(3, ("a",)), cluster(("a", "a"), bandwidth=0), 4)
    made = MAKERS[name](problem, budget=Budget(deterministic=1.0), seed=0)
    assert made.feasible
    assert made.strategy is not None
    assert len({decision.devices for decision in made.strategy.decisions}) == 1


# --- policy gradient -----------------------------------------------------------------------------


def test_the_policy_learns_the_best_strategy() -> None:
    problem = drawn(3, layers=3)
    made = policy_gradient(problem, budget=Budget(deterministic=1.6), seed=0)
    assert made.makespan == best_of_all(problem)


def test_the_gradient_of_the_entropy_is_its_difference_quotient() -> None:
    logits = np.array([[0.3, -1.0, 0.5], [2.0, 0.0, -np.inf]])

    def entropy(at: np.ndarray) -> float:
        chance = softmax(at)
        return float(-(chance[chance > 0] * np.log(chance[chance > 0])).sum())

    gradient = entropy_gradient(softmax(logits))
    for g, a in itertools.product(range(2), range(3)):
        if math.isfinite(logits[g, a]):
            step = np.zeros_like(logits)
            step[g, a] = 1e-6
            quotient = (entropy(logits + step) - entropy(logits - step)) / 2e-6
            assert gradient[g, a] == pytest.approx(quotient, abs=1e-6)


def test_an_action_that_pays_gains_and_the_others_lose() -> None:
    chance = softmax(np.zeros((1, 3)))
    gradient = expected(np.array([[1]]), np.array([2.0]), chance)
    assert gradient[0] == pytest.approx([-2 / 3, 4 / 3, -2 / 3])


def test_samples_follow_the_probabilities() -> None:
    chance = softmax(np.array([[0.0, np.log(3.0), -np.inf], [-np.inf, 0.0, 0.0]]))
    found = sample(chance, np.random.default_rng(0), 20_000)
    shares = [[(found[:, g] == a).mean() for a in range(3)] for g in range(2)]
    assert shares == pytest.approx(chance, abs=0.02)


# --- FlexFlow ------------------------------------------------------------------------------------


def test_the_chain_is_never_worse_than_data_parallelism() -> None:
    for seed in range(5):
        problem = drawn(seed)
        choices = actions(problem)
        start = Scorer(problem, choices, 10.0).decisions(replicated(choices).tolist())
        parallel = evaluate_exactly(problem, start, Clock(MOVES)).makespan
        found = flexflow(problem, budget=MOVES, seed=seed).makespan
        assert found is not None
        assert parallel is not None
        assert found <= parallel


def test_the_chain_finds_the_best_strategy_of_a_small_problem() -> None:
    problem = drawn(2, layers=3)
    assert flexflow(problem, budget=Budget(deterministic=1.5), seed=0).makespan == best_of_all(
        problem
    )


# --- Alpa ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_the_program_minimises_its_own_sum(seed: int) -> None:
    problem = drawn(seed, layers=3)
    program = LeastSum.of(problem, [[a.decision for a in each] for each in actions(problem)])
    chosen, proven = program.solve()
    assert proven
    assert chosen is not None
    everything = itertools.product(*(range(len(cost)) for cost in program.own))
    least = min(program.cost(each) for each in everything if program.fits(each))
    assert program.cost(chosen) == pytest.approx(least, rel=1e-9)


def test_the_program_respects_the_memory_for_parameters() -> None:
    graph = chain(4, ("a",), weights=100)
    problem = StrategyProblem(graph, cluster(("a", "a"), memory=[620, 620]), 4)
    program = LeastSum.of(problem, [[a.decision for a in each] for each in actions(problem)])
    chosen, _ = program.solve()
    assert chosen is not None
    assert program.fits(chosen)
    assert not program.fits([0, 0, 0, 0])  # 1200 bytes on one device


def test_without_communication_the_sum_on_one_device_is_its_time() -> None:
    problem = StrategyProblem(chain(3, ("a",)), cluster(("a",)), 4)
    program = LeastSum.of(problem, [[a.decision for a in each] for each in actions(problem)])
    made = MAKERS["alpa"](problem, budget=MOVES, seed=0)
    assert made.makespan == program.cost([0, 0, 0])


# --- PipeDream -----------------------------------------------------------------------------------


def bottleneck(problem: StrategyProblem, cuts: list[int], runs: list[int]) -> float:
    """Return the longest stage or border, from the definition."""
    costs = StageCosts(problem, range(len(problem.cluster)))
    longest = 0.0
    for s in range(len(runs) - 1):
        longest = max(longest, costs.stage(cuts[s], cuts[s + 1], runs[s], runs[s + 1])[0])
        if s:
            longest = max(longest, costs.border(cuts[s], runs[s]))
    return longest


@pytest.mark.parametrize("seed", range(6))
def test_the_programme_finds_the_least_bottleneck(seed: int) -> None:
    problem = drawn(seed)
    n, k = len(problem.groups), len(problem.cluster)
    least = math.inf
    for stages in range(1, k + 1):
        for inner in itertools.combinations(range(1, n), stages - 1):
            for ends in itertools.combinations(range(1, k + 1), stages):
                least = min(least, bottleneck(problem, [0, *inner, n], [0, *ends]))
    found = StageCosts(problem, range(k)).best()
    assert found is not None
    assert found.bottleneck == pytest.approx(least)


def test_a_stage_takes_the_longer_of_computing_and_summing() -> None:
    """Forward 10, backward 20 a sample; 8 samples on two devices; 100 bytes at rate 1."""
    problem = StrategyProblem(chain(2, ("a",)), cluster(("a", "a"), bandwidth=1), 8)
    costs = StageCosts(problem, (0, 1))
    assert costs.stage(0, 1, 0, 1)[0] == 30 * 8
    assert costs.stage(0, 1, 0, 2)[0] == 30 * 4
    assert costs.stage(0, 2, 0, 2)[0] == 30 * 8
    slow = StrategyProblem(chain(2, ("a",)), cluster(("a", "a"), bandwidth=Fraction(1, 5)), 8)
    assert StageCosts(slow, (0, 1)).stage(0, 1, 0, 2)[0] == 2 * 100 / 2 * 5


def test_activations_cross_a_border_both_ways() -> None:
    """4 bytes a sample at rate 1; what the backward pass reads does not cross."""
    problem = StrategyProblem(chain(3, ("a",)), cluster(("a", "a"), bandwidth=1), 8)
    costs = StageCosts(problem, (0, 1))
    # The activation there, its gradient back; both layers next to the border need nothing else.
    assert costs.border(1, 1) == 2 * 4 * 8


def test_equal_devices_and_cheap_links_share_everything() -> None:
    problem = StrategyProblem(chain(4, ("a",)), cluster(("a",) * 4, bandwidth=10**6), 8)
    made = pipedream(problem)
    assert made.strategy is not None
    found = StageCosts(problem, range(4)).best()
    assert found is not None
    assert found.bottleneck == pytest.approx(30 * 8)  # 4 layers · 30 · 8 samples / 4 devices


def test_a_device_that_cannot_hold_all_parameters_gets_a_stage() -> None:
    problem = StrategyProblem(
        chain(4, ("a",), weights=100), cluster(("a", "a"), bandwidth=10**6, memory=[1000, 1000]), 2
    )
    made = pipedream(problem)
    assert made.strategy is not None
    assert [decision.devices for decision in made.strategy.decisions] == [(0,), (0,), (1,), (1,)]
