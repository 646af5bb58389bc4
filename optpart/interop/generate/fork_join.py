"""Fork–join graphs, one of the structures that Wang and Sinnen (2018) compare methods on."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from optpart.base.limits import MOST_DEVICES, MOST_VERTICES
from optpart.interop.generate import draw
from optpart.interop.generate.family import Shape, instance_of
from optpart.interop.generate.option import Option
from optpart.interop.generate.whole_times import LEAST_CCR, MOST_CCR
from optpart.problem.instance import Instance


def fork_join(
    width: Annotated[int, Option(1, MOST_VERTICES, "Workers between a fork and its join.")] = 8,
    stages: Annotated[int, Option(1, MOST_VERTICES)] = 1,
    devices: Annotated[int, Option(2, MOST_DEVICES)] = 4,
    *,
    ccr: Annotated[float, Option(LEAST_CCR, MOST_CCR, "Communication to computation.")] = 1.0,
    seed: int = 0,
) -> Instance:
    """Draw a chain of forks into ``width`` workers, whose join is the fork of the next stage.

    It has ``stages · (width + 1) + 1`` tasks and ``2 · stages · width`` edges. The structure is
    that of H. Wang and O. Sinnen, List-scheduling versus cluster-scheduling, IEEE TPDS 29 (2018).
    See :func:`~optpart.interop.generate.family.instance_of` for costs, ``devices`` and ``ccr``.
    """
    draw.count(width, "width", least=1)
    draw.count(stages, "stages", least=1)

    def shape(rng: np.random.Generator) -> Shape:
        names, edges = ["fork_0"], []
        for stage in range(stages):
            fork = stage * (width + 1)
            join = fork + width + 1
            names += [f"work_{stage}_{i}" for i in range(width)]
            names.append(f"fork_{stage + 1}" if stage + 1 < stages else "join")
            for worker in range(fork + 1, join):
                edges += [(fork, worker), (worker, join)]
        return Shape(names, edges)

    return instance_of(
        shape,
        tasks=stages * (width + 1) + 1,
        edges=2 * stages * width,
        name={"fork-join": "", "w": width, "t": stages},
        devices=devices,
        seed=seed,
        ccr=ccr,
        source="fork-join graph",
    )
