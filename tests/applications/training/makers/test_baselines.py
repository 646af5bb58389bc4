"""Baselines and model parallelism: what can be computed by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest

from optpart.applications.training.compiled import Options
from optpart.applications.training.graph import Line, TrainingGraph
from optpart.applications.training.makers import MAKERS
from optpart.applications.training.makers.base import Clock, evaluate_exactly
from optpart.applications.training.problem import StrategyProblem
from optpart.applications.training.strategy import Decision
from optpart.solution.result import Budget
from optpart.testing.chains import chain, cluster

NOTHING_BETWEEN = {"bandwidth": None, "latency": 0}
BATCH = 24


def of_speeds(*times: int, layers: int = 3) -> TrainingGraph:
    """Return a chain that takes these nanoseconds per sample on kinds ``k0``, ``k1``, …"""
    lines = [Line(Fraction(0), Fraction(time)) for time in times]
    return chain(layers, [f"k{i}" for i in range(len(times))], forward=[lines] * layers)


def made(name: str, problem: StrategyProblem) -> Fraction:
    """Return the makespan of a maker."""
    found = MAKERS[name](problem, budget=Budget(deterministic=0.2))
    assert found.makespan is not None, found.reason
    return found.makespan


def alone(problem: StrategyProblem, kind: int = 0) -> int:
    """Return the time of everything on one device: forward once, backward twice as long."""
    return int(sum(o.times[kind].at(problem.batch) for o in problem.graph.operations))


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_equal_devices_and_free_links_divide_the_time(n: int) -> None:
    problem = StrategyProblem(of_speeds(10), cluster(["k0"] * n, **NOTHING_BETWEEN), BATCH)
    for name in ("ev-ps", "ev-ar", "cp-ps", "cp-ar", "search"):
        assert made(name, problem) == Fraction(alone(problem), n)
    assert made("single", problem) == alone(problem)
    # Stages run one after another, on however many devices.
    assert made("round-robin", problem) == made("blocks", problem) == alone(problem)
    assert made("stages", problem) == alone(problem)


def test_a_device_twice_as_fast_gets_two_thirds() -> None:
    problem = StrategyProblem(of_speeds(10, 20), cluster(["k0", "k1"], **NOTHING_BETWEEN), BATCH)
    assert made("cp-ar", problem) == Fraction(2, 3) * alone(problem)
    assert made("ev-ar", problem) == alone(problem)
    assert made("single", problem) == alone(problem)


def test_proportional_replicas_share_like_one_device_of_the_summed_speed() -> None:
    problem = StrategyProblem(
        of_speeds(10, 15, 30), cluster(["k0", "k1", "k2"], **NOTHING_BETWEEN), BATCH
    )
    assert made("cp-ps", problem) == 1 / sum(Fraction(1, alone(problem, kind)) for kind in range(3))


@pytest.mark.parametrize("ratio", [Fraction(4, 3), Fraction(5, 3), Fraction(2)])
def test_two_to_one_replicas_gain_as_published(ratio: Fraction) -> None:
    # [G] §2.3: two replicas on each of two fast devices, one on each of two slow ones.
    graph = of_speeds(30, int(30 * ratio))
    problem = StrategyProblem(graph, cluster(["k0", "k0", "k1", "k1"], **NOTHING_BETWEEN), BATCH)
    decisions = [Decision((2, 2, 1, 1), "allreduce")] * len(problem.groups)
    proportional = evaluate_exactly(problem, decisions, Clock()).makespan
    assert proportional is not None
    assert made("ev-ar", problem) / proportional - 1 == Fraction(3, 4) * ratio - 1


def test_without_links_the_fastest_device_does_everything() -> None:
    problem = StrategyProblem(of_speeds(10, 7), cluster(["k0", "k1"], bandwidth=0), BATCH)
    for name in ("single", "stages", "search"):
        assert made(name, problem) == alone(problem, 1)
    for name in ("ev-ps", "ev-ar", "blocks", "round-robin"):
        found = MAKERS[name](problem)
        assert not found.feasible
        assert "link" in found.reason


@pytest.mark.parametrize("n", [3, 4, 5])
def test_parameter_servers_and_rings_cross_where_they_should(n: int) -> None:
    # One layer without activations: PS takes 2(λ + S/b) on pairs of links, the ring
    # 2(n−1)(λ + S/(n·b)); they are equal at S = n(n−2)λb.
    latency, rate = 60, 2
    crossing = n * (n - 2) * latency * rate
    for factor, faster in ((Fraction(1, 2), "ev-ps"), (1, None), (2, "ev-ar")):
        size = factor * crossing
        graph = chain(1, activation=0, weights=size)
        here = cluster(["a"] * n, bandwidth=rate, latency=latency)
        problem = StrategyProblem(graph, here, 60, options=Options(tick=Fraction(1, 60)))
        compute = Fraction(alone(problem), n)
        server, ring = made("ev-ps", problem) - compute, made("ev-ar", problem) - compute
        assert server == 2 * (latency + size / rate)
        assert ring == 2 * (n - 1) * (latency + size / (n * rate))
        assert faster == (None if server == ring else "ev-ps" if server < ring else "ev-ar")


def test_stages_use_more_devices_only_for_memory() -> None:
    graph = chain(4, weights=100, activation=0)
    one = StrategyProblem(graph, cluster(["a", "a"], bandwidth=5, memory=[10_000] * 2), 6)
    found = MAKERS["stages"](one)
    assert found.strategy is not None
    assert len({d.devices for d in found.strategy.decisions}) == 1
    # 300 bytes a layer with what Adam keeps, and a gradient: one device cannot hold four layers.
    both = StrategyProblem(graph, cluster(["a", "a"], bandwidth=5, memory=[850] * 2), 6)
    assert not MAKERS["single"](both).feasible
    found = MAKERS["stages"](both)
    assert found.feasible
    assert found.strategy is not None
    assert len({d.devices for d in found.strategy.decisions}) == 2


def test_out_of_memory_is_never_feasible() -> None:
    graph = chain(3, weights=100, activation=50)
    problem = StrategyProblem(graph, cluster(["a", "a"], bandwidth=5, memory=[950] * 2), 12)
    for name, maker in MAKERS.items():
        found = maker(problem, budget=Budget(deterministic=0.3))
        assert found.makespan is None, name
        assert "memory" in found.reason, name


def test_a_batch_smaller_than_the_replicas_is_said() -> None:
    problem = StrategyProblem(of_speeds(10), cluster(["k0"] * 4), 3)
    found = MAKERS["ev-ps"](problem)
    assert found.strategy is None
    assert "samples" in found.reason
