"""The bars and names of vertices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from optpart.report.gantt.chart import Chart
from optpart.report.gantt.colours import Colouring
from optpart.report.gantt.page import Page
from optpart.report.gantt.rows import add_bars, as_image, key
from optpart.report.gantt.style import INK, SMALL, SMALLEST
from optpart.report.gantt.words import short, text_width

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes


def draw_vertices(axes: Axes, chart: Chart, page: Page, colouring: Colouring) -> list[Artist]:
    """Draw bars, and ticks for vertices without duration; return their legend entries."""
    row = chart.row[chart.device]
    colour = np.array(colouring.colours)[colouring.of]
    bars = np.flatnonzero(~chart.instant)
    start, end = chart.start[bars], chart.end[bars]
    # A white rim separates neighbours, but would hide bars of a few pixels.
    wide = len(bars) > 0 and float(np.median(end - start)) * page.points(chart) > 6
    look = {"edgecolors": "white", "linewidths": 0.5} if wide else {"edgecolors": "face"}
    look = {"linewidths": 0.3, **look}
    faces = colour[bars].tolist()
    add_bars(axes, start, end, row[bars], page.bar, "vertices", facecolors=faces, zorder=2, **look)
    _label_vertices(axes, chart, page, colouring)
    ticks = np.flatnonzero(chart.instant)
    if not len(ticks):
        return []
    # A diamond, the milestone of Gantt charts, takes too much room in a crowded chart.
    mark: dict[str, Any] = {"marker": "|", "color": INK}
    if not chart.crowded:
        mark = {"marker": "d", "color": colour[ticks].tolist(), "edgecolors": INK}
    axes.scatter(
        chart.start[ticks],
        row[ticks],
        s=min(14.0, page.bar_points + 2) ** 2,
        linewidths=0.8,
        zorder=5,
        clip_on=False,
        rasterized=as_image(len(ticks)),
        gid="instants",
        **mark,
    )
    hollow = {"marker": mark["marker"], "linestyle": "", "markerfacecolor": "white"}
    return [key("vertex without duration", **hollow)]


def _label_vertices(axes: Axes, chart: Chart, page: Page, colouring: Colouring) -> None:
    """Draw names inside bars or beside ticks if they fit."""
    size = min(SMALL, 0.8 * page.bar_points)
    if size < SMALLEST:
        return
    points = page.points(chart)
    dark = [_is_dark(colour) for colour in colouring.colours]
    for v, low, high in _rooms(chart, points):
        name = _fitting(chart.instance.graph.names[v], (high - low) * points - 3, size)
        if not name:
            continue
        instant = bool(chart.instant[v])
        side = "center" if not instant else "left" if low >= chart.start[v] else "right"
        place = {"center": (low + high) / 2, "left": low, "right": high}[side]
        axes.text(
            place,
            int(chart.row[chart.device[v]]),
            name,
            ha=side,
            va="center_baseline",
            fontsize=size,
            color="white" if dark[colouring.of[v]] and not instant else INK,
            zorder=4,
        )


def _rooms(chart: Chart, points: float) -> Iterable[tuple[int, float, float]]:
    """Yield each vertex that has room for a name, and the time interval available for it.

    The name of a bar is inside it; that of a tick is in the wider gap beside it.
    """
    order = np.lexsort((chart.end, chart.start, chart.device))
    start, end, instant = chart.start[order], chart.end[order], chart.instant[order]
    same = np.diff(chart.device[order]) == 0
    before, after = np.zeros(len(order)), np.full(len(order), chart.limit)
    before[1:][same], after[:-1][same] = end[:-1][same], start[1:][same]
    beside, behind = 7 / points, after - start >= start - before
    low = np.where(instant, np.where(behind, start + beside, before), start)
    high = np.where(instant, np.where(behind, after, start - beside), end)
    for i in np.flatnonzero((high - low) * points > 8).tolist():
        yield int(order[i]), float(low[i]), float(high[i])


def _fitting(name: str, room: float, size: float) -> str:
    """Return the name if it fits, otherwise its last part if that fits, otherwise nothing."""
    for text in (name, name.rpartition("/")[2]):
        # Even the narrowest letters of the font take a quarter of its size.
        if len(text) * size / 4 < room:
            shown = short(text, 80)
            if text_width(shown, size) <= room:
                return shown
    return ""


def _is_dark(colour: str) -> bool:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return 0.299 * red + 0.587 * green + 0.114 * blue < 128
