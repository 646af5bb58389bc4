"""Iterated stencils on a line, among the structures of Wang and Sinnen (2018)."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from optpart.base.limits import MOST_DEVICES, MOST_VERTICES
from optpart.interop.generate import draw
from optpart.interop.generate.family import Shape, instance_of
from optpart.interop.generate.option import Option
from optpart.interop.generate.whole_times import LEAST_CCR, MOST_CCR
from optpart.problem.instance import Instance


def stencil(
    width: Annotated[int, Option(1, MOST_VERTICES, "Cells of the line.")] = 5,
    steps: Annotated[int, Option(1, MOST_VERTICES, "How often each cell is computed.")] = 5,
    devices: Annotated[int, Option(2, MOST_DEVICES)] = 4,
    *,
    ccr: Annotated[float, Option(LEAST_CCR, MOST_CCR, "Communication to computation.")] = 1.0,
    seed: int = 0,
) -> Instance:
    """Draw a stencil of three points on a line of cells.

    A cell of one step needs itself and its neighbours of the step before: ``width · steps`` tasks
    and ``(steps − 1)(3 · width − 2)`` edges. The structure is among those of H. Wang and O. Sinnen,
    List-scheduling versus cluster-scheduling, IEEE TPDS 29 (2018). See
    :func:`~optpart.interop.generate.family.instance_of` for costs, ``devices`` and ``ccr``.
    """
    draw.count(width, "width", least=1)
    draw.count(steps, "steps", least=1)

    def shape(rng: np.random.Generator) -> Shape:
        names = [f"cell_{step}_{i}" for step in range(steps) for i in range(width)]
        edges = [
            ((step - 1) * width + near, step * width + i)
            for step in range(1, steps)
            for i in range(width)
            for near in range(max(0, i - 1), min(width, i + 2))
        ]
        return Shape(names, edges)

    return instance_of(
        shape,
        tasks=width * steps,
        edges=(steps - 1) * (3 * width - 2),
        name={"stencil": "", "w": width, "t": steps},
        devices=devices,
        seed=seed,
        ccr=ccr,
        source="stencil of three points",
    )
