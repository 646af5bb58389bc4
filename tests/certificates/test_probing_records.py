"""Records of tier ``probing``: the judge accepts them, and they hold no more than they need."""

from __future__ import annotations

import math
from collections import Counter
from copy import deepcopy
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import optpart
from optpart import Instance
from optpart.certificates import check, probing
from optpart.certificates.certify import certify_bound
from optpart.certificates.check import Problem, RejectedError, Windows, refute_by_probing
from optpart.certificates.probing import NotRefutedError, probing_record
from optpart.interop.formats import native
from optpart.kernels import ticks
from optpart.lower_bounds.destructive import destructive_bound
from optpart.testing.draw import draw_instance


def windows_of(instance: Instance, bound: Fraction) -> tuple[Windows, ticks.Grid]:
    problem = Problem(check.read_json(native.dumps(instance).encode(), "instance"))
    grid = ticks.Grid.of(instance)
    return Windows(problem, grid.scale, bound), grid


def written(instance: Instance, bound: Fraction) -> tuple[Windows, dict[str, Any]]:
    windows, grid = windows_of(instance, bound)
    return windows, probing_record(instance, windows, grid, math.inf, math.inf)


@cache
def drawn() -> list[tuple[Instance, Fraction]]:
    """Return instances whose destructive bound is more than paths prove, and the bound."""
    found = []
    drawn_from = [(seed, "none", 13) for seed in (16, 28)]
    drawn_from += [(seed, "none", 16) for seed in (2, 3, 4, 5, 7, 9)]
    for seed, memory, most in [*drawn_from, (2, "estimate", 16), (26, "estimate", 16)]:
        size = {"vertices": (8, most), "devices": (2, 4)}
        instance = draw_instance(seed, "delay", memory, **size, far=False)
        bound = destructive_bound(instance)
        if bound and windows_of(instance, bound)[0].feasible:
            found.append((instance, bound))
    return found


def test_the_judge_accepts_what_destructive_bounds_prove() -> None:
    nested = proven = priced = 0
    for instance, bound in drawn():
        try:
            windows, record = written(instance, bound)
        except NotRefutedError:  # units that become one are not written
            continue
        refute_by_probing(windows, record)
        proven += 1
        nested += any(claim[0] == "not" for claim in record["claims"])
        priced += any(claim[0] == "work" and claim[2] for claim in record["claims"])
        longer = windows_of(instance, bound + 1 / ticks.Grid.of(instance).scale)[0]
        with pytest.raises(RejectedError):
            refute_by_probing(longer, record)
    assert proven > 4
    assert nested > 1
    assert priced == 2  # memory counts in the last two


def test_most_trials_are_needed() -> None:
    needed = spare = 0
    for instance, bound in drawn():
        try:
            _, record = written(instance, bound)
        except NotRefutedError:
            continue
        for i, claim in enumerate(record["claims"]):
            fewer = deepcopy(record)
            if claim[0] == "not":
                del fewer["claims"][i]
                if refutes(windows_of(instance, bound)[0], fewer):
                    spare += 1
                else:
                    needed += 1
    assert needed > 2 * spare


def refutes(windows: Windows, record: dict[str, Any]) -> bool:
    try:
        refute_by_probing(windows, record)
    except RejectedError:
        return False
    return True


def test_a_length_that_is_not_refuted_has_no_record() -> None:
    instance = draw_instance(1, "delay", "none", vertices=(5, 6), devices=(2, 2), far=False)
    best = optpart.solve(instance, "cpsat", seconds=10)
    windows, grid = windows_of(instance, best.makespan + 1 / ticks.Grid.of(instance).scale)
    with pytest.raises(NotRefutedError, match="does not refute"):
        probing_record(instance, windows, grid, math.inf, math.inf)


def test_a_length_beyond_all_schedules_is_refused(tmp_path: Path) -> None:
    instance, bound = drawn()[0]
    found = certify_bound(instance, [bound, Fraction(10) ** 30], tmp_path / "out", seconds=5)
    assert (found.bound, list(found.missed)) == (bound, [10**30])
    assert "everything one after another takes less" in found.missed[Fraction(10) ** 30]


def test_a_record_that_is_too_long_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "MAX_CERTIFICATE", probing._RESERVE)
    with pytest.raises(NotRefutedError, match="bytes"):
        written(*drawn()[0])


def test_bounds_are_certified(tmp_path: Path) -> None:
    tiers = Counter[str]()
    for i, (instance, bound) in enumerate(drawn()[:10]):
        found = certify_bound(instance, [bound], tmp_path / f"{i}", seconds=4)
        assert found.bound == bound
        said = check.check(str(tmp_path / f"{i}"))
        assert f"no schedule takes less than {bound} (tier {found.refutation.tier}" in said
        tiers[found.refutation.tier] += 1
    assert tiers["probing"] > 2
