"""Scoring with the ratio of weights that leads to the shortest execution ([B] §5.4)."""

from __future__ import annotations

import numpy as np
import pytest

from optpart import Cluster, GraphBuilder, Instance
from optpart.strategies.base import NoPlacementError, Partition
from optpart.strategies.partition.scoring import scoring
from optpart.strategies.partition.scoring_tuned import scoring_tuned
from optpart.strategies.scheduling.pct import pct
from optpart.strategies.simulator import simulate
from optpart.testing.draw import random_instance


def makespan(instance: Instance, partition: Partition) -> float:
    return float(simulate(instance, partition, pct).makespan(instance))


def fork(size: int) -> Instance:
    """s → x and s → y, 4 operations each, with a tensor of ``size`` from s."""
    builder = GraphBuilder().vertex("s", 4, outputs=[size]).vertex("x", 4).vertex("y", 4)
    graph = builder.edge("s", "x").edge("s", "y").build()
    return Instance(graph, Cluster.uniform(2, bandwidth=1))


@pytest.mark.parametrize(("size", "devices", "length"), [(1, [0, 1, 0], 9), (9, [0, 0, 0], 12)])
def test_weighs_load_against_communication_as_the_instance_wants(
    size: int, devices: list[int], length: int
) -> None:
    instance = fork(size)
    partition = scoring_tuned(instance, np.random.default_rng(0))
    assert partition.placement.tolist() == devices
    assert makespan(instance, partition) == length


def test_is_no_worse_than_any_of_the_coarse_ratios() -> None:
    rng = np.random.default_rng(7)
    for _ in range(10):
        instance = random_instance(rng, 12, 3)
        try:
            tuned = makespan(instance, scoring_tuned(instance, rng))
        except NoPlacementError:
            continue
        for power in range(-3, 4):
            try:
                plain = makespan(instance, scoring(instance, rng, alpha=10.0**power))
            except NoPlacementError:
                continue
            assert tuned <= plain * (1 + 1e-9)


def between() -> Instance:
    """Four sources on d0; z there reads all of them, x reads two, y one.

    x scores 2/4 on d0 and y 1/4, both α on d1. x must stay, for its tensors are large; y had
    better go.
    """
    builder = GraphBuilder()
    for i in range(4):
        builder.vertex(f"s{i}", 1, outputs=[100, 1], devices=["d0"])
    builder.vertex("z", devices=["d0"]).vertex("x", 6).vertex("y", 6)
    for i in range(4):
        builder.edge(f"s{i}", "z", None)
    builder.edge("s0", "x", 0).edge("s1", "x", 0).edge("s0", "y", 1)
    return Instance(builder.build(), Cluster.uniform(2, bandwidth=1))


def test_looks_between_the_powers_of_ten() -> None:
    instance, rng = between(), np.random.default_rng(0)
    tuned = scoring_tuned(instance, rng)
    assert tuned.placement[-2:].tolist() == [0, 1]
    assert makespan(instance, tuned) == 10
    for power in range(-3, 4):
        assert makespan(instance, scoring(instance, rng, alpha=10.0**power)) >= 16


def test_of_equal_makespans_the_ratio_nearest_1_wins() -> None:
    graph = GraphBuilder().vertex("a").vertex("b").vertex("c").edge("a", "b", None).build()
    instance = Instance(graph, Cluster.uniform(2))
    rng = np.random.default_rng(0)
    expected = scoring(instance, rng).placement.tolist()
    assert scoring_tuned(instance, rng).placement.tolist() == expected
