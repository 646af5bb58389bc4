"""How far every method, bound and comparison exceeds its time limit.

    python bench/limits [--vertices 1000,10000,100000] [--limits 0,10] [--methods auto,heft]

The instances are layered graphs with two edges a vertex on ten devices, drawn in memory. One child
process per instance runs everything on it in turn, after a warm-up on a tiny instance, so that
compilation counts in no limit. A limit is kept if the wall time exceeds it by at most a tenth or
half a second, whichever is more. Beside the wall time stands the processor time of the process and
its children, which other work on the machine hardly changes. A size of 0 stands for what has sizes
of its own: reductions, and strategies of training.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import others

from optpart import Budget, Instance
from optpart.bounds.best import all_bounds, largest
from optpart.generate.cluster import drawn_cluster
from optpart.generate.layered import layered
from optpart.methods import registry
from optpart.methods.solve import ask
from optpart.methods.solver_bound import solver_rows
from optpart.study.gap import compare

#: Slower than its limit by at most this share, or these seconds.
_SHARE, _SECONDS = 0.1, 0.5

_METHODS = ("heft", "contiguous-split", "hash+pct", "search", "hybrid", "cpsat", "milp", "auto")


def drawn(vertices: int, devices: int = 10) -> Instance:
    """Draw the instance of a size."""
    graph = layered(
        1,
        levels=max(5, vertices // 100),
        width=(1, max(200, vertices)),
        vertices=vertices,
        level_edges=3 * vertices // 2,
        level_limit=20,
        random_edges=vertices // 4,
    )
    return Instance(graph, drawn_cluster(1, devices), name=f"layered-{vertices}")


def kept(limit: float, seconds: float) -> bool:
    """Return whether a run has kept its limit."""
    return seconds <= limit + max(_SHARE * limit, _SECONDS)


def commands(
    instance: Instance, limit: float, methods: list[str]
) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield the name of everything that has a limit, with what runs it and says what it found."""

    def solved(method: str) -> str:
        result = ask(instance, method, seconds=limit).answer()
        gap = "no gap" if result.gap is None else f"gap {result.gap:.1%}"
        return f"{result.status}, {gap}" + (f" ({result.reason})" if result.reason else "")

    def bounded() -> str:
        best = largest(all_bounds(instance, limit, besides=solver_rows()))
        return f"{float(best.value or 0):g} by {best.name}"

    def compared() -> str:
        found = compare(instance, ["heft"], budget=Budget(limit))
        return found.reference.kind

    for method in methods:
        yield f"solve -m {method}", lambda method=method: solved(method)
    yield "bound", bounded
    # Its limit is that of each of its two runs and of the bounds.
    yield "gap heft (÷ 2)", compared
    yield from others.drawn_rows(instance, limit)


def measure(vertices: int, limits: list[float], methods: list[str]) -> None:
    """Print the rows of one size."""
    tiny = drawn(50)
    registry.warm_up(large=True)
    for _, run in commands(tiny, 1.0, methods):
        run()
    instance = drawn(vertices or 10)
    for limit in limits:
        rows = commands(instance, limit, methods) if vertices else others.own_rows(limit)
        for name, run in rows:
            begin, before = time.perf_counter(), sum(os.times()[:4])
            said = run()
            seconds, worked = time.perf_counter() - begin, sum(os.times()[:4]) - before
            judged = seconds / 2 if "÷ 2" in name else seconds
            mark = "" if "(no limit)" in name or kept(limit, judged) else "  LATE"
            print(
                f"{vertices:>9,}  {name:24}{limit:>7g}{judged:>9.2f}{worked:>9.2f}{mark:6}  {said}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        "limits", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--vertices", default="0,10,100,1000,10000,100000")
    parser.add_argument("--limits", default="0,10")
    parser.add_argument("--methods", default=",".join(_METHODS))
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one is not None:
        measure(given.one, [float(x) for x in given.limits.split(",")], given.methods.split(","))
        return
    print(f"{'vertices':>9}  {'command':24}{'limit':>7}{'wall':>9}{'CPU':>9}", flush=True)
    for vertices in given.vertices.split(","):
        rest = ["--limits", given.limits, "--methods", given.methods]
        subprocess.run([sys.executable, __file__, "--one", vertices, *rest], check=True)


if __name__ == "__main__":
    main()
