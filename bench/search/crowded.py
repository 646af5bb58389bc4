"""What repacking, late moves and uniform draws are worth on seven crowded devices."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.search.ablation import measured
from bench.search.held_out import drawn_anew
from bench.search.rows import Part, up
from bench.store import MACHINE, Values
from optpart.formats.native import read
from optpart.problem.instance import Instance
from optpart.search import climb, plan
from optpart.study import library

SECONDS = 30.0
SEEDS = 1

#: Ideas, and what is replaced to leave them out.
IDEAS: dict[str, list[tuple[Any, str, Any]]] = {
    "as it is": [],
    "no trials of large units": [(climb, "repacking", lambda *_: None)],
    "no late moves": [(plan, "_LATER", 0.0)],
    "no late moves, fast devices drawn more often": [(plan, "is_large", lambda _: False)],
}

_PACKING = ("as it is", "no trials of large units")
_LATE = ("as it is", "no late moves", "no late moves, fast devices drawn more often")

#: Instances, draws of their costs and clusters (0: as they are), and the ideas that matter to them.
CASES = (
    ("convolutional_network-7-1", 0, _PACKING),
    ("convolutional_network-7-1", 101, _PACKING),
    ("convolutional_network-7-1", 102, _PACKING),
    ("recurrent_network-7", 0, _LATE),
    ("dynamic_rnn-7", 0, _LATE),
    ("dynamic_rnn-7", 101, _LATE),
)


def run(shared: Path, folder: Path) -> str:
    """Run what is missing and return the table."""
    store = Part(folder, "crowded")
    for seed in range(SEEDS):
        for name, draw, ideas in CASES:
            for idea in ideas:
                key: Values = {"instance": name, "draw": draw, "without": idea, "seed": seed}
                store.run(key, lambda: _row(shared, name, draw, idea, seed))  # noqa: B023
    return "\n".join(_table(store.rows))


def _row(shared: Path, name: str, draw: int, idea: str, seed: int) -> Values:
    path = shared / "instances" / f"{name}.json"
    network: Instance = read(path) if path.exists() else library.load(name)
    instance = drawn_anew(network, draw) if draw else network
    return measured(instance, IDEAS[idea], SECONDS, seed)


def _table(rows: list[Values]) -> Iterator[str]:
    yield (
        f"Mean makespan of {SEEDS} seed(s) after {SECONDS:.0f} s of processor time of one worker, "
        f"with and without some ideas. {MACHINE}.\n"
    )
    yield "| instance | draw | " + " | ".join(IDEAS) + " |"
    yield "|---" * (len(IDEAS) + 2) + "|"
    for name, draw, _ in CASES:
        cells = []
        for idea in IDEAS:
            own = [
                float(row["makespan"])
                for row in rows
                if (row["instance"], row["draw"], row["without"]) == (name, draw, idea)
            ]
            cells.append(up(statistics.mean(own)) if own else "–")
        yield f"| `{name}` | {draw or '–'} | " + " | ".join(cells) + " |"
