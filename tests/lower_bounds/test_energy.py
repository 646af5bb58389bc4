"""Energy: work that cannot be kept out of an interval, against what unlike devices can do in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.kernels import ticks
from optpart.kernels.ticks import Grid
from optpart.lower_bounds.energy import energy_bound, overload, overloaded
from optpart.lower_bounds.load import load_bound
from optpart.lower_bounds.windows import windows
from optpart.testing.brute_force import optimum
from optpart.testing.draw import random_instance


def hourglass(end: int, middle: Sequence[int], devices: Sequence[Device]) -> Instance:
    """Vertices between a first and a last one; nothing is sent."""
    builder = GraphBuilder().vertex("first", end).vertex("last", end)
    for v, ops in enumerate(middle):
        builder.vertex(f"v{v}", ops).edge("first", f"v{v}", None).edge(f"v{v}", "last", None)
    return Instance(builder.build(), Cluster.of(devices))


class TestByHand:
    def test_the_middle_is_crowded(self) -> None:
        """Of 10 operations on two devices, 8 are between 1 and the end minus 1."""
        instance = hourglass(1, [2, 2, 2, 2], [Device("d0"), Device("d1")])
        assert load_bound(instance) == 5
        assert energy_bound(instance) == 6

    def test_its_proof_names_the_intervals(self) -> None:
        instance = hourglass(1, [2, 2, 2, 2], [Device("d0"), Device("d1")])
        grid = Grid.of(instance)
        proof = overload(instance, grid, windows(instance, grid, 5), 5)
        assert proof is not None
        assert [grid.time(int(x)) for x in proof.rows.begin] == [1, 1]
        assert [grid.time(int(x)) for x in proof.rows.room] == [3, 3]
        weight = int(proof.weight[0])
        assert proof.weight.tolist() == [weight, weight]
        assert (proof.required, proof.room) == (8 * weight, 6 * weight)
        assert overload(instance, grid, windows(instance, grid, 6), 6) is None

    def test_on_unlike_devices(self) -> None:
        """24 of 42 operations, at 1 + 3 a time, between 3 and the end minus 3."""
        instance = hourglass(9, [6, 6, 6, 6], [Device("d0"), Device("d1", 3)])
        assert load_bound(instance) == 11
        assert energy_bound(instance) == 12

    def test_without_edges_it_is_the_load(self) -> None:
        builder = GraphBuilder()
        for v in range(6):
            builder.vertex(f"v{v}", 5)
        instance = Instance(builder.build(), Cluster.uniform(2))
        assert energy_bound(instance) == load_bound(instance) == 15

    def test_memory_that_no_placement_satisfies_leaves_no_schedule(self) -> None:
        builder = GraphBuilder()
        for v in range(3):
            builder.vertex(f"v{v}", 1, memory=3)
        cluster = Cluster.uniform(2, memory=4)
        assert energy_bound(Instance(builder.build(), cluster)) == 2
        assert energy_bound(Instance(builder.build(), cluster, Model(memory="estimate"))) is None

    def test_a_known_makespan_ends_the_search(self) -> None:
        instance = hourglass(1, [2, 2, 2, 2], [Device("d0"), Device("d1")])
        best = optimum(instance)
        assert best is not None
        assert energy_bound(instance, makespan=best.makespan) == best.makespan == 6


class TestNothingIsLost:
    @pytest.mark.parametrize("memory", ["none", "estimate"])
    def test_an_optimum_is_not_overloaded(self, memory: str) -> None:
        rng = np.random.default_rng(1)
        feasible = 0
        for _ in range(50):
            instance = random_instance(rng, 6, 3, memory="none" if memory == "none" else "estimate")
            feasible += not_overloaded_at_optimum(instance, 2**40)
        assert feasible > 25

    def test_not_on_a_rounded_grid_either(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ticks, "MAX_HORIZON", 16)
        rng = np.random.default_rng(2)
        for _ in range(100):
            not_overloaded_at_optimum(random_instance(rng, 6, 3), int(rng.integers(8, 2000)))


def not_overloaded_at_optimum(instance: Instance, most: int) -> bool:
    best = optimum(instance)
    if best is None:
        return False
    grid = Grid.of(instance, best.makespan, most)
    limit = grid.floor(best.makespan)
    assert not overloaded(instance, grid, windows(instance, grid, limit), limit)
    return True
