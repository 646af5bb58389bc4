"""An interrupt that meets an import waits until that is done.

Libraries turn an exception in their first lines into errors of other kinds, or end the process.
"""

from __future__ import annotations

import signal
import time
from types import FrameType

#: Seconds until an interrupt is tried again, and at most to wait: a plug-in may never end.
_AGAIN = 0.02
_LONGEST = 10.0


def let_imports_finish() -> None:
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

    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGALRM, interrupt)


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
