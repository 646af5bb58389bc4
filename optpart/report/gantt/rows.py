"""The rows of the devices, and shapes shared by everything drawn on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from optpart.report.gantt.chart import Chart, Floats
from optpart.report.gantt.page import Page, idle_label, label_size
from optpart.report.gantt.style import FAINT, INK, MARGIN, RIGHT, SMALL, TRACK
from optpart.report.gantt.words import short, text_width
from optpart.rounding import number

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes


_MOST_SHAPES = 20_000


def as_image(shapes: int) -> bool:
    """Return whether to embed the shapes in an SVG as an image, because there are too many."""
    return shapes > _MOST_SHAPES


def set_time_axis(axes: Axes, chart: Chart) -> None:
    """Format the time axis, in the same way for all axes of the chart."""
    axes.set_xlim(0, chart.limit)
    if not chart.makespan and not chart.bound:
        axes.set_xticks([0])
    axes.grid(axis="x", color="#e0e0e0", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(axis="both", labelsize=SMALL, length=3, color="#b0b0b0", labelcolor=INK)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color("#b0b0b0")


def draw_rows(axes: Axes, chart: Chart, page: Page) -> None:
    """Draw a track for every device in use, with its name and utilisation."""
    set_time_axis(axes, chart)
    size, used, idle = label_size(page.row), len(chart.used), page.step if chart.idle else 0
    axes.set_ylim(used + idle - 0.5, -0.5)
    axes.tick_params(axis="y", length=0, pad=8)  # room for a diamond at time 0
    lengths = np.full(used, chart.span)
    add_bars(axes, 0 * lengths, lengths, np.arange(used), page.bar, "devices", facecolors=TRACK)
    rows = range(0, used - idle // 2, page.step)
    ticks: list[float] = list(rows)
    labels = [chart.device_label(chart.used[row]) for row in rows]
    aligned: dict[str, Any] = {
        "transform": axes.get_yaxis_transform(),
        "va": "center_baseline",
        "fontsize": size,
    }
    for row in rows:
        axes.text(
            page.beyond(page.plot + RIGHT - MARGIN),
            row,
            f"{number(100 * chart.busy[chart.used[row]], up=False, digits=2)}%",
            ha="right",
            color=INK,
            **aligned,
        )
    if idle:
        ticks.append(used + (idle - 1) / 2)
        labels.append(idle_label(chart))
        backing = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
        names = _listed(chart.idle, size, page.plot * 72 - 12)
        axes.text(
            page.beyond(0.05), ticks[-1], names, color=FAINT, bbox=backing, zorder=6, **aligned
        )
    axes.set_yticks(ticks, labels, fontsize=size, color=INK)


def _listed(names: Sequence[str], size: float, room: float) -> str:
    """Return a list of as many names as fit."""
    text = ""
    for i, name in enumerate(names):
        longer = f"{text}, {short(name, 20)}" if i else short(name, 20)
        if text_width(f"{longer}, …", size) > room:
            return f"{text}, …"
        text = longer
    return text


def add_bars(
    axes: Axes, start: Floats, end: Floats, row: NDArray[Any], height: float, name: str, **look: Any
) -> None:
    """Add rectangles as one collection; ``name`` is the id of its group in an SVG."""
    from matplotlib.collections import PolyCollection

    x = np.stack([start, end, end, start], axis=1)
    low, high = row - height / 2, row + height / 2
    corners = np.stack([x, np.stack([low, low, high, high], axis=1)], axis=2)
    bars = PolyCollection(
        list(corners),
        gid=name,
        rasterized=as_image(len(corners)),
        **{"zorder": 0.4, "linewidths": 0, **look},
    )
    axes.add_collection(bars, autolim=False)


def key(label: str, **look: Any) -> Artist:
    """Return a line for a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], label=label, **{"color": INK, **look})
