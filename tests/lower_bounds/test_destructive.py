"""Lengths that what follows from them refutes."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from optpart import Cluster, GraphBuilder, Instance, Model, load
from optpart.interop.formats.detect import read_instance
from optpart.kernels import ticks
from optpart.kernels.ticks import Grid
from optpart.lower_bounds.best import BOUNDS
from optpart.lower_bounds.destructive import Refutation, destructive_bound
from optpart.lower_bounds.one_machine import Sharpening
from optpart.testing.brute_force import optimum
from optpart.testing.draw import random_instance

SHARED = Path(__file__).parents[3] / "shared" / "instances"


class TestByHand:
    def test_forks_that_cannot_be_apart_take_turns(self) -> None:
        """Two forks of 3; apart within one a tensor of 10 crosses. One device a fork."""
        builder = GraphBuilder()
        for i in "ab":
            builder.vertex(f"{i}0", 1).vertex(f"{i}1", 4).vertex(f"{i}2", 4)
            builder.edge(f"{i}0", f"{i}1", size=10).edge(f"{i}0", f"{i}2", size=10)
        instance = Instance(builder.build(), Cluster.uniform(2, bandwidth=1))
        assert destructive_bound(instance) == 9

    def test_three_units_do_not_fit_on_two_devices(self) -> None:
        """Load says 6 and shares; probing knows that two of the three are together."""
        builder = GraphBuilder()
        for v in range(3):
            builder.vertex(f"v{v}", 4)
        instance = Instance(builder.build(), Cluster.uniform(2))
        assert BOUNDS["energy"].compute(instance, seconds=1.0, makespan=None) == 8
        assert destructive_bound(instance) == 8

    def test_memory_that_no_placement_satisfies_leaves_no_schedule(self) -> None:
        builder = GraphBuilder()
        for v in range(3):
            builder.vertex(f"v{v}", 1, memory=3)
        cluster = Cluster.uniform(2, memory=4)
        instance = Instance(builder.build(), cluster, Model(memory="estimate"))
        assert destructive_bound(instance) is None

    def test_without_time_there_is_still_a_bound(self) -> None:
        graph = GraphBuilder().vertex("a", 5).build()
        assert destructive_bound(Instance(graph, Cluster.uniform(2)), -1.0) == 5

    def test_what_a_look_ahead_forces_is_weighed(self) -> None:
        """No five of six neighbours fit on a device, so the chain crosses once: 6 + 9.

        Wherever one of them is put, memory leaves devices to the others that only contradict one
        another together.
        """
        builder = GraphBuilder()
        for v in range(6):
            builder.vertex(f"v{v}", 1, memory=2)
        for v in range(5):
            builder.edge(f"v{v}", f"v{v + 1}", None)
        cluster = Cluster.uniform(2, memory=8, latency=9)
        instance = Instance(builder.build(), cluster, Model(memory="estimate"))
        assert destructive_bound(instance) == 15

    def test_a_known_bound_is_where_it_begins(self, monkeypatch: pytest.MonkeyPatch) -> None:
        instance = load("heft-10")
        tried: list[Fraction] = []
        by_trial = Refutation.by_trial

        def noted(self: Refutation, limit: int, depth: int) -> bool:
            tried.append(self.grid.time(limit))
            return by_trial(self, limit, depth)

        monkeypatch.setattr(Refutation, "by_trial", noted)
        known = Fraction(70)
        assert destructive_bound(instance, makespan=Fraction(80), known=known) == 73
        assert tried
        assert min(tried) >= known

    def test_of_a_network(self) -> None:
        """Load alone is 54.74."""
        path = SHARED / "convolutional_network-7-1.json"
        if not path.exists():
            pytest.skip(f"{path} is absent")
        instance = read_instance(path)
        refutation = Refutation(instance, Grid.of(instance), math.inf)
        assert refutation.follows(refutation.grid.floor(Fraction("55.1")))
        assert not refutation.follows(refutation.grid.floor(Fraction("55.3")))


class TestNothingIsLost:
    @pytest.mark.parametrize("memory", ["none", "estimate"])
    def test_an_optimum_is_not_refuted(self, memory: str) -> None:
        rng = np.random.default_rng(1)
        feasible = closed = 0
        for _ in range(20):
            instance = random_instance(rng, 6, 3, memory="none" if memory == "none" else "estimate")
            stands = optimum_stands(instance, 2**40)
            feasible += stands is not None
            closed += bool(stands)
        assert feasible > 12
        assert closed > 0.6 * feasible

    def test_not_on_a_rounded_grid_either(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ticks, "MAX_HORIZON", 16)
        rng = np.random.default_rng(2)
        for _ in range(40):
            optimum_stands(random_instance(rng, 6, 3), int(rng.integers(8, 2000)))

    def test_a_look_ahead_excludes_nothing_that_an_optimum_needs(self) -> None:
        rng = np.random.default_rng(4)
        looked = 0
        for _ in range(40):
            instance = random_instance(rng, 6, 3)
            best = optimum(instance)
            if best is None:
                continue
            grid = Grid.of(instance)
            limit = grid.floor(best.makespan)
            refutation = Refutation(instance, grid, np.inf)
            work = refutation._left(limit)
            assert work is not None
            branch = refutation._look_ahead(work, limit)
            assert work.windows().possible[instance.unit_of, best.placement].all()
            if branch is not None:
                looked += 1
                assert 1 < len(branch.trials) == work.possible[branch.unit].sum()
        assert looked > 10

    def test_a_known_makespan_changes_nothing(self) -> None:
        rng = np.random.default_rng(3)
        for _ in range(12):
            instance = random_instance(rng, 6, 3)
            best = optimum(instance)
            if best is not None:
                assert destructive_bound(instance, makespan=best.makespan) == destructive_bound(
                    instance
                )


def optimum_stands(instance: Instance, most: int) -> bool | None:
    """Assert that the optimum is not refuted; say whether one tick less is."""
    best = optimum(instance)
    if best is None:
        return None
    grid = Grid.of(instance, best.makespan, most)
    limit = grid.floor(best.makespan)
    refutation = Refutation(instance, grid, np.inf)
    assert not refutation.follows(limit)
    assert not refutation.by_trial(limit)
    return refutation.by_trial(limit - 1)


def test_deeper_searches_probe_a_length_once(monkeypatch: pytest.MonkeyPatch) -> None:
    probed: list[int] = []
    left = Refutation._left

    def counted(self: Refutation, limit: int) -> Sharpening | None:
        probed.append(limit)
        return left(self, limit)

    monkeypatch.setattr(Refutation, "_left", counted)
    monkeypatch.setattr(Refutation, "follows", lambda self, limit: left(self, limit) is None)
    assert destructive_bound(load("heft-10"), makespan=Fraction(80)) == 73
    assert len(probed) == len(set(probed))


def test_units_without_a_choice_are_not_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    only, strike_off = Sharpening.only, Refutation._strike_off
    tried: set[int] = set()

    def noted(self: Sharpening, unit: int, device: int) -> Sharpening:
        tried.add(unit)
        return only(self, unit, device)

    def checked(self: Refutation, work: Sharpening, limit: int) -> bool:
        settled = {*np.flatnonzero(work.possible.sum(axis=1) == 1).tolist()}
        tried.clear()
        struck = strike_off(self, work, limit)
        assert not tried & settled
        return struck

    monkeypatch.setattr(Sharpening, "only", noted)
    monkeypatch.setattr(Refutation, "_strike_off", checked)
    assert destructive_bound(load("heft-10"), makespan=Fraction(80)) == 73
