"""Gantt charts of schedules.

The chart of a small schedule shows every vertex with its name and every transfer as an arrow. A
crowded chart omits details to remain readable: narrow bars have no labels, and instead of thousands
of arrows, two panels show the numbers of busy devices and of transfers in flight over time.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from optpart.problem.instance import Instance
from optpart.report.gantt.chart import Chart
from optpart.report.gantt.colours import colouring_of
from optpart.report.gantt.legend import draw_colours, draw_header, draw_limits, legend_shape
from optpart.report.gantt.page import Page
from optpart.report.gantt.rows import draw_rows
from optpart.report.gantt.style import INK, NORMAL, WIDTH
from optpart.report.gantt.transfers import draw_arrows, draw_panels, draw_sends
from optpart.report.gantt.vertices import draw_vertices
from optpart.report.picture import render, write_picture
from optpart.solution.schedule import Schedule

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
