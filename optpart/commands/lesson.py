"""``optpart lesson``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from optpart.base.terminal import say
from optpart.commands.instances import note_limits, open_instance
from optpart.commands.options import File, TimeLimit, file_to_write


def lesson(
    file: File,
    output: Annotated[
        Path,
        file_to_write(
            "--output",
            "-o",
            kind="optpart.study.report.html.lesson:KIND",
            help="A page, NAME.html.",
        ),
    ] = Path("lesson.html"),
    time_limit: TimeLimit = 60.0,
) -> None:
    """Write one HTML page on which to place a small graph by hand, with its proven optimum."""
    from optpart.api import write_lesson
    from optpart.base.rounding import number
    from optpart.problem.units import with_unit

    instance = open_instance(file)
    note_limits([instance])
    best = write_lesson(instance, output, seconds=time_limit)
    optimum = with_unit(number(best.makespan, up=True), instance.time_unit)
    say(f"{instance.name}: {instance.vertices} vertices, optimum {optimum} → {output}")
