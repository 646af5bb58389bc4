"""The six synthetic graphs of [L] table 7.1, redrawn with exactly the same counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from optpart.base.errors import InputError
from optpart.base.limits import MOST_DEVICES, check_devices
from optpart.interop.generate import draw
from optpart.interop.generate.cluster import drawn_cluster
from optpart.interop.generate.draw import Range, Seed
from optpart.interop.generate.layered import layered, level_starts
from optpart.interop.generate.option import Option
from optpart.problem.graph import Graph
from optpart.problem.instance import Instance
from optpart.problem.model import Model

#: Share of the vertices (and colocation groups) that require a CPU, and share that require a GPU.
#: [L] has such constraints but does not give the figure.
TYPE_PROBABILITY = 0.1


@dataclass(frozen=True)
class Properties:
    """One row of [L] table 7.1."""

    vertices: int
    random_edges: int
    level_edges: int
    levels: int
    width: Range
    level_limit: int
    colocated: int


#: [L] table 7.1, by the number of the graph.
TABLE = {
    1: Properties(36319, 8003, 8073, 300, (50, 200), 20, 5200),
    2: Properties(18168, 5015, 20133, 300, (20, 100), 20, 2762),
    3: Properties(7475, 0, 49510, 1000, (5, 10), 3, 263),
    4: Properties(9899, 21099, 21387, 200, (20, 80), 10, 1945),
    5: Properties(10440, 23535, 23879, 200, (20, 80), 10, 4768),
    6: Properties(26887, 53423, 53721, 500, (10, 100), 20, 4214),
}


def graph(number: int, seed: Seed = 0) -> Graph:
    """Draw graph 1 to 6 of [L] table 7.1, with weights from 1 to 100 ([L] §6.2).

    Colocation groups and device types are drawn as in
    :func:`~optpart.interop.generate.layered.layered`, with a tenth of the vertices for each type.
    """
    row = _row(number)
    return layered(
        seed,
        levels=row.levels,
        width=row.width,
        vertices=row.vertices,
        level_edges=row.level_edges,
        level_limit=row.level_limit,
        random_edges=row.random_edges,
        cpu_probability=TYPE_PROBABILITY,
        gpu_probability=TYPE_PROBABILITY,
        colocated=row.colocated,
    )


def levels(number: int, seed: Seed = 0) -> NDArray[np.int64]:
    """Return the starts of the levels of ``graph(number, seed)``, and the number of vertices."""
    row = _row(number)
    return level_starts(seed, levels=row.levels, width=row.width, vertices=row.vertices)


def instance(
    number: Annotated[int, Option(1, len(TABLE), "Graph of [L] table 7.1.")],
    devices: Annotated[int, Option(2, MOST_DEVICES)] = 100,
    seed: int = 0,
    *,
    memory: bool = True,
) -> Instance:
    """Draw graph 1 to 6 of [L] table 7.1 and a cluster for it ([L] §6.2, §7.1).

    Parameters
    ----------
    number : int
    devices : int
        At least 2, so that both device types occur.
    seed : int
        The graph is ``graph(number, seed)``.
    memory : bool
        Whether the memory model is ``estimate``; otherwise it is ``none``, with unlimited devices.
        The thesis gives no capacities. Here, they are drawn from 2 to 4 times an even share of the
        need, so that the devices together hold about 3 times the need; faster ones have less. The
        smallest holds at least twice the largest assignment unit. So any device without room for a
        unit is at least half full, and a greedy strategy finds room for every unit that may run
        anywhere.
    """
    check_devices(devices, least=2)
    rng = draw.generator(seed)
    drawn = graph(number, rng)
    cluster_seed = int(rng.integers(2**32))
    cluster = drawn_cluster(cluster_seed, devices)
    if memory:
        capacities = _capacities(Instance(drawn, cluster, Model(memory="estimate")))
        cluster = drawn_cluster(cluster_seed, devices, memory=capacities)
    return Instance(
        drawn,
        cluster,
        Model(memory="estimate" if memory else "none"),
        name=f"thesis-{number}",
        source=f"drawn with the properties of Laich's table 7.1, graph {number}, seed {seed}",
    )


def _row(number: int) -> Properties:
    if number not in TABLE:
        raise InputError("number", f"no graph {number}", "give a number from 1 to 6")
    return TABLE[number]


def _capacities(unlimited: Instance) -> Range:
    need = unlimited.static_memory
    share = math.ceil(need.sum() / unlimited.devices)
    low = 2 * max(share, math.ceil(max(need.fractions())))
    return low, max(low, 4 * share)
