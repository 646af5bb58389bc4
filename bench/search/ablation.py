"""What each idea of the search is worth: schedules without it, by processor time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from bench.search.networks import NAMES
from bench.search.rows import Part, up
from bench.store import MACHINE, Values
from optpart import clock
from optpart.formats.native import read
from optpart.methods import registry
from optpart.problem.instance import Instance
from optpart.search import climb, moves, plan, search
from optpart.solution.result import Budget

SECONDS = 12.0
SEEDS = 5

_ALL = "as it is"

#: Ideas, and what is replaced to leave one out.
IDEAS: dict[str, list[tuple[Any, str, Any]]] = {
    _ALL: [],
    "start from `heft` alone": [(search, "_STARTING", 0.0), (search, "_TRIED", 1)],
    "no melting": [(climb, "_HOTTEST", 0.0)],
    "devices drawn uniformly": [(plan, "_BY_SPEED", 0.0)],
    "moves of narrow graphs": [(climb, "is_narrow", lambda _: True)],
    "exchanges of small graphs": [(moves, "_LARGE", range(0))],
}


def run(shared: Path, folder: Path) -> str:
    """Run what is missing and return the table."""
    store = Part(folder, "ablation")
    for seed in range(SEEDS):
        for name in NAMES:
            for idea in IDEAS:
                path = shared / "instances" / f"{name}.json"
                key: Values = {"instance": name, "without": idea, "seed": seed}
                store.run(key, lambda: _row(path, idea, seed))  # noqa: B023
    return "\n".join(_table(store.rows))


def _row(path: Path, idea: str, seed: int) -> Values:
    return measured(read(path), IDEAS[idea], SECONDS, seed)


def measured(
    instance: Instance, replaced: list[tuple[Any, str, Any]], seconds: float, seed: int
) -> Values:
    """Search for some processor time with one worker, with constants or functions replaced."""
    search_for: Callable[..., Any] = registry.get("search")
    search_for(instance, budget=Budget(1.0, 1))  # loads what is compiled
    with ExitStack() as patches:
        processor = SimpleNamespace(perf_counter=time.process_time)
        patches.enter_context(patch.object(clock, "time", processor))
        for owner, name, value in replaced:
            patches.enter_context(patch.object(owner, name, value))
        speed: list[float] = [0.0]

        def watch(step: object) -> None:
            speed.append(getattr(step, "moves_per_second", 0.0))

        result = search_for(instance, budget=Budget(seconds, 1), seed=seed, watch=watch)
    return {"makespan": float(result.makespan), "moves_per_second": round(speed[-1])}


def _table(rows: list[Values]) -> Iterator[str]:
    yield (
        f"Median makespan of {SEEDS} seeds after {SECONDS:.0f} s of processor time of one worker, "
        f"without one idea at a time, in brackets the moves per second. {MACHINE}.\n"
    )
    yield "| | " + " | ".join(f"`{name}`" for name in NAMES) + " |"
    yield "|---" * (len(NAMES) + 1) + "|"
    for idea in IDEAS:
        cells = []
        for name in NAMES:
            own = [row for row in rows if (row["instance"], row["without"]) == (name, idea)]
            if not own:
                cells.append("–")
                continue
            median = statistics.median(float(row["makespan"]) for row in own)
            moves_per_second = statistics.median(int(row["moves_per_second"]) for row in own)
            cells.append(f"{up(median)} ({moves_per_second:,.0f})")
        yield f"| {idea} | " + " | ".join(cells) + " |"
