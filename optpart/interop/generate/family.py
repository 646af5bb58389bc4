"""Drawn costs, a cluster, a name and a limit on the size, shared by all families of graphs.

A family is a shape, the tasks and edges of an algorithm or of a kind of graph that papers compare
methods on. Its costs are drawn as those of :func:`~optpart.interop.generate.small.small`, so that
all run times and delays are whole numbers: operations and sizes uniformly, then scaled to the ratio
of communication to computation. A task has one output tensor, which all its out-edges consume.
Memory is not limited.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.base.limits import check_devices, check_size
from optpart.interop.generate import draw
from optpart.interop.generate.whole_times import FINE, Machines, check_ccr, scaled
from optpart.problem.graph import Graph
from optpart.problem.instance import Instance
from optpart.problem.rational import RationalArray


class Shape(NamedTuple):
    """Tasks and edges without costs.

    Attributes
    ----------
    names : list of str
        Of all tasks.
    edges : list of (int, int)
        Pairs of a task and one that needs its output, all distinct.
    free : tuple of int
        Tasks that take no time and whose output has size 0, such as an entry added to a graph.
    """

    names: list[str]
    edges: list[tuple[int, int]]
    free: tuple[int, ...] = ()


def instance_of(
    shape: Callable[[np.random.Generator], Shape],
    *,
    tasks: int,
    edges: float,
    name: Mapping[str, object],
    devices: int,
    seed: int,
    ccr: float,
    source: str,
) -> Instance:
    """Draw the costs of a shape, and a cluster.

    For one seed and shape, ``devices`` changes only the cluster, and ``ccr`` only the scale.

    Parameters
    ----------
    shape : callable
        Returns the shape; called only if its size is within the limits.
    tasks, edges : int, float
        The size of the shape; of edges that are drawn, the expected number.
    name : mapping
        The family under its name, and its parameters by the prefix that they have in the name of
        the instance.
    devices : int
        At least 2, since one device needs no communication. Speeds and bandwidths are those of
        :class:`~optpart.interop.generate.whole_times.Machines`.
    ccr : float
        Mean delay, over tensors and ordered pairs of devices, divided by the mean run time, over
        tasks and devices. Rounding changes it by a few percent.
    source : str
        Where the family comes from.

    Raises
    ------
    InputError
        If a number is out of its range, or the instance would be too large.
    """
    check_devices(devices, least=2)
    check_size(tasks, edges, devices, place="tasks, edges and devices")
    check_ccr(ccr)
    for_shape, for_costs, for_cluster = draw.generator(seed).spawn(3)
    made = shape(for_shape)
    machines = Machines.drawn(for_cluster, devices)
    marks = [f"{prefix}{value}" for prefix, value in name.items()]
    return Instance(
        scaled(_graph(for_costs, made), machines, ccr),
        machines.cluster(),
        name="-".join([*marks, f"d{devices}", f"ccr{ccr:g}", f"s{seed}"]),
        source=f"{source}, with whole-number times, seed {seed}",
    )


def _graph(rng: np.random.Generator, shape: Shape) -> Graph:
    n = len(shape.names)
    ends = np.array(shape.edges, dtype=np.int32).reshape(-1, 2)
    ends = ends[np.lexsort((ends[:, 1], ends[:, 0]))]
    source, target = ends[:, 0].copy(), ends[:, 1].copy()
    return Graph(
        names=tuple(shape.names),
        ops=_drawn(rng, n, shape.free),
        memory=RationalArray(np.zeros(n, dtype=np.int64)),
        device_types=(None,) * n,
        allowed_devices={},
        tensor_vertex=np.arange(n, dtype=np.int32),
        tensor_output=np.zeros(n, dtype=np.int32),
        tensor_size=_drawn(rng, n, shape.free),
        tensor_delay={},
        edge_source=source,
        edge_target=target,
        edge_tensor=source,
        colocation=(),
    )


def _drawn(rng: np.random.Generator, n: int, free: tuple[int, ...]) -> RationalArray:
    values: NDArray[np.int64] = draw.integers(rng, (1, FINE), n)
    values[list(free)] = 0
    return RationalArray(values)
