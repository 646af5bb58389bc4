"""Intervals solved exactly: heads and tails that hold for the whole instance."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import get_args

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, Instance
from optpart.exact import intervals
from optpart.exact.enumeration import enumerate_all
from optpart.exact.intervals import Intervals, interval_bound
from optpart.kernels import ticks
from optpart.kernels.ticks import Grid
from optpart.lower_bounds.one_machine import one_machine_bound
from optpart.lower_bounds.windows import no_windows, windows
from optpart.problem.model import Communication
from optpart.solution.result import Budget, Status
from optpart.testing.brute_force import optimum
from optpart.testing.draw import draw_instance, random_instance


def diamonds(count: int, delay: int = 2) -> Instance:
    """Each of a row of vertices of length 1 is followed by three of length 3 that the next needs.

    On two devices, the three take 7: one of them elsewhere, 2 + 3 + 2, and the others 3 + 3.
    """
    builder = GraphBuilder().vertex("j0", 1)
    for i in range(count):
        builder.vertex(f"j{i + 1}", 1)
        for branch in "abc":
            builder.vertex(f"{branch}{i}", 3)
            builder.edge(f"j{i}", f"{branch}{i}", None).edge(f"{branch}{i}", f"j{i + 1}", None)
    return Instance(builder.build(), Cluster.uniform(2, latency=delay))


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals of one diamond."""
    monkeypatch.setattr(intervals, "_PASSES", ((5, 4), (7, 4)))


