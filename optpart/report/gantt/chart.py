"""The data of a chart, derived from a schedule."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from optpart.problem.instance import Instance
from optpart.problem.rational import RationalArray
from optpart.report.gantt.style import MOST_ARROWS
from optpart.report.gantt.words import short, superscript
from optpart.rounding import number
from optpart.solution.metrics import utilisation
from optpart.solution.schedule import Schedule

Floats = NDArray[np.float64]


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
        """The label of the time axis; an instance does not say which unit its times have."""
        power = f"10{superscript(self.exponent)} " if self.exponent else ""
        return f"time ({power}units of the instance)"

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
