"""Exact numbers in the data of a page."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from fractions import Fraction

from optpart.problem.rational import RationalArray

#: A number as JSON: a whole one that every double holds, or its exact text and the nearest double.
Encoded = int | list[str | float]

_WHOLE = 2**53


def encoded(value: Fraction) -> Encoded:
    """Return an exact number with what is needed to draw it."""
    if value.denominator == 1 and abs(value.numerator) < _WHOLE:
        return value.numerator
    try:
        near = float(value)
    except OverflowError:
        near = sys.float_info.max if value > 0 else -sys.float_info.max
    return [str(value), near]


def encoded_or_none(value: Fraction | None) -> Encoded | None:
    """Return :func:`encoded`, or ``None`` for no number."""
    return None if value is None else encoded(value)


def encoded_all(values: RationalArray | Iterable[Fraction]) -> list[Encoded]:
    """Return :func:`encoded` of each number."""
    fractions = values.fractions() if isinstance(values, RationalArray) else values
    return [encoded(value) for value in fractions]
