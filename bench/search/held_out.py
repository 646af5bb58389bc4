"""Other draws of the networks' costs and clusters, which nothing was tuned on."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median

from bench.output import markdown, over
from bench.search.networks import NAMES, SECONDS
from bench.store import MACHINE, Runs, Values
from optpart.interop.costs.drawn import drawn
from optpart.interop.formats.native import read
from optpart.interop.generate.cluster import drawn_cluster
from optpart.methods import registry
from optpart.problem.instance import Instance
from optpart.solution.result import Budget

DRAWS = range(101, 104)


def runs(instances: Path) -> Iterator[Runs]:
    for draw, name in product(DRAWS, NAMES):
        path = instances / f"{name}.json"
        yield {"instance": name, "draw": draw}, partial(measured, path, draw)


def measured(path: Path, draw: int) -> Values:
    """Search the same graph with other costs, on another cluster of as many devices."""
    network = read(path)
    graph, cluster = drawn(network.graph, draw), drawn_cluster(draw, network.devices)
    instance = Instance(graph, cluster, network.model, name=f"{network.name}, draw {draw}")
    result = registry.get("search")(instance, budget=Budget(SECONDS, 2), seed=0)
    assert result.makespan is not None
    return {"makespan": float(result.makespan), "bound": float(result.lower_bound or 0)}


def table(rows: list[Values]) -> str:
    lines = []
    for name in NAMES:
        own = {row["draw"]: row for row in rows if row["instance"] == name}
        cells = [over(own[d]["makespan"], own[d]["bound"]) if d in own else "–" for d in DRAWS]
        if own:
            gap = median(row["makespan"] / row["bound"] - 1 for row in own.values())
            lines.append((f"`{name}`", *cells, f"{gap:.1%}"))
    head = ("instance", *(f"draw {draw}" for draw in DRAWS), "median gap")
    return (
        f"Makespan over bound, and the gap, by `search` after {SECONDS:.0f} s on two cores. "
        f"{MACHINE}.\n\n{markdown(head, lines)}"
    )
