"""What holds for every bound: it never exceeds the makespan of a schedule, whoever made it."""

from __future__ import annotations

import numpy as np
import pytest
from brute_force import optimum
from strategies import random_instance

from optpart import Cluster, GraphBuilder, Instance, methods
from optpart.bounds.best import BOUNDS, all_bounds, best_bound
from optpart.instance import Communication, Memory


@pytest.mark.parametrize("memory", ["none", "estimate"])
@pytest.mark.parametrize("rational", [False, True])
def test_no_bound_exceeds_the_optimum(memory: Memory, rational: bool) -> None:
    rng = np.random.default_rng(1)
    feasible = 0
    for _ in range(125):
        instance = random_instance(rng, 6, 3, memory=memory, rational=rational)
        best = optimum(instance)
        for bound in BOUNDS.values():
            value = bound(instance)
            if best is not None:
                feasible += 1
                assert value is not None
                assert value <= best.makespan
    assert feasible > 90 * len(BOUNDS)


@pytest.mark.parametrize("communication", ["delay", "sendrecv", "link", "port"])
@pytest.mark.parametrize("memory", ["none", "estimate", "refcount"])
def test_no_bound_exceeds_a_verified_schedule(communication: Communication, memory: Memory) -> None:
    rng = np.random.default_rng(2)
    for _ in range(12):
        instance = random_instance(rng, 9, 4, communication=communication, memory=memory)
        spans = [methods.get(name)(instance).makespan for name in methods.heuristics()]
        found = [span for span in spans if span is not None]
        for bound in BOUNDS.values():
            value = bound(instance)
            assert not found or (value is not None and value <= min(found))


def test_the_best_is_the_largest() -> None:
    builder = GraphBuilder()
    for v in range(6):
        builder.vertex(f"v{v}", 2)
    instance = Instance(builder.build(), Cluster.uniform(2))
    values = {bound.name: bound.value for bound in all_bounds(instance)}
    assert values == {"critical-path": 2, "load": 6}
    assert best_bound(instance).name == "load"
    assert best_bound(instance).value == 6


def test_or_the_first_that_proves_infeasibility() -> None:
    graph = GraphBuilder().vertex("a", devices=["d0"]).vertex("b", devices=["d1"])
    instance = Instance(graph.edge("a", "b", None).build(), Cluster.uniform(2, bandwidth=0))
    assert best_bound(instance).value is None
    assert all(bound.value is None for bound in all_bounds(instance))
