"""Four networks: search and hybrid, compared with their starts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median

from bench.output import down, markdown, up
from bench.store import MACHINE, Runs, Values
from optpart.interop.formats.native import read
from optpart.methods import registry
from optpart.problem.instance import Instance
from optpart.solution.result import Budget, Progress
from optpart.solution.schedule import Schedule

NAMES = (
    "convolutional_network-7-1", "convolutional_network-50-1", "recurrent_network-50-1",
    "dynamic_rnn-50-1",
)  # fmt: skip
#: Methods, and how many seeds each is run with.
METHODS = {"heuristic": 1, "search": 5, "hybrid": 5}
SECONDS = 60.0


def runs(instances: Path) -> Iterator[Runs]:
    read_ones = {name: read(instances / f"{name}.json") for name in NAMES}
    starts = {name: best_heuristic(instance) for name, instance in read_ones.items()}
    for method, seeds in METHODS.items():
        for seed, name in product(range(seeds), NAMES):
            run = {"instance": name, "method": method, "seed": seed}
            yield run, partial(measured, read_ones[name], starts[name], method, seed)


def best_heuristic(instance: Instance) -> Schedule:
    """Return the best schedule of all pairs of strategies that find one."""
    found = (registry.get(name)(instance).schedule for name in registry.pairs())
    schedules = [schedule for schedule in found if schedule is not None]
    return min(schedules, key=lambda schedule: schedule.makespan(instance))


def moves_per_second(step: Progress) -> float:
    """Return the speed that a step of a search tells; 0 if it tells none."""
    found = re.match(r"([\d,]+) moves/s", step.remark)
    return float(found[1].replace(",", "")) if found else 0.0


def measured(instance: Instance, start: Schedule, method: str, seed: int) -> Values:
    makespan, bound, moves = start.makespan(instance), Fraction(0), 0.0
    if method != "heuristic":
        speed = [0.0]

        def watch(step: Progress) -> None:
            speed.append(moves_per_second(step))

        search, budget = registry.get(method), Budget(SECONDS, 2)
        result = search(instance, budget=budget, seed=seed, start=start, watch=watch)
        assert result.makespan is not None
        makespan, bound, moves = result.makespan, result.lower_bound or bound, speed[-1]
    return {"makespan": float(makespan), "bound": float(bound), "moves_per_second": round(moves)}


def table(rows: list[Values]) -> str:
    lines = []
    for name in NAMES:
        own = [row for row in rows if row["instance"] == name]
        cells, medians = [], []
        for method in METHODS:
            values = [row["makespan"] for row in own if row["method"] == method]
            if values:
                medians.append(median(values))
                cells.append(f"{up(medians[-1])} ({up(max(values))} of {len(values)})")
            else:
                cells.append("–")
        if own:
            bound = max(row["bound"] for row in own)
            lines.append((f"`{name}`", *cells, down(bound), f"{min(medians) / bound - 1:.1%}"))
    return (
        f"Medians after {SECONDS:.0f} s on two cores, in brackets the worst of so many seeds; gap "
        f"of the best median to the best bound. {MACHINE}.\n\n"
        f"{markdown(('instance', *METHODS, 'bound', 'gap'), lines)}"
    )
