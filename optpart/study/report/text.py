"""Remarks and durations for people."""

from __future__ import annotations

from rich.text import Text

from optpart.base.escaping import visible
from optpart.base.rounding import number
from optpart.solution.claim import Claim
from optpart.solution.goal import bound_of


def claimed(claim: Claim) -> str:
    """Say what a file claims, and which file."""
    parts = ["no schedule"] if claim.infeasible else []
    parts += [
        f"{bound_of(measure)} {number(value, up=False)}" for measure, value in claim.bounds.items()
    ]
    return f"{' and '.join(parts)} {claim}"


def remark(text: str) -> Text:
    """Return a remark for a table: on one line, cut if there is no room, and without markup."""
    return Text(visible(text), no_wrap=True, overflow="ellipsis")


def infeasible(why: str) -> str:
    """Say that an instance is proven to have no schedule."""
    return f"INFEASIBLE: {why}"


def seconds(value: float) -> str:
    """Return a duration with its unit."""
    if value < 0.001:
        return "<1 ms"
    return f"{1000 * value:.0f} ms" if value < 0.9995 else f"{value:.1f} s"
