"""Layered random graphs like those of the Standard Task Graph Set (Tobita and Kasahara 2002)."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from optpart.base.limits import MOST_DEVICES, MOST_VERTICES
from optpart.interop.generate import draw
from optpart.interop.generate.family import Shape, instance_of
from optpart.interop.generate.option import Option
from optpart.interop.generate.whole_times import LEAST_CCR, MOST_CCR
from optpart.problem.instance import Instance


def stg_layers(
    layers: Annotated[int, Option(1, MOST_VERTICES)] = 5,
    width: Annotated[int, Option(1, MOST_VERTICES, "Tasks of a layer.")] = 6,
    predecessors: Annotated[
        int, Option(1, MOST_VERTICES, "Of each task, in the layer before; at most the width.")
    ] = 2,
    devices: Annotated[int, Option(2, MOST_DEVICES)] = 4,
    *,
    ccr: Annotated[float, Option(LEAST_CCR, MOST_CCR, "Communication to computation.")] = 1.0,
    seed: int = 0,
) -> Instance:
    """Draw layers in which every task has the same number of predecessors in the layer before.

    As in the Standard Task Graph Set, an entry comes before the tasks of the first layer and an
    exit after all tasks without successors; both take no time and send nothing. There are
    ``layers · width + 2`` tasks and ``width + (layers − 1) · width · predecessors`` edges and one
    for each task without successors, which are the last layer and those that were not drawn. This
    is in the manner of ``layrpred``, one of the four methods of T. Tobita and H. Kasahara, A
    standard task graph set for fair evaluation of multiprocessor scheduling algorithms, Journal of
    Scheduling 5 (2002), but with the same width for all layers, and not of their files, which
    optpart reads, too. See :func:`~optpart.interop.generate.family.instance_of` for costs,
    ``devices`` and ``ccr``.
    """
    draw.count(layers, "layers", least=1)
    draw.count(width, "width", least=1)
    draw.count(predecessors, "predecessors", least=1, most=width)
    tasks = layers * width
    inner = (layers - 1) * width * predecessors

    def shape(rng: np.random.Generator) -> Shape:
        # The entry is 0, and the exit comes last.
        names = ["entry", *(f"t_{i}_{j}" for i in range(layers) for j in range(width)), "exit"]
        edges = [(0, v) for v in range(1, width + 1)]
        for v in range(width + 1, tasks + 1):
            before = v - (v - 1) % width - width
            drawn = rng.choice(width, predecessors, replace=False)
            edges += [(before + int(j), v) for j in np.sort(drawn)]
        followed = {u for u, _ in edges}
        edges += [(v, tasks + 1) for v in range(1, tasks + 1) if v not in followed]
        return Shape(names, edges, free=(0, tasks + 1))

    return instance_of(
        shape,
        tasks=tasks + 2,
        edges=width + inner + tasks,
        name={"stg-layers": "", "l": layers, "w": width, "q": predecessors},
        devices=devices,
        seed=seed,
        ccr=ccr,
        source="layered random graph like those of Tobita and Kasahara 2002",
    )
