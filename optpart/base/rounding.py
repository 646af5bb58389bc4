"""Numbers for people: short, and never rounded to a better value.

What a method found or needs (makespans, traffic, loads) is rounded up, and so are gaps and ratios;
bounds, and whatever is at least something, are rounded down. Short numbers are exact. All figures
in tables, lines, pictures and ``repr`` pass through here.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

#: From here on, digits are in groups; from there on, there is an exponent.
_GROUPED, _LONGEST = 10**6, 10**18

#: A float stands for the shortest decimal that reads as it.
Figure = Fraction | int | float


def number(value: Figure | None, *, up: bool, digits: int = 6) -> str:
    """Return a number with some significant digits, or all those of its integer part.

    Parameters
    ----------
    up : bool
        Direction of rounding: up for makespans and the like, down for bounds.
    """
    if value is None:
        return "–"
    exact = _exact(value)
    if abs(exact) >= _GROUPED and abs(exact) < _LONGEST:
        return f"{math.ceil(exact) if up else math.floor(exact):,}"
    if exact.denominator == 1 and abs(exact) < _LONGEST:
        return str(exact.numerator)
    context = Context(prec=digits, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    rounded = context.divide(Decimal(exact.numerator), Decimal(exact.denominator))
    if abs(rounded.adjusted()) < 9:
        return f"{rounded.normalize():f}"
    return f"{rounded:.{digits - 1}E}"


def fixed(value: Figure, places: int, *, up: bool) -> str:
    """Return a number with some digits after the point."""
    scaled = _exact(value) * 10**places
    whole = math.ceil(scaled) if up else math.floor(scaled)
    before, after = divmod(abs(whole), 10**places)
    return f"{'-' if whole < 0 else ''}{before}" + (f".{after:0{places}}" if places else "")


def percent(value: Figure | None, *, up: bool = True) -> str:
    """Return a share in percent; ``0`` only for an exact 0."""
    if value is None:
        return "–"
    if math.isinf(value):
        return "∞"
    exact = _exact(value)
    if exact == 0:
        return "0"
    if 0 < exact < Fraction(1, 10_000):
        return "<0.01%" if up else ">0%"
    return f"{fixed(100 * exact, 2 if exact < 1 else 0, up=up)}%"


def between(makespan: Fraction | None, bound: Fraction | None) -> tuple[str, str]:
    """Return a least value found, rounded up, and its bound, rounded down; equal ones are alike."""
    shown = number(makespan, up=True)
    if makespan is None or bound is None:
        return shown, number(bound, up=False)
    return shown, shown if bound == makespan else number(bound, up=False)


def double(value: Fraction, *, up: bool) -> float:
    """Return the nearest float that, as it is written, is not below a number, or not above it."""
    nearest = float(value)
    written = _exact(nearest)
    if written < value if up else written > value:
        return math.nextafter(nearest, math.inf if up else -math.inf)
    return nearest


def _exact(value: Figure) -> Fraction:
    return Fraction(repr(float(value))) if isinstance(value, float) else Fraction(value)
