"""The checker pays for every step before it runs, and states no number that is false."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.limits import judge as heavy
from optpart.certificates import check
from optpart.certificates.check import Allowance, RejectedError, shown
from optpart.certificates.check_strategies import check as judge

# --- numbers -------------------------------------------------------------------------------------

LONG = st.integers(0, 10**1400)


def read(text: str) -> tuple[Fraction, str]:
    """Return a printed number, and how it says that it was rounded."""
    number, _, rounded = text.partition(" ")
    mantissa, _, power = number.partition("e")
    return Fraction(mantissa) * Fraction(10) ** int(power or 0), rounded


@given(LONG, LONG.map(lambda x: x + 1))
def test_a_number_is_printed_whole_or_rounded_the_right_way(top: int, bottom: int) -> None:
    exact = Fraction(top, bottom)
    for up in (False, True):
        text = shown(exact, up=up)
        said, rounded = read(text)
        assert len(text) < 100
        if rounded:
            assert rounded == ("(rounded up)" if up else "(rounded down)")
            assert said >= exact if up else said <= exact
            assert abs(said - exact) * 10**15 <= exact
        else:
            assert said == exact


def test_a_long_fraction_is_not_cut_at_its_slash() -> None:
    bound = Fraction(10**85, 3 * 10**85 + 1)
    assert shown(bound) == "33333333333333333e-17 (rounded down)"
    assert shown(bound, up=True) == "33333333333333334e-17 (rounded up)"
    assert shown(Fraction(29, 3)) == "29/3"
    assert shown(-(10**100)).endswith("(rounded down)")
    assert read(shown(-(10**100)))[0] <= -(10**100)


def test_texts_that_are_cut_end_with_dots() -> None:
    assert shown("x" * 79).startswith("'xxx")
    for text in ("x" * 200, "\n" * 40, ["y"] * 100):
        assert len(shown(text)) == 80
        assert shown(text).endswith("...")


def test_the_verdict_states_a_true_bound(tmp_path: Path) -> None:
    bound = Fraction(10**85, 3 * 10**85 + 1)
    instance = {"vertices": heavy.plain(1), "devices": heavy.devices(1)}
    heavy.written(tmp_path, instance, bound=str(bound))
    said = check.check(str(tmp_path))
    assert "no schedule takes less than 33333333333333333e-17 (rounded down) (tier" in said


# --- costs ---------------------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a file of its size may cost is a hundredth of what it is."""
    monkeypatch.setattr(check, "MAX_STEPS", check.MAX_STEPS // 100)
    monkeypatch.setattr(check, "MAX_BYTES", check.MAX_BYTES // 100)


#: Files that cost little enough to be judged.
JUDGED = {
    "numbers": "not an object",
    "schedule": "the schedule takes",
    "no_times": "leave every unit a device",
    "parameters": "too many different denominators",
}


@pytest.mark.parametrize("build", heavy.KINDS, ids=[build.__name__ for build in heavy.KINDS])
@pytest.mark.usefixtures("small")
def test_the_worst_files_are_refused_by_what_they_cost(build: heavy.Build, tmp_path: Path) -> None:
    build(tmp_path, 2**16)
    with pytest.raises(RejectedError) as error:
        judge(str(tmp_path))
    assert JUDGED.get(build.__name__, "takes too") in str(error.value)


def test_what_files_may_cost_grows_with_their_size() -> None:
    allowance = Allowance()
    assert allowance.steps == check.MAX_STEPS
    allowance.admit(2**19)
    assert allowance.steps == check.MAX_STEPS - 30 * 2**19
    allowance.admit(3 * 2**19)
    assert allowance.steps == 2 * check.MAX_STEPS - 30 * 2**21
    assert Allowance(2**21).steps == 2 * check.MAX_STEPS
    assert allowance.bytes == check.MAX_BYTES


@pytest.mark.parametrize("bits", [1, 64, 4096])
def test_longer_numbers_cost_more(bits: int) -> None:
    for steps in (check.multiplying, check.calculating):
        assert 1 <= steps(bits) <= steps(2 * bits) <= math.ceil(4 * steps(bits))


def test_an_assumption_gives_its_memory_back(tmp_path: Path) -> None:
    heavy.probing(tmp_path, 2**14, ["not", 0, 0, []], 10, 10, colocation=[heavy.names(10)])
    with pytest.raises(RejectedError, match="leave every unit a device"):
        check.check(str(tmp_path))
