"""Large graphs after [L] §6.2 on 50 devices: the effect of time, and the cost of a move."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

from bench.search.rows import Part, down, up
from bench.store import MACHINE, Values
from optpart.generate.cluster import drawn_cluster
from optpart.generate.layered import layered
from optpart.methods.search import search
from optpart.problem.instance import Instance
from optpart.solution.result import Budget, Progress

SIZES = (10_000, 30_000, 100_000)
DEVICES = 50
SECONDS = 90.0
#: Seconds after which the incumbent is noted.
MOMENTS = (20, 45, 90)
#: Levels per vertex and width: as many vertices side by side as devices, and many more.
SHAPES = {"narrow": (40, (20, 80)), "wide": (100, (50, 200))}


def run(shared: Path, folder: Path) -> str:
    """Run what is missing and return the table."""
    store = Part(folder, "large")
    for vertices in SIZES:
        for shape in SHAPES:
            store.run({"vertices": vertices, "shape": shape}, lambda: _row(vertices, shape))  # noqa: B023
    return "\n".join(_table(store.rows))


def _instance(vertices: int, shape: str) -> Instance:
    per_level, width = SHAPES[shape]
    graph = layered(
        1,
        levels=max(10, vertices // per_level),
        width=width,
        vertices=vertices,
        level_edges=3 * vertices // 2,
        level_limit=20,
        random_edges=vertices // 2,
        colocated=vertices // 10,
    )
    return Instance(graph, drawn_cluster(1, DEVICES))


def _row(vertices: int, shape: str) -> Values:
    instance = _instance(vertices, shape)
    steps: list[Progress] = []
    result = search(instance, budget=Budget(SECONDS, 2), watch=steps.append)
    assert result.makespan is not None
    # The heuristics come first; the bound is the first thing after them.
    speed = max(getattr(step, "moves_per_second", 0.0) for step in steps)
    first = max((s for s in steps if getattr(s, "moves_per_second", 0.0) == 0.0),
                key=lambda s: s.seconds)  # fmt: skip
    row: Values = {"start": float(first.objective or 0), "bound": float(result.lower_bound or 0)}
    for moment in MOMENTS:
        known = [s.objective for s in steps if s.seconds <= moment and s.objective is not None]
        row[f"after {moment}"] = float(min(known)) if known else float(first.objective or 0)
    row[f"after {MOMENTS[-1]}"] = float(result.makespan)
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return row | {"moves_per_second": round(speed), "GiB": round((own + children) / 2**20, 2)}


def _table(rows: list[Values]) -> Iterator[str]:
    yield (
        "Makespan of the best heuristic and of the search after so many seconds; two cores. "
        f"Memory is that of both processes at their largest, of the sizes so far. {MACHINE}.\n"
    )
    after = [f"after {moment}" for moment in MOMENTS]
    heads = ["vertices", "shape", "best heuristic", *after, "bound", "moves/s", "GiB"]
    yield "| " + " | ".join(heads) + " |"
    yield "|---" * len(heads) + "|"
    for row in rows:
        values = [up(float(row[name])) for name in ("start", *after)]
        values.append(down(float(row["bound"])))
        yield (
            f"| {int(row['vertices']):,} | {row['shape']} | "
            + " | ".join(values)
            + f" | {int(row['moves_per_second']):,} | {row['GiB']} |"
        )
