"""The data of a chart, derived from a schedule, and the layout of its page."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from optpart.base.rounding import number
from optpart.problem.instance import Instance
from optpart.problem.rational import RationalArray
from optpart.problem.units import TIME_UNITS, with_unit
from optpart.solution.metrics import utilisation
from optpart.solution.schedule import Schedule
from optpart.study.report.gantt.style import (
    HEADER,
    MARGIN,
    MOST_ARROWS,
    NORMAL,
    PANEL,
    RIGHT,
    TALLEST_CHART,
    TALLEST_ROW,
    WIDTH,
    count,
    short,
    text_width,
)  # fmt: skip

Floats = NDArray[np.float64]

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Chart:
    """The data of a chart: rows, and times as doubles in one unit."""

    def __init__(
        self,
        instance: Instance,
        schedule: Schedule,
        title: str,
        bound: Fraction | None,
        *,
        claimed: bool = False,
    ) -> None:
        self.instance = instance
        self.title = title
        self.bound = bound
        self.bound_name = "claimed bound" if claimed else "lower bound"
        self.makespan = schedule.makespan(instance)
        self.exponent = _exponent(max(self.makespan, bound or self.makespan))
        self.device = schedule.placement
        self.used: list[int] = np.unique(schedule.placement).tolist()
        self.row = np.full(instance.devices, -1)
        self.row[self.used] = np.arange(len(self.used))
        self.busy = utilisation(instance, schedule)
        durations = [instance.duration(v, d) for v, d in enumerate(schedule.placement.tolist())]
        self.instant = np.array([duration == 0 for duration in durations], dtype=np.bool_)
        self.start = self._times(schedule.start)
        self.end = self.start + self._times(RationalArray.from_fractions(durations))
        moves = schedule.transfers
        self.sender = schedule.placement[instance.graph.tensor_vertex[moves.tensor]]
        self.receiver = moves.target
        self.departure, self.arrival = self._times(moves.start), self._times(moves.end)

    def _times(self, times: RationalArray) -> Floats:
        # Scale exactly before rounding, because a time may exceed the largest double.
        factor = Fraction(10) ** -self.exponent
        numerators = times.numerators.astype(object) * factor.numerator
        return RationalArray(numerators, times.denominator * factor.denominator).floats

    def at(self, time: Fraction) -> float:
        """Return a time in the unit of the chart."""
        return float(time / Fraction(10) ** self.exponent)

    @cached_property
    def span(self) -> float:
        """The latest time to show."""
        return max(self.at(self.makespan), self.at(self.bound or Fraction(0))) or 1.0

    @property
    def limit(self) -> float:
        """The end of the time axis, with room for the name of a final tick in small charts."""
        return self.span * (1.01 if self.crowded else 1.06)

    @property
    def idle(self) -> list[str]:
        """Names of the devices that run nothing."""
        return [name for d, name in enumerate(self.instance.cluster.names) if self.row[d] < 0]

    @property
    def crowded(self) -> bool:
        """True if there are too many transfers to draw each of them."""
        return len(self.sender) > MOST_ARROWS

    @property
    def axis_label(self) -> str:
        """The label of the time axis, with the unit of the instance where it states one."""
        exponent, unit = self.exponent, "units of the instance"
        if self.instance.time_unit:
            # 10⁶ ns are ms; beyond the smallest and the largest unit, a power of ten is left.
            units = [*TIME_UNITS]
            thousands = units.index(self.instance.time_unit) + exponent // 3
            unit = units[min(max(thousands, 0), len(units) - 1)]
            exponent = 3 * (thousands - units.index(unit))
        digits = str(exponent).translate(_SUPERSCRIPT)
        return f"time ({with_unit(f'10{digits}' if exponent else '', unit)})"

    @cached_property
    def sends(self) -> Floats:
        """The time for which each transfer occupies its sender, under ``sendrecv``."""
        if self.instance.model.communication != "sendrecv":
            return np.zeros(len(self.sender))
        times = [self.instance.send_duration(d) for d in range(self.instance.devices)]
        return self._times(RationalArray.from_fractions(times))[self.sender]

    def device_label(self, device: int) -> str:
        """Return the name, the type and, if relevant, the speed of a device."""
        cluster = self.instance.cluster
        parts = [short(cluster.names[device], 20)]
        kind = cluster.types[device]
        if kind is not None:
            parts.append(short(kind, 12))
        if self.instance.given_durations is None:
            parts.append(f"speed {number(cluster.speed[device], up=False)}")
        return " · ".join(parts)


def _exponent(longest: Fraction) -> int:
    """Return the power of ten for the time axis: 0 for handy numbers, else a multiple of three."""
    if longest <= 0:
        return 0
    magnitude = math.log10(longest.numerator) - math.log10(longest.denominator)
    return 0 if -2 <= magnitude < 5 else 3 * math.floor(magnitude / 3)


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
