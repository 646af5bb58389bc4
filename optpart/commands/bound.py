"""``optpart bound``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optpart.base.clock import remaining
from optpart.base.errors import InputError
from optpart.base.terminal import complain, note, put, say
from optpart.commands.instances import note_limits, open_instance
from optpart.commands.options import File, Json, MemoryLimit, file_to_write, time_limit

if TYPE_CHECKING:
    from optpart.lower_bounds.best import LowerBound
    from optpart.study.report.console import PlainConsole


def bound(
    file: File,
    time_limit: Annotated[float, time_limit("Seconds for all bounds together.")] = 30.0,
    memory_limit: MemoryLimit = None,
    checkpoint: Annotated[
        Path | None,
        file_to_write(
            help="A new file in which every bound is kept as soon as it is proven; one that exists "
            "needs --resume. Bounds that more time may raise go on as long as there is time. If "
            "saving fails, they continue; if the last save fails, it exits with 2.",
            kind="optpart.methods.bounds_in_rounds:KIND",
            updated=True,
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Continue from the checkpoint of an earlier run; the limit covers both together.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Prove lower bounds of the makespan."""
    from optpart.interop.formats.json import pretty
    from optpart.lower_bounds.best import largest
    from optpart.methods.bounds_in_rounds import every_bound, opened
    from optpart.problem.feasibility import contradiction, excluded
    from optpart.solution.result import Budget, Progress
    from optpart.study.report.console import plain_console
    from optpart.study.report.progress import ProgressLine
    from optpart.study.report.text import claimed, infeasible, seconds

    instance = open_instance(file)
    note_limits([instance])
    reason = contradiction(instance)
    if reason:
        (note if json else say)(f"{instance.name}: {infeasible(reason)}")
        raise typer.Exit(3)
    line = ProgressLine(f"{instance.name}  ", seeks=False)

    def warn(fault: InputError) -> None:
        line.clear()
        complain(f"the bounds continue without a checkpoint: {fault}")

    state = opened(checkpoint, instance, resume=resume, warn=warn)
    if state is not None and (resumed := state.resumed(time_limit)):
        note(resumed)
    budget = Budget(time_limit, memory=memory_limit)
    proven: dict[str, LowerBound] = {}
    interrupted = False
    began = time.monotonic()

    def watch(name: str) -> None:
        known = list(proven.values()) if state is None else state.found
        value = largest(known).value if known else None
        line(name, Progress(time.monotonic() - began, None, value))

    try:
        for each in every_bound(instance, remaining(time_limit), budget, state, begins=watch):
            proven[each.name] = each.after(proven.get(each.name))
    except KeyboardInterrupt:
        line.clear()
        interrupted = True
        note("interrupted: the bounds proven so far follow")
    finally:
        line.clear()
    found = list(proven.values()) if state is None else state.found
    best = largest(found) if found else None
    if json:
        values = [
            {
                "bound": b.name,
                "value": None if b.value is None else str(b.value),
                "seconds": round(b.seconds, 6),
                "failed": b.failure or None,
            }
            for b in found
        ]
        document = {
            "instance": instance.name,
            "interrupted": interrupted,
            "best": None if best is None else best.name,
            "bounds": values,
        }
        if state is not None:
            document["checkpoint"] = {
                "seconds": round(state.seconds, 6),
                "can_go_on": state.can_go_on,
            }
            document["claimed"] = [claim.to_dict() for claim in state.claims]
        put(pretty(document))
    elif best is not None:
        print_bounds(plain_console(), found, best)
        if state is not None:
            for claim in state.claims:
                say(claimed(claim))
            rest = ", ".join(state.can_go_on)
            left = f"more time may raise {rest}" if rest else "no bound can go on"
            say(f"{seconds(state.seconds)} spent in all; {left}")
    if state is not None and state.fault is not None:
        raise state.fault
    if best is None:
        raise typer.Exit(4)
    if best.value is None:
        why = infeasible(excluded(instance, "bounds"))
        (note if json else say)(f"{instance.name}: {why}")
        raise typer.Exit(3)


def print_bounds(console: PlainConsole, found: list[LowerBound], best: LowerBound) -> None:
    """Print a row per bound, and which is the largest."""
    from optpart.base.rounding import number
    from optpart.study.report.console import plain_table
    from optpart.study.report.text import seconds

    table = plain_table("bound", "value", "time")
    for each in found:
        value = "infeasible" if each.value is None else number(each.value, up=False)
        table.add_row(each.name, value, seconds(each.seconds))
    console.show(table)
    if best.value is not None:
        console.tell(f"best: {number(best.value, up=False)}, by {best.name}")
