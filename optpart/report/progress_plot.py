"""The values and bounds of a run over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optpart.errors import InputError
from optpart.report.axes import given_or_new
from optpart.report.gantt.style import BOUND
from optpart.solution.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FOUND = "#0072b2"


def plot_progress(result: Result, ax: Axes | None = None) -> Axes:
    """Draw the best value found and the best bound over the seconds of a run.

    Raises
    ------
    InputError
        If the method left no trace.
    """
    if not result.trace:
        raise InputError("trace", "empty", "take a result of a method that improves step by step")
    axes = given_or_new(ax)
    # What was true at a step stays true until the next, and until the end of the run.
    for name, colour, style, points in (
        ("best found", _FOUND, "-", [(step.seconds, step.objective) for step in result.trace]),
        ("lower bound", BOUND, "--", [(step.seconds, step.bound) for step in result.trace]),
    ):
        known = [(at, float(value)) for at, value in points if value is not None]
        if known:
            known.append((max(result.seconds, known[-1][0]), known[-1][1]))
            times, values = zip(*known, strict=True)
            axes.step(times, values, where="post", label=name, color=colour, linestyle=style)
    value = "makespan" if result.objective == "lexicographic" else result.objective
    axes.set_xlabel("time of the run (s)")
    axes.set_ylabel(f"{value} (units of the instance)")
    axes.legend(frameon=False)
    return axes
