"""Complete in-trees and out-trees, among the structures of Wang and Sinnen (2018)."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

import numpy as np

from optpart.base.errors import InputError
from optpart.base.limits import MOST_DEVICES, MOST_VERTICES
from optpart.interop.generate import draw
from optpart.interop.generate.family import Shape, instance_of
from optpart.interop.generate.option import Option
from optpart.interop.generate.whole_times import LEAST_CCR, MOST_CCR
from optpart.problem.instance import Instance

Direction = Literal["in", "out"]


def tree(
    direction: Annotated[Direction, Option(help="Towards the root, or away from it.")] = "in",
    levels: Annotated[int, Option(1, MOST_VERTICES, "The root included.")] = 4,
    branching: Annotated[int, Option(1, MOST_VERTICES, "Children of a task.")] = 2,
    devices: Annotated[int, Option(2, MOST_DEVICES)] = 4,
    *,
    ccr: Annotated[float, Option(LEAST_CCR, MOST_CCR, "Communication to computation.")] = 1.0,
    seed: int = 0,
) -> Instance:
    """Draw a complete tree whose edges lead to the root (``in``) or away from it (``out``).

    With ``b`` for ``branching`` and ``h`` for ``levels``, it has ``1 + b + … + b^(h−1)`` tasks,
    which is ``(b^h − 1) / (b − 1)`` if ``b > 1``, and one edge less. In-trees are reductions, such
    as a sum; out-trees distribute, such as a broadcast. The structures are among those of H. Wang
    and O. Sinnen, List-scheduling versus cluster-scheduling, IEEE TPDS 29 (2018). See
    :func:`~optpart.interop.generate.family.instance_of` for costs, ``devices`` and ``ccr``.
    """
    if direction not in get_args(Direction):
        raise InputError("direction", f"unknown {direction!r}", "choose one of in, out")
    draw.count(levels, "levels", least=1, most=MOST_VERTICES)
    draw.count(branching, "branching", least=1, most=MOST_VERTICES)
    tasks = 0
    for _ in range(levels):
        tasks = 1 + branching * tasks
        if tasks > MOST_VERTICES:
            break

    def shape(rng: np.random.Generator) -> Shape:
        # Breadth first from the root: the children of v are b·v + 1 to b·v + b.
        up = [(v, (v - 1) // branching) for v in range(1, tasks)]
        names = [f"t{v}" for v in range(tasks)]
        return Shape(names, up if direction == "in" else [(parent, v) for v, parent in up])

    return instance_of(
        shape,
        tasks=tasks,
        edges=tasks - 1,
        name={f"{direction}-tree": "", "h": levels, "b": branching},
        devices=devices,
        seed=seed,
        ccr=ccr,
        source=f"complete {direction}-tree",
    )
