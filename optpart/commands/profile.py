"""``optpart profile``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup

from optpart.commands.options import Json, Output
from optpart.errors import InputError
from optpart.terminal import put, say

if TYPE_CHECKING:
    from optpart.training.profile import Costs, Fit


class Profile(TyperGroup):
    """Fit costs of training to measured times."""


def fit(
    tables: Annotated[
        list[Path],
        typer.Argument(
            metavar="TIMES.csv…",
            help="Tables of 'op,kind,batch,time (us)' or 'sender,receiver,bytes,time (us)'.",
        ),
    ],
    output: Output = None,
    as_json: Json = False,
) -> None:
    """Fit a line α + β·samples to each operation and kind of device, and to each link.

    Non-negative least squares of relative errors; α and β are nanoseconds.
    """
    from optpart.training import profile

    if len({path.resolve() for path in tables}) < len(tables):
        raise InputError("TIMES.csv", "a table given twice", "give every table once")
    costs = profile.fit_files(tables)
    if output is not None:
        profile.write(costs, output)
    if as_json:
        put(profile.dumps(costs))
    else:
        _show(costs)


def _show(costs: Costs) -> None:
    from optpart.problem.units import written

    for what, fits, per in (
        ("operation, kind", costs.operations, "sample"),
        ("sender, receiver", costs.transfers, "MB"),
    ):
        if not fits:
            continue
        width = max(len(what), *(len(", ".join(key)) for key in fits))
        columns = f"{'rows':>5} {'alpha':>10} {'beta/' + per:>12} {'error':>7} {'worst':>7}"
        say(f"{what:{width}} {columns}")
        scale = 1 if per == "sample" else 10**6
        for key, each in fits.items():
            alpha, beta = each.line.alpha, each.line.beta * scale
            say(
                f"{', '.join(key):{width}} {each.rows:>5} {written(alpha, 'time'):>10} "
                f"{written(beta, 'time'):>12} {_percent(each.error)} {_percent(each.worst)}"
            )
        _summary(list(fits.values()))
    for remark in costs.remarks():
        say(remark)


def _summary(fits: list[Fit]) -> None:
    from statistics import median

    rows = sum(each.rows for each in fits)
    say(
        f"{len(fits)} lines of {rows} rows; median of their errors "
        f"{median(each.error for each in fits):.1%}, largest error "
        f"{max(each.worst for each in fits):.1%}"
    )


def _percent(error: float) -> str:
    return f"{error:>7.1%}"
