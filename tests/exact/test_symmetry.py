"""Interchangeable devices: found where they are, and no others."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, Instance
from optpart.cluster import Matrix
from optpart.exact.symmetry import (
    canonical,
    interchangeable_devices,
    possible_first,
    talkers_first,
)


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


def test_measured_transfers_tell_all_apart() -> None:
    builder = GraphBuilder().vertex("a", 1)
    builder.output("a", 1, [[0, 1], [1, 0]])
    assert interchangeable_devices(Instance(builder.build(), Cluster.uniform(2))) == []


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
