"""The layout of the chart: positions and sizes of its parts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from optpart.report.gantt.chart import Chart
from optpart.report.gantt.style import (
    HEADER,
    MARGIN,
    NORMAL,
    PANEL,
    RIGHT,
    TALLEST_CHART,
    TALLEST_ROW,
    WIDTH,
)
from optpart.report.gantt.words import count, text_width


@dataclass(frozen=True)
class Page:
    """Sizes of the parts of the chart in inches, and of fonts and bars.

    Attributes
    ----------
    left, chart, below : float
        Width to the left of the time axis; heights of the rows and of everything below them.
    row : float
        Height of one row.
    step : int
        Only every ``step``-th row is labelled, because rows may be lower than a line of text.
    bar : float
        Height of a bar relative to its row; arrows need room between rows.
    """

    left: float
    chart: float
    below: float
    row: float
    step: int
    bar: float

    @classmethod
    def of(cls, chart: Chart, legend_lines: int) -> Page:
        """Return the page for a chart with a legend of ``legend_lines`` lines."""
        row = min(TALLEST_ROW, TALLEST_CHART / (len(chart.used) + 1))
        step = math.ceil(1.15 * label_size(row) / (row * 72))
        rows = len(chart.used) + (step if chart.idle else 0)
        labels = [idle_label(chart), *map(chart.device_label, chart.used)]
        left = MARGIN + 0.14 + max(text_width(label, label_size(row)) for label in labels) / 72
        return cls(
            left=max(1.25, left),
            chart=max(0.8, row * rows),
            below=0.6 + 0.2 * legend_lines + (2 * PANEL if chart.crowded else 0),
            row=row,
            step=step,
            bar=0.84 if chart.crowded else 0.58,
        )

    @property
    def height(self) -> float:
        """Height of the page."""
        return HEADER + self.chart + self.below

    @property
    def plot(self) -> float:
        """Width of the time axis."""
        return WIDTH - self.left - RIGHT

    @property
    def bar_points(self) -> float:
        """Height of a bar in points."""
        return self.bar * self.row * 72

    def points(self, chart: Chart) -> float:
        """Return the number of points per unit of time."""
        return self.plot * 72 / chart.limit

    def beyond(self, inches: float) -> float:
        """Convert a distance from the left end of the time axis to a share of its width."""
        return inches / self.plot

    def box(self, bottom: float, height: float) -> tuple[float, float, float, float]:
        """Return the box of full-width axes with the given bottom and height."""
        return (self.left / WIDTH, bottom / self.height, self.plot / WIDTH, height / self.height)


def label_size(row: float) -> float:
    """Return the font size of device names in rows of the given height."""
    return min(NORMAL, max(5.5, 0.52 * row * 72))


def idle_label(chart: Chart) -> str:
    """Return the label of the idle devices; empty if there are none."""
    return f"{count(len(chart.idle), 'device')} idle" if chart.idle else ""