class TestByHand:
    @pytest.mark.usefixtures("short")
    def test_the_gains_of_intervals_add_up(self) -> None:
        """For a single vertex, that two branches share a device proves only 5 of the 7."""
        instance = diamonds(4)
        assert one_machine_bound(instance) == 1 + 4 * (5 + 1)
        assert interval_bound(instance, 20.0) == 1 + 4 * (7 + 1)

    @pytest.mark.parametrize("apart", [0, 1])
    def test_merged_devices_do_not_run_branches_beside_each_other_for_free(
        self, apart: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """However many devices there are, a branch elsewhere takes 2 + 3 + 2."""
        monkeypatch.setattr(intervals, "_PASSES", ((5, apart),))
        instance = Instance(diamonds(4).graph, Cluster.uniform(5, latency=2))
        assert interval_bound(instance, 20.0) == 1 + 4 * (7 + 1)

    @pytest.mark.parametrize("apart", [0, 1])
    def test_who_is_together_with_a_third_is_together(
        self, apart: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Crossings take too long, so both chains and their ends share a device, middles too."""
        monkeypatch.setattr(intervals, "_PASSES", ((8, apart),))
        builder = GraphBuilder().vertex("first", 1).vertex("last", 1)
        for chain in "ab":
            names = ["first", *(f"{chain}{i}" for i in range(3)), "last"]
            for name in names[1:-1]:
                builder.vertex(name, 1)
            for u, v in pairwise(names):
                builder.edge(u, v, None)
        instance = Instance(builder.build(), Cluster.uniform(4, latency=100))
        assert interval_bound(instance, 20.0) == 8

    def test_a_fast_link_between_slow_devices_does_not_serve_the_fast_ones(self) -> None:
        """One branch crosses before it, 2 + 4 + 6 or 4 + 1 + 6, and stays for 2; one after it.

        With the least of everything, that would take 2 + 1 + 6 + 2.
        """
        builder = GraphBuilder().vertex("a", 2).vertex("b", 6).vertex("c", 6).vertex("e", 2)
        for branch in "bc":
            builder.edge("a", branch, None).edge(branch, "e", None)
        speeds = [Device("d0"), Device("d1"), Device("slow", speed=Fraction(1, 2))]
        latency = [[None, 4, 1], [4, None, 1], [1, 1, None]]
        instance = Instance(builder.build(), Cluster.of(speeds, latency=latency))
        grid = Grid.of(instance)
        work = Intervals(instance, grid, windows(instance, grid), np.inf, workers=1)
        work.sweep(4, 0, backwards=False)
        assert work.bound is not None
        assert grid.time(work.bound) == 4 + 1 + 6 + 2
        best = optimum(instance)
        assert best is not None
        assert best.makespan == 14

    def test_where_nothing_can_cross_all_are_together(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(intervals, "_PASSES", ((5, 0),))
        cluster = Cluster.uniform(3, bandwidth=0)
        assert interval_bound(Instance(diamonds(1).graph, cluster), 20.0) == 1 + 9 + 1

    def test_a_vertex_without_device_gives_none(self) -> None:
        graph = GraphBuilder().vertex("a").build()
        instance = Instance(graph, Cluster.uniform(1), durations=[[None]])
        assert interval_bound(instance, 5.0) is None

    def test_an_empty_graph_takes_no_time(self) -> None:
        assert interval_bound(Instance(GraphBuilder().build(), Cluster.uniform(2)), 5.0) == 0

    def test_without_time_heads_and_tails_remain(self) -> None:
        assert interval_bound(diamonds(2), 0.0) == 1 + 2 * (3 + 1)

    def test_it_ends_at_a_known_makespan(self, monkeypatch: pytest.MonkeyPatch) -> None:
        builder = GraphBuilder().vertex("a", 2).vertex("b", 3).edge("a", "b", None)
        instance = Instance(builder.build(), Cluster.uniform(2))
        monkeypatch.setattr(Intervals, "sweep", None)
        assert interval_bound(instance, 5.0, Fraction(5)) == 5


class TestTheCriticalPath:
    def test_it_leads_through_the_longest_chain(self) -> None:
        builder = GraphBuilder()
        for v, ops in enumerate([1, 9, 1, 9, 1]):
            builder.vertex(f"v{v}", ops).vertex(f"w{v}", 1)
        for v, w in pairwise(range(5)):
            builder.edge(f"v{v}", f"v{w}", None).edge(f"w{v}", f"w{w}", None)
        instance = Instance(builder.build(), Cluster.uniform(2))
        grid = Grid.of(instance)
        work = Intervals(instance, grid, windows(instance, grid), np.inf)
        names = [instance.graph.names[v] for v in work.critical_path()]
        assert names == ["v0", "v1", "v2", "v3", "v4"]


@pytest.mark.parametrize("communication", get_args(Communication))
@pytest.mark.parametrize("apart", [0, 1, 4])
def test_it_never_exceeds_the_optimum(
    communication: Communication, apart: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intervals, "_PASSES", ((3, apart), (6, apart)))
    for seed in range(8):
        instance = draw_instance(seed, communication, vertices=(4, 6), devices=(2, 4))
        best = enumerate_all(instance, budget=Budget(20.0))
        if best.status is Status.OPTIMAL:
            assert best.makespan is not None
            value = interval_bound(instance, 20.0, workers=1)
            assert value is not None
            assert value <= best.makespan


def test_it_is_valid_on_coarse_grids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ticks, "MAX_HORIZON", 16)
    monkeypatch.setattr(intervals, "_TICKS", 8)
    monkeypatch.setattr(intervals, "_PASSES", ((4, 0), (6, 0), (4, 1)))
    rng = np.random.default_rng(5)
    for i in range(15):
        instance = random_instance(rng, 6, 2 + i % 2)
        best, value = optimum(instance), interval_bound(instance, 20.0, workers=1)
        assert best is None or (value is not None and value <= best.makespan)


def test_known_heads_and_tails_are_passed_on() -> None:
    """The second vertex of a chain of 2 + 3 + 4 is known to start at 5, so the third does at 8."""
    builder = GraphBuilder().vertex("a", 2).vertex("b", 3).vertex("c", 4)
    builder.edge("a", "b", None).edge("b", "c", None)
    instance = Instance(builder.build(), Cluster.of([Device("d")]))
    known = replace(no_windows(instance), head=np.array([[0], [5], [0]]))
    found = windows(instance, Grid.of(instance), known=known)
    assert found.head[:, 0].tolist() == [0, 5, 8]
    assert found.tail[:, 0].tolist() == [7, 4, 0]
    assert found.bound == 12
