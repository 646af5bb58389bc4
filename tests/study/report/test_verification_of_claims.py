"""What a result says that a file claims: shown with its origin, and refused where it is false."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from commandline import Run

import optpart as op
from optpart.interop.formats import result as results
from optpart.solution.claim import Claim
from optpart.solution.result import conclude, with_claim
from optpart.study import library

INSTANCE = op.load("graham-1969-3")


def written(path: Path, bound: int) -> Path:
    """Write a result with the optimal makespan, 12, a bound of 10, and a claim."""
    found = conclude(INSTANCE, "given", library.best_schedule(INSTANCE), bound=Fraction(10))
    claim = Claim("state.json", {"makespan": Fraction(bound)}, code="numpy 1, optpart ab12")
    results.write(with_claim(found, claim), path)
    return path


def test_a_claim_is_shown_beside_the_bound(tmp_path: Path, run: Run) -> None:
    said = run("verify", "graham-1969-3", written(tmp_path / "r.json", 11)).out
    assert said == (
        "valid: makespan 12, claimed lower bound 10, "
        "lower bound 11 claimed by state.json (optpart ab12)\n"
    )


def test_a_claim_above_the_makespan_is_a_violation(tmp_path: Path, run: Run) -> None:
    shown = run("verify", "graham-1969-3", written(tmp_path / "r.json", 13))
    assert shown.code == 1
    assert "claimed.lower_bound" in shown.out


def test_a_claim_that_says_no_more_than_the_proof_is_left_out(tmp_path: Path) -> None:
    assert "claimed" not in json.loads(written(tmp_path / "r.json", 10).read_text())


@pytest.mark.parametrize("claimed", [[], {"by": 5}, {"by": "x", "lower_bound": "-1"}, {"of": "x"}])
def test_a_claim_that_makes_no_sense_is_one_line(tmp_path: Path, run: Run, claimed: object) -> None:
    path = written(tmp_path / "r.json", 11)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"claimed": claimed}))
    shown = run("verify", "graham-1969-3", path)
    assert (shown.code, shown.err.count("\n")) == (2, 1)
    assert "claimed" in shown.err
