"""``optpart generate small``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from optpart.commands.options import Needed, Seed
from optpart.limits import MOST_DEVICES, MOST_VERTICES


class Tightness(StrEnum):
    """The memory of the devices."""

    none = "none"
    loose = "loose"
    tight = "tight"


def generate_small(
    output: Needed,
    vertices: Annotated[int, typer.Option(min=1, max=MOST_VERTICES)] = 20,
    devices: Annotated[int, typer.Option(min=2, max=MOST_DEVICES)] = 3,
    ccr: Annotated[
        float, typer.Option(help="Ratio of communication to computation.", min=1e-6, max=1e6)
    ] = 1.0,
    types: Annotated[bool, typer.Option(help="Some vertices need a CPU or a GPU.")] = False,
    groups: Annotated[bool, typer.Option(help="Some vertices are colocated.")] = False,
    memory: Annotated[Tightness, typer.Option()] = Tightness.none,
    seed: Seed = 0,
) -> None:
    """Draw a small instance with whole-number times."""
    from optpart.commands.generated import write_generated
    from optpart.generate.small import small

    instance = small(
        vertices, devices, seed=seed, ccr=ccr, types=types, groups=groups, memory=memory.value
    )
    write_generated(instance, output)
