"""``optpart generate cluster``."""

from __future__ import annotations

from typing import Annotated

import typer

from optpart.commands.options import Needed, Seed
from optpart.limits import MOST_DEVICES


def generate_cluster(
    output: Needed,
    devices: Annotated[int, typer.Option(min=1, max=MOST_DEVICES)] = 10,
    seed: Seed = 0,
) -> None:
    """Draw a cluster, as in [L] §6.2, into a TOML file."""
    from optpart.formats import cluster_toml
    from optpart.generate.cluster import drawn_cluster

    cluster_toml.write(drawn_cluster(seed, devices), output)
