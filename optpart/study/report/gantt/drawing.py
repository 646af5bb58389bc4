"""Gantt charts of schedules.

The chart of a small schedule shows every vertex with its name and every transfer as an arrow. A
crowded chart omits details to remain readable: narrow bars have no labels, and instead of thousands
of arrows, two panels show the numbers of busy devices and of transfers in flight over time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from optpart.base.rounding import between, number, percent
from optpart.problem.instance import Instance
from optpart.problem.units import with_unit
from optpart.solution.gap import gap
from optpart.solution.schedule import Schedule
from optpart.study.report.gantt.chart import Chart, Floats, Page, idle_label, label_size
from optpart.study.report.gantt.colours import Colouring, colouring_of
from optpart.study.report.gantt.style import (
    ARROW,
    BOUND,
    FAINT,
    HEADER,
    INK,
    MARGIN,
    NORMAL,
    PANEL,
    PLAIN,
    RIGHT,
    SEND,
    SMALL,
    SMALLEST,
    TITLE,
    TRACK,
    WIDTH,
    count,
    short,
    text_width,
)  # fmt: skip
from optpart.study.report.picture import render, write_picture

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: More shapes are embedded in an SVG as an image.
_MOST_SHAPES = 20_000

#: Slices of time of the panels of a crowded chart.
_BINS = 600


def draw(
    instance: Instance,
    schedule: Schedule,
    path: str | Path,
    *,
    title: str = "",
    bound: Fraction | None = None,
    claimed: bool = False,
) -> None:
    """Write the Gantt chart of a schedule to ``path``, completely or not at all.

    Parameters
    ----------
    path : str or Path
        The suffix, ``.png`` or ``.svg``, determines the format.
    title : str
        By default, the name of the instance.
    bound : Fraction, optional
        A lower bound on the makespan, marked in the chart.
    claimed : bool
        Whether a file claims the bound, which is then marked as claimed.

    Raises
    ------
    InputError
        If the suffix is not supported, or the file cannot be written.

    Notes
    -----
    Up to 100 transfers are drawn as arrows, from the sender at the start of the transfer to the
    receiver at its end; if there are more, a panel below the devices shows their number. Devices
    without vertices share one line. Bars are coloured by scope if names have scopes
    (``gradients/rnn/MatMul``), otherwise by depth in the graph. The bytes depend only on the
    arguments and the version of matplotlib.
    """
    chart = Chart(instance, schedule, title or instance.name, bound, claimed=claimed)
    write_picture(path, lambda: _figure(chart))


def png(instance: Instance, schedule: Schedule, *, bound: Fraction | None = None) -> bytes:
    """Return the chart as PNG, small enough for a cell of a notebook."""
    chart = Chart(instance, schedule, instance.name, bound)
    return render(lambda: _figure(chart), "png", dpi=80)


def _figure(chart: Chart) -> Figure:
    from matplotlib.figure import Figure

    colouring = colouring_of(chart.instance)
    columns, lines = legend_shape(colouring)
    page = Page.of(chart, lines)
    figure = Figure(figsize=(WIDTH, page.height), facecolor="white")
    axes = figure.add_axes(page.box(page.below, page.chart))
    draw_rows(axes, chart, page)
    keys = [
        *draw_limits(axes, chart),
        *draw_vertices(axes, chart, page, colouring),
        *draw_sends(axes, chart, page),
    ]
    lowest = axes
    if chart.crowded:
        lowest = draw_panels(figure, chart, page)
        axes.tick_params(axis="x", labelbottom=False)
    else:
        keys += draw_arrows(axes, chart, page)
    lowest.set_xlabel(chart.axis_label, fontsize=NORMAL, color=INK)
    draw_header(figure, chart, page, keys)
    if colouring.labels:
        draw_colours(figure, page, colouring, columns)
    return figure


# --- rows of devices ---------------------------------------------------------------------------


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
        "transform": axes.get_yaxis_transform(), "va": "center_baseline", "fontsize": size,
    }  # fmt: skip
    for row in rows:
        share = f"{number(100 * chart.busy[chart.used[row]], up=False, digits=2)}%"
        end = page.beyond(page.plot + RIGHT - MARGIN)
        axes.text(end, row, share, ha="right", color=INK, **aligned)
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
    look = {"zorder": 0.4, "linewidths": 0, **look}
    image = len(corners) > _MOST_SHAPES
    bars = PolyCollection(list(corners), gid=name, rasterized=image, **look)
    axes.add_collection(bars, autolim=False)


def key(label: str, **look: Any) -> Artist:
    """Return a line for a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], label=label, **{"color": INK, **look})


