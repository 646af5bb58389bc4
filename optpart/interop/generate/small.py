"""Small random instances with whole-number times, for a grid of parameters."""

from __future__ import annotations

import math
from typing import Annotated, Literal, get_args

import numpy as np

from optpart.base.choices import choice
from optpart.base.errors import InputError
from optpart.base.limits import MOST_DEVICES, MOST_VERTICES, check_devices, check_size
from optpart.interop.generate import draw
from optpart.interop.generate.layered import layered
from optpart.interop.generate.option import Option
from optpart.interop.generate.whole_times import (
    FINE,
    LEAST_CCR,
    MOST_CCR,
    Machines,
    check_ccr,
    scaled,
)
from optpart.problem.graph import Graph
from optpart.problem.instance import Instance
from optpart.problem.model import Model

Tightness = Literal["none", "loose", "tight"]

#: Capacity of a device, in percent of its even share of the need.
_CAPACITY = {"loose": 200, "tight": 110}


def small(
    vertices: Annotated[int, Option(1, MOST_VERTICES)] = 20,
    devices: Annotated[int, Option(2, MOST_DEVICES)] = 3,
    *,
    seed: int = 0,
    ccr: Annotated[float, Option(LEAST_CCR, MOST_CCR, "Communication to computation.")] = 1.0,
    types: Annotated[bool, Option(help="Some vertices need a CPU or a GPU.")] = False,
    groups: Annotated[bool, Option(help="Some vertices are colocated.")] = False,
    memory: Annotated[Tightness, Option()] = "none",
) -> Instance:
    """Draw a small instance whose run times and delays are all whole numbers.

    The graph is layered ([L] §6.2), with about √vertices levels and about 1.5 edges per vertex,
    each over one or two levels. For one seed, only ``vertices`` changes the graph and only
    ``devices`` the cluster. The other parameters scale times and add constraints, so the effect of
    each can be studied separately.

    Parameters
    ----------
    vertices : int
    devices : int
        At least 2, since one device needs no communication. Both device types occur.
    seed : int
    ccr : float
        Communication-to-computation ratio: the mean delay, over tensors and ordered pairs of
        devices, divided by the mean run time, over vertices and devices. Rounding changes it by a
        few percent.
    types : bool
        Whether a fifth of the vertices require a CPU, and another fifth a GPU.
    groups : bool
        Whether about a fifth of the vertices are in colocation groups.
    memory : {"none", "loose", "tight"}
        The memory model is ``estimate`` unless ``none``. The capacity of a device is 1.1 times an
        even share of the total need under ``tight``, and 2 times under ``loose``, but at least what
        it holds in a greedy packing: units with the fewest allowed devices first, then the largest
        ones, each onto the allowed device that holds least so far. That packing is a placement, and
        every placement has a schedule, so the instance is feasible.

    Returns
    -------
    Instance
        With a name such as ``small-20-4-ccr1-t-g-tight-s1``, where ``t`` and ``g`` mean types and
        groups.
    """
    draw.count(vertices, "vertices", least=1)
    check_devices(devices, least=2)
    check_size(vertices, devices=devices, place="vertices and devices")
    check_ccr(ccr)
    if memory not in get_args(Tightness):
        raise InputError("memory", f"unknown {memory!r}", choice(memory, get_args(Tightness)))
    for_graph, for_cluster = draw.generator(seed).spawn(2)
    machines = Machines.drawn(for_cluster, devices)
    graph = scaled(_graph(for_graph, vertices, types, groups), machines, ccr)
    free = Instance(graph, machines.cluster(), Model(memory="estimate"))
    marks = [mark for mark, on in (("t", types), ("g", groups), (memory, memory != "none")) if on]
    return Instance(
        graph,
        free.cluster if memory == "none" else machines.cluster(_capacities(free, memory)),
        Model(memory="none" if memory == "none" else "estimate"),
        name="-".join(["small", f"{vertices}", f"{devices}", f"ccr{ccr:g}", *marks, f"s{seed}"]),
        source=f"layered random graph with whole-number times, seed {seed}",
    )


def _graph(rng: np.random.Generator, vertices: int, types: bool, groups: bool) -> Graph:
    levels = max(1, round(math.sqrt(vertices)))
    width = math.ceil(vertices / levels)
    return layered(
        rng,
        levels=levels,
        width=(max(1, width // 2), 2 * width),
        vertices=vertices,
        edge_probability=min(1, 1.25 / width),
        level_limit=2,
        ops=(1, FINE),
        sizes=(1, FINE),
        memory=(10, 1000),
        cpu_probability=0.2 if types else 0,
        gpu_probability=0.2 if types else 0,
        colocated=max(2, vertices // 5) if groups and vertices > 1 else 0,
    )


def _capacities(free: Instance, memory: Literal["loose", "tight"]) -> list[int]:
    need = free.static_memory.numerators.tolist()
    load = [0] * free.devices
    for unit in sorted(range(len(need)), key=lambda u: (free.allowed[u].sum(), -need[u])):
        d = min(np.flatnonzero(free.allowed[unit]).tolist(), key=load.__getitem__)
        load[d] += need[unit]
    even = -(-_CAPACITY[memory] * sum(need) // (100 * free.devices))
    return [max(held, even) for held in load]
