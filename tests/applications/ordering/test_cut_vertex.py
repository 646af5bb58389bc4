"""Splitting a graph at a cut vertex, against brute force."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optpart import Budget, Cluster, Device, GraphBuilder, Instance, Result
from optpart.applications.ordering.compare import best_order, order
from optpart.applications.ordering.cut_vertex import middle_cut_vertex, split
from optpart.applications.ordering.models import base_model
from optpart.applications.ordering.replica import platform, worker_partition
from optpart.lower_bounds.best import LowerBound
from optpart.methods.cpsat import cpsat
from optpart.solution.result import Status
from optpart.solution.verifier import verify
from optpart.testing.brute_force import optimum

SOLVE: Callable[[Instance], Result] = partial(cpsat, budget=Budget(10, 1))


def random_graph(rng: np.random.Generator, n: int, density: float) -> list[tuple[int, int]]:
    return [(u, v) for v in range(n) for u in range(v) if rng.random() < density]


def built(edges: list[tuple[int, int]], times: list[int], devices: list[int]) -> Instance:
    builder = GraphBuilder()
    for v, time in enumerate(times):
        builder.vertex(f"v{v}", time, devices=[f"d{devices[v]}"])
    for u, v in edges:
        builder.edge(f"v{u}", f"v{v}", None)
    return Instance(builder.build(), Cluster.of([Device("d0"), Device("d1")]))


@given(st.integers(0, 2**32))
def test_a_cut_vertex_is_comparable_with_all_others(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    edges = random_graph(rng, n, float(rng.uniform(0.1, 0.9)))
    graph: nx.DiGraph[int] = nx.DiGraph(edges)
    graph.add_nodes_from(range(n))
    parted = {
        v: min(len(before), len(after))
        for v in range(n)
        for before, after in [(nx.ancestors(graph, v), nx.descendants(graph, v))]
        if len(before) + len(after) == n - 1 and before and after
    }
    found = middle_cut_vertex(built(edges, [1] * n, [0] * n))
    assert (found is None) == (not parted)
    if found is not None:
        assert parted[found] == max(parted.values())


@settings(max_examples=25)
@given(st.integers(0, 2**32))
def test_the_parts_make_the_optimum_of_the_whole(seed: int) -> None:
    rng = np.random.default_rng(seed)
    early = random_graph(rng, 3, 0.4)
    late = [(u + 4, v + 4) for u, v in random_graph(rng, 3, 0.4)]
    edges = [*early, *late, *((u, 3) for u in range(3)), *((3, v) for v in range(4, 7))]
    times = rng.integers(0, 6, 7).tolist()
    instance = built(edges, times, rng.integers(0, 2, 7).tolist())
    v = middle_cut_vertex(instance)
    assert v is not None
    found = split(instance, v, SOLVE)
    best = optimum(instance)
    assert best is not None
    assert found.bound == best.makespan
    assert found.schedule is not None
    assert found.schedule.makespan(instance) == best.makespan
    assert verify(instance, found.schedule) == []


def test_with_delays_it_is_a_bound() -> None:
    builder = GraphBuilder()
    for v, device in enumerate(["d0", "d1", "d0"]):
        builder.vertex(f"v{v}", 2, outputs=[3], devices=[device])
    graph = builder.edge("v0", "v1").edge("v1", "v2").build()
    instance = Instance(graph, Cluster.uniform(2, bandwidth=1))
    found = split(instance, 1, SOLVE)
    assert found.bound == 6
    assert found.schedule is not None
    assert found.schedule.makespan(instance) == 12


def test_the_training_step_of_alexnet_is_proven_by_its_halves() -> None:
    instance = worker_partition(base_model("alexnet"), training=True, on=platform(182))
    v = middle_cut_vertex(instance)
    assert v is not None
    assert instance.graph.names[v] in ("worker_0/loss", "worker_0/gradients/loss")
    result = best_order([order(instance, "tao", 1)], Budget(40, 1))
    assert result.status is Status.OPTIMAL
    assert result.makespan == 3_225_348


def test_without_time_the_best_order_known_is_bounded_and_nothing_is_solved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[float] = []

    def bound(_: Instance, seconds: float, makespan: Fraction | None) -> LowerBound:
        told.append(seconds)
        return LowerBound("none", Fraction(0), 0.0)

    monkeypatch.setattr("optpart.applications.ordering.compare.best_bound", bound)
    monkeypatch.setattr(
        "optpart.applications.ordering.compare.cpsat", lambda *_, **__: pytest.fail("solved")
    )
    instance = built([(0, 1)], [1, 1, 1], [0, 1, 1])
    known = order(instance, "tao", 1)
    found = best_order([known], Budget(0, 1))
    assert told == [0.0]
    assert (found.makespan, found.reason) == (known.makespan, "time limit")
