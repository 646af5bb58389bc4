"""Gantt charts on the user's axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from optpart.errors import InputError
from optpart.report.axes import given_or_new
from optpart.report.gantt.chart import Chart
from optpart.report.gantt.colours import colouring_of
from optpart.report.gantt.legend import draw_limits
from optpart.report.gantt.page import Page
from optpart.report.gantt.rows import draw_rows
from optpart.report.gantt.style import NORMAL, SMALL
from optpart.report.gantt.transfers import draw_arrows, draw_sends
from optpart.report.gantt.vertices import draw_vertices
from optpart.report.gantt.words import count
from optpart.solution.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class _Part(Page):
    """A page whose time axis is as wide as the user's axes, in inches."""

    width: float = 1.0

    @property
    def plot(self) -> float:
        return self.width


def plot_schedule(result: Result, ax: Axes | None = None) -> Axes:
    """Draw the schedule of a result, devices over time.

    Up to 100 transfers are arrows; if there are more, the title says that they are left out.

    Raises
    ------
    InputError
        If there is no schedule.
    """
    import matplotlib as mpl

    if result.schedule is None:
        problem = result.reason or "missing"
        raise InputError("schedule", problem, "take a result that has a schedule")
    chart = Chart(result.instance, result.schedule, result.instance.name, result.lower_bound)
    colouring = colouring_of(result.instance)
    rows = len(chart.used) + bool(chart.idle)
    # Outside of the context, which would undo what the first figure of a notebook sets.
    axes = given_or_new(ax, height=1.6 + min(0.5 * rows, 8.0))
    with mpl.rc_context({"text.parse_math": False}):  # a "$" in a name is a dollar sign
        box, dpi = axes.get_window_extent(), axes.figure.get_dpi()
        wide, high = box.width / dpi, box.height / dpi
        whole = Page.of(chart, 0)
        row = high / max(1, rows)
        page = _Part(whole.left, high, 0.0, row, whole.step, whole.bar, width=wide)
        draw_rows(axes, chart, page)
        keys = [*draw_limits(axes, chart), *draw_vertices(axes, chart, page, colouring)]
        keys += draw_sends(axes, chart, page)
        title = f"{chart.title}, {result.method}"
        if chart.crowded:
            title += f" ({count(len(chart.sender), 'transfer')} not drawn)"
        else:
            keys += draw_arrows(axes, chart, page)
        axes.set_xlabel(chart.axis_label, fontsize=NORMAL)
        axes.set_title(title, loc="left", fontsize=NORMAL, pad=22)
        axes.legend(handles=keys, loc="lower left", bbox_to_anchor=(0, 1), ncols=len(keys),
                    frameon=False, fontsize=SMALL)  # fmt: skip
    return axes
