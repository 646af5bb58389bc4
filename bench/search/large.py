"""Large graphs after [L] §6.2 on 50 devices: the effect of time, and the cost of a move."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path

from bench.output import down, markdown, up
from bench.search.networks import moves_per_second
from bench.store import MACHINE, Runs, Values
from optpart.interop.generate.cluster import drawn_cluster
from optpart.interop.generate.layered import layered
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


def runs(_: Path) -> Iterator[Runs]:
    for vertices, shape in product(SIZES, SHAPES):
        yield {"vertices": vertices, "shape": shape}, partial(measured, vertices, shape)


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


def measured(vertices: int, shape: str) -> Values:
    steps: list[Progress] = []
    result = search(_instance(vertices, shape), budget=Budget(SECONDS, 2), watch=steps.append)
    assert result.makespan is not None
    speeds = [moves_per_second(step) for step in steps]
    # The heuristics come first; the bound is the first thing after them.
    heuristics = [step for step, speed in zip(steps, speeds, strict=True) if speed == 0.0]
    start = float(max(heuristics, key=lambda step: step.seconds).objective or 0)
    row: Values = {"start": start, "bound": float(result.lower_bound or 0)}
    for moment in MOMENTS:
        known = [s.objective for s in steps if s.seconds <= moment and s.objective is not None]
        row[f"after {moment}"] = float(min(known)) if known else start
    row[f"after {MOMENTS[-1]}"] = float(result.makespan)
    who = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    memory = sum(resource.getrusage(each).ru_maxrss for each in who)
    return row | {"moves_per_second": round(max(speeds)), "GiB": round(memory / 2**20, 2)}


def table(rows: list[Values]) -> str:
    after = [f"after {moment}" for moment in MOMENTS]
    head = ("vertices", "shape", "best heuristic", *after, "bound", "moves/s", "GiB")
    lines = [
        (
            f"{row['vertices']:,}", row["shape"], *(up(row[name]) for name in ("start", *after)),
            down(row["bound"]), f"{row['moves_per_second']:,}", row["GiB"],
        )
        for row in rows
    ]  # fmt: skip
    return (
        "Makespan of the best heuristic and of the search after so many seconds; two cores. "
        f"Memory is that of both processes at their largest, of the sizes so far. {MACHINE}.\n\n"
        f"{markdown(head, lines)}"
    )
