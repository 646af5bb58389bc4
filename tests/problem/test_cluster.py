"""The cluster: devices, links, and what is wrong with bad ones."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from optpart import Cluster, Device, InputError

TWO = [Device("d0", 10, "CPU", 900), Device("d1", "1/3")]


class TestBuilding:
    def test_devices(self) -> None:
        cluster = Cluster.of(TWO)
        assert len(cluster) == 2
        assert cluster.names == ("d0", "d1")
        assert cluster.index == {"d0": 0, "d1": 1}
        assert cluster.types == ("CPU", None)
        assert cluster.speed.fractions() == [10, Fraction(1, 3)]
        assert cluster.memory == (Fraction(900), None)

    def test_links_are_infinite_and_without_latency_by_default(self) -> None:
        cluster = Cluster.of(TWO)
        assert cluster.infinite.all()
        assert cluster.linked.all()
        assert cluster.latency.fractions() == [0] * 4

    def test_one_number_stands_for_every_pair(self) -> None:
        cluster = Cluster.of(TWO, "5/2", 3)
        assert cluster.bandwidth[0, 1] == cluster.bandwidth[1, 0] == Fraction(5, 2)
        assert cluster.latency[0, 1] == cluster.latency[1, 0] == 3
        assert not cluster.infinite[0, 1]

    def test_zero_is_no_link_and_null_is_an_infinite_one(self) -> None:
        cluster = Cluster.of(TWO, [[0, 0], [None, 0]])
        assert not cluster.linked[0, 1]
        assert cluster.linked[1, 0]
        assert cluster.infinite[1, 0]

    def test_the_diagonal_does_not_count(self) -> None:
        cluster = Cluster.of(TWO, [[0, 1], [1, 0]], [[9, 1], [1, None]])
        assert cluster.linked[0, 0]
        assert cluster.latency[0, 0] == cluster.latency[1, 1] == 0

    def test_uniform(self) -> None:
        cluster = Cluster.uniform(3, speed=2, bandwidth=5, latency="1/2", memory=7)
        assert cluster.names == ("d0", "d1", "d2")
        assert cluster.speed.fractions() == [2, 2, 2]
        assert cluster.memory == (Fraction(7),) * 3
        assert cluster.bandwidth[2, 0] == 5
        assert cluster.latency[1, 2] == Fraction(1, 2)


@pytest.mark.parametrize(
    ("devices", "bandwidth", "latency", "message"),
    [
        ([], None, 0, "devices: no devices; give at least one device"),
        ([Device("")], None, 0, "devices[0].name: missing name; give every device a unique name"),
        (
            [Device("d"), Device("d")],
            None,
            0,
            "devices[1].name: 'd' is already devices[0]; give every device a unique name",
        ),
        ([Device("d", 0)], None, 0, "devices[0].speed: 0 is not positive; give a speed > 0"),
        (
            [Device("d", "-1/2")],
            None,
            0,
            "devices[0].speed: -1/2 is not positive; give a speed > 0",
        ),
        (
            [Device("d", memory=-1)],
            None,
            0,
            "devices[0].memory: -1 is negative; give a number ≥ 0",
        ),
        (TWO, -1, 0, "bandwidth: -1 is negative; give a number ≥ 0"),
        (TWO, [[0, 1]], 0, "bandwidth: 1 rows; give 2 rows of 2 entries"),
        (TWO, [[0, 1], [1]], 0, "bandwidth[1]: 1 entries; give 2 entries, one per device"),
        (TWO, [[0, 1], 1], 0, "bandwidth[1]: no entries; give 2 entries, one per device"),
        (TWO, [[0, 1], [-2, 0]], 0, "bandwidth[1][0]: -2 is negative; give a number ≥ 0"),
        (TWO, None, [[0, -1], [0, 0]], "latency[0][1]: -1 is negative; give a number ≥ 0"),
        (TWO, None, [[0, None], [0, 0]], "latency[0][1]: must not be null; give a number ≥ 0"),
        (TWO, None, [[0] * 3] * 2, "latency[0]: 3 entries; give 2 entries, one per device"),
        (TWO, None, None, "latency[0][1]: must not be null; give a number ≥ 0"),
        (
            TWO,
            {},
            0,
            'bandwidth: {} is not a number; give an integer, a decimal or a string such as "1/3"',
        ),
    ],
)
def test_a_wrong_entry(devices: list[Device], bandwidth: Any, latency: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        Cluster.of(devices, bandwidth, latency)
    assert str(caught.value) == message
