"""Quantities are exact, whatever unit they are written in."""

from fractions import Fraction

import pytest

from optpart.base.errors import InputError
from optpart.problem.units import Dimension, quantity, with_unit, written


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("24 GiB", "size", 24 * 2**30),
        ("24GB", "size", 24 * 10**9),
        ("1 TB", "size", 10**12),
        ("1 TiB", "size", 2**40),
        ("31.5 GB/s", "bandwidth", Fraction(63, 2)),
        ("10 Gbit/s", "bandwidth", Fraction(5, 4)),
        ("10 us", "time", 10_000),
        ("1e-3 s", "time", 10**6),
        ("35.6 TFLOP/s", "speed", 35_600),
        ("284 TOP/s", "speed", 284_000),
        (5, "time", 5),
        ("1/3", "time", Fraction(1, 3)),
        ("0.1", "size", Fraction(1, 10)),
    ],
)
def test_reads_quantities_exactly(text: object, dimension: Dimension, value: Fraction) -> None:
    assert quantity(text, dimension, "x") == value


@pytest.mark.parametrize(
    ("text", "dimension", "part"),
    [
        ("24 Gb", "size", "'Gb' is no unit of size; write, for instance, \"24 GiB\""),
        ("24 GB", "time", "'GB' is no unit of time"),
        ("10 GB", "bandwidth", "'GB' is no unit of bandwidth"),
        ("-1 GB", "size", "-1 is negative"),
        ("1..2 GB", "size", "'1..2' is not a number"),
        ("much", "size", "'much' is not a number"),
        (True, "size", "True is not a number"),
    ],
)
def test_a_wrong_quantity_is_one_line(text: object, dimension: Dimension, part: str) -> None:
    with pytest.raises(InputError) as error:
        quantity(text, dimension, "memory")
    assert str(error.value).startswith("memory: ")
    assert part in str(error.value)


@pytest.mark.parametrize(
    ("value", "dimension", "text"),
    [
        (Fraction(35_600), "speed", "35.6 TFLOP/s"),
        (Fraction(936), "bandwidth", "936 GB/s"),
        (Fraction(24 * 2**30), "size", "25.77 GB"),
        (Fraction(5000), "time", "5 us"),
        (Fraction(0), "time", "0 ns"),
    ],
)
def test_writes_quantities_for_people(value: Fraction, dimension: Dimension, text: str) -> None:
    assert written(value, dimension) == text


def test_a_unit_stands_behind_a_number_where_both_are_known() -> None:
    assert with_unit("1,234", "ns") == "1,234 ns"
    assert with_unit("5", "us") == "5 µs"
    assert with_unit("5", "") == "5"
    assert with_unit("–", "ns") == "–"
