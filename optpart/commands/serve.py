"""``optpart serve``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optpart.base.clock import remaining
from optpart.base.terminal import put, say
from optpart.commands.options import Json, Seed, TimeLimit, output

if TYPE_CHECKING:
    from optpart.applications.serving.serve import Served


def serve(
    cluster: Annotated[
        str, typer.Argument(help="Machines, links and layers (TOML), or a cluster of Helix (.ini).")
    ],
    model: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Profiles of a model, for a cluster of Helix."),
    ] = None,
    time_limit: TimeLimit = 60.0,
    seed: Seed = 0,
    check: Annotated[
        Path | None, typer.Option(help="Check this plan instead of making one.")
    ] = None,
    output: Annotated[Path | None, output("optpart.applications.serving.serve:KIND")] = None,
    json: Json = False,
) -> None:
    """Place the layers of a model so that most tokens pass per second, with a proven bound.

    Exits with 3 if no token can pass, and with 4 if no plan was found.
    """
    from optpart.api import serve as find
    from optpart.api import serving_problem
    from optpart.applications.serving.serve import document, faults, write
    from optpart.base.files import written_first
    from optpart.interop.formats.json import pretty
    from optpart.solution.result import Status

    problem = serving_problem(cluster, model=model)
    if check is not None:
        found = faults(problem, check)
        for fault in found:
            say(fault)
        if found:
            raise typer.Exit(1)
        say(f"{check}: the plan keeps every rule, and passes as many tokens as it says")
        return
    served = find(problem, seconds=remaining(time_limit), seed=seed)
    with written_first(partial(write, served), output):
        if json:
            put(pretty(document(served)))
        else:
            _print(served)
    if not served.throughput:
        raise typer.Exit(3 if served.status is Status.INFEASIBLE else 4)


def _print(served: Served) -> None:
    """Print what is proven of a plan, and a row per machine."""
    from optpart.base.rounding import number, percent
    from optpart.study.report.console import plain_console, plain_table
    from optpart.study.report.text import seconds

    console, plan = plain_console(), served.plan
    value = number(served.throughput, up=False)
    bound = value if served.throughput == served.bound else number(served.bound, up=True)
    console.tell(
        f"{served.serving.name}: {served.status}, {value} tokens/s, at most {bound} (by "
        f"{served.proof}), gap {percent(served.gap)}, {seconds(served.seconds)}"
    )
    if not served.throughput:
        return
    table = plain_table("machine", "layers", "tokens/s", "of its rate")
    for i, (machine, held) in enumerate(zip(served.serving.machines, plan.intervals, strict=True)):
        passed = plan.through(i)
        if held is None or not passed:
            table.add_row(machine.name, "–", "0", "–")
        else:
            rate = machine.rates[held[1] - held[0] - 1]
            table.add_row(
                machine.name,
                f"{held[0]}–{held[1] - 1}",
                number(passed, up=False),
                percent(passed / rate, up=False),
            )
    console.show(table)
