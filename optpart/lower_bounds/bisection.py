"""Search for the least length that is not refuted."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from optpart.base import clock
from optpart.kernels.horizon import horizon_without_queues
from optpart.kernels.ticks import Grid

#: A step is at most this part of the way to the top, except for the shortest ones.
_NEARING = 4

#: A step ends at a length that can be expected to be refuted in this part of the time that is left:
#: one that is given up proves nothing.
_HOPED = 0.5


def least_not_refuted(
    refuted: Callable[[int], bool],
    grid: Grid,
    least: int,
    *,
    deadline: float = np.inf,
    makespan: Fraction | None = None,
    part: int = 2**14,
    first: int = 128,
    divisor: int = 2,
) -> int | None:
    """Raise a lower bound to the least length that is not refuted.

    Parameters
    ----------
    refuted : function of a length in ticks
        ``True`` proves that no schedule has at most that length. Nothing else is required: the
        bound is one more than the greatest length refuted. If longer lengths can be refuted while a
        shorter one is not, the search merely stops early.
    least : int
        A lower bound to start from.
    makespan : Fraction, optional
        Makespan of a schedule; the search goes no higher.
    part : int
        On a rounded grid, the search ends at a precision of ``least / part``.
    first : int
        The first step is this part of ``least``; it doubles until a length is not refuted.
    divisor : int
        Into how many parts an interval is divided. With more than two, there are more lengths that
        are refuted and fewer that are not, which pays where these take longer.

    Returns
    -------
    int or None
        A lower bound in ticks; ``None`` if even the horizon is refuted, so that there is no
        schedule at all.
    """
    top = horizon_without_queues(grid) + 1 if makespan is None else grid.floor(makespan)
    fine = 0 if grid.exact else least // part
    lower, upper = least, top
    step = shortest = max(1, least // first)
    effort = _Effort()
    while upper - lower > fine and clock.now() < deadline:
        # Far towards the top, lengths take longest, and are least likely to be refuted. From a
        # length that is not refuted on, the interval is divided.
        longest = max(shortest, (upper - lower) // _NEARING)
        width = min(step, longest) if upper == top else max(1, (upper - lower) // divisor)
        begin = clock.now()
        width = max(min(width, shortest), effort.reach(width, _HOPED * (deadline - begin)))
        trial = min(lower + width, upper) - 1
        step = 2 * width
        if refuted(trial):
            effort.note(trial + 1 - lower, clock.now() - begin)
            lower = trial + 1
        else:
            upper = trial
    return None if makespan is None and lower == top else lower


class _Effort:
    """The time of a refutation by the length, fitted to the last two that succeeded."""

    def __init__(self) -> None:
        self._width = 0
        self._seconds = self._before = math.nan

    def note(self, width: int, seconds: float) -> None:
        """Take note of the time for a length that is so much greater than the one before."""
        self._width, self._before, self._seconds = width, self._seconds, seconds

    def reach(self, width: int, seconds: float) -> int:
        """Return how much greater a length may be, at most ``width``, to take so many seconds.

        By one refutation alone, the growth is not known, so the next step is no greater.
        """
        if math.isnan(self._seconds) or self._seconds <= self._before:
            return width
        if math.isnan(self._before):
            return min(width, self._width)
        if seconds <= self._seconds:
            return 0
        if self._before <= 0.0:
            return width
        steps = math.log(seconds / self._seconds) / math.log(self._seconds / self._before)
        return int(min(width, steps * self._width))


def least_reached(
    reached: Callable[[int], int | None],
    grid: Grid,
    least: int,
    *,
    deadline: float = np.inf,
    makespan: Fraction | None = None,
    part: int,
) -> int | None:
    """Raise a lower bound by bounds of the schedules within a limit.

    Parameters
    ----------
    reached : function of a limit in ticks
        A lower bound of the schedules within the limit; ``None`` if there is none.
    least, makespan
        As for :func:`least_not_refuted`. If the makespan is known, the first limit is just below.
    part : int
        The search ends at a precision of ``least / part``.

    Returns
    -------
    int or None
        A lower bound in ticks; ``None`` if there is no schedule at all.
    """
    top = horizon_without_queues(grid) + 1 if makespan is None else grid.floor(makespan)
    lower, upper = min(least, top), top
    step = max(1, least // 256)
    trial = lower + step - 1 if makespan is None else top - 1
    while lower < upper and clock.now() < deadline:
        value = reached(trial)
        if value is None or value > trial:
            lower = trial + 1
        else:
            lower, upper = max(lower, value), trial
        if upper < top:
            if upper - lower <= lower // part:
                break
            trial = (lower + upper) // 2
        else:
            step *= 2
            trial = min(lower + step, upper) - 1
    return None if makespan is None and lower == top else lower
