from typing import Any

import numpy as np
import pytest

from optpart import InputError
from optpart.interop.generate.cluster import drawn_cluster


def test_numbers_are_whole_and_within_their_ranges() -> None:
    cluster = drawn_cluster(1, 60, speed=(10, 12), rate=(20, 22), memory=(5, 7))
    off_diagonal = ~np.eye(60, dtype=bool)
    assert cluster.speed.denominator == cluster.bandwidth.denominator == 1
    assert set(cluster.speed.numerators.tolist()) == {10, 11, 12}
    assert set(cluster.bandwidth.numerators[off_diagonal].tolist()) == {20, 21, 22}
    assert set(cluster.memory) == {5, 6, 7}


def test_bandwidth_is_the_same_in_both_directions_and_finite() -> None:
    cluster = drawn_cluster(1, 20)
    assert np.array_equal(cluster.bandwidth.numerators, cluster.bandwidth.numerators.T)
    assert not cluster.infinite.any()
    assert cluster.linked.all()


def test_a_faster_device_never_has_more_memory() -> None:
    cluster = drawn_cluster(1, 50, memory=(100, 10_000))
    by_speed = np.argsort(cluster.speed.numerators, kind="stable")
    memory = [cluster.memory[d] for d in by_speed]
    assert memory == sorted(memory, reverse=True)
    assert len(set(memory)) > 40


def test_memory_is_unlimited_by_default() -> None:
    assert set(drawn_cluster(1, 5).memory) == {None}


def test_memory_changes_nothing_else() -> None:
    with_memory, without = drawn_cluster(4, 9, memory=(1, 9)), drawn_cluster(4, 9)
    assert with_memory.types == without.types
    assert np.array_equal(with_memory.speed.numerators, without.speed.numerators)
    assert np.array_equal(with_memory.bandwidth.numerators, without.bandwidth.numerators)


def test_the_types_are_60_percent_cpu_and_40_percent_gpu() -> None:
    types = drawn_cluster(1, 400).types
    assert set(types) == {"CPU", "GPU"}
    assert types.count("CPU") / 400 == pytest.approx(0.6, abs=0.05)


@pytest.mark.parametrize("devices", [2, 3, 5])
def test_both_types_occur_with_at_least_two_devices(devices: int) -> None:
    assert all(
        set(drawn_cluster(seed, devices, cpu=0.95).types) == {"CPU", "GPU"} for seed in range(50)
    )


def test_one_device_or_a_certain_type_gives_one_type() -> None:
    assert len(drawn_cluster(1, 1)) == 1
    assert set(drawn_cluster(1, 6, cpu=1).types) == {"CPU"}
    assert set(drawn_cluster(1, 6, cpu=0).types) == {"GPU"}


def test_one_seed_gives_one_cluster() -> None:
    one, again, other = drawn_cluster(1, 8), drawn_cluster(1, 8), drawn_cluster(2, 8)
    assert np.array_equal(one.speed.numerators, again.speed.numerators)
    assert np.array_equal(one.bandwidth.numerators, again.bandwidth.numerators)
    assert not np.array_equal(one.bandwidth.numerators, other.bandwidth.numerators)


@pytest.mark.parametrize(
    ("wrong", "place"),
    [
        ({"devices": 0}, "devices"),
        ({"cpu": 1.1}, "cpu"),
        ({"speed": (0, 5)}, "speed"),
        ({"rate": (0, 5)}, "rate"),
        ({"memory": (9, 5)}, "memory"),
        ({"seed": -3}, "seed"),
    ],
)
def test_an_error_names_its_parameter(wrong: dict[str, Any], place: str) -> None:
    with pytest.raises(InputError) as caught:
        drawn_cluster(**({"seed": 1, "devices": 4} | wrong))
    assert caught.value.place == place
