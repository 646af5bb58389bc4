"""Speed-up over the best baseline against the bandwidth between servers."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from bench.store import Row
from bench.strategy.runs import BASELINES, OURS, time_of
from optpart.files import ANY, write_bytes

_STYLE = Path(__file__).parents[1] / "charts.mplstyle"
_LOOKS = (("#0072b2", "o"), ("#d55e00", "s"), ("#009e73", "^"))
_DPI = 110
_TICKS = (0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 20, 30, 50)


def speedups(
    rows: Sequence[Row], model: str, gbits: Sequence[float], seconds: float
) -> list[tuple[float, float]]:
    """Return bandwidths with the speed-up over the best baseline, as far as both are feasible."""
    found = []
    for gbit in gbits:
        here = {
            row.run["method"]: time
            for row in rows
            if row.run["part"] == "bandwidth"
            and (row.run["model"], row.run["gbit"]) == (model, gbit)
            and row.run["seconds"] in (0.0, seconds)
            and (time := time_of(row)) is not None
        }
        known = [here[name] for name in BASELINES if name in here]
        if known and OURS in here:
            found.append((gbit, float(min(known) / here[OURS])))
    return found


def draw(
    rows: Sequence[Row], models: Sequence[str], gbits: Sequence[float], seconds: float, path: Path
) -> None:
    """Draw one line per model."""
    with mpl.rc_context(fname=_STYLE):
        figure = Figure(figsize=(6, 3.6), layout="constrained")
        axes = figure.subplots()
        for model, (colour, marker) in zip(models, _LOOKS, strict=False):
            points = speedups(rows, model, gbits, seconds)
            x, y = [gbit for gbit, _ in points], [gain for _, gain in points]
            axes.plot(x, y, marker + "-", color=colour, markersize=4, label=model)
        axes.axhline(1, color="#222222", linewidth=0.8)
        axes.set_xscale("log")
        axes.set_xticks(gbits, [f"{gbit:g}" for gbit in gbits])
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        ticks = [tick for tick in _TICKS if low <= tick <= high]
        axes.set_yticks(ticks, [f"{tick:g}×" for tick in ticks])
        axes.minorticks_off()
        axes.set_xlabel("Gbit/s between servers")
        axes.set_ylabel("best baseline / search")
        axes.set_title(f"Eight GPUs in four servers; search {seconds:g} s")
        axes.legend()
        target = io.BytesIO()
        figure.savefig(target, format="png", dpi=_DPI, metadata={"Software": None})
    write_bytes(path, target.getvalue(), ANY)
