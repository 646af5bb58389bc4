"""Options that several commands share, with their ranges."""

from __future__ import annotations

from typing import Annotated

import typer

from optpart.limits import LARGEST_SEED, MOST_SECONDS, MOST_WORKERS

#: With a default, it makes ``--time-limit``.
TimeLimit = Annotated[float, typer.Option(help="Seconds.", min=0.0, max=MOST_SECONDS)]
Workers = Annotated[int, typer.Option(help="Threads of the solver.", min=1, max=MOST_WORKERS)]
Seed = Annotated[int, typer.Option(help="Seed of everything random.", min=0, max=LARGEST_SEED)]
