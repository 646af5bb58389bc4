"""The gap of a value to its proven bound."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from optpart.rounding import double

# Commands that only list known values load this module without numpy.
if TYPE_CHECKING:
    from optpart.solution.goal import Objective


def objective_gap(
    objective: Objective,
    makespan: tuple[Fraction | None, Fraction | None],
    traffic: tuple[Fraction | None, Fraction | None],
    bottleneck: tuple[Fraction | None, Fraction | None] = (None, None),
) -> float | None:
    """Return the gap of a result from makespan, traffic and bottleneck, each with its bound."""
    if objective == "bottleneck":
        return gap(*bottleneck)
    closed = makespan[0] == makespan[1]
    if objective == "makespan" or (objective == "lexicographic" and not closed):
        return gap(*makespan)
    return gap(*traffic)


def gap(value: Fraction | None, bound: Fraction | None) -> float | None:
    """Return the relative distance of a value from a bound; ``None`` if either is unknown.

    It is rounded up, so that it is 0.0 only if the two are equal.
    """
    if value is None or bound is None:
        return None
    if value == bound:
        return 0.0
    return double((value - bound) / value, up=True)
