"""Numbers for people: short, and never rounded to a better value."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from rich.text import Text

from optpart.escaping import visible
from optpart.solution.claim import Claim

_DIGITS = 6

#: From here on, digits are in groups; from there on, there is an exponent.
_GROUPED, _LONGEST = 10**6, 10**18


def number(value: Fraction | None, *, up: bool) -> str:
    """Return a rational with six significant digits, or all those of its integer part.

    Parameters
    ----------
    up : bool
        Direction of rounding: up for makespans and the like, down for bounds.
    """
    if value is None:
        return "–"
    if abs(value) >= _GROUPED and abs(value) < _LONGEST:
        return f"{math.ceil(value) if up else math.floor(value):,}"
    if value.denominator == 1 and abs(value) < _LONGEST:
        return str(value.numerator)
    context = Context(prec=_DIGITS, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    rounded = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    return f"{rounded.normalize():f}" if abs(rounded.adjusted()) < 9 else f"{rounded:.5E}"


def between(makespan: Fraction | None, bound: Fraction | None) -> tuple[str, str]:
    """Return a least value found, rounded up, and its bound, rounded down; equal ones are alike."""
    shown = number(makespan, up=True)
    if makespan is None or bound is None:
        return shown, number(bound, up=False)
    return shown, shown if bound == makespan else number(bound, up=False)


def claimed(claim: Claim) -> str:
    """Say what a file claims, and which file."""
    parts = ["no schedule"] if claim.infeasible else []
    parts += [
        f"{name} {number(value, up=False)}"
        for name, value in (
            ("lower bound", claim.lower_bound),
            ("traffic bound", claim.traffic_bound),
            ("bottleneck bound", claim.bottleneck_bound),
        )
        if value is not None
    ]
    return f"{' and '.join(parts)} {claim}"


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
