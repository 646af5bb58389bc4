"""Interchangeable devices: found where they are, and no others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, combinations, product
from typing import get_args

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, Instance, Model, Schedule
from optpart.exact import symmetry
from optpart.exact.symmetry import (
    canonical,
    interchangeable_devices,
    possible_first,
    talkers_first,
)
from optpart.problem.cluster import Matrix
from optpart.problem.model import Communication, Memory
from optpart.solution.verifier import verify
from optpart.testing.draw import draw_instance
from optpart.testing.goals import draw_goal
from optpart.testing.solutions import random_schedule


def instance(
    devices: Sequence[Device],
    bandwidth: Matrix = 1,
    latency: Matrix = 0,
    *,
    needs: str | None = None,
    may_use: Sequence[str] | None = None,
) -> Instance:
    """a → b, of which b has the needs."""
    builder = GraphBuilder().vertex("a", 1, outputs=[1])
    builder.vertex("b", 1, device_type=needs, devices=may_use).edge("a", "b")
    return Instance(builder.build(), Cluster.of(devices, bandwidth, latency))


XYZ = [Device(name) for name in "xyz"]


def test_equal_devices_with_equal_links() -> None:
    assert interchangeable_devices(instance(XYZ)) == [[0, 1, 2]]


@pytest.mark.parametrize("z", [Device("z", 3, memory=9), Device("z", 2, memory=8), Device("z", 2)])
def test_speed_and_memory_tell_apart(z: Device) -> None:
    devices = [Device("x", 2, memory=9), Device("y", 2, memory=9), z]
    assert interchangeable_devices(instance(devices)) == [[0, 1]]


def test_a_type_tells_apart_only_where_a_vertex_asks_for_it() -> None:
    devices = [Device("x", type="CPU"), Device("y", type="CPU"), Device("z", type="GPU")]
    assert interchangeable_devices(instance(devices)) == [[0, 1, 2]]
    assert interchangeable_devices(instance(devices, needs="CPU")) == [[0, 1]]


def test_a_vertex_that_names_devices_tells_apart() -> None:
    assert interchangeable_devices(instance(XYZ, may_use=["y"])) == [[0, 2]]


def test_links_to_a_third_tell_apart() -> None:
    assert interchangeable_devices(instance(XYZ, [[0, 1, 1], [1, 0, 2], [1, 2, 0]])) == [[1, 2]]
    assert interchangeable_devices(instance(XYZ, [[0, 1, 1], [1, 0, 2], [1, 3, 0]])) == []
    assert interchangeable_devices(instance(XYZ, 1, [[0, 1, 1], [1, 0, 2], [1, 2, 0]])) == [[1, 2]]


def test_the_diagonal_does_not_count() -> None:
    assert interchangeable_devices(instance(XYZ, [[0, 1, 1], [1, None, 1], [1, 1, 7]])) == [
        [0, 1, 2]
    ]


def test_infinite_is_not_missing() -> None:
    rows: Matrix = [[0, 1, None], [1, 0, 0], [None, 0, 0]]
    assert interchangeable_devices(instance(XYZ, rows)) == []


def test_several_classes() -> None:
    devices = [Device("w", 1), Device("x", 2), Device("y", 1), Device("z", 2)]
    assert interchangeable_devices(instance(devices)) == [[0, 2], [1, 3]]


def test_given_run_times_count_in_place_of_speeds() -> None:
    graph = GraphBuilder().vertex("a").vertex("b").build()
    devices = Cluster.of([Device("x", 1), Device("y", 2), Device("z", 3)])
    assert interchangeable_devices(Instance(graph, devices, durations=[[1, 1, 2], [4, 4, 4]])) == [
        [0, 1]
    ]
    # Not to be able to run is not the same as to run in no time.
    assert interchangeable_devices(
        Instance(graph, devices, durations=[[0, None, 0], [4, 4, 4]])
    ) == [[0, 2]]


def test_speed_counts_beside_given_run_times_where_sends_take_it() -> None:
    graph = GraphBuilder().vertex("a", outputs=[1]).vertex("b").edge("a", "b").build()
    devices = Cluster.of([Device("x", 1), Device("y", 2), Device("z", 2)], bandwidth=1)
    same = [[1, 1, 1], [1, 1, 1]]
    for model, classes in (
        (Model("sendrecv", send_ops=Fraction(6)), [[1, 2]]),
        (Model("sendrecv"), [[0, 1, 2]]),
        (Model("link", send_ops=Fraction(6)), [[0, 1, 2]]),
    ):
        assert interchangeable_devices(Instance(graph, devices, model, same)) == classes


def test_measured_transfers_tell_apart_what_they_treat_differently() -> None:
    def measured(rows: Sequence[Sequence[int | None]]) -> Instance:
        builder = GraphBuilder().vertex("a", 1)
        builder.output("a", 1, rows)
        return Instance(builder.build(), Cluster.uniform(3))

    assert interchangeable_devices(measured([[9, 1, 1], [1, 0, 1], [1, 1, 0]])) == [[0, 1, 2]]
    assert interchangeable_devices(measured([[0, 1, 2], [1, 0, 2], [3, 3, 0]])) == [[0, 1]]
    assert interchangeable_devices(measured([[0, 1, 2], [3, 0, 2], [3, 3, 0]])) == []
    assert interchangeable_devices(measured([[0, 1, None], [1, 0, 2], [3, 3, 0]])) == []


class TestByExchange:
    """Trading the places of two devices maps schedules to schedules of equal value."""

    #: The first seed for each condition that shows what follows without it.
    SHOWING = (16, 20, 25, 42, 48, 54, 109, 205, 358, 502, 1011)

    def fault(self, seed: int) -> str:
        """Return how a claim of symmetry fails on a drawn instance; empty if it holds."""
        models = list(product(get_args(Communication), get_args(Memory)))
        rng = np.random.default_rng(seed)
        instance = draw_instance(seed, *models[seed % len(models)], vertices=(1, 4))
        if not interchangeable_devices(instance):
            return ""
        goal = draw_goal(instance, random_schedule(rng, instance), seed)
        classes = interchangeable_devices(instance, goal)
        for d, e in (pair for members in classes for pair in combinations(members, 2)):
            for _ in range(3):
                schedule = random_schedule(rng, instance)
                if schedule is None:
                    continue
                other = exchanged(schedule, d, e)
                if violations := verify(instance, other):
                    return f"{instance.name}: {violations[0]}"
                if other.makespan(instance) != schedule.makespan(instance):
                    return f"{instance.name}: another makespan"
                if bool(goal.broken(instance, schedule)) != bool(goal.broken(instance, other)):
                    return f"{instance.name}: {goal} tells them apart"
        return ""

    def test_schedules_stay_valid(self) -> None:
        assert [fault for seed in range(200) if (fault := self.fault(seed))] == []

    @pytest.mark.parametrize(
        "dropped", symmetry._CONDITIONS, ids=lambda condition: condition.__name__
    )
    def test_every_condition_is_needed(
        self, dropped: Callable[..., bool], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if dropped is symmetry._nowhere:
            pytest.skip("says that no device occurs in a field")
        left = tuple(condition for condition in symmetry._CONDITIONS if condition is not dropped)
        monkeypatch.setattr(symmetry, "_CONDITIONS", left)
        assert any(self.fault(seed) for seed in chain(self.SHOWING, range(10_000)))

    def test_a_new_field_cannot_be_forgotten(self) -> None:
        @dataclass
        class Wider:
            speed: int
            cooling: int

        with pytest.raises(TypeError, match="Wider: say how exchanging devices affects cooling"):
            symmetry.require_every_field({Wider: {"speed": None}})


def exchanged(schedule: Schedule, d: int, e: int) -> Schedule:
    """A schedule in which two devices have traded places."""
    name = np.arange(
        max(d, e, int(schedule.placement.max(initial=0)), *schedule.transfers.target) + 1
    )
    name[[d, e]] = e, d
    moves = schedule.transfers
    target = name[moves.target].astype(np.int32)
    return replace(
        schedule,
        placement=name[schedule.placement].astype(np.int32),
        transfers=replace(moves, target=target),
    )


def test_canonical_placements_use_earlier_devices_first() -> None:
    builder = GraphBuilder()
    for v in range(5):
        builder.vertex(f"v{v}", 1)
    graph = builder.colocate("v0", "v4").build()
    devices = [Device("w", 5), Device("x"), Device("y"), Device("z")]
    problem = Instance(graph, Cluster.of(devices))
    alike = interchangeable_devices(problem)
    assert alike == [[1, 2, 3]]
    placement = np.array([3, 0, 1, 3, 3], dtype=np.int32)
    assert canonical(problem, placement, alike).tolist() == [1, 0, 2, 1, 1]
    assert canonical(problem, placement, []).tolist() == placement.tolist()


class TestTurn:
    """Which unit goes to the first of interchangeable devices."""

    @pytest.fixture
    def fork(self) -> Instance:
        """c hands 9 to each of a and b; d talks to nobody."""
        builder = GraphBuilder().vertex("a", 1).vertex("b", 1).vertex("c", 1, outputs=[9])
        graph = builder.vertex("d", 1).edge("c", "a").edge("c", "b").build()
        return Instance(graph, Cluster.uniform(3, bandwidth=1))

    def test_who_exchanges_most_comes_first(self, fork: Instance) -> None:
        assert talkers_first(fork).tolist() == [2, 0, 1, 3]

    def test_the_first_uses_the_first_device_only(self, fork: Instance) -> None:
        possible = possible_first(fork, [[0, 1, 2]], talkers_first(fork))
        assert possible.tolist() == [
            [True, True, False], [True, True, True], [True, False, False], [True, True, True],
        ]  # fmt: skip

    def test_renamed_placements_keep_to_it(self, fork: Instance) -> None:
        turn = talkers_first(fork)
        possible = possible_first(fork, [[0, 1, 2]], turn)
        for placement in product(range(3), repeat=4):
            renamed = canonical(fork, np.array(placement), [[0, 1, 2]], turn)
            assert possible[np.arange(4), renamed].all()
            same = np.equal.outer(placement, placement)
            assert (np.equal.outer(renamed, renamed) == same).all()

    def test_a_unit_that_may_not_use_the_class_does_not_count(self) -> None:
        instance_ = instance(XYZ, may_use=["z"])
        possible = possible_first(instance_, [[0, 1]], np.array([1, 0]))
        assert possible.tolist() == [[True, False, True], [False, False, True]]
