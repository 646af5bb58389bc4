"""``optpart robust``."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from optpart.base.clock import remaining
from optpart.base.limits import MOST_VERTICES
from optpart.base.terminal import put, say
from optpart.commands.instances import note_limits, open_instance
from optpart.commands.options import (
    File,
    Json,
    MemoryLimit,
    ResultFile,
    Seed,
    TimeLimit,
    Workers,
    file_to_write,
)

if TYPE_CHECKING:
    from optpart.study.report.console import PlainConsole
    from optpart.study.robust import Robust


def robust(
    file: File,
    samples: Annotated[
        Path | None,
        typer.Option(help="Run times: a CSV of name,device,time with a row per measurement."),
    ] = None,
    intervals: Annotated[
        Path | None, typer.Option(help="Run times: a CSV of name,device,low,high.")
    ] = None,
    spread: Annotated[
        str | None,
        typer.Option(help="Run times within ± this share, such as 20%; with --draws, log-normal."),
    ] = None,
    draws: Annotated[
        int | None, typer.Option(help="Samples to draw with --spread.", min=1, max=1000)
    ] = None,
    deviations: Annotated[
        int | None,
        typer.Option(
            help="Of intervals: vertices that deviate at most; by default, all may.",
            min=0,
            max=MOST_VERTICES,
        ),
    ] = None,
    goal: Annotated[
        Literal["worst", "mean"], typer.Option(help="The makespan to minimise: worst or mean.")
    ] = "worst",
    curve: Annotated[
        bool,
        typer.Option("--curve", help="Also print the price of robustness, in half of the time."),
    ] = False,
    picture: Annotated[
        Path | None,
        file_to_write(
            help="Draw the price of robustness as PNG or SVG.",
            kind="optpart.study.report.picture:kind_of",
        ),
    ] = None,
    time_limit: TimeLimit = 60.0,
    memory_limit: MemoryLimit = None,
    workers: Workers = 2,
    seed: Seed = 0,
    output: ResultFile = None,
    json: Json = False,
) -> None:
    """Find the placement and order that are best in the worst case, or on average.

    Run times vary: within intervals, or as samples. Transfer times and memory stay.
    """
    from optpart.base.files import written_first
    from optpart.interop.formats import result as result_format
    from optpart.interop.formats.json import pretty
    from optpart.solution.result import Status
    from optpart.study.report.console import plain_console
    from optpart.study.report.price import draw_price
    from optpart.study.report.progress import ProgressLine
    from optpart.study.robust import robust as study

    instance = open_instance(file)
    note_limits([instance])
    line = ProgressLine()

    def watch(what: str, value: Fraction | None) -> None:
        from optpart.base.rounding import number

        line(f"{instance.name}  {what}: best so far {number(value, up=True)}", None)

    try:
        found = study(
            instance, samples=samples, intervals=intervals, spread=spread, draws=draws,
            deviations=deviations, goal=goal, curve=curve or picture is not None,
            seconds=remaining(time_limit), workers=workers, seed=seed, memory=memory_limit,
            watch=watch,
        )  # fmt: skip
    finally:
        line.clear()
    if found.value is not None and picture is not None:
        draw_price(found, picture)

    def write(path: Path) -> None:
        result_format.write(found.result, path)

    with written_first(write, output if found.value is not None else None):
        if json:
            put(pretty({"instance": instance.name, **found.to_dict()}))
        else:
            _say(plain_console(), found)
    if found.value is None:
        raise typer.Exit(3 if found.status is Status.INFEASIBLE else 4)


def _say(console: PlainConsole, found: Robust) -> None:
    """Print the answer in a line, a table of plans, and the curve."""
    from optpart.base.rounding import between, number
    from optpart.problem.units import with_unit
    from optpart.study.report.console import plain_table

    instance, varies = found.variation.instance, found.variation
    said = f"{instance.name}: {found.status}"
    if found.value is None or found.outcome is None:
        say(f"{said} ({found.reason or 'nothing found'})")
        return

    def shown(value: Fraction) -> str:
        return with_unit(number(value, up=True), instance.time_unit)

    value, bound = between(found.value, found.bound)
    word = {"worst": "worst case", "mean": "mean"}[found.goal]
    unit = instance.time_unit
    say(f"{said}{f' ({found.reason})' if found.reason else ''}, {word} {with_unit(value, unit)}, "
        f"lower bound {with_unit(bound, unit)}")  # fmt: skip
    most = f", at most {found.deviations} deviate upwards" if found.deviations is not None else ""
    sampled = bool(varies.samples)
    carried = "; the order is fixed, or devices dispatch by it" if sampled else ""
    say(f"{varies.words}{most}{carried}:")
    further = ["mean", "worst dispatched", "mean dispatched"] if sampled else ["least"]
    table = plain_table("plan", "nominal", "worst", *further)
    notes = []
    for name, each in (("best", found.outcome), ("best nominal", found.usual)):
        if each is None:
            continue
        row = [each.nominal, each.worst]
        if sampled:
            some = each.dispatched
            row += [each.mean, *((max(some), sum(some, Fraction(0)) / len(some)) if some else ())]
        elif each.least is not None:
            row.append(each.least)
        table.add_row(name, *map(shown, row))
        if each.overfull:
            notes.append(f"{name}: dispatched, {each.overfull} samples exceed a limit of memory")
    console.show(table)
    for remark in notes:
        say(remark)
    if found.curve:
        parameter = "weight" if sampled else "deviations"
        table = plain_table(parameter, "nominal", word, "proven")
        for point in found.curve:
            table.add_row(str(point.parameter), shown(point.nominal), shown(point.value),
                          "yes" if point.proven else "no")  # fmt: skip
        console.show(table)
