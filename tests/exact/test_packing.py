"""Packings: found exactly where a placement exists, and every order of a cautious one is valid."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from optpart import Budget, Cluster, Device, GraphBuilder, Instance, Model
from optpart.exact.packing import WORKER, pack
from optpart.exact.process import shared
from optpart.problem.model import Memory
from optpart.solution.schedule import retime
from optpart.solution.verifier import verify
from optpart.testing.draw import draw_instance, random_instance
from optpart.testing.solutions import random_order

COUNTED = Budget(workers=1, deterministic=1.0)


def faults(instance: Instance, device: np.ndarray, seed: int = 0) -> list[str]:
    order = random_order(np.random.default_rng(seed), instance)
    schedule = retime(instance, device[instance.unit_of], list(order))
    return [violation.rule for violation in verify(instance, schedule)]


def exists(instance: Instance) -> bool:
    """Try every placement."""
    choices = [np.flatnonzero(row) for row in instance.allowed]
    return any(
        not faults(instance, np.array(device, dtype=np.int32)) for device in product(*choices)
    )


def test_one_process_packs_again_and_again() -> None:
    """Starting one takes a hundred times as long as packing a few units."""
    instance = random_instance(np.random.default_rng(0), 5, 3, memory="estimate")
    used = set()
    for _ in range(3):
        pack(instance, COUNTED)
        worker = shared(WORKER).worker
        assert worker is not None
        used.add(worker.process.pid)
    assert len(used) == 1


@pytest.mark.parametrize("seed", range(10))
def test_a_placement_is_found_exactly_if_there_is_one(seed: int) -> None:
    instance = random_instance(np.random.default_rng(seed), 5, 3, memory="estimate")
    found = pack(instance, COUNTED)
    if found.device is None:
        assert found.contradiction
        assert not exists(instance)
    else:
        assert faults(instance, found.device) == []


def test_some_of_these_instances_have_no_placement() -> None:
    drawn = [random_instance(np.random.default_rng(s), 5, 3, memory="estimate") for s in range(25)]
    assert 0 < sum(pack(instance, COUNTED).device is None for instance in drawn) < 25


def test_a_solver_that_takes_more_memory_than_allowed_is_stopped() -> None:
    instance = random_instance(np.random.default_rng(1), 5, 3, memory="estimate")
    assert pack(instance, COUNTED).device is not None
    found = pack(instance, replace(COUNTED, memory=2**20))
    assert found.device is None
    assert not found.contradiction


def one_reader(memory: Memory, capacity: int) -> Instance:
    """Three tensors of size two meet in one vertex, which may be on a device of its own."""
    builder = GraphBuilder().vertex("sum", 1)
    for name in "abc":
        builder.vertex(name, 1, outputs=[2]).edge(name, "sum")
    devices = [Device("0", memory=capacity), Device("1", memory=capacity)]
    return Instance(builder.build(), Cluster.of(devices, bandwidth=1), Model(memory=memory))


@pytest.mark.parametrize(("memory", "capacity"), [("edges", 6), ("refcount", 12)])
def test_a_cautious_placement_allows_every_order(memory: Memory, capacity: int) -> None:
    instance = one_reader(memory, capacity)
    device = pack(instance, COUNTED).device
    assert device is not None
    for seed in range(20):
        assert faults(instance, device, seed) == []


@pytest.mark.parametrize("memory", ["edges", "refcount"])
def test_without_a_cautious_placement_static_memory_is_packed(memory: Memory) -> None:
    for seed in range(12):
        instance = draw_instance(seed, "delay", memory, vertices=8, devices=2)
        found = pack(instance, COUNTED)
        assert (found.device is None) == bool(found.contradiction)
        if found.device is not None:
            assert set(faults(instance, found.device)) <= {"memory"}


def test_units_that_cannot_be_placed_are_named() -> None:
    graph = GraphBuilder()
    for name in "abc":
        graph.vertex(name, 1, memory=2)
    devices = [Device("0", memory=3), Device("1", memory=3)]
    found = pack(Instance(graph.build(), Cluster.of(devices), Model(memory="estimate")), COUNTED)
    assert found.device is None
    assert "a, b, c" in found.contradiction
