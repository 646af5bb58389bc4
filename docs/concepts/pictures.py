"""Pictures of the concept pages: small enough to be read on a telephone."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from optpart import Instance
    from optpart.solution.schedule import Schedule

# Okabe and Ito's colours, which colour-blind readers can tell apart; vermilion marks bounds.
BLUE, ORANGE, GREEN, YELLOW, PURPLE = "#56b4e9", "#e69f00", "#009e73", "#f0e442", "#cc79a7"
BOUND, INK, GREY, PALE = "#d55e00", "#222222", "#bdbdbd", "#eeeeee"
COLOURS = (BLUE, ORANGE, GREEN, YELLOW, PURPLE)

#: Inches: about the width of a telephone, so that text keeps its size there.
WIDTH = 4.6

_STYLE: dict[Any, Any] = {
    "font.sans-serif": ["DejaVu Sans"],
    "svg.hashsalt": "optpart",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "text.color": INK,
    "hatch.linewidth": 0.8,
}


class Picture:
    """A figure that a notebook shows as SVG."""

    def __init__(self, figure: Figure) -> None:
        target = io.StringIO()
        with mpl.rc_context(_STYLE):
            figure.savefig(
                target, format="svg", facecolor="white", metadata={"Date": None, "Creator": None}
            )
        self._svg = target.getvalue()

    def _repr_svg_(self) -> str:
        return self._svg


def paper(height: float, panels: tuple[int, int] = (1, 1), **options: Any) -> tuple[Figure, Any]:
    """Return a figure of the common width and its axes."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        return figure, figure.subplots(*panels, **options)


def rows(axes: Axes, names: Sequence[str], end: float, label: str = "time") -> None:
    """Prepare axes for bars over time, one row per name, the first on top."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.75)
    axes.set_xlim(0, end)
    axes.set_xlabel(label)
    axes.tick_params(left=False)
    axes.spines["left"].set_visible(False)


def bar(
    axes: Axes, row: float, begin: float, length: float, text: str = "", colour: str = BLUE,
    *, height: float = 0.62, hatch: str | None = None,
) -> None:  # fmt: skip
    """Draw a bar from ``begin``, with a text in it."""
    axes.barh(
        row, float(length), left=float(begin), height=height, color=colour, edgecolor=INK,
        linewidth=0.8, hatch=hatch,
    )  # fmt: skip
    shown = axes.text(float(begin) + float(length) / 2, row, text, ha="center", va="center")
    if hatch is not None:
        shown.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1})


def mark(axes: Axes, at: float, text: str, *, side: str = "right") -> None:
    """Draw a bound as a line across all rows, with a text beside its upper end."""
    axes.axvline(float(at), color=BOUND, linewidth=2)
    right = side == "right"
    axes.annotate(
        text, (float(at), 1.0), (4 if right else -4, 0), xycoords=("data", "axes fraction"),
        textcoords="offset points", ha="left" if right else "right", va="top", color=BOUND,
        weight="bold",
    )  # fmt: skip


def gantt(
    axes: Axes, instance: Instance, schedule: Schedule, *, freed: Sequence[str] = (), first: int = 0
) -> None:
    """Draw the vertices of a schedule, one row per device; ``freed`` ones are hatched."""
    for v, name in enumerate(instance.graph.names):
        d = int(schedule.placement[v])
        bar(
            axes, first + d, float(schedule.start[v]), float(instance.duration(v, d)), name,
            PALE if name in freed else COLOURS[v % len(COLOURS)],
            hatch="///" if name in freed else None,
        )  # fmt: skip
