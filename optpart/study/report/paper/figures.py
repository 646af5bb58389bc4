"""Figures for papers: box plots, performance profiles, convergence."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from optpart.base.escaping import fitted, visible
from optpart.study.paper import Comparison
from optpart.study.report.gantt.style import FAINT, INK, SMALL
from optpart.study.statistics import profile

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The palette of Okabe and Ito, which people with colour blindness can tell apart; beyond that,
#: lines differ by their dashes.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
_DASHES: tuple[Any, ...] = ("-", "--", ":", "-.")

#: More panels would be too small to read; the groups beyond are named in the notes.
MOST_PANELS = 12
#: More methods would need more room than a page has.
MOST_METHODS = 14

#: Profiles over larger factors have a logarithmic axis, with these ticks.
_LINEAR = 3.0
_FACTORS = (1.0, 1.2, 1.5, 2.0, 3.0, 5.0, *(f * 10.0**e for e in range(1, 9) for f in (1, 2, 5)))

_COLUMN = 3.4  # inches: a column of a paper
_LONGEST_NAME = 24

#: Grid of the convergence curves, and the earliest time of a logarithmic axis.
_POINTS, _EARLIEST = 400, 1e-3


def figures(comparison: Comparison) -> dict[str, Callable[[], Figure]]:
    """Return the figures that can be drawn, by name, and note those that cannot."""
    if len(comparison.methods) > MOST_METHODS:
        comparison.notes.append(
            f"No figures: {len(comparison.methods)} methods, at most {MOST_METHODS} can be told "
            "apart."
        )
        return {}
    found = {"box": lambda: boxes(comparison), "convergence": lambda: convergence(comparison)}
    if len(comparison.groups) > MOST_PANELS:
        left = ", ".join(" ".join(group) for group in comparison.groups[MOST_PANELS:])
        comparison.notes.append(f"The box plot leaves out these groups: {left}.")
    if comparison.common():
        found["profile"] = lambda: profiles(comparison)
    else:
        comparison.notes.append("No performance profile: no instance that all methods were run on.")
    return found


def boxes(comparison: Comparison) -> Figure:
    """Draw the distribution of makespan / best per group and method, over instances.

    The box holds the middle half, its line is the median, the dot the mean; whiskers reach to the
    last value within 1.5 times the box. Unsolved instances are counted beside the name.
    """
    from matplotlib.figure import Figure

    groups = comparison.groups[:MOST_PANELS]
    names = _names(comparison.methods)
    rows = math.ceil(len(groups) / 2)
    columns = min(2, len(groups))
    height = 0.75 + 0.24 * len(names)
    figure = Figure(figsize=(1.45 * _COLUMN * columns, height * rows), layout="constrained")
    for i, group in enumerate(groups):
        axes = figure.add_subplot(rows, columns, i + 1)
        axes.use_sticky_edges = False  # room beside the outermost box
        labels = []
        for y, method in enumerate(comparison.methods):
            values = [float(v) for (g, _), v in comparison.values(method).items() if g == group]
            solved = [v for v in values if math.isfinite(v)]
            if solved:
                _box(axes, solved, y)
            labels.append(names[y] + _counted(len(values), len(values) - len(solved)))
        axes.set_yticks(range(len(labels)), labels)
        axes.set_ylim(len(labels) - 0.4, -0.6)
        axes.set_xlabel("makespan / best known", fontsize=SMALL)
        title = ", ".join(
            f"{visible(name)} = {visible(value)}"
            for name, value in zip(comparison.by, group, strict=True)
        )
        axes.set_title(title, fontsize=SMALL)
        _plain(axes)
        axes.grid(axis="x", color="#e5e5e5", linewidth=0.6)
    return figure


def _box(axes: Axes, values: Sequence[float], y: int) -> None:
    from matplotlib.cbook import boxplot_stats

    box = boxplot_stats(values)[0]
    low, high = box["q1"], box["q3"]
    axes.plot([box["whislo"], box["whishi"]], [y, y], color=INK, linewidth=0.8, zorder=2)
    axes.barh(y, high - low, 0.6, low, facecolor="#cfe3f1", edgecolor=INK, linewidth=0.8, zorder=3)
    axes.plot([box["med"]] * 2, [y - 0.3, y + 0.3], color=_COLOURS[1], linewidth=1.6, zorder=4)
    axes.plot(box["mean"], y, "o", color=INK, markersize=3, zorder=5)
    axes.plot(box["fliers"], [y] * len(box["fliers"]), "x", color=FAINT, markersize=3.5, zorder=2)


def _counted(runs: int, unsolved: int) -> str:
    if not runs:
        return " (not run)"
    return f" ({unsolved} of {runs} unsolved)" if unsolved else ""


def profiles(comparison: Comparison) -> Figure:
    """Draw the share of instances that each method solves within a factor of the best.

    The best is that of the methods compared, on the instances that all of them were run on.
    """
    from matplotlib.figure import Figure

    common = comparison.common()
    values = {m: [comparison.values(m)[key] for key in common] for m in comparison.methods}
    least = [min(column) for column in zip(*values.values(), strict=True)]
    ratios = {
        method: [
            v / best if math.isfinite(best) else math.inf for v, best in zip(of, least, strict=True)
        ]
        for method, of in values.items()
    }
    finite = [r for of in ratios.values() for r in of if math.isfinite(r)]
    end = max(1.01, 1.05 * max(finite, default=1.0))
    figure = Figure(figsize=(1.9 * _COLUMN, 0.8 * _COLUMN), layout="constrained")
    axes = figure.add_subplot()
    for i, (name, of) in enumerate(zip(_names(comparison.methods), ratios.values(), strict=True)):
        factors, shares = profile(of)
        x = np.concatenate(([1.0], factors, [end]))
        y = np.concatenate(([0.0], shares, shares[-1:] if len(shares) else [0.0]))
        axes.step(x, y, where="post", label=name, **_line(i))
    axes.set_xlim(1 - 0.01 * (end - 1), end)
    if end > _LINEAR:
        axes.set_xscale("log")
        axes.set_xlim(0.98, end)
        _ticks(axes, [tick for tick in _FACTORS if tick <= end])
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel("factor of the best of these methods", fontsize=SMALL)
    axes.set_ylabel("share of instances", fontsize=SMALL)
    every = comparison.all_instances()
    of_all = (
        f"{len(common)} instances"
        if len(common) == every
        else (f"{len(common)} of {every} instances: those that all methods were run on")
    )
    axes.set_title(of_all, fontsize=SMALL)
    _plain(axes)
    axes.grid(color="#e5e5e5", linewidth=0.6)
    _legend(figure, axes)
    return figure


def convergence(comparison: Comparison) -> Figure:
    """Draw the mean primal and dual gap over time; a run without a schedule has a gap of 1."""
    from matplotlib.figure import Figure

    last = max(max(run.limit for run in comparison.runs), 10 * _EARLIEST)
    times = np.geomspace(_EARLIEST, last, _POINTS)
    figure = Figure(figsize=(2.4 * _COLUMN, 0.8 * _COLUMN), layout="constrained")
    both = figure.subplots(1, 2, sharey=True)
    names = _names(comparison.methods)
    for i, method in enumerate(comparison.methods):
        runs = [run for run in comparison.runs if run.method == method]
        gaps = [comparison.gaps(run) for run in runs]
        for side, axes in enumerate(both):
            mean = np.mean([_sampled(gap[side], times) for gap in gaps], axis=0)
            axes.step(times, mean, where="post", label=names[i], **_line(i))
    titles = ("primal: 1 − best / makespan", "dual: 1 − bound / best")
    for axes, title in zip(both, titles, strict=True):
        axes.set_xscale("log")
        axes.set_xlim(_EARLIEST, last)
        exponents = range(math.ceil(math.log10(_EARLIEST)), math.floor(math.log10(last)) + 1)
        _ticks(axes, [10.0**exponent for exponent in exponents])
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlabel("time in seconds", fontsize=SMALL)
        axes.set_title(title, fontsize=SMALL)
        _plain(axes)
        axes.grid(color="#e5e5e5", linewidth=0.6)
    both[0].set_ylabel("mean gap", fontsize=SMALL)
    _legend(figure, both[0])
    return figure


def _ticks(axes: Axes, ticks: Sequence[float]) -> None:
    """Label these places of a logarithmic axis, without powers of ten."""
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)


def _sampled(steps: Sequence[tuple[float, float]], times: Any) -> Any:
    """Return the gap at each time; 1 before the first step."""
    moments = np.maximum.accumulate([time for time, _ in steps]) if steps else np.zeros(0)
    gaps = np.array([1.0, *(gap for _, gap in steps)])
    return gaps[np.searchsorted(moments, times, side="right")]


def _names(methods: Sequence[str]) -> list[str]:
    return [fitted([visible(method)], _LONGEST_NAME)[0] for method in methods]


def _line(i: int) -> dict[str, Any]:
    return {
        "color": _COLOURS[i % len(_COLOURS)],
        # A colour that comes back has other dashes.
        "linestyle": _DASHES[(i + 2 * (i // len(_COLOURS))) % len(_DASHES)],
        "linewidth": 1.4,
    }


def _plain(axes: Axes) -> None:
    axes.tick_params(labelsize=SMALL, colors=INK, length=2)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", fontsize=SMALL, frameon=False)
