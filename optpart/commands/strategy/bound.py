"""``optpart strategy bound``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optpart.base.clock import remaining
from optpart.base.terminal import put, say
from optpart.commands.options import (
    Json,
    MemoryLimit,
    TimeLimit,
    spread,
)

if TYPE_CHECKING:
    pass


from optpart.commands.strategy.options import Asked, say_remarks


@spread
def bound(
    asked: Asked,
    time_limit: TimeLimit = 30.0,
    memory_limit: MemoryLimit = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="A folder for a certificate, which 'optpart check' verifies."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Prove how long an iteration takes at least, whatever the strategy."""
    from optpart.applications.training.bounds.certificate import HOLDS
    from optpart.base.folders import check_folder
    from optpart.interop.formats.json import pretty
    from optpart.study.report.strategy.table import (
        bound_document,
        heading,
        milliseconds,
        said_bounds,
    )
    from optpart.training_api import strategy_bound

    if output is not None:
        check_folder(output, HOLDS)
    question = asked.question()
    found = strategy_bound(question, seconds=remaining(time_limit), memory=memory_limit)
    if json:
        put(pretty(bound_document(question, found)))
    else:
        say_remarks(question.remarks)
        say(heading(question))
        for line in said_bounds(found):
            say(line)
    if output is not None and found.value is not None:
        written = found.certify(output)
        if not json:
            say(f"→ {written}, which proves {milliseconds(found.certified, up=False)}")
    if found.value is None:
        raise typer.Exit(3 if found.infeasible else 4)
