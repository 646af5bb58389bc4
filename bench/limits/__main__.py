"""How far every method, bound and comparison exceeds its time limit.

    python bench/limits [--vertices 1000,10000] [--limits 0,10] [--methods auto,heft] [--kinds free]

Without options, this takes hours; every option takes a part of what it lists. ``--methods`` are
by default all solvers and every registered strategy once: partitioning strategies with their own
order, or else with ``pct``, and scheduling strategies after ``hash``; ``none`` leaves them out.

The instances are layered graphs with two edges a vertex on ten devices, drawn in memory. Those of
the kind ``tight`` have the memory model ``estimate``, and their devices hold a tenth more than all
vertices need. One child process per instance runs everything on it in turn, after a short run on a
tiny instance. Times leave out what is compiled or loaded on the way, as limits do
(``optpart/clock.py``). Beside them stands the processor time of the process and its children, which
other work on the machine hardly changes.

A limit is kept if the time exceeds it by at most a tenth or half a second, whichever is more; any
other row is marked. ``LATE`` is a fault. ``FLOOR`` is not: a method answers at least with one
schedule of a heuristic, timed exactly and verified, or with one cheap bound, and that takes
seconds on 100,000 vertices. The first row of every instance is this floor, the time of ``heft``
without any time; for strategies of training, that of making and timing the simplest one. A row is
marked so if the excess beyond the floor is within what is allowed.
Simulations and reports have no limit and no mark. ``--own`` measures what has sizes of its own:
reductions, and strategies of training.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from bench.limits.others import Row, drawn_rows, own_rows
from optpart import Budget, Instance, Model, clock
from optpart.bounds.best import BOUNDS, Bound, all_bounds, largest
from optpart.errors import OptpartError
from optpart.generate.cluster import drawn_cluster
from optpart.generate.layered import layered
from optpart.methods import registry
from optpart.methods.solve import ask
from optpart.methods.solver_bound import solver_rows
from optpart.study.attribution import divide
from optpart.study.gap import compare

#: Slower than its limit by at most this share, or these seconds.
_SHARE, _SECONDS = 0.1, 0.5

#: More memory than all vertices need, in the kind ``tight``.
_SLACK = Fraction(11, 10)

#: Larger instances are not divided: every pair would be solved for its own placement.
_DIVIDED = 1000

_KINDS = ("free", "tight")

#: The name of the row that says what a method takes without any time.
_FLOOR = "floor"


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


def tightened(instance: Instance) -> Instance:
    """Return the instance with little memory on every device."""
    limited = replace(instance, model=Model(memory="estimate"))
    need = sum(limited.static_memory.fractions(), Fraction(0))
    each = max(_SLACK * need / limited.devices, *limited.static_memory.fractions())
    cluster = replace(limited.cluster, memory=(each,) * limited.devices)
    return replace(limited, cluster=cluster, name=f"{instance.name}-tight")


def every_method() -> list[str]:
    """Name all solvers, and a method for every registered strategy."""
    return [
        *(name for name, row in registry.SOLVERS.items() if row.available),
        *registry.ORDERED,
        *(
            f"{name}+pct"
            for name, row in registry.PARTITIONERS.items()
            if row.available and name not in registry.ORDERED
        ),
        *(f"hash+{name}" for name in (*registry.SCHEDULERS, *registry.SPECIAL_SCHEDULERS)),
    ]


def kept(limit: float, seconds: float) -> bool:
    """Return whether a run has kept its limit."""
    return seconds <= limit + max(_SHARE * limit, _SECONDS)


def solved(instance: Instance, method: str, limit: float) -> str:
    """Solve, and say what was found."""
    result = ask(instance, method, seconds=limit).answer()
    gap = "no gap" if result.gap is None else f"gap {result.gap:.1%}"
    return f"{result.status}, {gap}" + (f" ({result.reason})" if result.reason else "")


def bounded(instance: Instance, bound: Bound, limit: float) -> str:
    """Compute one bound, and say its value."""
    value = bound.compute(instance, seconds=limit, makespan=None)
    return "infeasible" if value is None else f"{float(value):g}"


def best(instance: Instance, limit: float) -> str:
    """Compute all bounds, and say which is the best."""
    found = largest(all_bounds(instance, limit, besides=solver_rows()))
    return f"{float(found.value or 0):g} by {found.name}"


def commands(instance: Instance, limit: float, methods: list[str]) -> Iterator[Row]:
    """Yield everything that has a limit."""
    for method in methods:
        yield Row(f"solve -m {method}", partial(solved, instance, method, limit))
    yield Row("bound", partial(best, instance, limit))
    for bound in (*BOUNDS.values(), *solver_rows()):
        yield Row(f"bound {bound.name}", partial(bounded, instance, bound, limit))
    pairs, budget = ["heft", "hash+pct"], Budget(limit)
    yield Row("gap", lambda: compare(instance, pairs, budget=budget).reference.kind, 3)
    if instance.vertices <= _DIVIDED:
        # One solve for the least makespan of all, and one per placement.
        yield Row("gap --axis", lambda: divide(instance, pairs, budget=budget).free.status, 3)
    yield from drawn_rows(instance, limit)


def measure(instance: Instance, limits: list[float], methods: list[str]) -> None:
    """Print the rows of one instance."""
    registry.warm_up(large=True)
    tiny = drawn(50)
    for row in commands(tiny, 0.3, methods):
        with suppress(OptpartError):  # the row of the instance will say so
            row.run()
    rows = [(0.0, Row(f"{_FLOOR} (heft)", partial(solved, instance, "heft", 0.0)))]
    rows += [(limit, row) for limit in limits for row in commands(instance, limit, methods)]
    measured(instance.name, rows)


def measured(instance: str, rows: Iterable[tuple[float, Row]]) -> None:
    """Print rows, of which some may be the floor of those after them."""
    floor = 0.0
    for limit, row in rows:
        begin, before = clock.now(), sum(os.times()[:4])
        try:
            said = row.run()
        except OptpartError as error:
            said = str(error)
        seconds, worked = clock.now() - begin, sum(os.times()[:4]) - before
        floor = seconds if row.name.startswith(_FLOOR) else floor
        judged = seconds / max(1, row.times)
        mark = "LATE" if not kept(limit, judged - floor) else "FLOOR"
        mark = "" if kept(limit, judged) or not row.times else mark
        name = row.name + (f" (÷ {row.times})" if row.times > 1 else "")
        times = f"{limit:>6g}{seconds:>9.2f}{worked:>9.2f}"
        print(f"{instance:22}{name:32}{times}  {mark:5}  {said}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        "limits", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--vertices", default="10,100,1000,10000,100000")
    parser.add_argument("--limits", default="0,10")
    parser.add_argument("--methods", default=",".join(every_method()))
    parser.add_argument("--kinds", default=",".join(_KINDS))
    parser.add_argument("--own", action="store_true")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one is not None:
        vertices, kind = given.one
        methods = [] if given.methods == "none" else given.methods.split(",")
        instance = drawn(int(vertices))
        if kind == "tight":
            instance = tightened(instance)
        measure(instance, [float(x) for x in given.limits.split(",")], methods)
        return
    head = f"{'instance':22}{'command':32}{'limit':>6}{'seconds':>9}{'CPU':>9}"
    print(head, flush=True)
    if given.own:
        registry.warm_up(large=True)
        limits = [float(x) for x in given.limits.split(",")]
        for limit in limits:
            measured("", [(limit, row) for row in own_rows(limit)])
        return
    for vertices in given.vertices.split(","):
        for kind in given.kinds.split(","):
            rest = ["--limits", given.limits, "--methods", given.methods]
            subprocess.run([sys.executable, __file__, "--one", vertices, kind, *rest], check=True)


if __name__ == "__main__":
    main()
