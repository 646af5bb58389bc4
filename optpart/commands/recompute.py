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
    from optpart.applications.recompute.plan import Plan
    from optpart.applications.recompute.recompute import Recomputation


def recompute(
    file: File,
    offload_to: Annotated[
        str | None, typer.Option(help="Device that keeps tensors for others; by default, none.")
    ] = None,
    time_limit: TimeLimit = 60.0,
    check: Annotated[Path | None, typer.Option(help="Check this plan, make none.")] = None,
    output: Annotated[
        Path | None, output("optpart.applications.recompute.recompute:KIND")
    ] = None,
    json: Json = False,
) -> None:
    """Decide what to keep, recompute or offload together with the placement, for least makespan.

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
        for fault in wrong:
            say(fault)
        if wrong:
            raise typer.Exit(1)
        say(f"{check}: the plan keeps every rule; CP-SAT alone claims its bound")
        return
    found = find(problem, remaining(time_limit))
    with written_first(partial(write, found), output):
        if json:
            put(pretty(document(found)))
        else:
            _print(found)
    if found.best.plan is None:
        raise typer.Exit(3 if found.best.status is Status.INFEASIBLE else 4)


def _print(found: Recomputation) -> None:
    """Print what is proven of the best plan, and a row per other one and per device."""
    from optpart.applications.recompute.plan import profile
    from optpart.base.rounding import between, number
    from optpart.solution.result import Status
    from optpart.study.report.console import plain_console, plain_table
    from optpart.study.report.text import seconds

    console, best, instance = plain_console(), found.best, found.problem.instance
    if best.plan is None:
        why = {Status.INFEASIBLE: "no plan fits, as CP-SAT claims"}.get(best.status, "none found")
        console.tell(f"{instance.name}: {best.status}: {why}, {seconds(found.seconds)}")
        return
    length, bound = between(best.makespan, best.bound)
    console.tell(
        f"{instance.name}: {best.status}, makespan {length}, lower bound {bound}, "
        f"{seconds(found.seconds)}"
    )
    table = plain_table("plan", "makespan", "gap", "recomputed", "offloaded", "")
    table.add_row("best", *_row(found, best.plan), str(best.status))
    table.add_row("keep everything", *_row(found, found.keep.plan), str(found.keep.status))
    for rule, plan in found.rules.items():
        table.add_row(rule, *_row(found, plan), "" if plan else "does not fit")
    console.show(table)
    table = plain_table("device", "vertices", "most held", "of")
    for d, amounts in enumerate(profile(found.problem, best.plan)):
        limit, on = instance.cluster.memory[d], best.plan.placement.count(d)
        most = number(max(amounts.values()), up=True)
        table.add_row(instance.cluster.names[d], str(on), most, number(limit, up=False))
    console.show(table)


def _row(found: Recomputation, plan: Plan | None) -> tuple[str, str, str, str]:
    """Return the figures of a plan, with its gap to the proven bound of all plans."""
    from optpart.applications.recompute.plan import makespan
    from optpart.base.rounding import number, percent
    from optpart.solution.gap import gap

    if plan is None:
        return "–", "–", "–", "–"
    length, again = makespan(found.problem, plan), len(plan.runs) - len(plan.placement)
    share = percent(gap(length, found.best.bound))
    return number(length, up=True), share, str(again), str(len(plan.offloads))
