"""Instances of any size with a planted optimum: nothing that the package says contradicts it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import get_args

import numpy as np
import pytest
from oracles.proving import agree, bound, prove
from oracles.tiled import Planted, planted

from optpart import Budget
from optpart.methods import registry
from optpart.problem.model import Communication, Memory
from optpart.solution.verifier import verify

COMBINATIONS: list[tuple[Communication, Memory]] = list(
    product(get_args(Communication), get_args(Memory))
)
ANY_MODEL = pytest.mark.parametrize(("communication", "memory"), COMBINATIONS)


def draw(
    communication: Communication, memory: Memory, devices: int, tiles: int, seed: int
) -> Planted:
    """Every other instance has given run times, or tensors freed by starts."""
    found = planted(
        np.random.default_rng([seed, devices, *map(ord, communication + memory)]),
        devices,
        tiles,
        communication,
        memory,
        given_durations=seed % 2 == 1,
        release="start" if seed % 4 > 1 else "end",
    )
    assert verify(found.instance, found.schedule) == []
    assert found.schedule.makespan(found.instance) == found.horizon
    return found


@ANY_MODEL
def test_small_ones_are_proven(communication: Communication, memory: Memory) -> None:
    for seed in range(2):
        found = draw(communication, memory, 2, 3, seed)
        prove(found.instance, found.horizon, "enumerate")


@ANY_MODEL
def test_middling_ones_are_proven(communication: Communication, memory: Memory) -> None:
    for seed in range(2):
        found = draw(communication, memory, 3, 4, seed)
        prove(found.instance, found.horizon)


@pytest.mark.parametrize("memory", ["none", "estimate"])
def test_milp_proves_small_ones(memory: Memory) -> None:
    for seed in range(2):
        found = draw("delay", memory, 2, 3, seed)
        prove(found.instance, found.horizon, "milp")


@ANY_MODEL
def test_large_ones_are_not_contradicted(communication: Communication, memory: Memory) -> None:
    not_contradicted(draw(communication, memory, 4, 12, 1))


@pytest.mark.parametrize(
    ("communication", "memory"),
    [("delay", "estimate"), ("sendrecv", "none"), ("link", "edges"), ("port", "refcount")],
)
def test_larger_ones_are_not_contradicted(communication: Communication, memory: Memory) -> None:
    not_contradicted(draw(communication, memory, 8, 25, 2))


def not_contradicted(found: Planted) -> None:
    instance, horizon = found.instance, found.horizon
    best = bound(instance, 0.1)
    assert best <= horizon
    # Where sends are work of a device beside its vertices, no bound has to know of them.
    assert best == horizon or instance.model.send_ops
    for name in registry.heuristics():
        agree(registry.get(name)(instance), horizon)
    budget = Budget(seconds=60, workers=1, deterministic=0.1)
    result = registry.get("cpsat")(instance, budget=budget, start=found.schedule)
    agree(result, horizon)
    assert result.makespan == horizon


@ANY_MODEL
def test_what_is_planted_has_nothing_to_spare(communication: Communication, memory: Memory) -> None:
    """Less memory on any device, or slower links, and the tiles no longer fit."""
    found = draw(communication, memory, 4, 12, 1)
    cluster = found.instance.cluster
    assert len(found.schedule.transfers) > 3
    slower = replace(cluster.latency, numerators=cluster.latency.numerators + 1)
    delayed = replace(found.instance, cluster=replace(cluster, latency=slower))
    assert verify(delayed, found.schedule) != []
    limited = [d for d, capacity in enumerate(cluster.memory) if capacity]
    assert bool(limited) == (memory != "none")
    for d in limited:
        capacities = list(cluster.memory)
        capacities[d] = (capacities[d] or 0) - Fraction(1, 100)
        less = replace(found.instance, cluster=replace(cluster, memory=tuple(capacities)))
        assert {violation.rule for violation in verify(less, found.schedule)} == {"memory"}
