"""``optpart profile``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup

from optpart.base.errors import InputError
from optpart.base.rounding import percent
from optpart.base.terminal import put
from optpart.commands.options import Json
from optpart.commands.options import output as written

if TYPE_CHECKING:
    from optpart.applications.training.profile import Fit, FittedCosts
    from optpart.study.report.console import PlainConsole


class Profile(TyperGroup):
    """Fit costs of training to measured times."""


def fit(
    tables: Annotated[
        list[Path],
        typer.Argument(
            metavar="TIMES.csv",
            help="Tables with the columns op, kind, batch and time (us), or sender, receiver, "
            "bytes and time (us).",
        ),
    ],
    output: Annotated[Path | None, written("optpart.applications.training.profile:KIND")] = None,
    as_json: Json = False,
) -> None:
    """Fit a line α + β·samples to each operation and kind of device, and to each link.

    Non-negative least squares of relative errors; α and β are nanoseconds.
    """
    from optpart.applications.training import profile
    from optpart.study.report.console import plain_console

    if len({path.resolve() for path in tables}) < len(tables):
        raise InputError("TIMES.csv", "a table given twice", "give every table once")
    costs = profile.fit_files(tables)
    if output is not None:
        profile.write(costs, output)
    if as_json:
        put(profile.dumps(costs))
    else:
        print_costs(plain_console(), costs)


def print_costs(console: PlainConsole, costs: FittedCosts) -> None:
    """Print a row per fitted line, and how large the errors are."""
    from optpart.problem.units import written
    from optpart.study.report.console import plain_table

    for what, fits, per in (
        ("operation, kind", costs.operations, "sample"),
        ("sender, receiver", costs.transfers, "MB"),
    ):
        if not fits:
            continue
        table = plain_table(what, "rows", "alpha", f"beta/{per}", "error", "worst")
        scale = 1 if per == "sample" else 10**6
        for key, each in fits.items():
            table.add_row(
                ", ".join(key),
                str(each.rows),
                written(each.line.alpha, "time"),
                written(each.line.beta * scale, "time"),
                percent(each.error),
                percent(each.worst),
            )
        console.show(table)
        console.tell(_summary(list(fits.values())))
    for remark in costs.remarks():
        console.tell(remark)


def _summary(fits: list[Fit]) -> str:
    from statistics import median

    rows = sum(each.rows for each in fits)
    return (
        f"{len(fits)} lines of {rows} rows; median of their errors "
        f"{percent(median(each.error for each in fits))}, largest error "
        f"{percent(max(each.worst for each in fits))}"
    )
