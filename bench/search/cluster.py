"""The value of a cluster: 1, 2 and 4 workers that take the same processor time together."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path

from bench.search.rows import Part, up
from bench.store import MACHINE, Values
from optpart.formats.native import read
from optpart.limits import available_processors
from optpart.methods.solve import ask

NAMES = ("convolutional_network-7-1", "convolutional_network-50-1", "recurrent_network-50-1")
WORKERS = (1, 2, 4)
SEEDS = range(3)

#: Seconds of processor time of all workers of a run together.
TOTAL = 120.0


def run(shared: Path, folder: Path) -> str:
    """Run what is missing and return the table."""
    store = Part(folder, "cluster")
    for name in NAMES:
        path = shared / "instances" / f"{name}.json"
        for workers in WORKERS:
            for seed in SEEDS:
                key = {"instance": name, "workers": workers, "seed": seed, "total": TOTAL}
                store.run(key, lambda: _row(path, workers, seed, TOTAL))  # noqa: B023
    return "\n".join(_table([row for row in store.rows if row["total"] == TOTAL]))


def _row(path: Path, workers: int, seed: int, total: float) -> Values:
    # Workers beyond the processors share them, so they need longer for the same processor time.
    seconds = total / min(workers, available_processors())
    engine = "dask" if workers > 1 else "local"
    asked = {"engine": engine, "workers": workers, "seed": seed, "seconds": seconds}
    question = ask(read(path), "search", **asked)  # type: ignore[arg-type]
    result = question.answer()
    assert result.makespan is not None
    return {
        "makespan": float(result.makespan),
        "bound": float(result.lower_bound or 0),
        "seconds": seconds,
        "reason": result.reason,
    }


def _table(rows: list[Values]) -> Iterator[str]:
    yield (
        f"Makespans by `search` over a Dask cluster on this machine, medians over {len(SEEDS)} "
        f"seeds. All workers of a run together have {TOTAL:.0f} s of processor time, of which "
        "those in other processes need some to begin: one worker has all of it on the clock, "
        "several share it, but no more than there are processors work at a time. "
        f"{MACHINE}.\n"
    )
    yield "| instance | " + " | ".join(f"{count} workers" for count in WORKERS) + " |"
    yield "|---" * (len(WORKERS) + 1) + "|"
    for name in NAMES:
        yield f"| `{name}` | " + " | ".join(_cell(rows, name, count) for count in WORKERS) + " |"


def _cell(rows: list[Values], name: str, workers: int) -> str:
    found = [row for row in rows if (row["instance"], row["workers"]) == (name, workers)]
    makespan = statistics.median(float(row["makespan"]) for row in found)
    return f"{up(makespan)} in {found[0]['seconds']:.0f} s"
