"""The header of the chart, and the legends of lines and colours."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from optpart.report.gantt.chart import Chart
from optpart.report.gantt.colours import Colouring
from optpart.report.gantt.page import Page
from optpart.report.gantt.rows import key
from optpart.report.gantt.style import (
    BOUND,
    FAINT,
    HEADER,
    INK,
    MARGIN,
    NORMAL,
    PLAIN,
    SMALL,
    TITLE,
    WIDTH,
)
from optpart.report.gantt.words import count, short, text_width
from optpart.rounding import between, percent
from optpart.solution.gap import gap

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_limits(axes: Axes, chart: Chart) -> list[Artist]:
    """Mark the makespan and the lower bound; return their legend entries."""
    found, least = between(chart.makespan, chart.bound)
    solid: dict[str, Any] = {"color": INK, "linewidth": 1.4}
    axes.axvline(chart.at(chart.makespan), zorder=2.5, gid="makespan", **solid)
    keys = [key(f"makespan {found}", **solid)]
    if chart.bound is not None:
        dashed: dict[str, Any] = {"color": BOUND, "linewidth": 1.6, "linestyle": (0, (4, 2))}
        axes.axvline(chart.at(chart.bound), zorder=2.6, gid="bound", **dashed)
        distance = gap(chart.makespan, chart.bound)
        note = f" (gap {percent(distance)})" if distance else ""
        keys.append(key(f"{chart.bound_name} {least}{note}", **dashed))
    return keys


def draw_header(figure: Figure, chart: Chart, page: Page, keys: list[Artist]) -> None:
    """Draw the title, the counts, and the legend of lines and marks."""
    instance = chart.instance
    counts = (
        (instance.vertices, "vertex"),
        (instance.devices, "device"),
        (len(chart.sender), "transfer"),
    )
    facts = " · ".join(count(number, noun) for number, noun in counts)
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
        handles=keys,
        loc="center left",
        bbox_to_anchor=(left, 1 - 0.58 / page.height),
        ncols=len(keys),
        fontsize=NORMAL,
        columnspacing=2.4,
        **PLAIN,
    )


def legend_shape(colouring: Colouring) -> tuple[int, int]:
    """Return the numbers of columns and lines of the colour legend."""
    labels = [short(label, 40) for label in colouring.labels]
    widest = max((text_width(label, SMALL) for label in labels), default=0.0) + 40
    columns = max(1, min(len(labels), int((WIDTH - 2 * MARGIN) * 72 / widest)))
    return columns, math.ceil(len(labels) / columns)


def draw_colours(figure: Figure, page: Page, colouring: Colouring, columns: int) -> None:
    """Draw the legend of colours in the given number of columns."""
    from matplotlib.patches import Patch

    legend = figure.legend(
        [Patch(facecolor=colour) for colour in colouring.colours],
        colouring.colours,
        loc="lower left",
        bbox_to_anchor=(MARGIN / WIDTH, 0.12 / page.height),
        ncols=columns,
        fontsize=SMALL,
        columnspacing=1.8,
        labelspacing=0.35,
        **PLAIN,
    )
    # Set afterwards, because legends omit labels that begin with "_".
    for text, label in zip(legend.get_texts(), colouring.labels, strict=True):
        text.set_text(short(label, 40))
