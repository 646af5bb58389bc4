"""``optpart verify``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from optpart.base.terminal import put, say
from optpart.commands.instances import note_limits, open_instance
from optpart.commands.options import DeviceOrder, File, Json, listed_devices


def verify(
    file: File,
    result: Annotated[Path, typer.Argument(help="A result file.")],
    contiguous: Annotated[
        bool,
        typer.Option("--contiguous", help="Also require contiguous blocks."),
    ] = False,
    device_order: DeviceOrder = None,
    json: Json = False,
) -> None:
    """Check a result against its instance, in exact arithmetic."""
    from optpart.interop.formats.json import pretty
    from optpart.solution.names import given_device_order
    from optpart.study.report.verification import check_result

    instance = open_instance(file)
    note_limits([instance])
    report = check_result(
        instance,
        result,
        contiguous=contiguous,
        device_order=given_device_order(instance, listed_devices(device_order)),
    )
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
