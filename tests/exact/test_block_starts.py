"""Initial placements in contiguous blocks."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.exact.block_starts import block_placements, block_schedules
from optpart.solution.goal import Goal
from optpart.solution.metrics import bottleneck
from optpart.solution.verifier import verify
from optpart.testing import brute_force
from optpart.testing.draw import draw_instance


def chain(ops: list[int], devices: list[Device]) -> Instance:
    graph = GraphBuilder()
    for v, amount in enumerate(ops):
        graph.vertex(f"v{v}", amount, memory=1, outputs=[0])
        if v:
            graph.edge(f"v{v - 1}", f"v{v}")
    return Instance(graph.build(), Cluster.of(devices), Model(memory="estimate"))


def found(instance: Instance, goal: Goal) -> list[list[int]]:
    return [placement.tolist() for placement in block_placements(instance, goal)]


def test_a_chain_is_cut_at_the_least_load_and_at_the_least_time() -> None:
    instance = chain([4, 4, 2, 2, 3], [Device("slow", 1), Device("fast", 2)])
    assert found(instance, Goal(contiguous=True)) == [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]
    assert found(instance, Goal(device_order=(0, 1))) == [[0, 1, 1, 1, 1], [1, 1, 1, 1, 1]]


def test_memory_counts() -> None:
    instance = chain([1, 1, 1], [Device("near", 9, memory=2), Device("far", 1, memory=1)])
    assert found(instance, Goal(contiguous=True)) == [[0, 0, 1], [0, 0, 1]]
    assert found(instance, Goal(device_order=(1, 0))) == [[1, 0, 0], [1, 0, 0]]
    assert found(instance, Goal(device_order=(0,))) == []


def test_units_are_not_cut() -> None:
    free = chain([3, 1, 1, 3], [Device("x", 1), Device("y", 1)])
    graph = replace(free.graph, colocation=((0, 2),))
    assert found(replace(free, graph=graph), Goal(device_order=(0, 1)))[0] == [0, 0, 0, 1]


@pytest.mark.parametrize("contiguous", [True, False])
def test_all_are_blocks(contiguous: bool) -> None:
    valid = 0
    for seed in range(200):
        instance = draw_instance(seed, "link", "estimate", vertices=(1, 6))
        order = tuple(np.random.default_rng(seed).permutation(instance.devices).tolist())
        goal = Goal(contiguous=contiguous, device_order=() if contiguous else order)
        if goal.contradiction(instance):
            continue
        instance = goal.narrowed(instance)
        for placement in block_placements(instance, goal):
            assert brute_force.contiguous(instance, placement.tolist(), goal.device_order)
        for schedule in block_schedules(instance, goal):
            if not verify(instance, schedule):
                valid += 1
                assert bottleneck(instance, schedule.placement) == brute_force.bottleneck(
                    instance, schedule.placement.tolist()
                )
    assert valid > 50


def test_an_empty_graph_has_none() -> None:
    empty = Instance(GraphBuilder().build(), Cluster.uniform(2))
    assert found(empty, Goal(contiguous=True)) == []


def test_many_places_are_thinned_out() -> None:
    instance = chain([1] * 1000, [Device("x", 1), Device("y", 1)])
    placement = next(block_placements(instance, Goal(device_order=(0, 1))))
    assert abs(bottleneck(instance, placement) - Fraction(500)) < 3
