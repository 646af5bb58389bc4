"""``optpart report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from optpart.commands.options import Needed


def report(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="RESULT|INSTANCE|STORE",
            help="Result files, stores of 'optpart gap --store', and the instance: a file, or the "
            "name of a library instance. Results of library instances need no instance.",
        ),
    ],
    output: Needed,
    certificate: Annotated[
        Path | None,
        typer.Option(help="A certificate of the optimum; it is checked, and the report says so."),
    ] = None,
) -> None:
    """Write a report as one HTML file that opens without a network."""
    from optpart.api import write_report

    write_report(what, output, certificate=certificate)
