"""The time limit of strategies, which are called with an instance and nothing else.

Most strategies take less time than it takes to verify their schedule, and never look at the clock.
Those that may take much longer ask here between pieces of work of about a tenth of a second.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from optpart.errors import OptpartError

#: Seconds beyond the limit in which a strategy may come to its end; a limit of 0 gives it these.
GRACE = 0.25


class OutOfTimeError(OptpartError):
    """A strategy has found nothing within its time limit."""


@dataclass
class Limit:
    """The time limit of a block of code.

    Attributes
    ----------
    deadline : float
        On the clock of :func:`time.perf_counter`.
    reached : bool
        Whether code in the block has seen that the time is up, and left out work.
    """

    deadline: float
    reached: bool = False


class _Now(threading.local):
    limit: Limit | None = None


_now = _Now()


@contextmanager
def limited(seconds: float) -> Iterator[Limit]:
    """Limit the strategies that this thread calls in a block; limits around it hold as well."""
    outer = _now.limit
    deadline = time.perf_counter() + seconds
    _now.limit = Limit(deadline if outer is None else min(deadline, outer.deadline))
    try:
        yield _now.limit
    finally:
        _now.limit = outer


def seconds_left() -> float:
    """Return the seconds until the limit, infinite without one, and at least 0."""
    limit = _now.limit
    return math.inf if limit is None else max(0.0, limit.deadline - time.perf_counter())


def is_time_up() -> bool:
    """Return whether the limit and the grace period are over: the caller leaves out the rest."""
    limit = _now.limit
    if limit is not None and time.perf_counter() > limit.deadline + GRACE:
        limit.reached = True
        return True
    return False


def check_time() -> None:
    """Raise :class:`OutOfTimeError` if the limit and the grace period are over."""
    if is_time_up():
        raise OutOfTimeError("time limit")
