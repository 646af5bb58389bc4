"""The value of a second core: two workers after t seconds against one after 1.8 t."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from bench.search.rows import Part, up
from bench.store import MACHINE, Values
from optpart.formats.native import read
from optpart.methods.search import search
from optpart.solution.result import Budget

NAMES = ("convolutional_network-7-1", "convolutional_network-50-1", "recurrent_network-50-1")
SECONDS = 20.0
SEEDS = range(5)


def run(shared: Path, folder: Path) -> str:
    """Run what is missing and return the table."""
    store = Part(folder, "workers")
    with ProcessPoolExecutor(2) as pool:
        for name in NAMES:
            path = shared / "instances" / f"{name}.json"
            for seed in SEEDS:
                store.run(_key(name, 2, seed), lambda: _row(path, 2, seed))  # noqa: B023
            # Two at once: as two workers do, they share what the cores share.
            missing = [seed for seed in SEEDS if not store.known(_key(name, 1, seed))]
            alone = [pool.submit(_row, path, 1, seed) for seed in missing]
            for seed, row in zip(missing, alone, strict=True):
                store.run(_key(name, 1, seed), row.result)
    return "\n".join(_table(store.rows))


def _key(name: str, workers: int, seed: int) -> Values:
    return {"instance": name, "workers": workers, "seed": seed}


def _row(path: Path, workers: int, seed: int) -> Values:
    budget = Budget(SECONDS if workers == 2 else 1.8 * SECONDS, workers)
    return {"makespan": float(search(read(path), budget=budget, seed=seed).makespan or 0)}


def _table(rows: list[Values]) -> Iterator[str]:
    yield f"Medians over {len(SEEDS)} seeds, one worker twice side by side. {MACHINE}.\n"
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
