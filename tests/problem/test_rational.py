"""Numbers are exact rationals, whatever they are written as."""

from __future__ import annotations

import math
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optpart import InputError, RationalArray
from optpart.problem.rational import non_negative, rational, rounded

fractions = st.fractions()


class TestReading:
    @pytest.mark.parametrize(
        ("written", "value"),
        [
            (3, Fraction(3)),
            (-3, Fraction(-3)),
            (10**40, Fraction(10**40)),
            (np.int64(7), Fraction(7)),
            (0.1, Fraction(1, 10)),
            (np.float64(0.1), Fraction(1, 10)),
            (1e300, Fraction(10**300)),
            (Decimal("0.125"), Fraction(1, 8)),
            (Fraction(2, 6), Fraction(1, 3)),
            ("1/3", Fraction(1, 3)),
            (" -4/6 ", Fraction(-2, 3)),
            ("12", Fraction(12)),
            ("2.50", Fraction(5, 2)),
            ("1e-3", Fraction(1, 1000)),
            ("1e300", Fraction(10**300)),
        ],
    )
    def test_a_number(self, written: object, value: Fraction) -> None:
        assert rational(written) == value

    @pytest.mark.parametrize(
        "written",
        [
            None, True, False, [], {}, [1], 1j, b"1",
            "", "x", "1/0", "1/2/3", "1.5/2", "/2", "1/", "nan", "inf", "-Infinity", "0x10",
            "1" * 5000, "1/" + "3" * 5000,
            math.nan, math.inf, -math.inf, Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"),
            "1e301", "1e-301", "1e999999999", "1e99999999999999999999", Decimal("1e1000000"),
        ],
    )  # fmt: skip
    def test_not_a_number(self, written: object) -> None:
        with pytest.raises(InputError) as caught:
            rational(written, "here")
        assert caught.value.place == "here"
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 300

    def test_a_decimal_of_many_digits_is_not_shown_in_full(self) -> None:
        with pytest.raises(InputError) as caught:
            rational(Decimal("1." + "1" * 5000), "here")
        assert len(str(caught.value)) < 300

    @pytest.mark.parametrize("written", [-1, "-1/3", -1e-9, Decimal("-0.5")])
    def test_a_negative_number_where_none_is_allowed(self, written: object) -> None:
        with pytest.raises(InputError, match="is negative"):
            non_negative(written, "here")

    def test_a_negative_number_of_many_digits(self) -> None:
        with pytest.raises(InputError):
            non_negative(Decimal("-" + "1" * 5000 + ".5"), "here")

    def test_zero_is_not_negative(self) -> None:
        assert non_negative("-0.0", "here") == 0

    @given(fractions)
    def test_round_trip(self, value: Fraction) -> None:
        assert rational(str(value)) == value

    @given(st.text() | st.binary() | st.floats() | st.decimals())
    def test_no_other_error_than_an_input_error(self, written: object) -> None:
        with suppress(InputError):
            assert isinstance(rational(written), Fraction)


class TestArray:
    @given(st.lists(fractions))
    def test_keeps_its_values(self, values: list[Fraction]) -> None:
        array = RationalArray.from_fractions(values)
        assert len(array) == len(values)
        assert array.fractions() == values
        assert [array[i] for i in range(len(values))] == values
        assert array.sum() == sum(values)

    @given(st.lists(st.integers(0) | st.fractions(0), min_size=1))
    def test_of_mixed_numbers(self, values: list[int | Fraction]) -> None:
        assert RationalArray.of(values).fractions() == values

    def test_small_numbers_take_eight_bytes(self) -> None:
        assert RationalArray.of([1, 2, 3]).numerators.dtype == np.int64
        assert RationalArray.of([Fraction(1, 3), "0.5"]).numerators.dtype == np.int64

    @pytest.mark.parametrize("large", [2**63, 10**400, Fraction(1, 3**60)])
    def test_large_numbers_stay_exact(self, large: int | Fraction) -> None:
        array = RationalArray.of([large, Fraction(1, 7)])
        assert array.fractions() == [large, Fraction(1, 7)]

    def test_integers_are_reduced(self) -> None:
        array = RationalArray.from_integers([2, 4], 6)
        assert array.denominator == 3
        assert array.numerators.tolist() == [1, 2]

    @pytest.mark.parametrize("bad", [-1, "x", None, True, Fraction(-1, 2)])
    def test_names_the_bad_entry(self, bad: object) -> None:
        with pytest.raises(InputError) as caught:
            RationalArray.of([1, bad], "vertices[{}].ops".format)
        assert caught.value.place == "vertices[1].ops"

    def test_shapes_and_picks(self) -> None:
        array = RationalArray.from_fractions([Fraction(i, 2) for i in range(6)]).reshape(2, 3)
        assert array[1, 2] == Fraction(5, 2)
        assert array.take(np.array([1])).fractions() == [Fraction(3, 2), 2, Fraction(5, 2)]
        assert RationalArray.zeros(2, 2).fractions() == [0, 0, 0, 0]

    def test_a_sum_may_outgrow_64_bits(self) -> None:
        array = RationalArray.of([2**62, 2**62, 2**62])
        assert array.sum() == 3 * 2**62
        assert array.sum(np.array([0, 1])) == 2**63

    def test_a_sum_of_nothing(self) -> None:
        assert RationalArray.of([]).sum() == 0
        assert RationalArray.of([1]).sum(np.array([], dtype=np.int64)) == 0

    @given(st.lists(st.fractions(-1000, 1000, max_denominator=1000)))
    def test_floats_are_near(self, values: list[Fraction]) -> None:
        floats = RationalArray.from_fractions(values).floats
        assert floats.tolist() == pytest.approx([float(value) for value in values], rel=1e-15)

    def test_floats_of_large_numbers(self) -> None:
        array = RationalArray.from_fractions([Fraction(10**400), Fraction(1, 10**400)])
        assert array.floats.tolist() == [math.inf, 0.0]
        assert RationalArray.of([10**20, Fraction(1, 10**20)]).floats.tolist() == [1e20, 1e-20]


def test_messages_leave_out_fractions_of_large_numbers() -> None:
    assert rounded(Fraction(10**7, 3), up=True) == "3333334"
    assert rounded(Fraction(10**7, 3), up=False) == "3333333"
    assert rounded(Fraction(7, 3), up=True) == "7/3"
    assert rounded(Fraction(10**7), up=True) == "10000000"
