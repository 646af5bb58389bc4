"""Records of tier ``intervals``: the writer proves as much as the judge, and no more."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import pytest

from optpart import Cluster, GraphBuilder, Instance
from optpart.certify import check, intervals
from optpart.certify.certify import certify_bound
from optpart.certify.check import (
    Grid,
    Intervals,
    Problem,
    RejectedError,
    Windows,
    refute_by_intervals,
)
from optpart.certify.intervals import interval_proof
from optpart.formats import native
from optpart.solution.schedule import retime
from optpart.testing import brute_force
from optpart.testing.draw import draw_instance


def fork() -> Instance:
    """Four vertices that take 5 along a path, 8 on one device, and 7 in the best schedule."""
    builder = GraphBuilder().vertex("a", 1, outputs=[2]).vertex("b", 3, outputs=[2])
    builder.vertex("c", 3, outputs=[2]).vertex("d", 1)
    builder.edge("a", "b").edge("a", "c").edge("b", "d").edge("c", "d")
    return Instance(builder.build(), Cluster.uniform(2, bandwidth=1), name="fork")


def hourglass() -> Instance:
    """Seven vertices that take 9 along a path, and 13 in the best schedule.

    Tensors cross from b, c to m, which heads notice, and from m to e, f, which tails do.
    """
    builder = GraphBuilder().vertex("a", 1)
    builder.vertex("b", 3, outputs=[2]).vertex("c", 3, outputs=[2]).vertex("m", 1, outputs=[2])
    builder.vertex("e", 3).vertex("f", 3).vertex("z", 1)
    builder.edge("b", "m").edge("c", "m").edge("m", "e").edge("m", "f")
    for before, after in ("ab", "ac", "ez", "fz"):
        builder.edge(before, after, output=None)
    return Instance(builder.build(), Cluster.uniform(2, bandwidth=1), name="hourglass")


def windows_of(instance: Instance, bound: Fraction, scale: Fraction) -> Windows:
    problem = Problem(check.read_json(native.dumps(instance).encode(), "instance"))
    return Windows(Grid(problem, scale, bound))


def test_it_finds_the_cases_of_the_fork() -> None:
    proof = interval_proof(windows_of(fork(), Fraction(20), Fraction(1)), math.inf)
    assert (proof.ticks, [*proof.record]) == (7, ["steps"])
    refute_by_intervals(windows_of(fork(), Fraction(7), Fraction(1)), proof.record)


def test_it_adds_tails_if_they_prove_more() -> None:
    proof = interval_proof(windows_of(hourglass(), Fraction(20), Fraction(1)), math.inf)
    assert brute_force.optimum(hourglass()).makespan == 13  # type: ignore[union-attr]
    assert (proof.ticks, [*proof.record]) == (13, ["steps", "backwards"])
    refute_by_intervals(windows_of(hourglass(), Fraction(13), Fraction(1)), proof.record)
    enough = interval_proof(windows_of(hourglass(), Fraction(11), Fraction(1)), math.inf)
    assert (enough.ticks, [*enough.record]) == (11, ["steps"])


def test_heads_leave_room_for_tails_in_a_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    def numbers(room: int) -> list[int]:
        monkeypatch.setattr(intervals, "MAX_CERTIFICATE", intervals._RESERVE + room)
        record = interval_proof(windows_of(hourglass(), Fraction(20), Fraction(1)), math.inf).record
        return [
            sum(len(step["vertices"]) + len(step["cases"]) for step in steps)
            for steps in record.values()
        ]

    heads, tails = numbers(intervals.MAX_CERTIFICATE)
    assert numbers(2 * heads * intervals._BYTES) == [heads, tails]
    assert numbers((2 * heads - 2) * intervals._BYTES)[0] < heads


def test_after_the_deadline_it_proves_what_paths_prove() -> None:
    proof = interval_proof(windows_of(fork(), Fraction(20), Fraction(1)), 0.0)
    assert (proof.record, proof.ticks) == ({"steps": []}, 5)


def test_the_judge_accepts_exactly_what_the_writer_says() -> None:
    accepted = 0
    for seed in range(24):
        instance = draw_instance(seed, "delay", "none", vertices=(4, 6), devices=(2, 3), far=False)
        best = brute_force.optimum(instance)
        if best is None or not best.makespan:
            continue
        scale = 1000 / best.makespan
        proof = interval_proof(windows_of(instance, 2 * best.makespan, scale), math.inf)
        assert proof.ticks <= math.floor(scale * best.makespan)
        windows = windows_of(instance, proof.ticks / scale, scale)
        if windows.feasible:  # paths alone prove less
            refute_by_intervals(windows, proof.record)
            accepted += 1
        windows = windows_of(instance, (proof.ticks + 1) / scale, scale)
        with pytest.raises(RejectedError):
            refute_by_intervals(windows, proof.record)
    assert accepted >= 3


@pytest.mark.parametrize("communication", ["delay", "sendrecv"])
def test_the_judge_finds_the_heads_and_tails_of_the_writer(communication: str) -> None:
    tails = 0
    for seed in range(24):
        instance = draw_instance(
            seed, communication, "none", vertices=(8, 20), devices=(2, 3), far=False
        )
        windows = windows_of(instance, Fraction(10**5), Fraction(7))
        if not windows.feasible:
            continue
        proof = interval_proof(windows, math.inf)
        heads, back = Intervals(windows), Intervals(windows, backwards=True)
        heads.replay(proof.record["steps"])
        back.replay(proof.record.get("backwards", []))
        assert proof.ticks == max(
            min(map(sum, zip(*rows, strict=True)))
            for rows in zip(heads.head, heads.run, back.head, strict=True)
        )
        tails += "backwards" in proof.record
    assert tails


def test_a_bound_beyond_those_proposed_is_certified(tmp_path: Path) -> None:
    found = certify_bound(fork(), [Fraction(5), Fraction(6)], tmp_path / "out")
    assert (found.bound, found.refutation.tier, found.missed) == (7, "intervals", {})
    assert "no schedule takes less than 7 (tier intervals" in check.check(str(tmp_path / "out"))


def test_no_bound_above_a_schedule_is_certified(tmp_path: Path) -> None:
    best = brute_force.optimum(fork())
    assert best is not None
    schedule = retime(fork(), best.placement, best.order)
    found = certify_bound(
        fork(), [Fraction(5), Fraction(8)], tmp_path / "out", schedule=schedule, seconds=10
    )
    assert (found.bound, found.refutation.tier, list(found.missed)) == (7, "intervals", [8])
    path = tmp_path / "out" / "certificate.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"bound": "7.001"}))
    with pytest.raises(RejectedError):
        check.check(str(tmp_path / "out"))
