"""``optpart verify``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from optpart.commands.instances import note_limits, open_instance
from optpart.commands.options import File, Json
from optpart.terminal import put, say


def verify(
    file: File,
    result: Annotated[Path, typer.Argument(help="A result file.")],
    json: Json = False,
) -> None:
    """Check a result against its instance, in exact arithmetic."""
    from optpart.formats.json import pretty
    from optpart.report.verification import check_result

    instance = open_instance(file)
    note_limits([instance])
    report = check_result(instance, result)
    if json:
        document = {
            "instance": instance.name,
            "valid": not report.violations,
            "violations": [str(violation) for violation in report.violations],
            "makespan": None if report.makespan is None else str(report.makespan),
        }
        put(pretty(document))
    else:
        for violation in report.violations:
            say(str(violation))
        if not report.violations:
            say(report.summary)
    if report.violations:
        raise typer.Exit(1)
