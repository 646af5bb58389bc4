"""Whole ticks: exact where they fit, else rounded down and still fine enough to be of use."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optpart import Cluster, Device, GraphBuilder, Instance, Model, retime
from optpart.kernels.ticks import MAX_HORIZON, Grid
from optpart.problem.model import Communication
from optpart.testing.draw import random_instance
from optpart.testing.solutions import random_order, random_placement
from optpart.testing.strategies import instances

#: Primes whose product does not fit in the widest exact grid.
AWKWARD = [Device("d0", 1_000_003), Device("d1", 1_000_033), Device("d2", 1_000_037)]


def pair(ops: Any = 6, size: Any = 4, **cluster: Any) -> Instance:
    graph = GraphBuilder().vertex("a", ops, outputs=[size]).vertex("b", ops).edge("a", "b").build()
    return Instance(graph, Cluster.uniform(2, **cluster))


def times(instance: Instance) -> list[tuple[Fraction, tuple[str, int, int, int]]]:
    """Every time of an instance, and where a grid keeps it."""
    k = instance.devices
    found: list[tuple[Fraction, tuple[str, int, int, int]]] = [
        (instance.duration(v, d), ("duration", v, d, 0))
        for v in range(instance.vertices)
        for d in range(k)
        if instance.vertex_allowed[v, d]
    ]
    for tensor in range(instance.graph.tensors):
        for d in range(k):
            for e in range(k):
                delay = instance.delay(tensor, d, e)
                if delay is not None:
                    found.append((delay, ("delay", tensor, d, e)))
    return found + [(instance.send_duration(d), ("send", d, 0, 0)) for d in range(k)]


def ticks(grid: Grid, kind: str, i: int, d: int, e: int) -> int:
    match kind:
        case "duration":
            return int(grid.duration[i, d])
        case "delay":
            return grid.delay(i, d, e)
        case _:
            return int(grid.send[i])


class TestScale:
    def test_is_coarse_for_whole_times(self) -> None:
        grid = Grid.of(pair(ops=6, size=4, bandwidth=1))
        assert grid.exact
        assert grid.scale == Fraction(1, 2)

    def test_makes_fractions_whole(self) -> None:
        grid = Grid.of(pair(ops="1/2", size="1/3", bandwidth=1))
        assert grid.exact
        assert grid.scale == 6

    def test_is_one_where_all_times_are_zero(self) -> None:
        grid = Grid.of(pair(ops=0, size=0))
        assert grid.exact
        assert grid.scale == 1

    def test_is_one_for_an_empty_instance(self) -> None:
        grid = Grid.of(Instance(GraphBuilder().build(), Cluster.uniform(1)))
        assert grid.exact
        assert grid.scale == 1

    def test_an_unused_tensor_does_not_count(self) -> None:
        graph = GraphBuilder().vertex("a", 6, outputs=["1/7"]).build()
        assert Grid.of(Instance(graph, Cluster.uniform(2, bandwidth=1))).scale == Fraction(1, 6)

    def test_a_device_that_is_not_allowed_does_not_count(self) -> None:
        graph = GraphBuilder().vertex("a", 6, devices=["d0"]).build()
        cluster = Cluster.of([Device("d0", 1), Device("d1", 7)])
        assert Grid.of(Instance(graph, cluster)).scale == Fraction(1, 6)

    def test_sends_count_where_they_happen(self) -> None:
        instance = pair(ops=6, size=6, bandwidth=1)
        sends = Model("sendrecv", send_ops=Fraction(1, 5))
        assert Grid.of(instance).scale == Fraction(1, 6)
        assert Grid.of(Instance(instance.graph, instance.cluster, sends)).scale == 5

    def test_times_too_fine_are_rounded(self) -> None:
        graph = GraphBuilder().vertex("a", 10**6).vertex("b", 1).build()
        assert not Grid.of(Instance(graph, Cluster.of(AWKWARD))).exact

    def test_a_known_makespan_may_make_it_exact(self) -> None:
        instance = pair(ops=1, size=10**13, bandwidth=1)
        assert not Grid.of(instance).exact
        grid = Grid.of(instance, makespan=Fraction(2))
        assert grid.exact
        assert grid.delay(0, 0, 1) > grid.floor(Fraction(2))


class TestWidth:
    """A rounded makespan is about as many ticks as asked, so that rounding costs little."""

    @pytest.mark.parametrize("magnitude", [-40, -12, -6, -1, 0, 3, 12, 40])
    @pytest.mark.parametrize("wanted", [2**20, 2**40])
    def test_is_as_requested_for_any_unit_of_time(self, magnitude: int, wanted: int) -> None:
        graph = GraphBuilder().vertex("a", 7).vertex("b", 5).build()
        unit = Fraction(10) ** magnitude
        devices = [Device(str(device.name), device.speed / unit) for device in AWKWARD]  # type: ignore[operator]
        instance = Instance(graph, Cluster.of(devices))
        makespan = Fraction(12, 10**6) * unit
        grid = Grid.of(instance, makespan, ticks=wanted)
        assert not grid.exact
        assert wanted / 8 <= makespan * grid.scale <= wanted * 2

    @pytest.mark.parametrize("communication", ["delay", "sendrecv"])
    def test_leaves_room_to_add_up(self, communication: Communication) -> None:
        rng = np.random.default_rng(8)
        for _ in range(60):
            instance = random_instance(rng, 6, 3, communication=communication)
            grid = Grid.of(awkward(instance))
            assert int(grid.duration.max(initial=0)) <= MAX_HORIZON
            assert int(grid.delays.max(initial=0)) <= MAX_HORIZON


def awkward(instance: Instance) -> Instance:
    """The same instance on speeds that no exact grid can hold."""
    names, types = instance.cluster.names, instance.cluster.types
    devices = [
        Device(name, device.speed, kind)
        for name, device, kind in zip(names, AWKWARD, types, strict=False)
    ]
    k = len(devices)
    bandwidth: list[list[Fraction | None]] = [
        [
            None if instance.cluster.infinite[d, e] else instance.cluster.bandwidth[d, e]
            for e in range(k)
        ]
        for d in range(k)
    ]
    latency = [[instance.cluster.latency[d, e] for e in range(k)] for d in range(k)]
    return Instance(
        instance.graph, Cluster.of(devices, bandwidth, latency), instance.model, instance.durations
    )


class TestTimes:
    @given(instances(communication="sendrecv"))
    def test_an_exact_grid_keeps_every_time(self, instance: Instance) -> None:
        grid = Grid.of(instance)
        assert grid.exact
        for time, where in times(instance):
            if where[0] != "delay" or where[1] in instance.graph.edge_tensor:
                assert ticks(grid, *where) == time * grid.scale
                assert grid.time(ticks(grid, *where)) == time

    @given(instances(communication="sendrecv"), st.integers(4, 44))
    def test_any_grid_rounds_every_time_down(self, instance: Instance, bits: int) -> None:
        instance = awkward(instance)
        grid = Grid.of(instance, ticks=2**bits)
        for time, where in times(instance):
            assert ticks(grid, *where) == math.floor(time * grid.scale) == grid.floor(time)

    @given(instances())
    def test_impossible_times_are_minus_one(self, instance: Instance) -> None:
        grid = Grid.of(instance)
        assert np.array_equal(grid.duration >= 0, instance.vertex_allowed)
        k = instance.devices
        for tensor in range(instance.graph.tensors):
            for d in range(k):
                for e in range(k):
                    can = instance.delay(tensor, d, e) is not None
                    assert (grid.delay(tensor, d, e) == -1) is not can

    @given(st.fractions(0, 10**6), st.integers(0, 10**9))
    def test_time_and_floor_are_inverse(self, time: Fraction, count: int) -> None:
        grid = Grid.of(pair(ops="1/3"))
        assert grid.floor(grid.time(count)) == count
        assert 0 <= time - grid.time(grid.floor(time)) < 1 / grid.scale

    def test_compiled_code_sees_the_same_delays(self) -> None:
        instance = random_instance(np.random.default_rng(9), 6, 3)
        grid = Grid.of(instance)
        size_class, link_class, delays, measured = grid.arrays
        for tensor in range(instance.graph.tensors):
            for d in range(instance.devices):
                for e in range(instance.devices):
                    row = size_class[tensor]
                    seen = (
                        delays[row, link_class[d, e]]
                        if row < len(delays)
                        else measured[row - len(delays), d, e]
                    )
                    assert seen == grid.delay(tensor, d, e)

    def test_a_rounded_schedule_is_one_on_the_grid(self) -> None:
        """Why a bound that is proven on a rounded grid holds for the true problem."""
        rng = np.random.default_rng(10)
        for _ in range(60):
            instance = awkward(random_instance(rng, 6, 3))
            placement = random_placement(rng, instance)
            if placement is None:
                continue
            schedule = retime(instance, placement, random_order(rng, instance))
            grid = Grid.of(instance)
            start = [grid.floor(time) for time in schedule.start.fractions()]
            end = [start[v] + int(grid.duration[v, d]) for v, d in enumerate(placement)]
            graph = instance.graph
            for u, v, tensor in zip(
                graph.edge_source, graph.edge_target, graph.edge_tensor, strict=True
            ):
                here, there = int(placement[u]), int(placement[v])
                assert start[v] >= end[u] + grid.delay(int(tensor), here, there)
            assert max(end) <= schedule.makespan(instance) * grid.scale


class TestExtremes:
    """Sizes beyond 64 bits on the way to ticks."""

    @pytest.mark.parametrize(
        "instance",
        [
            pair(speed=2**100),
            pair(speed=Fraction(1, 2**100)),
            pair(ops=2**100),
            pair(ops=0, speed=Fraction(1, 2**70)),
            pair(ops=Fraction(1, 2**70)),
            pair(size=0, bandwidth=Fraction(1, 2**70)),
            pair(size=2**100, bandwidth=2**99),
            pair(bandwidth=2**70, latency=Fraction(1, 2**70)),
            pair(latency=2**100),
            Instance(
                GraphBuilder().vertex("a").build(),
                Cluster.uniform(1),
                durations=[[Fraction(1, 2**70)]],
            ),
            Instance(
                GraphBuilder().vertex("a").vertex("b").build(),
                Cluster.uniform(2),
                durations=[[Fraction(3, 2**70), None], [None, 2**70]],
            ),
        ],
        ids=[
            "fast", "slow", "long", "slow and empty", "short", "thin and empty", "large",
            "fine latency", "coarse latency", "short duration", "short and long",
        ],
    )  # fmt: skip
    def test_every_time_is_rounded_down(self, instance: Instance) -> None:
        grid = Grid.of(instance)
        for time, where in times(instance):
            assert ticks(grid, *where) == grid.floor(time)

    @pytest.mark.parametrize(
        "instance",
        [
            pair(size=2**100, bandwidth=1),
            pair(latency=2**100),
            Instance(
                pair().graph, Cluster.uniform(2), Model("sendrecv", send_ops=Fraction(2**100))
            ),
            Instance(pair().graph, Cluster.uniform(2), durations=[[6, 2**100]] * 2),
        ],
        ids=["transfer", "latency", "send", "duration"],
    )
    def test_times_longer_than_the_known_makespan_stay_longer(self, instance: Instance) -> None:
        makespan = Fraction(12)  # both vertices on the first device
        grid = Grid.of(instance, makespan)
        for time, where in times(instance):
            here = ticks(grid, *where)
            assert here == grid.floor(time) or grid.floor(makespan) < here < grid.floor(time)
