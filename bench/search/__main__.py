"""What search reaches in a minute, beside what it starts from and what it competes with.

    python bench/search --data ../shared [--only NAME] [--seconds 60] [-o bench/results/search]

Per instance the medians over five seeds of: the best heuristic, CP-SAT with that start, the
annealing of placements with full re-evaluation (one core), and search; with the best bound and
the gap to it. Every run is kept in ``runs.jsonl``: a command that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
from fractions import Fraction
from pathlib import Path

from prototype import anneal

from optpart import methods
from optpart.files import write_text
from optpart.formats.native import read
from optpart.instance import Instance
from optpart.result import Budget
from optpart.schedule import Schedule
from optpart.search.search import search

FOLDER = Path(__file__).parent.parent / "results" / "search"
NAMES = (
    "convolutional_network-7-1",
    "convolutional_network-50-1",
    "recurrent_network-50-1",
    "dynamic_rnn-50-1",
)
METHODS = ("heuristic", "cpsat", "prototype", "search")
SEEDS = range(5)

Row = dict[str, str | int | float]


def best_heuristic(instance: Instance) -> Schedule:
    found = [methods.get(name)(instance) for name in methods.heuristics()]
    schedules = [result.schedule for result in found if result.schedule is not None]
    return min(schedules, key=lambda schedule: schedule.makespan(instance))


def run(instance: Instance, start: Schedule, method: str, seconds: float, seed: int) -> Row:
    makespan, bound = start.makespan(instance), Fraction(0)
    budget = Budget(seconds, 2)
    if method == "prototype":
        makespan = anneal(instance, start, seconds, seed)
    elif method != "heuristic":
        call = search if method == "search" else methods.get(method)
        result = call(instance, budget=budget, seed=seed, start=start)
        assert result.makespan is not None
        makespan, bound = result.makespan, result.lower_bound or bound
    return {
        "instance": instance.name,
        "method": method,
        "seconds": seconds,
        "seed": seed,
        "makespan": float(makespan),
        "bound": float(bound),
    }


def table(rows: list[Row]) -> str:
    lines = ["| instance | " + " | ".join(METHODS) + " | bound | gap |", "|---" * 7 + "|"]
    for name in NAMES:
        own = [row for row in rows if row["instance"] == name]
        if not own:
            continue
        cells = []
        for method in METHODS:
            values = [float(row["makespan"]) for row in own if row["method"] == method]
            cells.append(statistics.median(values) if values else float("nan"))
        bound = max(float(row["bound"]) for row in own)
        gap = 1 - bound / cells[-1]
        shown = " | ".join(f"{cell:.2f}" for cell in cells)
        lines.append(f"| `{name}` | {shown} | {bound:.2f} | {gap:.1%} |")
    lines.append(f"\n{platform.machine()}, {os.cpu_count()} cores.\n")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", choices=NAMES)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("-o", "--output", type=Path, default=FOLDER)
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    store = given.output / "runs.jsonl"
    lines = store.read_text().splitlines() if store.exists() else []
    rows: list[Row] = [json.loads(line) for line in lines]
    done = {(row["instance"], row["method"], row["seconds"], row["seed"]) for row in rows}
    for name in [given.only] if given.only else NAMES:
        instance = read(given.data / "instances" / f"{name}.json")
        start = best_heuristic(instance)
        for method in METHODS:
            for seed in SEEDS:
                if (name, method, given.seconds, seed) in done:
                    continue
                rows.append(run(instance, start, method, given.seconds, seed))
                with store.open("a") as stream:
                    stream.write(json.dumps(rows[-1]) + "\n")
                print(rows[-1], flush=True)
    text = table([row for row in rows if row["seconds"] == given.seconds])
    write_text(given.output / "table.md", text)
    print(text)


if __name__ == "__main__":
    main()
