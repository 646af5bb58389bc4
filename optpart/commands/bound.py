"""``optpart bound``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from optpart.commands.instances import note_limits, open_instance
from optpart.commands.options import File, Json, MemoryLimit, time_limit
from optpart.terminal import note, put, say

if TYPE_CHECKING:
    from optpart.bounds.best import LowerBound


def bound(
    file: File,
    time_limit: Annotated[float, time_limit("Seconds for all bounds together.")] = 30.0,
    memory_limit: MemoryLimit = None,
    json: Json = False,
) -> None:
    """Prove lower bounds of the makespan."""
    from optpart.bounds.best import each_bound, largest
    from optpart.formats.json import pretty
    from optpart.methods.fitting import unfit_bounds
    from optpart.methods.solve import prepare
    from optpart.methods.solver_bound import solver_rows
    from optpart.problem.feasibility import contradiction, excluded
    from optpart.report.bound_table import print_bounds
    from optpart.report.console import plain_console
    from optpart.report.progress import ProgressLine
    from optpart.report.text import infeasible
    from optpart.series.bound import SERIES
    from optpart.solution.result import Budget, Progress

    instance = open_instance(file)
    note_limits([instance])
    reason = contradiction(instance)
    if reason:
        (note if json else say)(f"{instance.name}: {infeasible(reason)}")
        raise typer.Exit(3)
    prepare([instance])
    unfit = unfit_bounds(instance, Budget(time_limit, memory=memory_limit))
    for name, why in unfit.items():
        note(f"{name} is left out: it {why}")
    besides = (SERIES, *solver_rows(memory=memory_limit))
    found: list[LowerBound] = []
    interrupted = False
    line, began = ProgressLine(f"{instance.name}  "), time.monotonic()

    def watch(name: str) -> None:
        value = largest(found).value if found else None
        line(name, Progress(time.monotonic() - began, None, value))

    try:
        for each in each_bound(instance, time_limit, besides=besides, without=unfit, begins=watch):
            found.append(each)  # noqa: PERF402  (an interrupted run reports these)
    except KeyboardInterrupt:
        line.clear()
        interrupted = True
        note("interrupted: the bounds proven so far follow")
    finally:
        line.clear()
    best = largest(found) if found else None
    if json:
        values = [
            {
                "bound": b.name,
                "value": None if b.value is None else str(b.value),
                "seconds": round(b.seconds, 6),
            }
            for b in found
        ]
        document = {
            "instance": instance.name,
            "interrupted": interrupted,
            "best": None if best is None else best.name,
            "bounds": values,
        }
        put(pretty(document))
    elif best is not None:
        print_bounds(plain_console(), found, best)
    if best is None:
        raise typer.Exit(4)
    if best.value is None:
        why = infeasible(excluded(instance, "bounds"))
        (note if json else say)(f"{instance.name}: {why}")
        raise typer.Exit(3)
