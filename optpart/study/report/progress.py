"""Progress while a run is under way: on a line of a terminal, or in a cell of a notebook."""

from __future__ import annotations

import sys
import time
from typing import Any

from rich.cells import cell_len

from optpart.base.escaping import shortened, visible
from optpart.base.languages import to_html
from optpart.base.rounding import between, percent
from optpart.base.terminal import columns_of_errors, erase, note, rewrite
from optpart.solution.gap import gap
from optpart.solution.result import Progress

#: Seconds between lines if standard error is not a terminal.
_QUIET = 10.0

#: Seconds between updates of a cell.
_PAUSE = 0.2

#: A name is not shortened further as long as there are several figures.
_NAME = 8


class ProgressLine:
    """A line that is rewritten in place on a terminal, and printed now and then elsewhere.

    Parameters
    ----------
    label : str
        What stands before the name of each method.
    seeks : bool
        Whether a schedule is sought; otherwise, bounds are all that there is to show.
    """

    def __init__(self, label: str = "", *, seeks: bool = True) -> None:
        self.label = label
        self.seeks = seeks
        self._terminal = sys.stderr.isatty()
        self._last = time.monotonic()

    def __call__(self, name: str, step: Progress | None) -> None:
        """Show the progress of a method."""
        name = f"{self.label}{name}"
        if self._terminal:
            # A line as wide as the terminal would already wrap on some.
            room = columns_of_errors() - 1
            text = said(name, step, room, seeks=self.seeks)
            rewrite(text, cell_len(text), room)
        elif time.monotonic() - self._last >= _QUIET:
            note(said(name, step, seeks=self.seeks))
            self._last = time.monotonic()

    def clear(self) -> None:
        """Remove the line, to make room for results."""
        erase()


def _fitted(text: str, room: int) -> str:
    """Shorten text to so many columns; wide characters take two."""
    text = shortened(text, max(room, 1))
    while len(text) > 1 and cell_len(text) > room:
        text = shortened(text, len(text) - 1)
    return text


def position(done: int, total: int, elapsed: float) -> str:
    """Say which of several instances is under way and, once one is done, about how long all take.

    Parameters
    ----------
    done, total : int
        Instances.
    elapsed : float
        Seconds since the first began.
    """
    where = f"{done + 1}/{total}"
    if total < 2:
        return ""
    if not done:
        return f"[{where}] "
    left = elapsed / done * (total - done)
    for unit, seconds in (("h", 3600), ("min", 60)):
        if left >= 2 * seconds:
            return f"[{where}, about {left / seconds:.0f} {unit} left] "
    return f"[{where}, about {left:.0f} s left] "


def said(name: str, step: Progress | None, width: int | None = None, *, seeks: bool = True) -> str:
    """Return progress on one line.

    Parameters
    ----------
    width : int, optional
        The line has at most so many columns. The remark goes first, then the name is shortened,
        then whole figures are left out from the end; none is ever cut.
    seeks : bool
        See :class:`ProgressLine`.
    """
    name = visible(name)
    if step is None:
        return name if width is None else _fitted(name, width)
    incumbent, bound = between(step.objective, step.bound)
    figures = [f"  bound {bound}", f"  {step.seconds:.1f} s"]
    if seeks:
        figures.insert(0, f"  incumbent {incumbent}")
        figures.insert(2, f"  gap {percent(gap(step.objective, step.bound))}")
    remark = visible(f"  {step.remark}").rstrip()
    if width is None:
        return f"{name}{''.join(figures)}{remark}"
    while len(figures) > 1 and len("".join(figures)) + min(len(name), _NAME) > width:
        del figures[-1]
    text = "".join(figures)
    if len(text) >= width:
        return _fitted(name, width)
    named = _fitted(name, width - len(text))
    whole = f"{named}{text}{remark}"
    return whole if cell_len(whole) <= width else f"{named}{text}"


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
