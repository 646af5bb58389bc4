"""Deadlines of the dynamic programmes, which check the clock between rows of their tables."""

from __future__ import annotations

import math
from collections.abc import Iterator

from optpart.base import clock

#: No limit of time.
NEVER = math.inf

#: Steps of compiled code between two looks at the clock: a small part of a second.
_STEPS = 10**8


class TimeUpError(Exception):
    """The deadline has passed before anything was found."""


def check(deadline: float) -> None:
    """Raise :class:`TimeUpError` after a deadline on the clock of :func:`~.clock.now`."""
    if clock.now() > deadline:
        raise TimeUpError


def portions(rows: int, steps: int, deadline: float) -> Iterator[tuple[int, int]]:
    """Yield the rows of a table in portions, with a look at the clock before each.

    Parameters
    ----------
    steps : int
        The most steps of compiled code that a row takes.
    """
    size = max(1, _STEPS // max(1, steps))
    for begin in range(0, rows, size):
        check(deadline)
        yield begin, min(rows, begin + size)
