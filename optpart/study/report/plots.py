"""Pictures on the user's axes: schedules, graphs, progress, and methods compared."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from optpart.base.choices import choice
from optpart.base.errors import InputError
from optpart.base.rounding import percent
from optpart.problem.instance import Instance
from optpart.problem.units import with_unit
from optpart.solution.result import Result
from optpart.study.gap import Comparison, excess
from optpart.study.report.gantt.chart import Chart, Page
from optpart.study.report.gantt.colours import QUALITATIVE, colouring_of
from optpart.study.report.gantt.drawing import (
    draw_arrows,
    draw_limits,
    draw_rows,
    draw_sends,
    draw_vertices,
)  # fmt: skip
from optpart.study.report.gantt.style import BOUND, FAINT, INK, NORMAL, SMALL, TRACK, count, short
from optpart.study.statistics import profile

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FOUND = "#0072b2"

#: Larger graphs have no names.
_MOST_NAMES = 60

#: More devices share a colour, told apart by their markers.
_MARKERS = "osD^vP*X"

KINDS = ("box", "profile", "mean")
_STYLES = ("-", "--", ":", "-.")


def _given_or_new(ax: Axes | None, height: float = 4.0) -> Axes:
    """Return the axes that are given, or those of a new figure of pyplot; height in inches."""
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(9.0, height), layout="constrained")[1]


# --- schedules -----------------------------------------------------------------------------------


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
    axes = _given_or_new(ax, height=1.6 + min(0.5 * rows, 8.0))
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


# --- graphs --------------------------------------------------------------------------------------


def plot_graph(
    instance: Instance, placement: Mapping[str, str] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw a graph by depth, from left to right; edges between devices are dashed.

    Parameters
    ----------
    placement : mapping from vertex names to device names, optional

    Raises
    ------
    InputError
        If the placement names a vertex or a device that does not exist.
    """
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D

    device = _devices(instance, placement or {})
    place = _layout(instance)
    axes = _given_or_new(ax, height=5.0)
    graph = instance.graph
    pairs = np.stack([graph.edge_source, graph.edge_target], axis=1)
    ends = device[pairs]
    crossing = (ends[:, 0] != ends[:, 1]) & (ends.min(axis=1, initial=0) >= 0)
    thin = 0.8 if len(pairs) <= 500 else 0.3
    for chosen, colour, style in ((~crossing, FAINT, "solid"), (crossing, INK, "dashed")):
        look: dict[str, Any] = {"colors": colour, "linestyles": style, "linewidths": thin}
        axes.add_collection(LineCollection([*place[pairs[chosen]]], zorder=1, **look))
    names = instance.vertices <= _MOST_NAMES
    size = 320 if names else max(6.0, 6000 / max(1, instance.vertices))
    keys = []
    for d in sorted({*device.tolist()}):
        here = np.flatnonzero(device == d)
        colour = TRACK if d < 0 else QUALITATIVE[d % len(QUALITATIVE)]
        marker = "o" if d < 0 else _MARKERS[d // len(QUALITATIVE) % len(_MARKERS)]
        axes.scatter(
            place[here, 0], place[here, 1], s=size, color=colour, marker=marker, edgecolors=INK,
            linewidths=0.6 if names else 0.2, zorder=2,
        )  # fmt: skip
        label = "not placed" if d < 0 else short(instance.cluster.names[d], 20)
        keys.append(Line2D([], [], color=colour, marker=marker, linestyle="", markeredgecolor=INK,
                           markeredgewidth=0.6, label=label))  # fmt: skip
    if names:
        for v, name in enumerate(graph.names):
            x, y = place[v].tolist()
            text = axes.text(x, y, short(name, 10), ha="center", va="center")
            text.set(fontsize=SMALL - 1, color=INK, parse_math=False, zorder=3)
    if crossing.any():
        dashed: dict[str, Any] = {"color": INK, "linestyle": "dashed", "linewidth": 0.8}
        keys.append(Line2D([], [], label="between devices", **dashed))
    if placement is not None:
        axes.legend(handles=keys, frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    axes.margins(0.08)
    axes.set_axis_off()
    return axes


def _devices(instance: Instance, placement: Mapping[str, str]) -> NDArray[np.int64]:
    device = np.full(instance.vertices, -1)
    for vertex, name in placement.items():
        if vertex not in instance.graph.index:
            raise InputError("placement", f"no vertex {vertex!r}", "name one of the instance")
        if name not in instance.cluster.index:
            raise InputError("placement", f"no device {name!r}", "name one of the instance")
        device[instance.graph.index[vertex]] = instance.cluster.index[name]
    return device


def _layout(instance: Instance) -> NDArray[np.float64]:
    """Return positions: depth, and within a depth the mean height of what comes before."""
    graph = instance.graph
    before: dict[int, list[int]] = defaultdict(list)
    for u, v in graph.pairs():
        before[v].append(u)
    depth = [0] * len(graph)
    for v in graph.topological_order.tolist():
        depth[v] = max((depth[u] + 1 for u in before[v]), default=0)
    columns: dict[int, list[int]] = defaultdict(list)
    for v in range(len(graph)):
        columns[depth[v]].append(v)
    place = np.zeros((len(graph), 2))

    def height(v: int) -> float:
        return float(np.mean([place[u, 1] for u in before[v]])) if before[v] else 0.0

    for at in sorted(columns):
        members = sorted(columns[at], key=lambda v: (-height(v), v))
        for i, v in enumerate(members):
            # Shift neighbouring columns against each other, so that edges miss vertices.
            place[v] = at, (len(members) - 1) / 2 - i + 0.13 * (at % 2)
    return place


# --- progress ------------------------------------------------------------------------------------


def plot_progress(result: Result, ax: Axes | None = None) -> Axes:
    """Draw the best value found and the best bound over the seconds of a run.

    Raises
    ------
    InputError
        If the method left no trace.
    """
    if not result.trace:
        raise InputError("trace", "empty", "take a result of a method that improves step by step")
    axes = _given_or_new(ax)
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
    unit = result.instance.time_unit if value != "traffic" else ""
    axes.set_ylabel(f"{value} ({with_unit('', unit) or 'units of the instance'})")
    axes.legend(frameon=False)
    return axes


# --- methods compared ----------------------------------------------------------------------------


def plot_comparisons(
    comparisons: Sequence[Comparison],
    kind: Literal["box", "profile", "mean"] = "mean",
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw how methods compare on one or more instances.

    Parameters
    ----------
    comparisons : sequence of Comparison
        Such as :func:`optpart.sweep` yields.
    kind : {"box", "profile", "mean"}
        ``box``: a box of ``makespan / reference − 1`` per method, over seeds and instances.
        ``profile``: the performance profile (Dolan and Moré 2002): the share of runs on which a
        method is within a factor of the least makespan of all methods with the same instance and
        seed. ``mean``: a bar per method, the mean of ``makespan / reference − 1``.
        Runs without a schedule count as runs in profiles, and are counted beside the name of the
        method elsewhere, since a mean cannot hold them.
    ax : Axes, optional
        Where to draw; by default, a new figure of pyplot.

    Raises
    ------
    InputError
        If there is no such kind, or nothing to draw.
    """
    if kind not in KINDS:
        raise InputError("kind", f"unknown {kind!r}", choice(kind, KINDS))
    runs: dict[str, list[_Row]] = defaultdict(list)
    for i, comparison in enumerate(comparisons):
        if not hasattr(comparison, "results"):
            problem = f"is of type {type(comparison).__name__}"
            raise InputError(f"comparisons[{i}]", problem, "give what compare or sweep returns")
        for result in sorted(comparison.results, key=lambda result: result.seed):
            over = excess(result.makespan, comparison.reference.makespan)
            runs[result.method].append((result.makespan, over))
    if not runs:
        raise InputError("comparisons", "without results", "compare at least one method")
    axes = _given_or_new(ax)
    if kind == "profile":
        return _profile(axes, runs)
    heights = {
        m: [100 * value for _, value in rows if value is not None] for m, rows in runs.items()
    }
    if not any(heights.values()):
        problem = "no run has a schedule and a reference"
        raise InputError("comparisons", problem, "compare on an instance with a known schedule")
    labels = []
    for method, rows in runs.items():
        left = len(rows) - len(heights[method])
        labels.append(short(method, 24) + (f"\n{left}/{len(rows)} not solved" if left else ""))
    places = [*range(len(runs))]
    if kind == "box":
        axes.boxplot([*heights.values()], positions=places, medianprops={"color": BOUND})
    else:
        means = [math.fsum(values) / len(values) if values else 0.0 for values in heights.values()]
        axes.bar(places, means, color=QUALITATIVE[0], edgecolor=INK, linewidth=0.6)
        for at, (mean, values) in enumerate(zip(means, heights.values(), strict=True)):
            axes.text(at, mean, percent(mean / 100) if values else "–", ha="center", va="bottom")
    axes.set_xticks(places, labels, rotation=0 if len(runs) <= 6 else 30, ha="center")
    axes.set_ylabel(("over" if kind == "box" else "mean over") + " the reference (%)")
    axes.axhline(0, color=INK, linewidth=0.8)
    return axes


#: The makespan of a run, and how far it is above the reference; of all methods in the same order of
#: instances and seeds.
_Row = tuple[Fraction | None, float | None]


def _profile(axes: Axes, runs: Mapping[str, list[_Row]]) -> Axes:
    """Draw the share of runs within each factor of the best."""
    counts = {len(rows) for rows in runs.values()}
    if len(counts) > 1:
        problem = "methods have unlike numbers of runs"
        raise InputError("comparisons", problem, "run all methods on the same instances and seeds")
    (total,) = counts
    makespans = [[value for value, _ in rows] for rows in runs.values()]
    best = [
        min((value for value in known if value is not None), default=None)
        for known in zip(*makespans, strict=True)
    ]
    profiles = [profile([_ratio(*pair) for pair in zip(m, best, strict=True)]) for m in makespans]
    last = max((float(factors[-1]) for factors, _ in profiles if len(factors)), default=1.0)
    end = 1 + 1.05 * (last - 1) if last > 1 else 1.1
    for m, (method, (factors, shares)) in enumerate(zip(runs, profiles, strict=True)):
        shares = np.concatenate(([0.0], shares))
        axes.step(
            [1.0, *factors, end], [*shares, shares[-1]], where="post",
            label=short(method, 24), color=QUALITATIVE[m % len(QUALITATIVE)],
            linestyle=_STYLES[m // len(QUALITATIVE) % len(_STYLES)],
        )  # fmt: skip
    axes.set_xlim(1, end)
    axes.set_ylim(0, 1.03)
    axes.set_xlabel("makespan, as a multiple of the least of all methods")
    axes.set_ylabel(f"share of {total} runs")
    axes.legend(frameon=False)
    return axes


def _ratio(value: Fraction | None, least: Fraction | None) -> float:
    """Return a makespan as a multiple of the least; infinite without a schedule."""
    if value is None or least is None:
        return math.inf
    return float(value / least) if least else (1.0 if not value else math.inf)
