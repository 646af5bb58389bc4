"""The judge of tier ``probing``: what it accepts is true in every schedule that is short enough.

In the join, a and b take 3 each, on equal devices, and their tensors take 2 to cross; c takes 1. It
takes 4 along a path, 6 in the best schedule, and 7 on one device.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optpart
from optpart import Cluster, Device, GraphBuilder, Instance, Model, Schedule
from optpart.certificates import check
from optpart.certificates.check import (
    Allowance,
    Problem,
    RejectedError,
    Windows,
    one_machine_bound,
    refute_by_probing,
    waits,
)
from optpart.interop.formats import native
from optpart.kernels import ticks
from optpart.lower_bounds.one_machine import Sharpening
from optpart.lower_bounds.windows import windows as known_windows
from optpart.solution.schedule import retime
from optpart.testing import brute_force
from optpart.testing.draw import draw_instance

A, B, C = range(3)


def join() -> Instance:
    builder = GraphBuilder().vertex("a", 3, outputs=[2]).vertex("b", 3, outputs=[2]).vertex("c", 1)
    graph = builder.edge("a", "c").edge("b", "c").build()
    return Instance(graph, Cluster.uniform(2, bandwidth=1), name="join")


def windows_of(instance: Instance, bound: Fraction | int, scale: Fraction | int = 1) -> Windows:
    problem = Problem(check.read_json(native.dumps(instance).encode(), "instance"))
    return Windows(problem, Fraction(scale), Fraction(bound))


def record(*claims: Any) -> dict[str, Any]:
    return {"claims": list(claims)}


def judge(bound: Fraction | int, *claims: Any) -> None:
    refute_by_probing(windows_of(join(), bound), record(*claims))


#: If c starts before 5, neither a nor b can be away, and they take turns.
LATE = ["head", C, 0, 5, C, 1, 5]


def test_ancestors_that_cannot_be_away_take_turns() -> None:
    assert brute_force.optimum(join()).makespan == 6  # type: ignore[union-attr]
    judge(6, LATE)
    with pytest.raises(RejectedError, match="can start earlier"):
        judge(7, ["head", C, 0, 6])
    with pytest.raises(RejectedError, match="leave every unit a device"):
        judge(7, LATE)


def test_a_vertex_without_a_device_refutes() -> None:
    judge(6, LATE[:4], ["head", C, 1, 5])
    with pytest.raises(RejectedError, match="leave every unit a device"):
        judge(6, LATE[:4])


def test_what_is_refuted_on_trial_is_excluded() -> None:
    one, two = ["not", 2, 0, [LATE]], ["not", 2, 1, [LATE]]
    judge(6, one, two)
    with pytest.raises(RejectedError, match="the unit can be there"):
        judge(7, ["not", 2, 0, [LATE]])
    with pytest.raises(RejectedError, match="leave every unit a device"):
        judge(6, one)


def test_vertices_that_must_share_a_device_can_fill_it() -> None:
    full = ["full", 0, [A, B]]
    together = ["not", 0, 0, [["not", 1, 1, [LATE]], full]]
    judge(6, together, ["not", 0, 1, [LATE]])
    with pytest.raises(RejectedError, match="can be on another device"):
        judge(6, full)


def test_what_just_fits_on_a_device_does_not_fill_it() -> None:
    builder = GraphBuilder().vertex("a", 2, devices=["d0"]).vertex("b", 2, devices=["d0"])
    instance = Instance(builder.build(), Cluster.uniform(2))
    refute_by_probing(windows_of(instance, 4), record(["full", 0, [0, 1]]))
    with pytest.raises(RejectedError, match="leave every unit a device"):
        refute_by_probing(windows_of(instance, 5), record(["full", 0, [0, 1]]))


def test_work_in_an_interval_is_compared_with_the_devices() -> None:
    builder = GraphBuilder()
    for name in "abc":
        builder.vertex(name, 2)
    instance = Instance(builder.build(), Cluster.uniform(2, bandwidth=1), name="loads")
    rows = [[0, 0, 2, 1], [1, 0, 2, 1]]
    refute_by_probing(windows_of(instance, 3), record(["work", rows, []]))
    rows = [[0, 0, 3, 1], [1, 0, 3, 1]]
    with pytest.raises(RejectedError, match="leave every unit a device"):
        refute_by_probing(windows_of(instance, 4), record(["work", rows, []]))


def test_work_is_compared_with_memory_as_well() -> None:
    """Two vertices fit on the fast device in time, but only one of them in memory."""
    builder = GraphBuilder()
    for name in "abc":
        builder.vertex(name, 2, memory=1)
    fast, slow = Device("fast", 2, memory=Fraction(7, 5)), Device("slow", memory=9)
    instance = Instance(
        builder.build(),
        Cluster.of([fast, slow], bandwidth=1),
        Model(memory="estimate"),
        name="memory",
    )
    assert brute_force.optimum(instance).makespan == 4  # type: ignore[union-attr]
    rows, prices = [[1, 0, 3, 5]], [[0, 2]]  # memory is counted in fifths: 3 · 10 > 15 + 14
    refute_by_probing(windows_of(instance, 4), record(["work", rows, prices]))
    with pytest.raises(RejectedError, match="leave every unit a device"):
        refute_by_probing(windows_of(instance, 4), record(["work", rows, []]))


def test_a_device_is_full_when_its_jobs_interrupt_each_other() -> None:
    allowance = Allowance()
    assert one_machine_bound([], allowance) == 0
    assert (
        one_machine_bound([(0, 3, 1), (1, 1, 5)], allowance) == 7
    )  # the second interrupts the first
    assert one_machine_bound([(2, 0, 4)], allowance) == 6
    assert one_machine_bound([(0, 2, 0), (0, 2, 3), (9, 1, 0)], allowance) == 10


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ([["perhaps"]], "unknown claim"),
        ([[]], "unknown claim"),
        ([[["head"]]], "malformed|unknown claim"),
        ([["head", C, 0]], "not in threes"),
        ([["head", 3, 0, 1]], "a vertex"),
        ([["head", -1, 0, 1]], "a vertex"),
        ([["head", C, 2, 1]], "a device"),
        ([["head", C, 0, 100]], "a time"),
        ([["head", C, 0, -1]], "a time"),
        ([["head", C, 0, 1.5]], "a time"),
        ([["tail", C, True, 0]], "a device"),
        ([["not", 3, 0, []]], "a unit"),
        ([["not", 0, 2, []]], "a device"),
        ([["not", 0, 0]], "entries"),
        ([["not", 0, 0, {}]], "not a list"),
        ([["full", 0, [A, A]]], "twice"),
        ([["full", 0]], "entries"),
        ([["full", 0, []]], "leave every unit a device"),
        ([["work", [[0, 0, 9, 1]], []]], "a row"),
        ([["work", [[0, 3, 2, 1]], []]], "a row"),
        ([["work", [[0, 0, 2, -1]], []]], "a multiplier"),
        ([["work", [[0, 0, 2]], []]], "entries"),
        ([["work", []]], "entries"),
        ([["work", [], [[0, 1]]]], "without a memory limit"),
        ([["work", [], [[2, 1]]]], "a device"),
        ([["work", [], []]], "leave every unit a device"),
        ({}, "not a list"),
    ],
)
def test_strange_claims_are_rejected(claims: Any, reason: str, tmp_path: Path) -> None:
    content = native.dumps(join()).encode()
    (tmp_path / "instance.json").write_bytes(content)
    document = {
        "format": check.BOUND,
        "instance": "join",
        "instance_sha256": hashlib.sha256(content).hexdigest(),
        "bound": "6",
        "tier": "probing",
        "ticks_per_unit": "1",
        "record": record() | {"claims": claims},
    }
    (tmp_path / "certificate.json").write_text(json.dumps(document))
    with pytest.raises(RejectedError, match=reason):
        check.check(str(tmp_path))


def test_assumptions_and_steps_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    claims: list[Any] = []
    for _ in range(check.MAX_ASSUMPTIONS + 1):
        claims = [["not", 0, 0, claims]]
    with pytest.raises(RejectedError, match="assumptions at one time"):
        judge(6, *claims)
    monkeypatch.setattr(check, "MAX_STEPS", 50)
    with pytest.raises(RejectedError, match="takes too long"):
        judge(6, LATE)


def test_records_of_earlier_versions_are_accepted_without_cases() -> None:
    old = record(LATE) | {"steps": [], "backwards": []}
    refute_by_probing(windows_of(join(), 6), old)
    with pytest.raises(RejectedError, match="cases"):
        refute_by_probing(windows_of(join(), 6), old | {"steps": [{"vertices": [0], "cases": []}]})


def latest(windows: Windows, backwards: bool, v: int, d: int) -> int:
    """Return the greatest head or tail that the judge accepts."""
    low, high = windows.times(backwards)[v][d], windows.horizon + 1
    while low < high:
        middle = (low + high + 1) // 2
        if waits(windows, backwards, v, d, middle):
            low = middle
        else:
            high = middle - 1
    return low


def close(windows: Windows) -> None:
    """Raise all heads and tails until nothing changes."""
    before = None
    while before != (before := (windows.head[:], windows.tail[:])) and windows.feasible:
        for backwards in (False, True):
            for v in windows.problem.order[:: -1 if backwards else 1]:
                for d in windows.possible[windows.unit[v]]:
                    windows.raise_to(backwards, v, d, latest(windows, backwards, v, d))


def probe(windows: Windows, draw: random.Random, depth: int) -> None:
    """Raise all heads and tails, and exclude what is refuted on trial."""
    close(windows)
    if not depth or not windows.feasible:
        return
    for unit in draw.sample(range(len(windows.members)), min(3, len(windows.members))):
        for d in windows.possible[unit]:
            trial = windows.assuming(unit, d)
            probe(trial, draw, depth - 1)
            if not trial.feasible:
                windows.exclude(unit, d)
    close(windows)


def schedules(instance: Instance) -> Iterator[Schedule]:
    """Yield a schedule by a heuristic, and an optimal one if brute force knows the model."""
    found = optpart.solve(instance, "heft").schedule
    if found is not None:
        yield found
    if instance.model.communication == "delay":
        best = brute_force.optimum(instance)
        if best is not None:
            yield retime(instance, best.placement, best.order)


@pytest.mark.parametrize(
    ("communication", "least"), [("delay", 5), ("sendrecv", 1), ("link", 1), ("port", 0)]
)
def test_short_schedules_satisfy_all_that_the_judge_accepts(communication: str, least: int) -> None:
    draw, raised = random.Random(3), 0
    for seed in range(10):
        instance = draw_instance(
            seed, communication, "none", vertices=(4, 6), devices=(2, 3), far=False
        )
        if instance.model.channels > 1:
            continue
        for schedule in schedules(instance):
            makespan = schedule.makespan(instance) or Fraction(1)
            scale = draw.choice((1000, 17)) / makespan
            windows = windows_of(instance, makespan + 1 / scale, scale)
            before = windows.head[:], windows.tail[:]
            probe(windows, draw, 2)
            assert windows.feasible
            raised += before != (windows.head, windows.tail)
            for v, d in enumerate(schedule.placement.tolist()):
                start = int(schedule.start[v] * scale)
                assert d in windows.possible[windows.unit[v]]
                assert windows.head[v][d] <= start
                assert windows.tail[v][d] <= windows.horizon - start - windows.time(v, d)
    assert raised >= least


class Sharpened(Sharpening):
    """Sharpening as the judge does it, which does not know of units that become one."""

    def _merge(self, pairs: Any) -> int:
        return 0


@pytest.mark.parametrize("communication", ["delay", "sendrecv"])
def test_the_judge_proves_what_sharpening_finds(communication: str) -> None:
    higher = 0
    for seed in range(4):
        instance = draw_instance(
            seed, communication, "none", vertices=(6, 14), devices=(2, 3), far=False
        )
        grid = ticks.Grid.of(instance)
        found = optpart.solve(instance, "heft").makespan
        if not found:
            continue
        windows = windows_of(instance, found, grid.scale)
        limit = windows.horizon
        begin = known_windows(instance, grid, limit)
        work = Sharpened(instance, grid, begin, limit)
        if not windows.feasible or not work.run():
            continue
        close(windows)
        if not windows.feasible:
            continue
        unit = [windows.unit[members[0]] for members in instance.units]
        for u, d in np.argwhere(~work.possible).tolist():
            assert d not in windows.possible[unit[u]] or filled(windows, unit[u], d)
        for backwards, times in ((False, work.head), (True, work.tail)):
            for v, d in np.argwhere(work.possible[work.unit]).tolist():
                if d in windows.possible[windows.unit[v]]:
                    assert windows.times(backwards)[v][d] >= times[v, d]
        higher += bool((work.head > begin.head).any())
    assert higher


def filled(windows: Windows, unit: int, d: int) -> bool:
    """Whether the members of a unit do not fit on a device one after another."""
    members = windows.members[unit]
    jobs = [(windows.head[v][d], windows.time(v, d), windows.tail[v][d]) for v in members]
    return one_machine_bound(jobs, windows.allowance) > windows.horizon
