"""What a second core is worth: two workers after t seconds beside one after 1.8 t."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path

from store import MACHINE, Row, Store, up

from optpart.formats.native import read
from optpart.result import Budget
from optpart.search.search import search

NAMES = ("convolutional_network-7-1", "convolutional_network-50-1", "recurrent_network-50-1")
SECONDS = 20.0
SEEDS = range(3)


def run(shared: Path, folder: Path) -> str:
    """Run what is missing and return the table."""
    store = Store(folder, "workers")
    for name in NAMES:
        instance = read(shared / "instances" / f"{name}.json")
        for workers, seconds in ((2, SECONDS), (1, 1.8 * SECONDS)):
            for seed in SEEDS:
                key: Row = {"instance": name, "workers": workers, "seed": seed}

                def measured() -> Row:
                    budget = Budget(seconds, workers)  # noqa: B023
                    found = search(instance, budget=budget, seed=seed)  # noqa: B023
                    return {"makespan": float(found.makespan or 0)}

                store.run(key, measured)
    return "\n".join(_table(store.rows))


def _table(rows: list[Row]) -> Iterator[str]:
    yield f"Medians over {len(SEEDS)} seeds. {MACHINE}.\n"
    yield f"| instance | 2 workers, {SECONDS:.0f} s | 1 worker, {1.8 * SECONDS:.0f} s |"
    yield "|---|---|---|"
    for name in NAMES:
        cells = [
            statistics.median(
                float(row["makespan"])
                for row in rows
                if (row["instance"], row["workers"]) == (name, workers)
            )
            for workers in (2, 1)
        ]
        yield f"| `{name}` | {up(cells[0])} | {up(cells[1])} |"
