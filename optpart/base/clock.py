"""The clock of all time limits, and the limit of strategies, which have no argument for it.

Most strategies take less time than it takes to verify their schedule, and never look at the clock.
Those that may take much longer ask here between pieces of work of about a tenth of a second.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from optpart.base.errors import OptpartError

#: Seconds beyond the limit in which a strategy may come to its end; a limit of 0 gives it these.
GRACE = 0.25


#: Seconds of a time limit that are kept for printing the result, and to end.
END = 0.05


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


def now() -> float:
    """Return the seconds since some moment."""
    return time.perf_counter()


def start() -> float:
    """Return when this process began, before it imported anything, on the clock of :func:`now`."""
    with suppress(OSError, ValueError, IndexError), open("/proc/self/stat", "rb") as stat:
        ticks = int(stat.read().rpartition(b")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
        return now() - max(age, 0.0)
    return now() - time.process_time()


_command: float | None = None


@contextmanager
def command(begin: float | None) -> Iterator[None]:
    """Note when the command that runs in a block began; now by default."""
    global _command
    _command = now() if begin is None else begin
    try:
        yield
    finally:
        _command = None


def command_begin() -> float:
    """Return when the command that runs now began, as far as anybody has said so."""
    return now() if _command is None else _command


def remaining(limit: float) -> float:
    """Return what is left of the time limit of a command, but for a moment to end."""
    return max(0.0, limit + command_begin() - now() - END)


@contextmanager
def limited(seconds: float) -> Iterator[Limit]:
    """Limit the strategies that this thread calls in a block; limits around it hold as well."""
    outer = _of_thread.limit
    deadline = now() + seconds
    limit = Limit(deadline if outer is None else min(deadline, outer.deadline))
    with under(limit):
        yield limit


def current() -> Limit | None:
    """Return the limit of this thread."""
    return _of_thread.limit


@contextmanager
def under(limit: Limit | None) -> Iterator[None]:
    """Have a limit in a block, which may be that of another thread, instead of this thread's."""
    outer = _of_thread.limit
    _of_thread.limit = limit
    try:
        yield
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
