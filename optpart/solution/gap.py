"""The gap of a value to its proven bound."""

from __future__ import annotations

from fractions import Fraction

from optpart.base.rounding import double


def gap(value: Fraction | None, bound: Fraction | None) -> float | None:
    """Return the relative distance of a value from a bound; ``None`` if either is unknown.

    It is rounded up, so that it is 0.0 only if the two are equal.
    """
    if value is None or bound is None:
        return None
    if value == bound:
        return 0.0
    return double((value - bound) / value, up=True)
