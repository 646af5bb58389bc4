"""A picture of the price of robustness."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from optpart.problem.units import with_unit
from optpart.study.report.gantt.style import INK, NORMAL, SMALL
from optpart.study.report.picture import write_picture
from optpart.study.robust import Robust

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NOMINAL, _GOAL = "#0072b2", "#d55e00"


def draw_price(found: Robust, path: Path) -> None:
    """Write what the best plan takes at nominal times and otherwise, for every point of the curve.

    Points that are not proven are hollow.
    """
    write_picture(path, lambda: _figure(found))


def _figure(found: Robust) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 3.6), layout="constrained")
    axes = figure.add_subplot()
    places = [*range(len(found.curve))]
    goal = "worst case" if found.goal == "worst" else "mean"
    for label, colour, values in (
        (goal, _GOAL, [float(point.value) for point in found.curve]),
        ("nominal makespan", _NOMINAL, [float(point.nominal) for point in found.curve]),
    ):
        axes.plot(places, values, color=colour, label=label)
        for at, value, point in zip(places, values, found.curve, strict=True):
            face = colour if point.proven else "white"
            axes.plot([at], [value], marker="o", color=colour, markerfacecolor=face)
    axes.set_xticks(places, [str(point.parameter) for point in found.curve])
    samples = bool(found.variation.samples)
    axes.set_xlabel(f"weight of the {goal}" if samples else "vertices that deviate at most")
    unit = found.variation.instance.time_unit
    axes.set_ylabel(f"time ({with_unit('', unit) or 'units of the instance'})")
    title = f"{found.variation.instance.name}, {found.variation.words}"
    axes.set_title(title, loc="left", fontsize=NORMAL, color=INK, parse_math=False)
    axes.legend(frameon=False, fontsize=SMALL)
    return figure
