"""Methods compared on instances: boxes, performance profiles and means."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from optpart.choices import choice
from optpart.errors import InputError
from optpart.report.axes import given_or_new
from optpart.report.gantt.colours import QUALITATIVE
from optpart.report.gantt.style import BOUND, INK
from optpart.report.gantt.words import short
from optpart.rounding import percent
from optpart.study.gap import Comparison, excess

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS = ("box", "profile", "mean")
_STYLES = ("-", "--", ":", "-.")


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
    runs = _runs(comparisons)
    if not runs:
        raise InputError("comparisons", "without results", "compare at least one method")
    axes = given_or_new(ax)
    if kind == "profile":
        return _profile(axes, runs)
    over = {m: [value for _, value in rows if value is not None] for m, rows in runs.items()}
    if not any(over.values()):
        problem = "no run has a schedule and a reference"
        raise InputError("comparisons", problem, "compare on an instance with a known schedule")
    labels = []
    for method, rows in runs.items():
        left = len(rows) - len(over[method])
        labels.append(short(method, 24) + (f"\n{left}/{len(rows)} not solved" if left else ""))
    heights = [[100 * value for value in over[method]] for method in runs]
    places = range(len(runs))
    if kind == "box":
        axes.boxplot(heights, positions=[*places], medianprops={"color": BOUND})
    else:
        means = [math.fsum(values) / len(values) if values else 0.0 for values in heights]
        axes.bar(places, means, color=QUALITATIVE[0], edgecolor=INK, linewidth=0.6)
        for at, (mean, values) in enumerate(zip(means, heights, strict=True)):
            axes.text(at, mean, percent(mean / 100) if values else "–", ha="center", va="bottom")
    axes.set_xticks([*places], labels, rotation=0 if len(runs) <= 6 else 30, ha="center")
    axes.set_ylabel(("over" if kind == "box" else "mean over") + " the reference (%)")
    axes.axhline(0, color=INK, linewidth=0.8)
    return axes


#: The makespan of a run, and how far it is above the reference.
_Row = tuple[Fraction | None, float | None]


def _runs(comparisons: Sequence[Comparison]) -> dict[str, list[_Row]]:
    """Return the runs of each method, of all methods in the same order of instances and seeds."""
    found: dict[str, list[_Row]] = defaultdict(list)
    for comparison in comparisons:
        for result in sorted(comparison.results, key=lambda result: result.seed):
            over = excess(result.makespan, comparison.reference.makespan)
            found[result.method].append((result.makespan, over))
    return dict(found)


def _profile(axes: Axes, runs: dict[str, list[_Row]]) -> Axes:
    """Draw the share of runs within each factor of the best."""
    counts = {len(rows) for rows in runs.values()}
    if len(counts) > 1:
        problem = "methods have unlike numbers of runs"
        raise InputError("comparisons", problem, "run all methods on the same instances and seeds")
    (total,) = counts
    best: list[Fraction | None] = []
    for i in range(total):
        known = [rows[i][0] for rows in runs.values()]
        best.append(min((value for value in known if value is not None), default=None))
    ratios = {method: _ratios([value for value, _ in rows], best) for method, rows in runs.items()}
    last = max((ratio for listed in ratios.values() for ratio in listed), default=1.0)
    end = 1 + 1.05 * (last - 1) if last > 1 else 1.1
    for m, (method, listed) in enumerate(ratios.items()):
        shares = [0.0, *((i + 1) / total for i in range(len(listed)))]
        axes.step(
            [1.0, *listed, end], [*shares, shares[-1]], where="post",
            label=short(method, 24), color=QUALITATIVE[m % len(QUALITATIVE)],
            linestyle=_STYLES[m // len(QUALITATIVE) % len(_STYLES)],
        )  # fmt: skip
    axes.set_xlim(1, end)
    axes.set_ylim(0, 1.03)
    axes.set_xlabel("makespan, as a multiple of the least of all methods")
    axes.set_ylabel(f"share of {total} runs")
    axes.legend(frameon=False)
    return axes


def _ratios(values: list[Fraction | None], best: list[Fraction | None]) -> list[float]:
    """Return the multiples of the best, ascending, of runs with a schedule."""
    found = []
    for value, least in zip(values, best, strict=True):
        if value is not None and least is not None:
            found.append(float(value / least) if least else (1.0 if not value else math.inf))
    return sorted(ratio for ratio in found if math.isfinite(ratio))
