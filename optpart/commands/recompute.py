"""``optpart recompute``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optpart.base.clock import remaining
from optpart.base.terminal import put, say
from optpart.commands.instances import open_instance
from optpart.commands.options import File, Json, TimeLimit, output

if TYPE_CHECKING:
    from optpart.applications.recompute.recompute import Recomputation


def recompute(
    file: File,
    offload_to: Annotated[str | None, typer.Option(help="Device that keeps offloads.")] = None,
    time_limit: TimeLimit = 60.0,
    check: Annotated[Path | None, typer.Option(help="Check this plan, make none.")] = None,
    output: Annotated[Path | None, output("optpart.applications.recompute.recompute:KIND")] = None,
    json: Json = False,
) -> None:
    """Decide together what to place where, and to keep, recompute or offload; with a bound.

    The shortest plan that keeps everything stands beside, and those of published rules. Exits with
    3 if there is no plan, and with 4 if none was found.
    """
    from optpart.applications.recompute.plan import Problem
    from optpart.applications.recompute.recompute import document, faults, find, write
    from optpart.base.files import written_first
    from optpart.interop.formats.json import pretty
    from optpart.solution.result import Status

    problem = Problem.of(open_instance(file), offload_to)
    if check is not None:
        wrong = faults(problem, check)
        for fault in wrong or [f"{check}: the plan keeps every rule; CP-SAT claims its bound"]:
            say(fault)
        raise typer.Exit(1 if wrong else 0)
    found = find(problem, remaining(time_limit))
    with written_first(partial(write, found), output):
        if json:
            put(pretty(document(problem, found.best)))
        else:
            _print(found)
    if found.best.plan is None:
        raise typer.Exit(3 if found.best.status is Status.INFEASIBLE else 4)


def _print(found: Recomputation) -> None:
    """Print what is proven, and a row per plan, with its gap to the bound of all plans."""
    from optpart.applications.recompute.plan import makespan
    from optpart.base.rounding import between, number, percent
    from optpart.solution.gap import gap
    from optpart.study.report.console import plain_console, plain_table
    from optpart.study.report.text import seconds

    console, best = plain_console(), found.best
    value, bound = between(best.makespan, best.bound)
    name, status = found.problem.instance.name, f"{best.status} (by CP-SAT)"
    console.tell(f"{name}: {status}, makespan {value}, bound {bound}, {seconds(found.seconds)}")
    table = plain_table("plan", "makespan", "gap", "recomputed", "offloaded")
    keep = f"keep all ({found.keep.status})"
    for row, plan in {"best": best.plan, keep: found.keep.plan, **found.rules}.items():
        if plan is None:
            table.add_row(row, *"––––")
            continue
        length, again = makespan(found.problem, plan), len(plan.runs) - len(plan.placement)
        share = percent(gap(length, best.bound))
        table.add_row(row, number(length, up=True), share, str(again), str(len(plan.offloads)))
    console.show(table)
