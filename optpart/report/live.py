"""Progress while a run is under way: in a cell of a notebook, or on a line of a terminal."""

from __future__ import annotations

import sys
import time
from typing import Any

from optpart.escaping import visible
from optpart.languages import to_html
from optpart.report.progress import ProgressLine, said
from optpart.solution.result import Progress

#: Seconds between updates of a cell.
_PAUSE = 0.2


def live(label: str = "") -> Live:
    """Return a ``watch`` that shows progress, for :func:`optpart.solve` and its like.

    In a notebook, the cell has one line of text that changes; in IPython and in terminals, it is
    the last line, and where there is no terminal, a line every ten seconds.
    """
    return Live(label)


class Live:
    """Shows the progress of runs; call it with a step, or with a run and its step."""

    def __init__(self, label: str = "") -> None:
        self._label = label
        self._display = _cell()
        self._line = ProgressLine(label)
        self._shown = -_PAUSE

    def __call__(self, run: object, step: Progress | None = None) -> None:
        """Show a step; a run may come before it."""
        if isinstance(run, Progress):
            name, step = "", run
        else:
            name = run if isinstance(run, str) else f"{getattr(run, 'method', run)}"
        if self._display is None:
            self._line(name, step)
        elif time.monotonic() - self._shown >= _PAUSE:
            self._shown = time.monotonic()
            self._display.update(_Text(said(f"{self._label}{name}", step)))

    def clear(self) -> None:
        """Remove the line of a terminal; a cell keeps what it said last."""
        self._line.clear()


class _Text:
    """Text that notebooks show as it is."""

    def __init__(self, text: str) -> None:
        self.text = visible(text)

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f"<pre>{to_html(self.text)}</pre>"


def _cell() -> Any:
    """Return a display of the running cell; ``None`` outside of notebooks."""
    # Whoever runs in a notebook has IPython loaded.
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if getattr(shell, "kernel", None) is None:
        return None
    from IPython.display import display

    return display(_Text("…"), display_id=True)  # type: ignore[no-untyped-call]
