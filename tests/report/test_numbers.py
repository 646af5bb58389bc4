"""Numbers for people: never rounded to a better value, and readable."""

from __future__ import annotations

from fractions import Fraction

import pytest

from optpart.rounding import between, number


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
