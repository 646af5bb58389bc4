"""What more time is worth: schedules and bounds of `auto` under limits of 10 s to an hour."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.output import BLUE, GREEN, ORANGE, SKY, STYLE, markdown, over, save, up
from bench.search.networks import NAMES
from bench.store import MACHINE, Runs, Values
from optpart.interop.formats.native import read
from optpart.methods import registry
from optpart.solution.result import Budget, Progress

LIMITS = (10, 60, 600, 3600)
WORKERS = 2

#: A trace keeps the last step of every interval whose ends differ by this factor.
_GRAIN = 1.05

_COLOURS = dict(zip(LIMITS, (ORANGE, SKY, GREEN, BLUE), strict=True))

#: Left end of the axis of time.
_FIRST = 0.5


def runs(instances: Path) -> Iterator[Runs]:
    for seconds, name in product(LIMITS, NAMES):
        path = instances / f"{name}.json"
        yield {"instance": name, "seconds": seconds}, partial(measured, path, seconds)


def measured(path: Path, seconds: float) -> Values:
    steps: list[Progress] = []
    budget = Budget(seconds, WORKERS)
    result = registry.get("auto")(read(path), budget=budget, seed=0, watch=steps.append)
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
        values = (None if x is None else float(x) for x in (step.objective, step.bound))
        kept[place] = [round(step.seconds, 3), *values]
    return list(kept.values())


def table(rows: list[Values]) -> str:
    found = {(row["instance"], row["seconds"]): row for row in rows}
    lines = [(f"`{name}`", *(_cell(found.get((name, s))) for s in LIMITS)) for name in NAMES]
    return (
        f"Makespan over bound, and the gap, by `auto` with a limit of so many seconds on "
        f"{WORKERS} workers, one seed. {MACHINE}.\n\n"
        f"{markdown(('instance', *(f'{seconds} s' for seconds in LIMITS)), lines)}"
    )


def _cell(row: Values | None) -> str:
    if row is None:
        return "–"
    if row["status"] == "OPTIMAL":
        return f"{up(row['makespan'])}, optimal"
    if not row["bound"]:
        return f"{up(row['makespan'])}, no bound"
    return over(row["makespan"], row["bound"])


def draw(rows: list[Values], path: Path) -> None:
    """Draw a panel an instance: best makespans, full, and bounds, dashed, over time."""
    with mpl.rc_context(fname=STYLE):
        figure = Figure(figsize=(9, 6.5), layout="constrained")
        for axes, name in zip(figure.subplots(2, 2).ravel(), NAMES, strict=True):
            _panel(axes, [row for row in rows if row["instance"] == name])
            axes.set_title(name)
        figure.suptitle("Best makespan (full) and proven bound (dashed), by limit of time")
        save(figure, path)


def _panel(axes: Axes, rows: list[Values]) -> None:
    for row in sorted(rows, key=lambda row: int(row["seconds"])):
        limit = row["seconds"]
        for column, style in ((1, "-"), (2, "--")):
            known = [(max(step[0], _FIRST), step[column]) for step in row["trace"] if step[column]]
            if known:
                times, values = zip(*known, strict=True)
                label = f"{limit} s" if column == 1 else None
                axes.step(times, values, style, where="post", color=_COLOURS[limit], label=label)
    axes.set_xscale("log")
    axes.set_xlim(_FIRST, LIMITS[-1])
    axes.set_xticks([1, *LIMITS], ["1", *map(str, LIMITS)])
    axes.minorticks_off()
    axes.set_xlabel("seconds")
    axes.set_ylabel("makespan")
    if rows:
        axes.legend(title="limit")
