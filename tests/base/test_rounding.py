"""Numbers for people: never rounded to a better value, and readable."""

from __future__ import annotations

import ast
import math
import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optpart.base.rounding import between, double, fixed, number, percent

PACKAGE = Path(__file__).parents[2] / "optpart"

#: Where floats are formatted otherwise, how, and what they are.
HELD = {
    "certificates/check.py": ("g", "the checker shares no code; it rounds gaps up itself"),
    "certificates/sat.py": ("g", "a time limit"),
    "commands/devices.py": (".3f .4g g", "figures of datasheets"),
    "commands/reduce.py": (".2f", "seconds"),
    "interop/costs/detection.py": (".2g .3g .4g g", "measured figures; fewer digits are stable"),
    "interop/generate/families.py": ("g", "names of instances"),
    "interop/generate/small.py": ("g", "names of instances"),
    "base/limits.py": (",.0f", "counts that are said to be about right"),
    "problem/footprint.py": (".0f .1f", "estimates of memory"),
    "problem/units.py": (".0f .4g g", "inputs repeated with their units"),
    "study/report/paper/figures.py": ("g", "whole marks of an axis"),
    "study/report/progress.py": (".0f .1f", "seconds"),
    "study/report/text.py": (".0f .1f", "seconds"),
    "base/rounding.py": (".E f", "what has been rounded"),
    "search/checkpoint.py": (".1f", "seconds"),
    "search/search.py": (",.0f .1f", "moves per second, seconds"),
    "applications/training/profile.py": (".9g", "fitted coefficients, which are then exact"),
}


def formatted(source: str) -> list[str]:
    """Return the formats of floats in a module: of f-strings, ``format`` and ``%``."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
            parts = node.format_spec.values if isinstance(node.format_spec, ast.JoinedStr) else []
            found.append(
                "".join(str(part.value) for part in parts if isinstance(part, ast.Constant))
            )
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "format":
            found += [each.value for each in node.args[1:] if isinstance(each, ast.Constant)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found += re.findall(r"\{\w*:([^{}\s]*)\}", node.value)
            found += re.findall(r"%([\d.+-]*[efgEFG])\b", node.value)
    return [spec for spec in found if spec and spec[-1] in "eEfFgG%"]


@pytest.mark.parametrize(
    "source", ['f"{x:.2f}"', 'format(x, ".3g")', '"{:.1%}".format(x)', '"%.6g" % x']
)
def test_formats_of_floats_are_found(source: str) -> None:
    assert formatted(source)


def test_floats_are_formatted_in_one_module_only() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix(): " ".join(sorted(set(specs)))
        for path in PACKAGE.rglob("*.py")
        if (specs := formatted(path.read_text(encoding="utf-8")))
    }
    assert found == {name: specs for name, (specs, _) in HELD.items()}


@pytest.mark.parametrize(
    ("value", "up", "down"),
    [
        (Fraction(73), "73", "73"),
        (Fraction(29, 3), "9.66667", "9.66666"),
        (Fraction(123456), "123456", "123456"),
        (Fraction(15_260_374_112), "15,260,374,112", "15,260,374,112"),
        (Fraction(15_260_374_112) + Fraction(1, 3), "15,260,374,113", "15,260,374,112"),
        (Fraction(10**18), "1.00000E+18", "1.00000E+18"),
        (Fraction(10**18 + 1), "1.00001E+18", "1.00000E+18"),
        (Fraction(1, 3 * 10**12), "3.33334E-13", "3.33333E-13"),
    ],
)
def test_makespans_are_rounded_up_and_bounds_down(value: Fraction, up: str, down: str) -> None:
    assert (number(value, up=True), number(value, up=False)) == (up, down)


def test_equal_values_are_printed_alike_and_others_are_not() -> None:
    third = Fraction(29, 3)
    assert between(third, third) == ("9.66667", "9.66667")
    assert between(third, third - Fraction(1, 10**9)) == ("9.66667", "9.66666")
    large = Fraction(10**12, 7)
    assert len({*between(large, large)}) == 1
    assert between(None, third) == ("–", "9.66666")
    assert between(third, None) == ("9.66667", "–")


@pytest.mark.parametrize(
    ("value", "up", "down"),
    [
        (Fraction(0), "0", "0"),
        (Fraction(1, 10**9), "<0.01%", ">0%"),
        (Fraction(1, 10_000), "0.01%", "0.01%"),
        (0.0001, "0.01%", "0.01%"),  # the nearest double is larger
        (Fraction(149, 10**6), "0.02%", "0.01%"),
        (Fraction(7, 100), "7.00%", "7.00%"),
        (Fraction(99_996, 100_000), "100.00%", "99.99%"),
        (Fraction(1), "100%", "100%"),
        (Fraction(10_001, 10_000), "101%", "100%"),
        (math.inf, "∞", "∞"),
    ],
)
def test_gaps_are_rounded_up_and_what_is_at_least_something_down(
    value: Fraction | float, up: str, down: str
) -> None:
    assert (percent(value), percent(value, up=False)) == (up, down)


def test_only_an_exact_ratio_of_one_is_printed_as_one() -> None:
    assert fixed(Fraction(1), 3, up=True) == "1.000"
    assert fixed(1 + 2e-10, 3, up=True) == "1.001"
    assert fixed(Fraction(-1, 3), 2, up=True) == "-0.33"
    assert fixed(Fraction(-1, 3), 2, up=False) == "-0.34"


@given(st.fractions(min_value=0, max_value=10**7), st.integers(2, 7))
def test_what_is_printed_is_on_the_right_side_and_near(value: Fraction, digits: int) -> None:
    up, down = (
        Fraction(number(value, up=up, digits=digits).replace(",", "")) for up in (True, False)
    )
    assert down <= value <= up
    assert up - down <= max(value, 1) * Fraction(10) ** (1 - digits)
    above, below = (Fraction(fixed(value, 3, up=up)) for up in (True, False))
    assert below <= value <= above <= below + Fraction(1, 1000)


@given(st.fractions(min_value=0, max_value=10**7))
def test_a_double_as_it_is_written_is_on_the_right_side(value: Fraction) -> None:
    above, below = double(value, up=True), double(value, up=False)
    assert Fraction(repr(below)) <= value <= Fraction(repr(above))
    assert above <= math.nextafter(below, math.inf) or above == below
    assert (above == 0) == (value == 0)


def test_a_short_decimal_is_its_own_double_in_both_directions() -> None:
    for tenths in range(1, 10):
        exact = Fraction(tenths, 10)
        assert double(exact, up=True) == double(exact, up=False) == tenths / 10
    assert double(Fraction(1, 10**400), up=True) > 0
