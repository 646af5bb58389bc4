"""Four networks: search and hybrid, compared with their starts and competitors."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from bench.search.prototype import anneal
from bench.search.rows import Part, down, gap, up
from bench.store import MACHINE, Values
from optpart.exact.solve import solve
from optpart.formats.native import read
from optpart.methods import registry
from optpart.methods.starts import heuristic_schedules
from optpart.problem.instance import Instance
from optpart.solution.result import Budget, Result
from optpart.solution.schedule import Schedule

NAMES = (
    "convolutional_network-7-1",
    "convolutional_network-50-1",
    "recurrent_network-50-1",
    "dynamic_rnn-50-1",
)
#: Methods, and how many seeds each is run with.
METHODS = {"heuristic": 1, "search": 5, "hybrid": 5, "cpsat": 5, "prototype": 5}
SECONDS = 60.0


def run(shared: Path, folder: Path) -> str:
    """Run what is missing and return the table."""
    store = Part(folder, "networks")
    instances = [read(shared / "instances" / f"{name}.json") for name in NAMES]
    starts = [best_heuristic(instance) for instance in instances]
    for method, seeds in METHODS.items():
        for seed in range(seeds):
            for name, instance, start in zip(NAMES, instances, starts, strict=True):
                key: Values = {"instance": name, "method": method, "seed": seed}
                store.run(key, lambda: _row(instance, start, method, seed))  # noqa: B023
    return "\n".join(_table(store.rows))


def best_heuristic(instance: Instance) -> Schedule:
    """Return the best schedule of all pairs of strategies that find one."""
    found = (registry.get(name)(instance).schedule for name in registry.pairs())
    schedules = [schedule for schedule in found if schedule is not None]
    return min(schedules, key=lambda schedule: schedule.makespan(instance))


def _row(instance: Instance, start: Schedule, method: str, seed: int) -> Values:
    makespan, bound, moves = start.makespan(instance), Fraction(0), 0.0
    if method == "prototype":
        makespan = anneal(instance, start, SECONDS, seed)
    elif method != "heuristic":
        budget = Budget(SECONDS, 2)
        speed: list[float] = []

        def watch(step: object) -> None:
            speed.append(getattr(step, "moves_per_second", 0.0))

        if method == "cpsat":
            # Without the search that the method of that name begins with on large instances.
            result: Result = solve(
                instance, budget=budget, seed=seed, start=start, starts=heuristic_schedules
            )
        else:
            result = registry.get(method)(
                instance, budget=budget, seed=seed, start=start, watch=watch
            )
        assert result.makespan is not None
        makespan, bound = result.makespan, result.lower_bound or bound
        moves = speed[-1] if speed else 0.0
    return {"makespan": float(makespan), "bound": float(bound), "moves_per_second": round(moves)}


def _table(rows: list[Values]) -> Iterator[str]:
    yield (
        f"Medians after {SECONDS:.0f} s on two cores (the prototype: one), in brackets the worst "
        f"of so many seeds; gap of the best median to the best bound. {MACHINE}.\n"
    )
    yield "| instance | " + " | ".join(METHODS) + " | bound | gap |"
    yield "|---" * (len(METHODS) + 3) + "|"
    for name in NAMES:
        own = [row for row in rows if row["instance"] == name]
        if not own:
            continue
        cells, medians = [], []
        for method in METHODS:
            values = [float(row["makespan"]) for row in own if row["method"] == method]
            if not values:
                cells.append("–")
                continue
            medians.append(statistics.median(values))
            cells.append(f"{up(medians[-1])} ({up(max(values))} of {len(values)})")
        bound = max(float(row["bound"]) for row in own)
        least = gap(min(medians), bound)
        yield f"| `{name}` | " + " | ".join(cells) + f" | {down(bound)} | {least:.1%} |"
