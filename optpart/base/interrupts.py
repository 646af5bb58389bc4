"""An interrupt that meets an import or a callback of Python itself comes again afterwards.

Libraries turn an exception in their first lines into errors of other kinds, or end the process;
Python reports and drops one that leaves a finaliser or a callback of its garbage collector.
"""

from __future__ import annotations

import atexit
import signal
import sys
import time
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

#: Seconds until an interrupt is tried again, and at most to wait: a plug-in may never end.
_AGAIN = 0.02
_LONGEST = 10.0


def guard_interrupts() -> None:
    """Install the handler of interrupts, unless they are ignored."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    first: list[float] = []

    def interrupt(_number: int, frame: FrameType | None) -> None:
        first.append(time.monotonic())
        if _importing(frame) and first[-1] - first[0] < _LONGEST:
            signal.setitimer(signal.ITIMER_REAL, _AGAIN)
            return
        first.clear()
        raise KeyboardInterrupt

    report = sys.unraisablehook

    def unraisable(fault: UnraisableHookArgs) -> None:
        if fault.exc_type is KeyboardInterrupt:
            signal.setitimer(signal.ITIMER_REAL, _AGAIN)
        else:
            report(fault)

    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGALRM, interrupt)
    sys.unraisablehook = unraisable
    # Python gives up its handlers before it ends; an alarm after that would kill the process.
    atexit.register(signal.signal, signal.SIGALRM, signal.SIG_IGN)


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
