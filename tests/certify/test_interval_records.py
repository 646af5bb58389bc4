"""Records of tier ``intervals``: the writer proves as much as the judge, and no more."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import pytest

from optpart import Cluster, GraphBuilder, Instance
from optpart.certify import check
from optpart.certify.certify import certify_bound
from optpart.certify.check import Grid, Problem, RejectedError, Windows, refute_by_intervals
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


def windows_of(instance: Instance, bound: Fraction, scale: Fraction) -> Windows:
    problem = Problem(check.read_json(native.dumps(instance).encode(), "instance"))
    return Windows(Grid(problem, scale, bound))


def test_it_finds_the_cases_of_the_fork() -> None:
    proof = interval_proof(windows_of(fork(), Fraction(20), Fraction(1)), math.inf)
    assert proof.ticks == 7
    refute_by_intervals(windows_of(fork(), Fraction(7), Fraction(1)), proof.record)


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
