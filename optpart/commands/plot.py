"""``optpart plot``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from optpart.commands.instances import open_instance
from optpart.commands.options import Needed
from optpart.errors import InputError


def plot(
    result: Annotated[Path, typer.Argument(help="A result file.")],
    output: Needed,
    instance: Annotated[
        str | None,
        typer.Option(help="Its instance; not needed for one of the library."),
    ] = None,
) -> None:
    """Draw a schedule by device over time, as PNG or SVG."""
    from optpart.formats.result import read_document, read_schedule
    from optpart.problem.rational import rational
    from optpart.report import gantt
    from optpart.report.verification import check_result

    document = read_document(result)
    name = document.get("instance") if instance is None else instance
    if not isinstance(name, str):
        raise InputError("instance", "missing", "name the instance with --instance", str(result))
    found = open_instance(name)
    report = check_result(found, result)
    if report.violations:
        raise InputError(
            "schedule",
            f"not valid for {found.name} ({report.violations[0]})",
            "name its instance with --instance",
            str(result),
        )
    bound = document.get("lower_bound")
    gantt.draw(
        found,
        read_schedule(result, found),
        output,
        title=f"{found.name}, {document.get('method', '')}",
        bound=None if bound is None else rational(bound, "lower_bound"),
    )
