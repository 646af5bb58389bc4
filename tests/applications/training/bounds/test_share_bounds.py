"""Bounds for any shares of the batch."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from optpart import InputError
from optpart.applications.training.bounds.shares import average_path, least_average, load
from optpart.applications.training.cluster import TrainingCluster
from optpart.applications.training.compiled import Options, by_rank
from optpart.applications.training.compiler import compile_strategy
from optpart.applications.training.graph import (
    Edge,
    Layout,
    Line,
    Operation,
    Output,
    Role,
    TrainingGraph,
)
from optpart.applications.training.problem import StrategyProblem
from optpart.applications.training.strategy import Decision, Strategy
from optpart.problem.cluster import Cluster, Device
from optpart.solution.verifier import verify
from optpart.testing.training import random_strategy, random_training_cluster, random_training_graph


def row(times, batch=12, **options):
    """A chain of operations on free links, one kind per device."""
    kinds = tuple(f"k{d}" for d in range(len(times[0])))
    out = (Output(Layout.BATCHED, Line.of(0, 1)),)
    operations = tuple(
        Operation(f"o{i}", Role.FORWARD, tuple(lines), out) for i, lines in enumerate(times)
    )
    edges = tuple(Edge(i, 0, i + 1) for i in range(len(times) - 1))
    cluster = TrainingCluster(
        Cluster.of([Device(kind) for kind in kinds]), kinds, (0,) * len(kinds), (None,) * len(kinds)
    )
    graph = TrainingGraph("row", kinds, operations, edges)
    return StrategyProblem(graph, cluster, batch, options=Options(**options))


def per_sample(*slopes):
    return tuple(Line.of(0, slope) for slope in slopes)


def test_equal_devices_share_the_work_of_a_chain():
    problem = row([per_sample(10, 10, 10)] * 4)
    assert load(problem) == average_path(problem) == Fraction(4 * 12 * 10, 3)


def test_unlike_devices_work_at_the_sum_of_their_speeds():
    problem = row([per_sample(10, 20)] * 3)
    assert load(problem) == 3 * 12 * Fraction(20, 3)


def test_the_average_path_counts_fixed_times_that_loads_can_share():
    problem = row([(Line.of(30), Line.of(30))] * 5)
    assert load(problem) == 75
    assert average_path(problem) == 150


TICKS = (None, Fraction(1, 3), Fraction(2, 7), Fraction(5, 3), Fraction(1), Fraction(4))


def taken(problem, counts):
    """The time of one strategy for all operations, verified."""
    decision = Decision(counts) if sum(map(bool, counts)) == 1 else Decision(counts, "allreduce")
    strategy = Strategy(problem.batch, problem.groups, (decision,) * len(problem.groups))
    compiled = compile_strategy(problem.graph, problem.cluster, strategy, problem.options)
    schedule = by_rank(compiled)
    assert not verify(compiled.instance, schedule)
    return schedule.makespan(compiled.instance)


@pytest.mark.parametrize("tick", TICKS)
def test_shares_in_proportion_to_speed_reach_the_bound(tick):
    # With shares 2/3 and 1/3 of the batch, both devices work 8/3 ns, rounded up to the tick.
    problem = row([per_sample(1, 2)], batch=4, tick=tick)
    reached = taken(problem, (2, 1))
    assert reached == (Fraction(8, 3) if tick is None else -(-Fraction(8, 3) // tick) * tick)
    assert load(problem) <= reached
    assert average_path(problem) <= reached
    assert reached - load(problem) < Fraction(1, 10**9)


@pytest.mark.parametrize("seed", range(10))
def test_no_shares_are_faster_whatever_the_tick(seed):
    rng = np.random.default_rng(seed)
    devices = int(rng.integers(1, 4))
    slopes = [
        per_sample(*(Fraction(int(a), int(b)) for a, b in rng.integers(1, 8, size=(devices, 2))))
        for _ in range(int(rng.integers(1, 3)))
    ]
    batch = int(rng.integers(1, 8))
    for tick in TICKS:
        problem = row(slopes, batch=batch, tick=tick)
        fastest = min(
            taken(problem, counts)
            for counts in product(range(4 if devices < 3 else 3), repeat=devices)
            if 0 < sum(counts) <= batch
        )
        assert load(problem) <= fastest
        assert average_path(problem) <= fastest


def test_load_refuses_parameters_that_fit_nowhere(tiny_memory):
    assert load(tiny_memory) is None


@pytest.fixture
def tiny_memory():
    from optpart.testing.chains import chain

    graph = chain(2)
    cluster = TrainingCluster(Cluster.of([Device("d", memory=10)]), ("a",), (0,), (None,))
    return StrategyProblem(graph, cluster, 4)


def test_the_least_average_is_a_minimum():
    rng = np.random.default_rng(5)
    parts = 12
    for _ in range(60):
        lines = [Line.of(*(int(x) for x in rng.integers(0, 9, size=2))) for _ in range(3)]
        batch = int(rng.integers(1, 5))
        tried = min(
            sum(
                Fraction(n, parts) * line.at(Fraction(n, parts) * batch)
                for n, line in zip(counts, lines, strict=True)
            )
            for counts in product(range(parts + 1), repeat=3)
            if sum(counts) == parts
        )
        least = least_average(lines, batch)
        assert tried - Fraction(1, 4) <= least <= tried


@pytest.mark.parametrize("seed", range(10))
def test_no_simulated_strategy_is_faster(seed):
    rng = np.random.default_rng(seed)
    devices = int(rng.integers(1, 5))
    graph = random_training_graph(rng, int(rng.integers(1, 5)))
    cluster = random_training_cluster(rng, devices)
    for _ in range(3):
        strategy = random_strategy(rng, graph, devices)
        problem = StrategyProblem(graph, cluster, strategy.batch, strategy.groups)
        compiled = compile_strategy(graph, cluster, strategy, problem.options)
        makespan = by_rank(compiled).makespan(compiled.instance)
        assert (load(problem) or 0) <= makespan
        assert average_path(problem) <= makespan


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"replicas": "separate"}, "replicas"),
        ({"microbatches": 2}, "microbatches"),
        ({"resharding": "heterog"}, "resharding"),
    ],
)
def test_the_average_path_refuses_what_it_does_not_hold_for(options, named):
    with pytest.raises(InputError, match=named):
        average_path(row([per_sample(1, 1)], **options))
