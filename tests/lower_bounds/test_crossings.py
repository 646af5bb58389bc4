"""Crossings that cost: where memory or load drives vertices apart, some path pays for it."""

from __future__ import annotations

from itertools import pairwise
from typing import get_args

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.exact.enumeration import enumerate_all
from optpart.lower_bounds import crossings
from optpart.lower_bounds.best import BoundFunction
from optpart.lower_bounds.branching import branching_bound
from optpart.lower_bounds.critical_path import critical_path_bound
from optpart.lower_bounds.crossings import crossings_bound
from optpart.lower_bounds.energy import energy_bound
from optpart.problem.model import Communication, Memory
from optpart.solution.result import Budget, Status
from optpart.testing.brute_force import optimum
from optpart.testing.draw import draw_instance, random_instance

ESTIMATE = Model(memory="estimate")


def chain(length: int, capacity: int | None, devices: int = 2) -> Instance:
    """A chain of vertices of length 1 and memory 2, joined by control dependencies."""
    builder = GraphBuilder()
    for v in range(length):
        builder.vertex(f"v{v}", 1, memory=2)
    for v, w in pairwise(range(length)):
        builder.edge(f"v{v}", f"v{w}", None)
    cluster = Cluster.of([Device(f"d{d}", memory=capacity) for d in range(devices)], latency=9)
    return Instance(builder.build(), cluster, ESTIMATE)


class TestByHand:
    def test_a_chain_that_fits_nowhere_crosses_once(self) -> None:
        """Six vertices of 2 on two devices of 8: any five neighbours are parted."""
        instance = chain(6, 8)
        assert energy_bound(instance) == 6
        assert crossings_bound(instance) == 6 + 9

    def test_on_smaller_devices_it_crosses_twice(self) -> None:
        assert crossings_bound(chain(6, 4, devices=3)) == 6 + 2 * 9

    def test_where_it_fits_it_stays(self) -> None:
        assert crossings_bound(chain(6, 12)) == 6
        assert crossings_bound(chain(6, None)) == 6

    def test_sends_take_time_too(self) -> None:
        instance = chain(6, 8)
        model = Model(communication="sendrecv", memory="estimate", send_ops=3)
        assert crossings_bound(Instance(instance.graph, instance.cluster, model)) == 6 + 9 + 3

    def test_a_separated_pair_crosses(self) -> None:
        graph = GraphBuilder().vertex("a", 1).vertex("b", 1).edge("a", "b", None).separate("a", "b")
        cluster = Cluster.uniform(2, latency=5)
        assert crossings_bound(Instance(graph.build(), cluster)) == 7

    def test_a_group_crosses_as_one(self) -> None:
        """The group of four has memory 8, so the other two are elsewhere, one before it."""
        builder = GraphBuilder()
        for v in range(6):
            builder.vertex(f"v{v}", 1, memory=2)
        for v, w in pairwise(range(6)):
            builder.edge(f"v{v}", f"v{w}", None)
        builder.colocate("v1", "v2", "v3", "v4")
        cluster = Cluster.uniform(2, memory=8, latency=9)
        assert crossings_bound(Instance(builder.build(), cluster, ESTIMATE)) == 6 + 2 * 9

    def test_vertices_that_cannot_be_placed_leave_no_schedule(self) -> None:
        assert crossings_bound(chain(6, 5)) is None
        graph = GraphBuilder().vertex("a").build()
        assert crossings_bound(Instance(graph, Cluster.uniform(1), durations=[[None]])) is None

    def test_a_known_makespan_ends_the_search(self) -> None:
        instance = chain(6, 8)
        best = optimum(instance)
        assert best is not None
        assert crossings_bound(instance, makespan=best.makespan) == best.makespan == 15

    def test_without_time_or_room_simpler_bounds_remain(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert crossings_bound(chain(6, 8), 0.0) == 6
        monkeypatch.setattr(crossings, "_MAX_CROSSINGS", 10)
        assert crossings_bound(chain(6, 8)) == 6


class TestBranching:
    def test_it_goes_where_shares_of_units_do_not(self) -> None:
        """Any two of three units fit on a device, so shares leave room that units do not."""
        builder = GraphBuilder().vertex("s", 1)
        for v, ops in enumerate([5, 6, 7]):
            builder.vertex(f"v{v}", ops, memory=2).edge("s", f"v{v}", None)
        cluster = Cluster.uniform(2, memory=5, latency=2)
        instance = Instance(builder.build(), cluster, ESTIMATE)
        best = optimum(instance)
        assert best is not None
        least = crossings_bound(instance)
        assert least is not None
        assert least < best.makespan
        assert branching_bound(instance, 20.0) == best.makespan


@pytest.mark.parametrize("bound", [crossings_bound, branching_bound])
@pytest.mark.parametrize("communication", get_args(Communication))
@pytest.mark.parametrize("memory", get_args(Memory))
def test_it_never_exceeds_the_optimum(
    bound: BoundFunction, communication: Communication, memory: Memory
) -> None:
    proven = 0
    for seed in range(5 if bound is crossings_bound else 1):
        instance = draw_instance(seed, communication, memory)
        best = enumerate_all(instance, budget=Budget(20.0))
        for makespan in (None, best.makespan):
            value = bound(instance, seconds=20.0, makespan=makespan)
            if best.status is Status.OPTIMAL:
                assert best.makespan is not None
                assert value is not None
                assert value <= best.makespan
                proven += value == best.makespan
    assert proven or bound is branching_bound


def test_it_is_at_least_the_critical_path() -> None:
    rng = np.random.default_rng(4)
    for _ in range(30):
        instance = random_instance(rng, 7, 3, memory="estimate")
        value, path = crossings_bound(instance, 20.0), critical_path_bound(instance)
        assert value is None or (path is not None and value >= path)


def test_without_a_time_limit_large_programs_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crossings, "_MAX_UNTIMED", 10)
    assert crossings_bound(chain(6, 8)) == 6
    assert crossings_bound(chain(6, 8), 20.0) == 15
