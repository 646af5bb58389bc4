"""The progress line on standard error."""

from __future__ import annotations

import sys
import time

from optpart.escaping import visible
from optpart.report.text import number, percent
from optpart.solution.result import Progress, gap
from optpart.terminal import note

#: Seconds between lines if standard error is not a terminal.
_QUIET = 10.0


class ProgressLine:
    """A line that is rewritten in place on a terminal, and printed now and then elsewhere."""

    def __init__(self, label: str = "") -> None:
        self.label = label
        self._terminal = sys.stderr.isatty()
        self._width = 0
        self._last = time.monotonic()

    def __call__(self, name: str, step: Progress | None) -> None:
        """Show the progress of a method."""
        text = f"{self.label}{name}"
        if step is not None:
            text += (
                f"  incumbent {number(step.objective, up=True)}"
                f"  bound {number(step.bound, up=False)}"
                f"  gap {percent(gap(step.objective, step.bound))}  {step.seconds:.1f} s"
                f"  {step.remark}".rstrip()
            )
        text = visible(text)
        if self._terminal:
            sys.stderr.write("\r" + text.ljust(self._width))
            sys.stderr.flush()
            self._width = len(text)
        elif time.monotonic() - self._last >= _QUIET:
            note(text)
            self._last = time.monotonic()

    def clear(self) -> None:
        """Remove the line, to make room for results."""
        if self._terminal and self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
            self._width = 0
