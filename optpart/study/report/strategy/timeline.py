"""The iteration of a strategy over time: devices, collectives and links, coloured by role."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.applications.training.compiled import Compiled, VertexKind
from optpart.applications.training.graph import Role
from optpart.base.rounding import number, percent
from optpart.solution.gap import gap
from optpart.solution.schedule import Schedule
from optpart.study.report.gantt.drawing import add_bars
from optpart.study.report.gantt.style import (
    BOUND,
    FAINT,
    INK,
    NORMAL,
    PLAIN,
    SEND,
    SMALL,
    TITLE,
    TRACK,
    WIDTH,
    short,
)
from optpart.study.report.picture import write_picture
from optpart.study.report.strategy.table import milliseconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Links that have a row; the others are idle for longer.
_LINKS = 24

_MILLISECOND = 10**6

# Okabe and Ito's colours, which colour-blind readers can tell apart.
_COLOURS = {
    "forward": "#56b4e9",
    "backward": "#0072b2",
    "apply": "#009e73",
    "split, concat, add": "#f0e442",
    "AllReduce": "#cc79a7",
    "transfer": SEND,
}
_ROLE = {Role.FORWARD: "forward", Role.BACKWARD: "backward", Role.APPLY: "apply"}
_KIND = {
    VertexKind.ALLREDUCE: "AllReduce",
    VertexKind.CHUNK: "AllReduce",
    VertexKind.TRANSFER: "transfer",
}


class Bars(NamedTuple):
    """The bars in the rows of a chart.

    Attributes
    ----------
    rows : tuple of str
        Names of devices, collectives and links.
    row, start, end : ndarray
        One entry per bar; milliseconds.
    look : tuple of str
        Key of :data:`_COLOURS` of each bar.
    omitted : int
        Links without a row.
    """

    rows: tuple[str, ...]
    row: NDArray[np.int64]
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    look: tuple[str, ...]
    omitted: int


def draw(
    compiled: Compiled,
    schedule: Schedule,
    path: str | Path,
    *,
    title: str = "",
    bound: Fraction | None = None,
    claimed: bool = False,
) -> None:
    """Draw the iteration as PNG or SVG.

    Parameters
    ----------
    title : str
        By default, the name of the model.
    bound : Fraction, optional
        A lower bound of the makespan, in nanoseconds, which is marked.
    claimed : bool
        Whether a file claims the bound, which is then marked as claimed.
    """
    bars = bars_of(compiled, schedule)
    makespan = schedule.makespan(compiled.instance)
    name = "claimed bound" if claimed else "lower bound"
    write_picture(path, lambda: _figure(bars, makespan, title or compiled.graph.name, bound, name))


def bars_of(compiled: Compiled, schedule: Schedule) -> Bars:
    """Return the bars of a chart: every vertex, and every transfer that takes time."""
    instance, graph = compiled.instance, compiled.graph
    names = list(instance.cluster.names)
    row: list[int] = []
    start: list[Fraction] = []
    end: list[Fraction] = []
    look: list[str] = []
    for v, (vertex, begin) in enumerate(
        zip(compiled.vertices, schedule.start.fractions(), strict=True)
    ):
        row.append(vertex.device)
        start.append(begin)
        end.append(begin + instance.duration(v, vertex.device))
        if vertex.kind is VertexKind.REPLICA:
            look.append(_ROLE[graph.operations[vertex.operation].role])
        else:
            look.append(_KIND.get(vertex.kind, "split, concat, add"))
    links: dict[tuple[int, int], list[tuple[Fraction, Fraction]]] = {}
    moves = schedule.transfers
    for i, (tensor, target) in enumerate(
        zip(moves.tensor.tolist(), moves.target.tolist(), strict=True)
    ):
        sender = int(schedule.placement[instance.graph.tensor_vertex[tensor]])
        if moves.end[i] > moves.start[i]:
            links.setdefault((sender, target), []).append((moves.start[i], moves.end[i]))
    busiest = sorted(links, key=lambda link: (-sum(b - a for a, b in links[link]), link))
    for sender, target in sorted(busiest[:_LINKS]):
        names.append(f"{instance.cluster.names[sender]} → {instance.cluster.names[target]}")
        for begin, until in links[sender, target]:
            row.append(len(names) - 1)
            start.append(begin)
            end.append(until)
            look.append("transfer")
    return Bars(
        tuple(names),
        np.array(row, dtype=np.int64),
        np.array([float(t / _MILLISECOND) for t in start]),
        np.array([float(t / _MILLISECOND) for t in end]),
        tuple(look),
        max(0, len(busiest) - _LINKS),
    )


def _figure(
    bars: Bars, makespan: Fraction, title: str, bound: Fraction | None, bound_name: str
) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    rows, span = len(bars.rows), float(makespan / _MILLISECOND) or 1.0
    each = min(0.4, 9.0 / rows)
    chart, above, below = rows * each, 0.85, 0.6 + (0.25 if bars.omitted else 0)
    height = chart + above + below
    left, right = 1.9, 0.7
    figure = Figure(figsize=(WIDTH, height), facecolor="white")
    axes = figure.add_axes(
        (left / WIDTH, below / height, (WIDTH - left - right) / WIDTH, chart / height)
    )
    _frame(axes, bars.rows, span, each)
    lengths = np.full(rows, span)
    add_bars(axes, 0 * lengths, lengths, np.arange(rows), 0.8, "rows", facecolors=TRACK)
    present = [name for name in _COLOURS if name in bars.look]
    for name in present:
        chosen = np.array([look == name for look in bars.look])
        add_bars(
            axes,
            bars.start[chosen],
            bars.end[chosen],
            bars.row[chosen],
            0.8,
            name.replace(" ", "-"),
            facecolors=_COLOURS[name],
            edgecolors="white",
            # A rim would hide a narrow bar.
            linewidths=np.where((bars.end - bars.start)[chosen] > span / 300, 0.3, 0.0),
            zorder=2,
        )
    busy = np.zeros(rows)
    np.add.at(busy, bars.row, bars.end - bars.start)
    for r, share in enumerate((busy / span).tolist()):
        text = f"{number(100 * share, up=False, digits=2)}%"
        where = axes.get_yaxis_transform()
        axes.text(1.01, r, text, transform=where, va="center", fontsize=SMALL, color=INK)
    keys = [Patch(facecolor=_COLOURS[name], label=name) for name in present]
    said = milliseconds(makespan, up=True)
    if bound is not None:
        axes.axvline(float(bound / _MILLISECOND), color=BOUND, linewidth=1.2, zorder=3)
        keys.append(Patch(facecolor=BOUND, label=bound_name))
        holds = " if the bound holds" if bound_name.startswith("claimed") else ""
        said += f", gap {percent(gap(makespan, bound))}{holds}"
    figure.text(0.2 / WIDTH, 1 - 0.3 / height, short(title, 80), fontsize=TITLE, color=INK)
    figure.text(0.2 / WIDTH, 1 - 0.55 / height, said, fontsize=NORMAL, color=FAINT)
    figure.legend(
        handles=keys, loc="upper right", bbox_to_anchor=(1 - right / WIDTH, 1 - 0.1 / height),
        ncols=len(keys), fontsize=SMALL, **PLAIN,
    )  # fmt: skip
    axes.set_xlabel("time (ms)", fontsize=NORMAL, color=INK)
    if bars.omitted:
        figure.text(
            0.2 / WIDTH, 0.12 / height, f"{bars.omitted} further links that are less busy",
            fontsize=SMALL, color=FAINT,
        )  # fmt: skip
    return figure


def _frame(axes: Axes, names: Sequence[str], span: float, each: float) -> None:
    axes.set_xlim(0, span * 1.01)
    axes.set_ylim(len(names) - 0.5, -0.5)
    size = min(NORMAL, 60 * each)
    axes.set_yticks(range(len(names)), [short(name, 32) for name in names], fontsize=size)
    axes.grid(axis="x", color="#e0e0e0", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=SMALL, length=3, color="#b0b0b0", labelcolor=INK)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color("#b0b0b0")
