"""``optpart pipeline``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optpart.base.limits import MOST_DEVICES
from optpart.base.terminal import put, say
from optpart.commands.options import Json, listed_devices
from optpart.commands.options import output as written

if TYPE_CHECKING:
    from optpart.exact.pipeline.plan import PipelinePlan
    from optpart.study.report.console import PlainConsole


def pipeline(
    file: Annotated[
        str,
        typer.Argument(
            help="An instance file, the name of a library instance, or a throughput file of "
            "dnn-partitioning."
        ),
    ],
    replicas: Annotated[
        int,
        typer.Option(
            help="Most devices, all alike, that share the items of a stage.",
            min=1,
            max=MOST_DEVICES,
        ),
    ] = 1,
    device_order: Annotated[
        str | None,
        typer.Option(
            metavar="DEVICES",
            help="Use only these devices, separated by commas, all of a stage before those of "
            "later stages; any may stay empty.",
        ),
    ] = None,
    sync_rate: Annotated[
        str | None,
        typer.Option(
            metavar="RATE",
            help="Replicas exchange the memory of their vertices after each item: at this size "
            "per time, or over the links of the instance.",
        ),
    ] = None,
    check: Annotated[
        Path | None, typer.Option(help="Check this plan instead of making one.")
    ] = None,
    output: Annotated[Path | None, written("optpart.exact.pipeline.plan_file:KIND")] = None,
    json: Json = False,
) -> None:
    """Split a graph into the stages of a pipeline with the least bottleneck, proven."""
    from optpart.api import pipeline_problem
    from optpart.api import plan as make_plan
    from optpart.base.files import written_first
    from optpart.exact.pipeline.plan_file import check_plan, dumps_plan, write_plan
    from optpart.solution.result import Status
    from optpart.study.report.console import plain_console

    if check is not None:
        faults = check_plan(pipeline_problem(file, sync_rate=sync_rate), check)
        for fault in faults:
            say(fault)
        if faults:
            raise typer.Exit(1)
        say(
            f"{check}: the plan keeps every rule, and its loads are as stated; a bound in it is "
            "only claimed"
        )
        return
    found = make_plan(
        file,
        replicas=replicas,
        device_order=listed_devices(device_order),
        sync_rate=sync_rate,
    )
    with written_first(partial(write_plan, found), output):
        if json:
            put(dumps_plan(found))
        else:
            print_plan(plain_console(), found)
    if found.status is Status.INFEASIBLE:
        raise typer.Exit(3)


#: Names of a stage up to this length are all shown, of longer ones the first and the last.
_NAMES = 30


def _listed(names: list[str]) -> str:
    """Return the vertices of a stage, or from where to where they go."""
    whole = " ".join(names)
    return whole if len(names) == 1 or len(whole) <= _NAMES else f"{names[0]} … {names[-1]}"


def print_plan(console: PlainConsole, plan: PipelinePlan) -> None:
    """Print what is proven of a plan, and a row per stage."""
    from optpart.base.rounding import between, number
    from optpart.solution.result import Status
    from optpart.study.report.console import plain_table
    from optpart.study.report.text import infeasible, remark, seconds

    name = plan.pipeline.name
    if plan.status is Status.INFEASIBLE:
        console.tell(f"{name}: {infeasible(plan.reason)}")
        return
    value, bound = between(plan.bottleneck, plan.bound)
    note = f" ({plan.reason})" if plan.reason else ""
    console.tell(
        f"{name}: {plan.status}{note}, bottleneck {value}, lower bound {bound}, "
        f"{len(plan.stages)} stages, {seconds(plan.seconds)}"
    )
    table = plain_table("stage", "devices", "load", "memory", "vertices", "", words=2)
    names, devices = plan.pipeline.vertices, plan.pipeline.devices
    for i, (stage, load, memory) in enumerate(
        zip(plan.stages, plan.loads, plan.memory, strict=True), 1
    ):
        own = [names[v] for v in stage.vertices]
        table.add_row(
            str(i),
            ", ".join(devices[d] for d in stage.devices),
            number(load, up=True),
            number(memory, up=True),
            str(len(own)),
            remark(_listed(own)),
        )
    console.show(table)
