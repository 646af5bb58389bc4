"""Transfers: sends, arrows, and the panels of a crowded chart."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from optpart.report.gantt.chart import Chart, Floats
from optpart.report.gantt.page import Page
from optpart.report.gantt.rows import add_bars, key, set_time_axis
from optpart.report.gantt.style import ARROW, INK, PANEL, SEND, SMALL

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_BINS = 600


def draw_sends(axes: Axes, chart: Chart, page: Page) -> list[Artist]:
    """Draw the sends of ``sendrecv``, which occupy the sender; return their legend entries."""
    from matplotlib.patches import Patch

    if not chart.sends.any():
        return []
    begin, row = chart.departure, chart.row[chart.sender]
    look = {"facecolors": SEND, "edgecolors": "white", "zorder": 2}
    rim = 0.0 if chart.crowded else 0.5
    add_bars(axes, begin, begin + chart.sends, row, 0.8 * page.bar, "sends", linewidths=rim, **look)
    return [Patch(facecolor=SEND, label="send")]


def draw_arrows(axes: Axes, chart: Chart, page: Page) -> list[Artist]:
    """Draw transfers as arrows from sender to receiver; return their legend entries."""
    from matplotlib.patches import FancyArrowPatch

    senders, receivers = chart.row[chart.sender], chart.row[chart.receiver]
    # From edge to edge of the bars, so that an arrow crosses no name in its own two rows.
    side = np.sign(receivers - senders) * page.bar / 2
    tails = zip(chart.departure, senders + side, strict=True)
    heads = zip(chart.arrival, receivers - side, strict=True)
    for i, (tail, head) in enumerate(zip(tails, heads, strict=True)):
        arrow = FancyArrowPatch(
            tail,
            head,
            arrowstyle="-|>,head_length=3.2,head_width=1.6",
            mutation_scale=1,
            shrinkA=0,
            shrinkB=0,
            linewidth=0.9,
            color=ARROW,
            alpha=0.85,
            zorder=3,
            gid=f"transfer-{i}",
        )
        axes.add_patch(arrow)
    if not len(senders):
        return []
    return [key("transfer", marker=">", markersize=5, linewidth=0.9, color=ARROW)]


def draw_panels(figure: Figure, chart: Chart, page: Page) -> Axes:
    """Draw the numbers of busy devices and transfers over time; return the lower panel."""
    upper = figure.add_axes(page.box(page.below - PANEL, PANEL - 0.16))
    _draw_count(upper, chart, page, "busy\ndevices", chart.start, chart.end, "#0072b2")
    upper.tick_params(axis="x", labelbottom=False)
    lower = figure.add_axes(page.box(page.below - 2 * PANEL, PANEL - 0.16))
    flights = chart.departure, chart.arrival
    _draw_count(lower, chart, page, "transfers\nin flight", *flights, "#e69f00")
    return lower


def _draw_count(
    axes: Axes, chart: Chart, page: Page, label: str, start: Floats, end: Floats, colour: str
) -> None:
    """Draw the number of active intervals over time."""
    set_time_axis(axes, chart)
    edges, mean = _mean_active(start, end, chart.span)
    axes.stairs(mean, edges, fill=True, color=colour, gid="-".join(label.split()))
    top = max(1, math.ceil(round(float(mean.max()), 6)))
    axes.set_ylim(0, 1.08 * top)
    axes.set_yticks([0, top], ["0", f"{top:,}"])
    axes.text(
        page.beyond(-0.45),
        0.5,
        label,
        transform=axes.transAxes,
        ha="right",
        va="center",
        fontsize=SMALL,
        color=INK,
    )


def _mean_active(start: Floats, end: Floats, span: float) -> tuple[Floats, Floats]:
    """Return the edges of equal time bins, and the mean number of active intervals in each."""
    edges = np.linspace(0, span, _BINS + 1)
    elapsed = _time_since(start, edges) - _time_since(end, edges)
    return edges, np.maximum(np.diff(elapsed) * _BINS / span, 0)


def _time_since(moments: Floats, at: Floats) -> Floats:
    """Return, for each time, the sum of the times since all earlier moments."""
    moments = np.sort(moments)
    before = np.searchsorted(moments, at)
    total = np.concatenate(([0.0], np.cumsum(moments)))
    return np.asarray(before * at - total[before], dtype=np.float64)
