"""``optpart plot``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from optpart.commands.options import Picture


def plot(
    result: Annotated[Path, typer.Argument(help="A result file.")],
    output: Picture,
    instance: Annotated[
        str | None,
        typer.Option(help="Its instance; not needed for a library instance."),
    ] = None,
) -> None:
    """Draw a schedule, devices over time, as PNG or SVG."""
    from optpart.api import draw

    draw(result, output, instance=instance)
