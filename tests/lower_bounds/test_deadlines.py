"""Bounds whose time is up return at once, with a bound that is still valid and never trivial."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from optpart import Cluster, GraphBuilder, Instance
from optpart.lower_bounds import best, energy, windows
from optpart.lower_bounds.best import BOUNDS, BRIEF, LowerBound, best_bound
from optpart.lower_bounds.critical_path import critical_path_bound
from optpart.lower_bounds.load import load_bound
from optpart.methods.solve import ask
from optpart.search.bounding import bounded
from optpart.testing.brute_force import optimum
from optpart.testing.draw import random_instance


def chains() -> Instance:
    """Two chains of 3 + 4 operations, whose tensors take long to cross."""
    graph = GraphBuilder()
    for chain in "ab":
        graph.vertex(f"{chain}1", 3, outputs=[100]).vertex(f"{chain}2", 4)
        graph.edge(f"{chain}1", f"{chain}2")
    return Instance(graph.build(), Cluster.uniform(3))


@pytest.mark.parametrize("seed", range(12))
def test_windows_without_time_are_valid_and_no_stronger(seed: int) -> None:
    instance = random_instance(np.random.default_rng(seed), 6, 3)
    known = optimum(instance)
    for bound in (critical_path_bound, load_bound):
        late, whole = bound(instance, 0.0), bound(instance)
        if known is not None:
            assert late is not None
            assert late <= known.makespan
        assert late is None or whole is None or late <= whole


def test_the_longest_path_of_least_run_times_remains() -> None:
    assert critical_path_bound(chains(), 0.0) == 7


def test_the_load_remains() -> None:
    graph = GraphBuilder()
    for v in range(6):
        graph.vertex(f"v{v}", 5)
    assert load_bound(Instance(graph.build(), Cluster.uniform(2)), 0.0) == 15


def test_without_time_only_cheap_bounds_are_computed() -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("there was no time for this")

    rows = [row for row in BOUNDS.values() if row.cost == "cheap"]
    late = [best.Bound(name, cost, never) for name, cost in (("b", "timed"), ("c", "anytime"))]
    assert best_bound(chains(), 0.0, among=[*rows, *late]).value == 7


def test_a_search_without_time_still_has_a_bound() -> None:
    assert bounded(chains(), 0.0, None) == 7


def test_energy_without_time_proves_nothing() -> None:
    instance = chains()
    grid = best_bound(instance)
    assert grid.value is not None
    assert energy.energy_bound(instance, 0.0) == 7


@pytest.mark.parametrize("method", ["heft", "hash+fifo"])
def test_the_bound_of_a_heuristic_gets_what_is_left_of_its_limit(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float] = []

    def noted(
        instance: Instance, seconds: float, makespan: Fraction | None, among: object
    ) -> LowerBound:
        given.append(seconds)
        return best_bound(instance, seconds, makespan, among=BRIEF)

    monkeypatch.setattr("optpart.methods.solve.best_bound", noted)
    result = ask(chains(), method, seconds=0.0).answer()
    assert given == [0.0]
    assert result.lower_bound == 7
    assert math.isfinite(result.seconds)


def test_the_estimate_grows_with_vertices_edges_and_pairs_of_devices() -> None:
    small = chains()
    wide = Instance(small.graph, Cluster.uniform(30))
    assert windows.windows_seconds(wide) == pytest.approx(100 * windows.windows_seconds(small))
