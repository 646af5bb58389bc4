"""Times and transfers of AllReduces."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest

from optpart.applications.training.cluster import TrainingCluster
from optpart.applications.training.collectives import allreduce, ring_chunks, ring_order, ring_time
from optpart.base.errors import InputError
from optpart.problem.cluster import Cluster, Device, Matrix


def cluster(servers: str, rate: Matrix = 4, latency: Matrix = 3) -> TrainingCluster:
    k = len(servers)
    devices = [Device(f"g{d}") for d in range(k)]
    return TrainingCluster(
        Cluster.of(devices, rate, latency), ("g",) * k, tuple(map(int, servers)), (None,) * k
    )


def two_level(servers: str, inside: Fraction | int | None, between: int) -> list[list]:
    return [[inside if one == two else between for two in servers] for one in servers]


@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_a_ring_takes_two_rounds_of_n_minus_one_steps_with_an_nth_each(n: int) -> None:
    size = Fraction(700)
    found = allreduce(cluster("0" * n), range(n), size)
    assert found.structure == "ring"
    assert found.time == 2 * (n - 1) * (3 + size / (n * 4))


def test_the_slowest_pair_of_the_ring_counts_and_the_one_that_closes_it_is_one() -> None:
    rate = [[5] * 3 for _ in range(3)]
    rate[0][2] = 1  # not on the ring 0 → 1 → 2 → 0
    assert ring_time(cluster("000", rate), (0, 1, 2), Fraction(30)) == 4 * (3 + Fraction(30, 15))
    rate[2][0] = 2
    assert ring_time(cluster("000", rate), (0, 1, 2), Fraction(30)) == 4 * (3 + Fraction(30, 6))
    latency = [[0, 1, 9], [1, 0, 2], [4, 1, 0]]
    assert ring_time(cluster("000", None, latency), (0, 1, 2), Fraction(30)) == 4 * 4


def test_a_ring_visits_one_server_after_the_other() -> None:
    assert ring_order(cluster("2020"), [3, 0, 1, 2]) == (0, 2, 1, 3)
    assert ring_order(cluster("011"), [2, 1]) == (1, 2)


def test_rings_inside_servers_and_one_of_their_first_devices_are_better_over_a_slow_network() -> (
    None
):
    size = Fraction(1200)
    four = cluster("0011", two_level("0011", 100, 1))
    assert ring_time(four, (0, 1, 2, 3), size) == 6 * (3 + 300)
    found = allreduce(four, range(4), size)
    assert found.structure == "hierarchical"
    assert found.time == 2 * (3 + size / 200) + 2 * (3 + size / 2)
    # The slowest server counts: that of three devices.
    five = cluster("00111", two_level("00111", 100, 1))
    assert allreduce(five, range(5), size).time == 4 * (3 + size / 300) + 2 * (3 + size / 2)


def test_a_structure_without_a_link_is_not_chosen() -> None:
    rate = two_level("0011", 100, 1)
    rate[1][2] = 0  # the ring 0 → 1 → 2 → 3 → 0; the first devices are 0 and 2
    found = allreduce(cluster("0011", rate), range(4), Fraction(1))
    assert found.structure == "hierarchical"
    rate = two_level("0011", 100, 1)
    rate[0][2] = 0
    assert allreduce(cluster("0011", rate), range(4), Fraction(1200)).structure == "ring"
    rate[1][2] = 0
    with pytest.raises(InputError, match=r"^allreduce over g0, g1, g2, g3: no link g1 → g2; give"):
        allreduce(cluster("0011", rate), range(4), Fraction(1200))


@pytest.mark.parametrize("n", [2, 3, 4, 7])
def test_the_chunks_of_a_ring_end_as_whole_sums_on_every_device(n: int) -> None:
    held = {(i, c): {i} for i, c in product(range(n), range(n))}
    sent: dict[tuple[int, int], tuple[int, set[int]]] = {}
    chunks = ring_chunks(n)
    assert len(chunks) == n * (2 * n - 1)  # n at the start, and one per transfer
    for step, i, chunk in chunks:
        if step:
            number, value = sent[step - 1, (i - 1) % n]
            assert number == chunk
            held[i, chunk] = held[i, chunk] | value if step < n else value
        sent[step, i] = chunk, set(held[i, chunk])
    assert all(value == set(range(n)) for value in held.values())
