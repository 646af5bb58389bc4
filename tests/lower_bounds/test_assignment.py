"""Assignment: a length is refuted if and only if no placement of whole units satisfies the rows."""

from __future__ import annotations

from itertools import product
from math import inf
from typing import Literal

import numpy as np
import pytest
from crowds import crowd

from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.certificates import check
from optpart.kernels.compiled import whole_memory
from optpart.kernels.ticks import Grid
from optpart.lower_bounds import assignment
from optpart.lower_bounds.assignment import Tree, refutation
from optpart.lower_bounds.energy import intervals, overload
from optpart.lower_bounds.windows import windows


def proof(instance: Instance, limit: int) -> Tree | None:
    grid = Grid.of(instance)
    return refutation(instance, grid, windows(instance, grid, limit), limit, inf)


def pieces(sizes: list[int], devices: list[Device], memory: str = "none") -> Instance:
    builder = GraphBuilder()
    for v, size in enumerate(sizes):
        builder.vertex(f"v{v}", size, memory=size)
    return Instance(builder.build(), Cluster.of(devices), model=Model(memory=memory))


def test_whole_pieces_take_longer_than_shares() -> None:
    """Of 16 operations, two devices take 8 each in shares, but two pieces of 5 are on one."""
    instance = pieces([5, 5, 5, 1], [Device("d0"), Device("d1")])
    grid = Grid.of(instance)
    assert overload(instance, grid, windows(instance, grid, 9), 9) is None
    assert proof(instance, 9) is not None
    assert proof(instance, 10) is None


def test_whole_pieces_need_more_memory_than_shares() -> None:
    """Three of 5 bytes on two devices of 8."""
    devices = [Device("d0", memory=8), Device("d1", memory=8)]
    assert proof(pieces([5, 5, 5], devices, "estimate"), 1_000) is not None
    assert proof(pieces([5, 5, 3], devices, "estimate"), 1_000) is None


def fits(instance: Instance, limit: int) -> bool:
    """Return whether some placement satisfies all rows, by trying each."""
    grid = Grid.of(instance)
    window = windows(instance, grid, limit)
    rows = intervals(instance, grid, window, limit, assignment._THRESHOLDS)
    need, capacity = whole_memory(instance, relax=True)
    choices = [np.flatnonzero(row).tolist() for row in window.possible]
    place = np.array(list(product(*choices))).reshape(-1, len(choices))
    fine = np.ones(len(place), dtype=np.bool_)
    for device, work, room in zip(rows.device, rows.work, rows.room, strict=True):
        fine &= (place == device) @ work <= room
    for device, limit in enumerate(capacity):
        fine &= (place == device) @ need <= limit
    return bool(fine.any())


@pytest.mark.parametrize("memory", ["none", "estimate"])
@pytest.mark.parametrize("seed", range(8))
def test_exactly_what_no_placement_satisfies_is_refuted(
    seed: int, memory: Literal["none", "estimate"]
) -> None:
    instance = crowd(seed, memory)
    shared = int(Grid.of(instance).duration[:, -1].sum()) // instance.devices
    limits = range(shared // 2, 2 * shared, max(1, shared // 20))
    refuted = [limit for limit in limits if proof(instance, limit)]
    assert refuted == [limit for limit in limits if not fits(instance, limit)]
    assert refuted


def test_a_search_of_too_many_cases_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = pieces([5, 5, 5, 1], [Device("d0"), Device("d1")])
    assert proof(instance, 9) is not None
    monkeypatch.setattr(assignment, "_MAX_CASES", 1)
    assert proof(instance, 9) is None


def test_the_judge_admits_as_many_assumptions() -> None:
    assert assignment.MAX_DEPTH == check.MAX_ASSUMPTIONS
