"""Measured times as whole nanoseconds, and what a reader has to say about rounding them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from optpart.problem.rational import non_negative

SECOND, MILLISECOND = 10**9, 10**6


class Times:
    """Reads times in one unit; counts those that it had to round.

    Attributes
    ----------
    unit : int
        Nanoseconds per unit, such as :data:`SECOND`.
    rounded : int
    """

    def __init__(self, unit: int) -> None:
        self.unit = unit
        self.rounded = 0

    def read(self, value: object, place: str) -> Fraction:
        """Return a time ``≥ 0`` in whole nanoseconds, rounded to the nearest."""
        return self.whole([non_negative(value, place)])

    def whole(self, times: Iterable[Fraction]) -> Fraction:
        """Return the sum of times in the unit as whole nanoseconds."""
        exact = sum(times, Fraction(0)) * self.unit
        nearest = Fraction(round(exact))
        self.rounded += nearest != exact
        return nearest

    def remarks(self) -> Sequence[str]:
        """Return a sentence if times were rounded."""
        if not self.rounded:
            return ()
        if self.rounded == 1:
            return ("One time was rounded to whole nanoseconds.",)
        return (f"{self.rounded} times were rounded to whole nanoseconds.",)
