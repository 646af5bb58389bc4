"""The method, its verifier and its file against every plan, by the rules of design §2 alone.

`python bench/soak --part plans` does the same for many more draws, which vary every option with
every other and with every field of an instance (`tests/testing/test_options.py`).
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from bench.soak.plans import case
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.testing.naive_plans import plans_of


@pytest.mark.parametrize("part", range(4))
def test_the_least_bottleneck_of_all_plans_and_what_keeps_the_rules(
    part: int, tmp_path: Path
) -> None:
    outcomes = Counter(case(number, tmp_path) for number in range(40 * part, 40 * (part + 1)))
    assert outcomes["accepted"] > 20


def test_every_plan_of_two_vertices() -> None:
    """Stages {u}, {v} and {v}, {u} on two of three devices each way, or both vertices on one."""
    graph = GraphBuilder().vertex("u", 1).vertex("v", 2).build()
    instance = Instance(graph, Cluster.of([Device("a"), Device("b"), Device("c")]))
    assert len(list(plans_of(instance))) == 2 * 6 + 3
    assert len(list(plans_of(instance, order=[2, 0]))) == 2 + 2
    # Also both vertices on two devices, or one of them on two and the other on the third.
    twice = dict(plans_of(instance, replicas=2))
    assert len(twice) == 2 * 6 + 3 + 3 + 2 * 2 * 3
    assert min(twice.values()) == 1
    # Along a, b, c, these are {a, b} before c, and a before {b, c}; {a, c} leaves b empty.
    assert len(list(plans_of(instance, 2, [0, 1, 2]))) == 2 * 3 + 3 + 3 + 2 * 2


def test_loads_with_replicas() -> None:
    cluster = Cluster.of([Device("a"), Device("b")], bandwidth=4, latency=1)
    graph = GraphBuilder().vertex("v", 6, memory=8).build()
    both = frozenset({0}), frozenset({0, 1})
    for rate, load in ((None, 3), ("links", 3 + 2 * (1 + 1)), (Fraction(2), 3 + 2 * 2)):
        assert dict(plans_of(Instance(graph, cluster), 2, rate=rate))[both,] == load
