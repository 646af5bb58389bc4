"""``optpart generate thesis``."""

from __future__ import annotations

from typing import Annotated

import typer

from optpart.commands.options import Needed, Seed
from optpart.limits import MOST_DEVICES


def generate_thesis(
    number: Annotated[
        int, typer.Argument(help="Number of a graph in [L] table 7.1.", min=1, max=6)
    ],
    output: Needed,
    devices: Annotated[int, typer.Option(min=2, max=MOST_DEVICES)] = 100,
    seed: Seed = 0,
) -> None:
    """Draw one of the six graphs of [L] table 7.1, with a cluster."""
    from optpart.commands.generated import write_generated
    from optpart.generate import thesis

    write_generated(thesis.instance(number, devices, seed), output)
