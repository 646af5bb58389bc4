"""``optpart worst``."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optpart.base.clock import remaining
from optpart.base.errors import ArgumentError, InputError
from optpart.base.terminal import note, put, say
from optpart.commands.options import Json, Seed, file_to_write, time_limit

if TYPE_CHECKING:
    from optpart.study.worst import Worst


def worst(
    method: Annotated[str, typer.Argument(help="Such as heft or mite+pct.")],
    vertices: Annotated[int, typer.Option(help="From 2 to 16.", min=2, max=16)] = 8,
    devices: Annotated[int, typer.Option(help="From 2 to 6.", min=2, max=6)] = 3,
    family: Annotated[
        str, typer.Option(help="general, series-parallel, tree, or unit (times and delays of 1).")
    ] = "general",
    ccr: Annotated[
        str, typer.Option(help="Most communication to computation; 0 for no communication.")
    ] = "1",
    time_limit: Annotated[
        float | None, time_limit("Seconds; by default 20, or none with --tries.")
    ] = None,
    tries: Annotated[
        int | None,
        typer.Option(
            help="Instances to try; with the same seed, the result is the same.", min=1, max=10**9
        ),
    ] = None,
    seed: Seed = 0,
    output: Annotated[
        Path | None,
        file_to_write(
            "-o", "--output", help="Write the instance.", kind="optpart.interop.formats.native:KIND"
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Search for the instance on which a method is furthest from the optimum, which is proven.

    Every instance is in whole numbers: operations and sizes to 100, speeds and bandwidths to 10.
    Exits with 4 if the method has no schedule for any that was tried.
    """
    from functools import partial

    from optpart.base.files import written_first
    from optpart.base.rounding import number
    from optpart.interop.formats import native
    from optpart.interop.formats.json import pretty
    from optpart.methods import registry
    from optpart.problem.rational import rational
    from optpart.study.report.progress import ProgressLine
    from optpart.study.worst import WORST_SECONDS, worst_case

    if time_limit is None and tries is None:
        time_limit = WORST_SECONDS
    try:
        registry.get(method)
    except ArgumentError as error:
        raise InputError("METHOD", error.problem, error.remedy) from None
    line = ProgressLine()

    def watch(tried: int, ratio: Fraction) -> None:
        line(f"{method}  {tried} instances, ratio {number(ratio, up=False)}", None)

    try:
        found = worst_case(
            method,
            vertices=vertices,
            devices=devices,
            family=family,
            ccr=rational(ccr, "--ccr"),
            seconds=None if time_limit is None else remaining(time_limit),
            tries=tries,
            seed=seed,
            watch=watch,
        )
    finally:
        line.clear()
    if found is None:
        note(f"{method}: no instance with a schedule and a proven optimum")
        raise typer.Exit(4)
    if found.interrupted:
        note("interrupted: the worst instance so far follows")
    with written_first(partial(native.write, found.instance), output):
        if json:
            put(pretty(_document(found)))
        else:
            say(
                f"{method}: makespan {found.makespan}, optimum {found.optimum}, ratio "
                f"{found.ratio} ({number(found.ratio, up=False)}); {found.tries} instances, "
                f"seed {seed}"
            )


def _document(found: Worst) -> dict[str, object]:
    from optpart.interop.formats import native
    from optpart.interop.formats.json import parse_json

    return {
        "method": found.method,
        "makespan": str(found.makespan),
        "optimum": str(found.optimum),
        "ratio": str(found.ratio),
        "tries": found.tries,
        "proven": found.proven,
        "seed": found.seed,
        "interrupted": found.interrupted,
        "instance": parse_json(native.dumps(found.instance)),
    }
