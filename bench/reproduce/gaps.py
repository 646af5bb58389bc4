"""Gaps of all pairs: as text, and as a map."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure

from bench.output import STYLE, save
from bench.reproduce.cases import Case
from bench.reproduce.data import Data, Pair
from bench.reproduce.measure import OWN
from optpart.methods import registry


def schedulers(partitioner: str) -> list[str]:
    """Return the orders in which a strategy's placement is executed."""
    return [*registry.USUAL_SCHEDULERS, *([OWN] if partitioner in registry.ORDERED else [])]


def gap_rows(data: Data) -> Iterator[tuple[Case, Pair, int, float | None, float]]:
    """Yield, for every case and pair, mean makespan / bound − 1 and makespan / best known − 1."""
    for case in data.main:
        best = {run: data.best_known(case, run) for run in range(1, data.runs + 1)}
        for name in data.partitioners(case):
            for rule in schedulers(name):
                over_best, over_bound = [], []
                for run in data.found(case, name):
                    value = run.makespan.get(rule)
                    if value is None:
                        continue
                    over_best.append(value / best[run.run] - 1)
                    bound = data.bound(case, run.run)
                    if bound is not None:
                        over_bound.append(value / bound.value - 1)
                if over_best:
                    yield (
                        case,
                        Pair(name, rule),
                        len(over_best),
                        float(np.mean(over_bound)) if over_bound else None,
                        float(np.mean(over_best)),
                    )


def pair_name(pair: Pair) -> str:
    """Return the name of a method; a strategy with its own order goes by its name alone."""
    return pair.partitioner if pair.scheduler == OWN else str(pair)


def gap_summary(data: Data) -> str:
    """Mean gap of every pair by setting, best first, in text."""
    settings = list(dict.fromkeys(case.setting for case in data.main))
    over_best: dict[str, dict[str, list[float]]] = {}
    over_bound: dict[str, dict[str, list[float]]] = {}
    for case, pair, _, bound, best in gap_rows(data):
        name = pair_name(pair)
        over_best.setdefault(name, {}).setdefault(case.setting, []).append(best)
        if bound is not None:
            over_bound.setdefault(name, {}).setdefault(case.setting, []).append(bound)
    graphs = {s: len({case.key for case in data.of(s)}) for s in settings}

    def mean(of: dict[str, list[float]], setting: str) -> str:
        values = of.get(setting, [])
        if not values:
            return "–"
        missing = "*" if len(values) < graphs[setting] else ""
        return f"{100 * np.mean(values):.0f}%{missing}"

    def overall(name: str) -> float:
        of = over_best[name]
        return float(np.mean([np.mean(of[s]) if s in of else np.inf for s in settings]))

    width = max(map(len, over_best))
    lines = [
        f"{'':{width}}  over the best known schedule{'':{13 * len(settings) - 28}}  over the bound",
        f"{'method':{width}}" + 2 * ("  " + "".join(f"{s:>13}" for s in settings)),
    ]
    for name in sorted(over_best, key=overall):
        cells = [mean(over_best[name], s) for s in settings]
        bounds = [mean(over_bound.get(name, {}), s) for s in settings]
        lines.append(
            f"{name:{width}}  "
            + "".join(f"{cell:>13}" for cell in cells)
            + "  "
            + "".join(f"{cell:>13}" for cell in bounds)
        )
    lines.append("")
    lines.append("Means over graphs and runs; * not on all graphs of the setting.")
    lines += [f"{s}: {', '.join(case.key for case in data.of(s))}" for s in settings]
    return "\n".join(lines) + "\n"


# --- the map --------------------------------------------------------------------------------------


def gap_map(data: Data, path: Path) -> None:
    """Gap of every strategy under its best scheduler to the best known schedule, in classes."""
    best: dict[str, dict[str, float]] = {}
    for case, pair, _, _, over in gap_rows(data):
        row = best.setdefault(pair.partitioner, {})
        row[case.key] = min(row.get(case.key, np.inf), over)
    cases = [case for case in data.main if data.partitioners(case)]
    names = sorted(best, key=lambda n: np.mean(np.log1p([best[n].get(c.key, 10) for c in cases])))
    table = np.array([[best[name].get(case.key, np.nan) for case in cases] for name in names])
    limits = [0, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 1000]
    colours = ListedColormap(mpl.colormaps["YlGnBu"](np.linspace(0.0, 1.0, len(limits) - 1)))
    with mpl.rc_context(fname=STYLE):
        size = 3 + 0.47 * len(cases), 1.6 + 0.25 * len(names)
        figure = Figure(figsize=size, layout="constrained")
        ax = figure.subplots()
        ax.imshow(table, cmap=colours, norm=BoundaryNorm(limits, colours.N), aspect="auto")
        for (y, x), value in np.ndenumerate(table):
            text = "–" if np.isnan(value) else f"{100 * value:.0f}" if value < 99.5 else "≫"
            ax.text(
                x, y, text, ha="center", va="center", fontsize=7,
                color="white" if value >= 1 else "black",
            )  # fmt: skip
        ax.set_xticks(
            range(len(cases)), [short_key(case) for case in cases], rotation=60, ha="right"
        )
        ax.set_yticks(range(len(names)), names)
        ax.tick_params(labelsize=8, length=0)
        ax.grid(False)
        what = "Makespan over the best known, in percent"
        ax.set_title(f"{what}: best scheduler of each strategy, mean of runs")
        save(figure, path)


def short_key(case: Case) -> str:
    return case.key.replace("thesis-", "graph ").replace("_network", "").replace("@", " @ ")
