"""One picture of a reduction: the source on the left, the schedule of TF on the right."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Collection, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optpart.applications.reductions.decide import SHORTEST, WORDS, Answer, shortest
from optpart.base.errors import InputError
from optpart.base.files import PICTURES, write_bytes
from optpart.solution.result import Result, Status
from optpart.solution.schedule import Schedule

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind readers can tell apart; vermilion marks limits.
_COLOURS = ("#56b4e9", "#e69f00", "#009e73", "#f0e442", "#cc79a7", "#bdbdbd")
_STRONG = "#0072b2"
_PLAIN, _INK, _LIMIT = "#d9d9d9", "#222222", "#d55e00"
_NORMAL, _SMALL = 9.0, 7.0  # points
_WIDTH, _HEIGHT, _DPI = 13.0, 5.6, 120  # inches
_METADATA: dict[str, dict[str, str | None]] = {
    "png": {"Software": "optpart"},
    "svg": {"Date": None, "Creator": "optpart"},
}
_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": _NORMAL,
    "svg.fonttype": "none",
    "svg.hashsalt": "optpart",
    "text.parse_math": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
#: Larger drawings have no labels.
_MOST_LABELS = 40


def draw(answer: Answer[Any, Any], path: str | Path, seconds: float = SHORTEST) -> None:
    """Write the picture of an answer, completely or not at all; the suffix gives the format.

    Parameters
    ----------
    seconds : float
        Time limit of the schedule to show if the answer is not yes.
    """
    suffix = Path(path).suffix.lower()[1:]
    if suffix not in _METADATA:
        raise InputError("", f"no picture format {suffix!r}", "use .png or .svg", str(path))
    import matplotlib as mpl

    target = io.BytesIO()
    with mpl.rc_context():
        mpl.rcdefaults()  # the user's settings must not change the picture
        mpl.rcParams.update(_STYLE)
        _figure(answer, seconds).savefig(
            target, format=suffix, dpi=_DPI, metadata=_METADATA[suffix]
        )
    write_bytes(path, target.getvalue(), PICTURES[f".{suffix}"])


def _figure(answer: Answer[Any, Any], seconds: float) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, _HEIGHT))
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.15])
    figure.subplots_adjust(left=0.06, right=0.97, top=0.74, bottom=0.14, wspace=0.2)
    reduction, question = answer.reduction, answer.question
    best = answer.result if answer.verdict else shortest(question, seconds)
    verdict = WORDS[answer.verdict]
    figure.text(
        0.02, 0.95, f"{reduction.title}  →  TF:  {verdict}", fontsize=13, weight="bold", color=_INK
    )
    _head(figure, 0.02, "source", reduction.describe(answer.source))
    instance = question.instance
    _head(
        figure,
        0.51,
        "TF",
        f"{instance.vertices} vertices, {len(instance.graph.edge_source)} edges, "
        f"{instance.devices} devices; makespan at most {question.deadline}? {_said(answer, best)}"
        + (f" {added}." if (added := reduction.added(answer.source)) else ""),
    )
    reduction.draw(left, answer.source, answer.solution)
    schedule = best.schedule
    if schedule is None:
        right.set_axis_off()
        right.text(0.5, 0.5, "no schedule to draw", ha="center", va="center", color=_INK)
    elif instance.model.memory != "none":
        _draw_memory(right, answer, schedule)
    else:
        _draw_gantt(right, answer, schedule)
    return figure


def _said(answer: Answer[Any, Any], best: Result) -> str:
    if best.schedule is None:
        shown = ""
    elif best.status is Status.OPTIMAL:
        shown = f" Below an optimal schedule, makespan {best.makespan}."
    else:
        shown = f" Below a schedule of makespan {best.makespan}, not proven shortest."
    match answer.verdict:
        case True:
            return "Yes: this schedule, which the verifier accepts."
        case False:
            return f"No, proven.{shown}"
        case None:
            return f"Not known within the time limit.{shown}"


def _colour(answer: Answer[Any, Any], device: int) -> str:
    """Return the colour of a device: what it means on the left, or none."""
    kind = answer.reduction.colours
    means = kind == "always" or (kind == "solution" and answer.solution is not None)
    return _COLOURS[device % len(_COLOURS)] if means else _PLAIN


def _head(figure: Figure, x: float, name: str, text: str) -> None:
    lines = textwrap.wrap(text, 70)
    shown = lines if len(lines) <= 4 else [*lines[:3], lines[3][:-1] + "…"]
    figure.text(x, 0.91, name, weight="bold", color=_INK, va="top")
    figure.text(x + 0.045, 0.91, "\n".join(shown), color=_INK, va="top", linespacing=1.4)


# --- the right side ------------------------------------------------------------------------------


def _draw_gantt(axes: Axes, answer: Answer[Any, Any], schedule: Schedule) -> None:
    instance, deadline = answer.question.instance, answer.question.deadline
    used = sorted({*schedule.placement.tolist()})
    row = {d: i for i, d in enumerate(used)}
    labels = instance.vertices <= 2 * _MOST_LABELS
    end = max(deadline, schedule.makespan(instance))
    for v, d in enumerate(schedule.placement.tolist()):
        start, length = schedule.start[v], instance.duration(v, d)
        axes.barh(
            row[d], float(length), left=float(start), height=0.8,
            color=_colour(answer, d), edgecolor="white", linewidth=1,
        )  # fmt: skip
        if labels and length / end > Fraction(len(instance.graph.names[v]), 100):
            middle = float(start + length / 2)
            axes.text(middle, row[d], instance.graph.names[v], ha="center", va="center",
                      fontsize=_SMALL, color=_INK)  # fmt: skip
    for i in range(len(schedule.transfers)):
        moves = schedule.transfers
        sender = int(schedule.placement[instance.graph.tensor_vertex[moves.tensor[i]]])
        if moves.start[i] < moves.end[i]:
            axes.annotate(
                "", (float(moves.end[i]), row[int(moves.target[i])]),
                (float(moves.start[i]), row[sender]),
                arrowprops={"arrowstyle": "->", "color": _INK, "linewidth": 0.6},
            )  # fmt: skip
    axes.set_yticks(range(len(used)), [instance.cluster.names[d] for d in used])
    axes.invert_yaxis()
    axes.set_xlim(0, 1.04 * float(end))
    axes.axvline(float(deadline), color=_LIMIT, linewidth=1.5)
    axes.text(float(deadline), 1.01, f"deadline {deadline}", color=_LIMIT, ha="center",
              transform=axes.get_xaxis_transform())  # fmt: skip
    _whole_ticks(axes)
    axes.set_xlabel(f"time (units of the instance); makespan {schedule.makespan(instance)}")


def _draw_memory(axes: Axes, answer: Answer[Any, Any], schedule: Schedule) -> None:
    """Draw the memory of each device as a stack, for schedules that take no time."""
    instance = answer.question.instance
    held = [Fraction(0)] * instance.devices
    for v, d in enumerate(schedule.placement.tolist()):
        size = instance.graph.memory[v]
        axes.bar(d, float(size), bottom=float(held[d]), color=_colour(answer, d),
                 edgecolor="white", linewidth=1)  # fmt: skip
        if instance.vertices <= _MOST_LABELS:
            axes.text(d, float(held[d] + size / 2), instance.graph.names[v], ha="center",
                      va="center", fontsize=_SMALL, color=_INK)  # fmt: skip
        held[d] += size
    axes.set_xticks(range(instance.devices), instance.cluster.names)
    axes.set_ylabel("resident memory")
    capacity = instance.cluster.memory[0]
    if capacity is not None:
        _limit_line(axes, float(capacity), f"capacity {capacity}")


def _whole_ticks(axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _limit_line(axes: Axes, value: float, text: str) -> None:
    axes.axhline(value, color=_LIMIT, linewidth=1.5)
    axes.text(1.0, value, text, color=_LIMIT, ha="right", va="bottom",
              transform=axes.get_yaxis_transform())  # fmt: skip


# --- the left side -------------------------------------------------------------------------------


def draw_numbers(
    axes: Axes,
    numbers: Sequence[int],
    group: Sequence[int] | None,
    *,
    limit: int | None = None,
) -> None:
    """Draw numbers as bars, coloured by group if there are groups."""
    colours = [_PLAIN if group is None else _COLOURS[g % len(_COLOURS)] for g in group or numbers]
    axes.bar(range(len(numbers)), [float(x) for x in numbers], color=colours, edgecolor="white")
    if len(numbers) <= _MOST_LABELS:
        size = _SMALL if max(map(len, map(str, numbers))) * len(numbers) <= 80 else 5.0
        for i, number in enumerate(numbers):
            axes.text(i, number, str(number), ha="center", va="bottom", fontsize=size, color=_INK)
        axes.set_xticks(range(len(numbers)))
        axes.tick_params(axis="x", labelsize=_SMALL)
    if limit is not None:
        _limit_line(axes, limit, f"capacity {limit}")


def draw_order(
    axes: Axes,
    names: Sequence[str],
    order: Sequence[tuple[int, int]],
    column: Sequence[int],
    colour: Sequence[int] | None = None,
) -> None:
    """Draw a partial order in columns, coloured by ``colour`` or else without colours."""
    place = {}
    for at in sorted(set(column)):
        members = [v for v in range(len(names)) if column[v] == at]
        for i, v in enumerate(members):
            # Shift neighbouring columns against each other, so that no vertex hides an arrow.
            place[v] = at, (len(members) - 1) / 2 - i + 0.17 * (at % 2)
    for u, v in order:
        axes.annotate("", place[v], place[u], arrowprops=_arrow(len(names)))
    labels = len(names) <= _MOST_LABELS
    for v, (x, y) in place.items():
        shade = _PLAIN if colour is None else _COLOURS[colour[v] % len(_COLOURS)]
        axes.scatter([x], [y], s=330 if labels else 40, color=shade,
                     edgecolors=_INK, linewidths=0.6, zorder=3)  # fmt: skip
        if labels:
            axes.text(x, y, names[v], ha="center", va="center", fontsize=6, color=_INK, zorder=4)
    axes.set_xticks(range(max(column) + 1))
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlim(-0.5, max(column) + 0.5)
    axes.margins(y=0.12)


def _arrow(n: int) -> dict[str, Any]:
    shrink = 9 if n <= _MOST_LABELS else 4
    return {
        "arrowstyle": "->", "color": "#767676", "linewidth": 0.8, "shrinkA": shrink,
        "shrinkB": shrink,
    }  # fmt: skip


def draw_network(
    axes: Axes,
    names: Sequence[str],
    edges: Sequence[tuple[int, int]],
    chosen: Collection[int],
) -> None:
    """Draw an undirected graph on a circle, the chosen nodes and their edges in colour."""
    turn = 2 * math.pi / len(names)
    place = [(math.sin(turn * v), math.cos(turn * v)) for v in range(len(names))]
    for u, v in edges:
        inside = u in chosen and v in chosen
        axes.plot(
            [place[u][0], place[v][0]], [place[u][1], place[v][1]],
            color=_STRONG if inside else "#a0a0a0", linewidth=2.2 if inside else 0.8,
        )  # fmt: skip
    for v, (x, y) in enumerate(place):
        axes.scatter([x], [y], s=360, color=_COLOURS[0] if v in chosen else _PLAIN,
                     edgecolors=_INK, linewidths=0.6, zorder=3)  # fmt: skip
        axes.text(x, y, names[v], ha="center", va="center", fontsize=_SMALL, color=_INK, zorder=4)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.margins(0.15)


def draw_jobs(
    axes: Axes,
    jobs: Sequence[Sequence[tuple[str, Fraction]]],
    machines: Sequence[str],
    starts: Sequence[Sequence[Fraction]] | None,
) -> None:
    """Draw every job as a row of its operations, at their starts or else one after another."""
    colour = {machine: _COLOURS[m % len(_COLOURS)] for m, machine in enumerate(machines)}
    last = Fraction(0)
    for j, job in enumerate(jobs):
        at = Fraction(0)
        for i, (machine, time) in enumerate(job):
            at = at if starts is None else starts[j][i]
            axes.barh(j, float(time), left=float(at), height=0.7, color=colour[machine],
                      edgecolor="white", linewidth=1)  # fmt: skip
            if len(jobs) <= 20:
                axes.text(float(at + time / 2), j, f"{machine}\n{time}", ha="center",
                          va="center", fontsize=_SMALL, color=_INK)  # fmt: skip
            at += time
            last = max(last, at)
    axes.set_xlim(0, 1.02 * float(last))
    _whole_ticks(axes)
    axes.set_yticks(range(len(jobs)), [f"job {j}" for j in range(len(jobs))])
    axes.invert_yaxis()
    axes.set_xlabel(
        "time (units of the source)"
        if starts is not None
        else "time of each operation, one after another"
    )
