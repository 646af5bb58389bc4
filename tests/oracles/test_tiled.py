"""Instances of any size with a planted optimum: nothing that the package says contradicts it."""

from __future__ import annotations

from itertools import product
from typing import get_args

import numpy as np
import pytest
from oracles.proving import agree, bound, prove
from oracles.tiled import Planted, planted

from optpart import Budget, methods, verify
from optpart.instance import Communication, Memory, Release

COMBINATIONS: list[tuple[Communication, Memory]] = list(
    product(get_args(Communication), get_args(Memory))
)
ANY_MODEL = pytest.mark.parametrize(("communication", "memory"), COMBINATIONS)


def draw(
    communication: Communication,
    memory: Memory,
    devices: int,
    tiles: int,
    seed: int,
    *,
    given_durations: bool = False,
    release: Release = "end",
) -> Planted:
    rng = np.random.default_rng([seed, devices, *map(ord, communication + memory)])
    found = planted(
        rng,
        devices,
        tiles,
        communication,
        memory,
        given_durations=given_durations,
        release=release,
    )
    assert verify.verify(found.instance, found.schedule) == []
    assert found.schedule.makespan(found.instance) == found.horizon
    return found


@ANY_MODEL
def test_small_ones_are_proven(communication: Communication, memory: Memory) -> None:
    for seed in range(3):
        found = draw(communication, memory, 2, 3, seed)
        prove(found.instance, found.horizon, "enumerate")


@ANY_MODEL
def test_middling_ones_are_proven(communication: Communication, memory: Memory) -> None:
    found = draw(communication, memory, 3, 4, 0)
    prove(found.instance, found.horizon)


@ANY_MODEL
def test_large_ones_are_not_contradicted(communication: Communication, memory: Memory) -> None:
    found = draw(communication, memory, 4, 12, 1)
    instance, horizon = found.instance, found.horizon
    # Only by the devices on which sends must run is the bound with sends known to be T.
    assert bound(instance, 0.2) == horizon or communication == "sendrecv"
    for name in methods.heuristics():
        agree(methods.get(name)(instance), horizon)
    budget = Budget(seconds=10, workers=1, deterministic=0.1)
    result = methods.get("cpsat")(instance, budget=budget, start=found.schedule)
    agree(result, horizon)
    assert result.makespan == horizon