# --- vertices ----------------------------------------------------------------------------------


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
    colours = colour[bars].tolist()
    add_bars(
        axes, start, end, row[bars], page.bar, "vertices", facecolors=colours, zorder=2, **look
    )
    _label_vertices(axes, chart, page, colouring)
    ticks = np.flatnonzero(chart.instant)
    if not len(ticks):
        return []
    # A diamond, the milestone of Gantt charts, takes too much room in a crowded chart.
    mark: dict[str, Any] = {"marker": "|", "color": INK}
    if not chart.crowded:
        mark = {"marker": "d", "color": colour[ticks].tolist(), "edgecolors": INK}
    axes.scatter(
        chart.start[ticks], row[ticks], s=min(14.0, page.bar_points + 2) ** 2, linewidths=0.8,
        zorder=5, clip_on=False, rasterized=len(ticks) > _MOST_SHAPES, gid="instants", **mark,
    )  # fmt: skip
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
            place, int(chart.row[chart.device[v]]), name, ha=side, va="center_baseline", zorder=4,
            fontsize=size, color="white" if dark[colouring.of[v]] and not instant else INK,
        )  # fmt: skip


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


# --- transfers ---------------------------------------------------------------------------------


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
            tail, head, arrowstyle="-|>,head_length=3.2,head_width=1.6", mutation_scale=1,
            shrinkA=0, shrinkB=0, linewidth=0.9, color=ARROW, alpha=0.85, zorder=3,
            gid=f"transfer-{i}",
        )  # fmt: skip
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
    place: dict[str, Any] = {"transform": axes.transAxes, "ha": "right", "va": "center"}
    axes.text(page.beyond(-0.45), 0.5, label, fontsize=SMALL, color=INK, **place)


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


# --- header and legends ------------------------------------------------------------------------


def draw_limits(axes: Axes, chart: Chart) -> list[Artist]:
    """Mark the makespan and the lower bound; return their legend entries."""
    found, least = between(chart.makespan, chart.bound)
    solid: dict[str, Any] = {"color": INK, "linewidth": 1.4}
    axes.axvline(chart.at(chart.makespan), zorder=2.5, gid="makespan", **solid)
    unit = chart.instance.time_unit
    keys = [key(f"makespan {with_unit(found, unit)}", **solid)]
    if chart.bound is not None:
        dashed: dict[str, Any] = {"color": BOUND, "linewidth": 1.6, "linestyle": (0, (4, 2))}
        axes.axvline(chart.at(chart.bound), zorder=2.6, gid="bound", **dashed)
        distance = gap(chart.makespan, chart.bound)
        note = f" (gap {percent(distance)})" if distance else ""
        keys.append(key(f"{chart.bound_name} {with_unit(least, unit)}{note}", **dashed))
    return keys


def draw_header(figure: Figure, chart: Chart, page: Page, keys: list[Artist]) -> None:
    """Draw the title, the counts, and the legend of lines and marks."""
    instance = chart.instance
    counts = {
        "vertex": instance.vertices, "device": instance.devices, "transfer": len(chart.sender)
    }  # fmt: skip
    facts = " · ".join(count(number, noun) for noun, number in counts.items())
    room = (WIDTH - 3 * MARGIN) * 72 - text_width(facts, NORMAL)
    title = short(chart.title, 100)
    while 1.15 * text_width(title, TITLE) > room:  # bold letters are wider
        title = short(title, len(title) - 1)

    def write(x: float, inches: float, text: str, **look: Any) -> None:
        figure.text(x, 1 - inches / page.height, text, va="center", **look)

    left, right = MARGIN / WIDTH, 1 - MARGIN / WIDTH
    write(left, 0.28, title, fontsize=TITLE, fontweight="bold", color=INK)
    write(right, 0.28, facts, fontsize=NORMAL, ha="right", color=FAINT)
    if chart.used:
        write(right, HEADER - 0.1, "busy", fontsize=SMALL, ha="right", color=FAINT)
    figure.legend(
        handles=keys, loc="center left", bbox_to_anchor=(left, 1 - 0.58 / page.height),
        ncols=len(keys), fontsize=NORMAL, columnspacing=2.4, **PLAIN,
    )  # fmt: skip


def legend_shape(colouring: Colouring) -> tuple[int, int]:
    """Return the numbers of columns and lines of the colour legend."""
    labels = [short(label, 40) for label in colouring.labels]
    widest = max((text_width(label, SMALL) for label in labels), default=0.0) + 40
    columns = max(1, min(len(labels), int((WIDTH - 2 * MARGIN) * 72 / widest)))
    return columns, math.ceil(len(labels) / columns)


def draw_colours(figure: Figure, page: Page, colouring: Colouring, columns: int) -> None:
    """Draw the legend of colours in the given number of columns."""
    from matplotlib.patches import Patch

    patches = [Patch(facecolor=colour) for colour in colouring.colours]
    legend = figure.legend(
        patches, colouring.colours, loc="lower left", ncols=columns, fontsize=SMALL,
        bbox_to_anchor=(MARGIN / WIDTH, 0.12 / page.height), columnspacing=1.8, labelspacing=0.35,
        **PLAIN,
    )  # fmt: skip
    # Set afterwards, because legends omit labels that begin with "_".
    for text, label in zip(legend.get_texts(), colouring.labels, strict=True):
        text.set_text(short(label, 40))
