"""Numbers for people: short, and never rounded to a better value."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from rich.text import Text

from optpart.escaping import visible

_DIGITS = 6


def number(value: Fraction | None, *, up: bool) -> str:
    """Return a rational with six significant digits.

    Parameters
    ----------
    up : bool
        Direction of rounding: up for makespans and the like, down for bounds.
    """
    if value is None:
        return "–"
    if value.denominator == 1 and abs(value) < 10**9:
        return str(value.numerator)
    context = Context(prec=_DIGITS, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    rounded = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    return f"{rounded.normalize():f}" if abs(rounded.adjusted()) < 9 else f"{rounded:.5E}"


def remark(text: str) -> Text:
    """Return a remark for a table: on one line, cut if there is no room, and without markup."""
    return Text(visible(text), no_wrap=True, overflow="ellipsis")


def infeasible(why: str) -> str:
    """Say that an instance is proven to have no schedule."""
    return f"INFEASIBLE: {why}"


def percent(value: float | None) -> str:
    """Return a share in percent; ``0`` only for an exact 0."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    if value < 0.00005:
        return "<0.01%"
    return f"{100 * value:.2f}%" if value < 1 else f"{100 * value:.0f}%"


def seconds(value: float) -> str:
    """Return a duration with its unit."""
    if value < 0.001:
        return "<1 ms"
    return f"{1000 * value:.0f} ms" if value < 0.9995 else f"{value:.1f} s"
