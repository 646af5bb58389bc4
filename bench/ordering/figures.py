"""Figures 7 to 10 of [H], and how far orders are from the best known."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.ordering.cases import MODELS, Case, cases
from bench.ordering.measure import (
    BASELINE,
    MECHANISMS,
    NOISE,
    SAMPLE,
    TAO,
    TIO,
    WORKERS,
    Measured,
    gap,
)
from optpart.files import ANY, write_bytes

#: Okabe and Ito's colours, which colour-blind readers can tell apart.
COLOURS = dict(
    zip(MECHANISMS, ("#e69f00", "#56b4e9", "#0072b2", "#009e73", "#d55e00"), strict=True)
)
LABELS = {
    BASELINE: "baseline (random order)",
    "best": "theoretical best",
    "worst": "theoretical worst",
}
_DPI = 110
_STYLE = Path(__file__).parents[1] / "charts.mplstyle"


def draw_all(found: Measured, folder: Path) -> None:
    with mpl.rc_context(fname=_STYLE):
        for name, draw in (
            ("figure_7", figure_7),
            ("figure_8", figure_8),
            ("figure_9", figure_9),
            ("figure_10", figure_10),
            ("true_gap", true_gap),
        ):
            figure = draw(found)
            target = io.BytesIO()
            figure.savefig(target, format="png", dpi=_DPI, metadata={"Software": None})
            write_bytes(folder / f"{name}.png", target.getvalue(), ANY)


def label(mechanism: str) -> str:
    return LABELS.get(mechanism, mechanism)


def figure_7(found: Measured) -> Figure:
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    times = found.normalised(NOISE)
    x = np.concatenate([found.sample[NOISE, m].efficiency[:, 0] for m in (BASELINE, TAO)])
    y = np.concatenate([times[m] for m in (BASELINE, TAO)])
    slope, intercept = np.polyfit(x, y, 1)
    for mechanism, marker in ((BASELINE, "o"), (TAO, "s")):
        axes.plot(
            found.sample[NOISE, mechanism].efficiency[:, 0],
            times[mechanism],
            marker,
            color=COLOURS[mechanism],
            markersize=3,
            alpha=0.5,
            label=label(mechanism),
        )
    ends = np.array([x.min(), x.max()])
    r2 = found.r_squared(NOISE, BASELINE, TAO)
    axes.plot(ends, slope * ends + intercept, color="black", linewidth=1, label=f"R² = {r2:.3f}")
    axes.set_xlabel("ordering efficiency E")
    axes.set_ylabel("fastest step / step")
    axes.set_title(f"{SAMPLE.name}, {len(times[TAO])} steps each (after [H] figure 7)")
    axes.legend(loc="upper left")
    return figure


def figure_8(found: Measured) -> Figure:
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for mechanism, line in ((BASELINE, "-"), (TIO, "-"), (TAO, "--")):
        values = np.sort(found.normalised(NOISE)[mechanism])
        share = np.arange(1, len(values) + 1) / len(values)
        axes.plot(values, share, line, color=COLOURS[mechanism], label=label(mechanism))
    axes.set_xlabel("fastest step / step")
    axes.set_ylabel("share of steps")
    axes.set_title(f"Distribution of step time, {SAMPLE.name} (after [H] figure 8)")
    axes.legend(loc="center")
    return figure


def figure_9(found: Measured) -> Figure:
    figure = Figure(figsize=(12, 9), layout="constrained")
    rows = figure.subplots(3, 2)
    measures: Sequence[tuple[str, Callable[[Case, str], float], tuple[str, ...]]] = (
        ("speed-up over the baseline", found.speedup, MECHANISMS[1:]),
        ("ordering efficiency E", found.efficiency, MECHANISMS[:3]),
        ("straggler effect", found.straggler, MECHANISMS),
    )
    for row, (what, value, names) in zip(rows, measures, strict=True):
        for axes, training in zip(row, (False, True), strict=True):
            bars(axes, [Case(model, training) for model in MODELS], names, value)
            axes.set_ylabel(what)
            if what != "ordering efficiency E":
                axes.yaxis.set_major_formatter("{x:.0%}")
            mode = "forward and backward pass" if training else "forward pass"
            axes.set_title(f"{mode}: {what}")
    handles, texts = rows[2][0].get_legend_handles_labels()
    figure.legend(handles, texts, loc="outside lower center", ncols=len(MECHANISMS))
    figure.suptitle(f"1 parameter server, {WORKERS} workers (after [H] figure 9)")
    return figure


def bars(
    axes: Axes, chosen: list[Case], names: Sequence[str], value: Callable[[Case, str], float]
) -> None:
    width = 0.8 / len(names)
    for i, name in enumerate(names):
        at = np.arange(len(chosen)) + (i - (len(names) - 1) / 2) * width
        heights = [value(case, name) for case in chosen]
        axes.bar(at, heights, width, color=COLOURS[name], label=label(name))
    axes.set_xticks(range(len(chosen)), [case.model for case in chosen], fontsize=8)
    axes.grid(visible=False, axis="x")


def figure_10(found: Measured) -> Figure:
    figure = Figure(figsize=(11, 4), layout="constrained")
    for axes, training in zip(figure.subplots(1, 2), (False, True), strict=True):
        chosen = [Case(model, training) for model in MODELS]
        for i, (name, value, colour) in enumerate(
            (
                ("1 worker", found.speedup_alone, "#56b4e9"),
                (f"{WORKERS} workers", found.speedup, "#0072b2"),
            )
        ):
            at = np.arange(len(chosen)) + (i - 0.5) * 0.4
            axes.bar(at, [value(case, TAO) for case in chosen], 0.4, color=colour, label=name)
        axes.set_xticks(range(len(chosen)), [case.model for case in chosen], fontsize=8)
        axes.grid(visible=False, axis="x")
        axes.yaxis.set_major_formatter("{x:.0%}")
        axes.set_ylabel("speed-up of TAO over the baseline")
        axes.set_title("forward and backward pass" if training else "forward pass")
    handles, texts = axes.get_legend_handles_labels()
    figure.legend(handles, texts, loc="outside lower center", ncols=2)
    figure.suptitle("Number of workers (after [H] figure 10)")
    return figure


def true_gap(found: Measured) -> Figure:
    figure = Figure(figsize=(8, 4.6), layout="constrained")
    axes = figure.subplots()
    chosen = cases()
    shapes = (("random-order", "x", "#e69f00"), ("tio", "o", "#56b4e9"), ("tao", "s", "#0072b2"))
    for name, marker, colour in shapes:
        worst = [100 * gap(found, case, name)[1] for case in chosen]
        size = {"tio": 9, "tao": 5}.get(name, 7)
        axes.plot(worst, marker, color=colour, markersize=size, label=name, linestyle="none")
    proven = [found.attainable[case] for case in chosen]
    slack = [
        100 * float((best.proven - best.makespan) / best.makespan) if best.makespan else 0.0
        for best in proven
    ]
    axes.plot(slack, "_", color="black", markersize=12, label="proven lower bound")
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_yscale("symlog", linthresh=1)
    ticks = [-1, -0.5, 0, 0.5, 1, 3, 10, 30, 100]
    axes.set_yticks(ticks, [f"{tick:g}%" for tick in ticks])
    axes.set_ylim(min(0.0, *slack) - 0.2, 150)
    names = [
        f"{case.name}{'' if best.optimal else '*'}"
        for case, best in zip(chosen, proven, strict=True)
    ]
    axes.set_xticks(range(len(chosen)), names, rotation=40, ha="right")
    axes.set_ylabel("longer than the best known order")
    axes.margins(x=0.03)
    open_ = "; * not proven" if not all(best.optimal for best in proven) else ", all proven"
    axes.set_title(f"Worst of all seeds against the optimal order{open_}")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return figure
