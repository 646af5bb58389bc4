"""Other draws of the networks' costs and clusters, which nothing was tuned on."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path

from bench.search.networks import NAMES, SECONDS
from bench.search.rows import Part, gap, over
from bench.store import MACHINE, Values
from optpart.costs.drawn import drawn
from optpart.formats.native import read
from optpart.generate.cluster import drawn_cluster
from optpart.methods import registry
from optpart.problem.instance import Instance
from optpart.solution.result import Budget

DRAWS = range(101, 104)


def run(shared: Path, folder: Path) -> str:
    """Run what is missing and return the table."""
    store = Part(folder, "held_out")
    for draw in DRAWS:
        for name in NAMES:
            path = shared / "instances" / f"{name}.json"
            store.run({"instance": name, "draw": draw}, lambda: _row(path, draw))  # noqa: B023
    return "\n".join(_table(store.rows))


def _row(path: Path, draw: int) -> Values:
    result = registry.get("search")(drawn_anew(read(path), draw), budget=Budget(SECONDS, 2), seed=0)
    assert result.makespan is not None
    return {"makespan": float(result.makespan), "bound": float(result.lower_bound or 0)}


def drawn_anew(network: Instance, draw: int) -> Instance:
    """Return the same graph with other costs, on another cluster of as many devices."""
    return Instance(
        drawn(network.graph, draw),
        drawn_cluster(draw, network.devices),
        network.model,
        name=f"{network.name}, draw {draw}",
    )


def _table(rows: list[Values]) -> Iterator[str]:
    yield (
        f"Makespan over bound, and the gap, by `search` after {SECONDS:.0f} s on two cores. "
        f"{MACHINE}.\n"
    )
    yield "| instance | " + " | ".join(f"draw {draw}" for draw in DRAWS) + " | median gap |"
    yield "|---" * (len(DRAWS) + 2) + "|"
    for name in NAMES:
        own = {row["draw"]: row for row in rows if row["instance"] == name}
        cells, gaps = [], []
        for draw in DRAWS:
            if draw not in own:
                cells.append("–")
                continue
            makespan, bound = float(own[draw]["makespan"]), float(own[draw]["bound"])
            gaps.append(gap(makespan, bound))
            cells.append(over(makespan, bound))
        if gaps:
            yield f"| `{name}` | " + " | ".join(cells) + f" | {statistics.median(gaps):.1%} |"
