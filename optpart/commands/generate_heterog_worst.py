"""``optpart generate heterog-worst``."""

from __future__ import annotations

from typing import Annotated

import typer

from optpart.commands.options import Needed


def generate_heterog_worst(
    output: Needed,
    devices: Annotated[int, typer.Option(help="M.", min=1, max=50)] = 3,
    length: Annotated[
        int, typer.Option(help="Length of a long task; a short one takes 1.", min=1, max=10**9)
    ] = 1000,
    loops: Annotated[
        bool,
        typer.Option(
            "--loops", help="Add a link from every device to itself; transfers become vertices."
        ),
    ] = False,
) -> None:
    """Build an instance where HeteroG's order takes M² times the optimum, M + M² with loops."""
    from optpart.commands.generated import write_generated
    from optpart.generate.heterog_worst import heterog_worst

    write_generated(heterog_worst(devices, length, loops=loops), output)
