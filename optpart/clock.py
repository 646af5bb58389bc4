"""The clock of all time limits, and the limit of strategies, which have no argument for it.

The clock stands still while code is compiled, or loaded from where it is kept: that happens once
and says nothing about a method.

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
        On the clock of :func:`now`.
    reached : bool
        Whether code in the block has seen that the time is up, and left out work.
    """

    deadline: float
    reached: bool = False


class _OfThread(threading.local):
    limit: Limit | None = None


_of_thread = _OfThread()


class _Clock:
    """A clock that can stand still; it is the same for all threads.

    Attributes
    ----------
    stops : int
        How many blocks, of any threads, now keep it still.
    since : float
        When it began to stand still.
    stood : float
        Seconds that it stood still before.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.stops, self.since, self.stood = 0, 0.0, 0.0

    def now(self) -> float:
        with self.lock:
            return (self.since if self.stops else time.perf_counter()) - self.stood

    def stop(self) -> None:
        with self.lock:
            if not self.stops:
                self.since = time.perf_counter()
            self.stops += 1

    def go_on(self) -> None:
        with self.lock:
            self.stops -= 1
            if not self.stops:
                self.stood += time.perf_counter() - self.since


_clock = _Clock()

#: Return the seconds since some moment, without those in which the clock stood still.
now = _clock.now


@contextmanager
def stopped() -> Iterator[None]:
    """Let the clock stand still in a block."""
    _clock.stop()
    try:
        yield
    finally:
        _clock.go_on()


@contextmanager
def limited(seconds: float) -> Iterator[Limit]:
    """Limit the strategies that this thread calls in a block; limits around it hold as well."""
    outer = _of_thread.limit
    deadline = now() + seconds
    _of_thread.limit = Limit(deadline if outer is None else min(deadline, outer.deadline))
    try:
        yield _of_thread.limit
    finally:
        _of_thread.limit = outer


def seconds_left() -> float:
    """Return the seconds until the limit, infinite without one, and at least 0."""
    limit = _of_thread.limit
    return math.inf if limit is None else max(0.0, limit.deadline - now())


def is_time_up() -> bool:
    """Return whether the limit and the grace period are over: the caller leaves out the rest."""
    limit = _of_thread.limit
    if limit is not None and now() > limit.deadline + GRACE:
        limit.reached = True
        return True
    return False


def check_time() -> None:
    """Raise :class:`OutOfTimeError` if the limit and the grace period are over."""
    if is_time_up():
        raise OutOfTimeError("time limit")
