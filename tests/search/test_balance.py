"""Exchanges of units find placements within capacities where greedy methods find none."""

from __future__ import annotations

import numpy as np
import pytest

from optpart import Budget, Cluster, Device, GraphBuilder, Instance, Model
from optpart.kernels.compiled import arrays
from optpart.methods.search import search
from optpart.methods.starts import heuristic_schedules
from optpart.problem.model import Communication
from optpart.search.balance import balanced
from optpart.search.layout import repaired
from optpart.solution.result import Status
from optpart.solution.verifier import verify
from optpart.testing.draw import draw_instance

pytestmark = pytest.mark.filterwarnings("ignore:overflow")  # random numbers wrap around


def full(
    units: int, devices: int = 3, communication: Communication = "delay", seed: int = 0
) -> Instance:
    """Return a chain for which all devices must be full, with a number of units for each."""
    rng = np.random.default_rng(seed)
    need = rng.integers(300, 1000, (devices, units))
    builder = GraphBuilder()
    for i, amount in enumerate(rng.permutation(need.ravel()).tolist()):
        builder.vertex(str(i), 1, memory=amount)
        if i:
            builder.edge(str(i - 1), str(i), None)
    room = [Device(str(d), memory=int(need[d].sum())) for d in range(devices)]
    return Instance(builder.build(), Cluster.of(room), Model(communication, memory="estimate"))


def test_no_heuristic_finds_a_placement_that_fills_all_devices_but_starts_exist() -> None:
    instance = full(80)
    starts = list(heuristic_schedules(instance))
    assert len(starts) == 1
    assert verify(instance, starts[0]) == []


@pytest.mark.parametrize("communication", ["delay", "link"])
def test_search_begins_although_all_devices_must_be_full(communication: Communication) -> None:
    instance = full(80, communication=communication)
    budget = Budget(seconds=60, workers=1, deterministic=2)
    result = search(instance, budget=budget)
    assert result.schedule is not None
    assert verify(instance, result.schedule) == []


def test_a_small_instance_is_packed_by_the_solver() -> None:
    instance = full(5, devices=4)
    starts = list(heuristic_schedules(instance))
    assert starts
    assert verify(instance, starts[0]) == []


def test_a_large_instance_without_a_placement_is_proven_infeasible() -> None:
    builder = GraphBuilder()
    for i in range(61):
        builder.vertex(str(i), 1, memory=2)
    room = [Device(str(d), memory=41) for d in range(3)]
    instance = Instance(builder.build(), Cluster.of(room), Model(memory="estimate"))
    result = search(instance, budget=Budget(seconds=60, workers=1, deterministic=1))
    assert result.status is Status.INFEASIBLE
    assert result.reason.endswith("2, 2, 2 and 49 more of 41, 41, 41)")


def test_balancing_keeps_every_other_rule() -> None:
    done = 0
    for seed in range(60):
        instance = draw_instance(seed, "delay", "estimate", vertices=12, devices=3)
        a, rng = arrays(instance), np.random.default_rng(seed)
        roomy = repaired(
            Instance(instance.graph, instance.cluster, Model(), instance.given_durations), None, rng
        )
        if roomy is None:
            continue
        first = a.unit_vertex[a.unit_start[:-1]]
        device = balanced(a, roomy.device[first], rng)
        if device is None:
            continue
        done += 1
        used = np.bincount(device, weights=a.need, minlength=instance.devices)
        assert (used <= a.capacity).all()
        assert a.allowed[np.arange(len(device)), device].all()
        assert all(device[u] != device[w] for u, w in instance.separated_units)
    assert done > 10


def test_balancing_is_the_same_with_the_same_seed() -> None:
    a = arrays(full(80))
    start = np.zeros(len(a.need), dtype=np.int32)
    one, other = (balanced(a, start, np.random.default_rng(3)) for _ in range(2))
    assert one is not None
    assert other is not None
    assert one.tolist() == other.tolist()
