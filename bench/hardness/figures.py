"""The two figures: time to proof against size, and the easy–hard–easy curve of PARTITION."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.hardness.families import FAMILIES
from bench.output import BLUE, GREEN, PINK, RED, save
from bench.store import Values

_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_INK = "#222222"
_LOOK = {True: (BLUE, "o", "drawn as yes"), False: (RED, "s", "drawn as no")}


def times(runs: Sequence[Values], special: Sequence[Values], limit: float, path: Path) -> None:
    """Draw one panel a family, and one for what is polynomial."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        figure = Figure(figsize=(13, 6.6), layout="constrained")
        panels = figure.subplots(2, 4).ravel()
        for axes, name in zip(panels, FAMILIES, strict=False):
            _family(axes, name, [run for run in runs if run["family"] == name], limit)
        _special(panels[len(FAMILIES)], special, limit)
        panels[0].legend(frameon=False, loc="upper left", fontsize=8)
        figure.suptitle(
            f"Time to a proof with CP-SAT, one thread (limit {limit:g} s: hollow); lines: medians",
            color=_INK,
        )
        save(figure, path, dpi=120)


def _family(axes: Axes, name: str, runs: Sequence[Values], limit: float) -> None:
    for yes, (colour, marker, label) in _LOOK.items():
        drawn = [run for run in runs if run["yes"] == yes]
        shift = 0.985 if yes else 1.015  # so that neither hides the other
        for done in (True, False):
            some = [run for run in drawn if (run["answer"] is not None) == done]
            axes.plot(
                [run["size"] * shift for run in some], [run["seconds"] for run in some], marker,
                color=colour, markersize=5, fillstyle="full" if done else "none",
                label=label if done else None,
            )  # fmt: skip
        sizes = sorted({run["size"] for run in drawn})
        middle = [median(run["seconds"] for run in drawn if run["size"] == size) for size in sizes]
        axes.plot(sizes, middle, color=colour, linewidth=1, alpha=0.6)
    _decorate(axes, name, FAMILIES[name].size_is, limit)


def _special(axes: Axes, special: Sequence[Values], limit: float) -> None:
    looks = {"Hu": (GREEN, "^"), "Coffman–Graham": (PINK, "v"), "table of sums": (_INK, "d")}
    for name, (colour, marker) in looks.items():
        rows = [row for row in special if row["name"] == name]
        axes.plot([row["size"] for row in rows], [row["seconds"] for row in rows], marker + "-",
                  color=colour, markersize=4, linewidth=1, label=name)  # fmt: skip
        by_tf = [row for row in rows if row["by_tf"] is not None]
        axes.plot([row["size"] for row in by_tf], [row["by_tf"] for row in by_tf], marker + ":",
                  color=colour, markersize=4, fillstyle="none", linewidth=1)  # fmt: skip
    _decorate(axes, "polynomial (dotted: CP-SAT)", "jobs or numbers", limit)
    axes.set_xscale("log")
    axes.set_ylim(5e-5, 100 * limit)
    axes.legend(frameon=False, fontsize=8, loc="upper left")


def _decorate(axes: Axes, title: str, size_is: str, limit: float) -> None:
    axes.set_yscale("log")
    axes.set_ylim(5e-3, 2 * limit)
    axes.axhline(limit, color="#bdbdbd", linewidth=0.8)
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(size_is)
    axes.set_ylabel("seconds")


def critical_count(bits: float) -> float:
    """Return the count of random numbers of this many bits at which one even split is expected.

    S. Mertens, Phase transition in the number partitioning problem, Physical Review Letters 81
    (1998), after I. P. Gent, T. Walsh (1996): ``κ = bits/n = 1 − log2(πn/6) / (2n)``.
    """
    low, high = 1.0, 4.0 * bits + 8
    for _ in range(60):
        n = (low + high) / 2
        low, high = (n, high) if n - math.log2(math.pi * n / 6) / 2 < bits else (low, n)
    return (low + high) / 2


def curve(rows: Sequence[Values], bits: int, path: Path) -> None:
    """Draw nodes, seconds and the share of yes against the count of numbers."""
    counts = sorted({row["count"] for row in rows})
    by = {n: [row for row in rows if row["count"] == n] for n in counts}
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        figure = Figure(figsize=(9, 7), layout="constrained")
        top, middle, below = figure.subplots(3, 1, sharex=True, height_ratios=[2, 2, 1])
        for axes, values, label in (
            (top, {n: [float(row["nodes"]) for row in by[n]] for n in counts},
             "nodes of complete differencing"),
            (middle, {n: [row["seconds"] for row in by[n]] for n in counts},
             "seconds of CP-SAT on TF"),
        ):  # fmt: skip
            for n in counts:
                axes.plot([n] * len(values[n]), values[n], ".", color="#a0a0a0", markersize=3)
            axes.plot(counts, [median(values[n]) for n in counts], "o-", color=BLUE, markersize=4)
            axes.set_yscale("log")
            axes.set_ylabel(label)
        share = [sum(row["answer"] is True for row in by[n]) / len(by[n]) for n in counts]
        below.plot(counts, share, "s-", color=GREEN, markersize=4)
        below.set_ylabel("share of yes")
        below.set_xlabel("count of numbers n")
        critical = critical_count(bits)
        for axes in (top, middle, below):
            axes.axvline(critical, color=RED, linewidth=1)
        top.text(critical, 1.0, f" transition expected at n = {critical:.1f}", color=RED,
                 transform=top.get_xaxis_transform(), va="top")  # fmt: skip
        upper = top.secondary_xaxis("top", functions=(lambda n: n, lambda n: n))
        upper.set_xticks(counts[::2], [f"{bits / n:.2f}" for n in counts[::2]])
        upper.set_xlabel("κ = bits / n")
        figure.suptitle(f"PARTITION of random {bits}-bit numbers, by their count", color=_INK)
        save(figure, path, dpi=120)
