"""Tables as CSV and text."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from bench.reproduce.cases import Case
from bench.reproduce.data import Data, Pair
from bench.reproduce.strategy import OWN
from optpart.methods import registry

Cell = str | int | float


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Write rows as CSV."""
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return target.getvalue()


def spread(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation (0 for one value), rounded to six digits."""
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return rounded(float(np.mean(values))), rounded(deviation)


def rounded(value: float) -> float:
    """Six significant digits."""
    return float(f"{value:.6g}")


def schedulers(partitioner: str) -> list[str]:
    """Return the orders in which a strategy's placement is executed."""
    return [*registry.SCHEDULERS, *([OWN] if partitioner in registry.ORDERED else [])]


# --- makespans and placements ---------------------------------------------------------------------

MAKESPAN = (
    "setting", "graph", "devices", "partitioner", "scheduler", "runs", "mean", "std", "min", "max",
)  # fmt: skip
PARTITION = (
    "setting", "graph", "devices", "partitioner", "runs", "without placement", "traffic mean",
    "traffic std", "seconds median", "seconds min", "seconds max", "devices used", "busiest device",
)  # fmt: skip


def makespans(data: Data) -> str:
    """All makespans: mean and standard deviation over the runs."""
    rows: list[tuple[Cell, ...]] = []
    for case in data.cases:
        for name in data.partitioners(case):
            for rule in schedulers(name):
                values = data.makespans(case, name, rule)
                if len(values):
                    ends = (rounded(float(values.min())), rounded(float(values.max())))
                    rows.append(
                        (
                            case.setting, case.graph, case.devices, name, rule, len(values),
                            *spread(values.tolist()), *ends,
                        )
                    )  # fmt: skip
    return csv_text(MAKESPAN, rows)


def partitions(data: Data) -> str:
    """Traffic, time and load of all strategies."""
    rows: list[tuple[Cell, ...]] = []
    for case in data.cases:
        for name in data.partitioners(case):
            runs, times = data.found(case, name), data.times(case, name)
            rows.append(
                (
                    case.setting, case.graph, case.devices, name, len(runs),
                    len(data.all(case, name)) - len(runs),
                    *spread(data.traffics(case, name).tolist()),
                    *(rounded(float(f(times))) for f in (np.median, np.min, np.max)),
                    rounded(float(np.mean([run.used for run in runs]))),
                    rounded(data.imbalance(case, name)),
                )
            )  # fmt: skip
    return csv_text(PARTITION, rows)


# --- gaps -----------------------------------------------------------------------------------------

GAPS = ("setting", "graph", "devices", "method", "runs", "over bound", "over best known")


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


def gaps(data: Data) -> str:
    """Gap of every pair on every case."""
    return csv_text(
        GAPS,
        (
            (
                case.setting, case.graph, case.devices, pair_name(pair), runs,
                "" if bound is None else rounded(bound), rounded(max(0.0, best)),
            )
            for case, pair, runs, bound, best in gap_rows(data)
        ),
    )  # fmt: skip


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


def references(data: Data) -> str:
    """Bounds and best known makespans, and the gap between the two."""
    rows: list[tuple[Cell, ...]] = []
    for case in data.main:
        for run in range(1, data.runs + 1):
            bound = data.bound(case, run)
            if bound is None or (case.fixed and run > 1):
                continue
            best = data.best_known(case, run)
            rows.append(
                (
                    case.setting, case.graph, case.devices, run, rounded(bound.value),
                    bound.method, rounded(best), rounded(max(0.0, best / bound.value - 1)),
                )
            )  # fmt: skip
    return csv_text(
        ("setting", "graph", "devices", "run", "bound", "bound by", "best known", "gap"), rows
    )


# --- text -----------------------------------------------------------------------------------------


def makespan_text(data: Data) -> Iterator[str]:
    """Yield a table a case: mean makespan ± standard deviation by strategies."""
    for case in data.cases:
        names = data.partitioners(case)
        if not names:
            continue
        width = max(map(len, names))
        yield f"{case.graph} on {case.devices} devices{f', {case.variant}' if case.variant else ''}"
        head = "".join(f"{rule:>22}" for rule in registry.SCHEDULERS)
        yield f"{'':{width}}{head}{'traffic':>26}{'partitioning':>16}  runs"
        for name in names:
            cells = [
                plus_minus(data.makespans(case, name, r).tolist()) for r in registry.SCHEDULERS
            ]
            cells.append(plus_minus(data.traffics(case, name).tolist()))
            time = f"{1000 * data.seconds(case, name):.2f} ms"
            found, tried = len(data.found(case, name)), len(data.all(case, name))
            note = "" if found == tried else f" of {tried}: no placement in the others"
            if tried < data.runs:
                note += " (too slow for more)"
            *rules, traffic = cells
            shown = "".join(f"{cell:>22}" for cell in rules) + f"{traffic:>26}"
            yield f"{name:{width}}{shown}{time:>16}  {found}{note}"
        failed = [n for n in registry.PARTITIONERS if n not in names and data.all(case, n)]
        if failed:
            yield f"no placement in any run: {', '.join(failed)}"
        yield ""


def plus_minus(values: Sequence[float]) -> str:
    """Mean ± standard deviation."""
    mean, deviation = spread(values)
    return f"{short(mean)} ± {short(deviation, 2)}"


def short(value: float, digits: int = 5) -> str:
    """Return a number with this many digits, without decimals if that is enough."""
    shown = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e" in shown and value < 1e7 else shown
