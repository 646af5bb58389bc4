"""What more time is worth: schedules and bounds of `auto` under limits of 10 s to an hour."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.search.networks import NAMES
from bench.search.rows import Part, over, up
from bench.store import MACHINE, Values
from optpart.files import ANY, write_bytes
from optpart.formats.native import read
from optpart.methods import registry
from optpart.solution.result import Budget, Progress

LIMITS = (10, 60, 600, 3600)
WORKERS = 2

#: A trace keeps the last step of every interval whose ends differ by this factor.
_GRAIN = 1.05

#: Okabe and Ito's colours, which colour-blind readers can tell apart, by limit.
_COLOURS = dict(zip(LIMITS, ("#e69f00", "#56b4e9", "#009e73", "#0072b2"), strict=True))
_STYLE = Path(__file__).parents[1] / "charts.mplstyle"
_DPI = 110

#: Left end of the axis of time.
_FIRST = 0.5


def run(shared: Path, folder: Path) -> str:
    """Run what is missing, draw the curves and return the table."""
    store = Part(folder, "budgets")
    for seconds in LIMITS:
        for name in NAMES:
            path = shared / "instances" / f"{name}.json"
            store.run({"instance": name, "seconds": seconds}, lambda: _row(path, seconds))  # noqa: B023
    _draw(store.rows, folder / "budgets.png")
    return "\n".join(_table(store.rows))


def _row(path: Path, seconds: float) -> Values:
    steps: list[Progress] = []
    result = registry.get("auto")(
        read(path), budget=Budget(seconds, WORKERS), seed=0, watch=steps.append
    )
    assert result.makespan is not None
    last = Progress(result.seconds, result.makespan, result.lower_bound)
    return {
        "status": str(result.status),
        "makespan": float(result.makespan),
        "bound": float(result.lower_bound or 0),
        "schedule_by": result.schedule_by,
        "bound_by": result.bound_by,
        "trace": _thinned([*steps, last]),
    }


def _thinned(steps: Sequence[Progress]) -> list[list[float | None]]:
    """Return seconds, makespan and bound of the last step of each interval."""
    kept = {}
    for step in steps:
        place = math.floor(math.log(max(step.seconds, 1e-3), _GRAIN))
        kept[place] = [
            round(step.seconds, 3),
            None if step.objective is None else float(step.objective),
            None if step.bound is None else float(step.bound),
        ]
    return list(kept.values())


def _table(rows: list[Values]) -> Iterator[str]:
    yield (
        f"Makespan over bound, and the gap, by `auto` with a limit of so many seconds on "
        f"{WORKERS} workers, one seed. {MACHINE}.\n"
    )
    yield "| instance | " + " | ".join(f"{seconds} s" for seconds in LIMITS) + " |"
    yield "|---" * (len(LIMITS) + 1) + "|"
    found = {(row["instance"], row["seconds"]): row for row in rows}
    for name in NAMES:
        cells = [_cell(found.get((name, seconds))) for seconds in LIMITS]
        yield f"| `{name}` | " + " | ".join(cells) + " |"


def _cell(row: Values | None) -> str:
    if row is None:
        return "–"
    if row["status"] == "OPTIMAL":
        return f"{up(row['makespan'])}, optimal"
    if not row["bound"]:
        return f"{up(row['makespan'])}, no bound"
    return over(row["makespan"], row["bound"])


def _draw(rows: list[Values], path: Path) -> None:
    """Draw a panel an instance: best makespans, full, and bounds, dashed, over time."""
    with mpl.rc_context(fname=_STYLE):
        figure = Figure(figsize=(9, 6.5), layout="constrained")
        for axes, name in zip(figure.subplots(2, 2).ravel(), NAMES, strict=True):
            _panel(axes, [row for row in rows if row["instance"] == name])
            axes.set_title(name)
        figure.suptitle("Best makespan (full) and proven bound (dashed), by limit of time")
        target = io.BytesIO()
        figure.savefig(target, format="png", dpi=_DPI, metadata={"Software": None})
    write_bytes(path, target.getvalue(), ANY)


def _panel(axes: Axes, rows: list[Values]) -> None:
    tops = []
    for row in sorted(rows, key=lambda row: int(row["seconds"])):
        limit = row["seconds"]
        for column, style in ((1, "-"), (2, "--")):
            known = [
                (max(step[0], _FIRST), step[column])
                for step in row["trace"]
                if step[column] is not None and step[column] > 0
            ]
            if not known:
                continue
            times, values = zip(*known, strict=True)
            label = f"{limit} s" if column == 1 else None
            axes.step(times, values, style, where="post", color=_COLOURS[limit], label=label)
            tops.append(values[0])
    axes.set_xscale("log")
    axes.set_xlim(_FIRST, LIMITS[-1])
    axes.set_xticks([1, *LIMITS], ["1", *map(str, LIMITS)])
    axes.minorticks_off()
    axes.set_xlabel("seconds")
    axes.set_ylabel("makespan")
    if tops:
        axes.legend(title="limit")
