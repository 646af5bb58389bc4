"""Some vertices of an instance alone: the graph that they induce, and their run times."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from optpart.problem.durations import Durations
from optpart.problem.graph import Graph
from optpart.problem.instance import Instance
from optpart.problem.rational import RationalArray


def _edges_among(graph: Graph, vertices: list[int]) -> list[int]:
    inside = np.isin(graph.edge_source, vertices) & np.isin(graph.edge_target, vertices)
    found: list[int] = np.flatnonzero(inside).tolist()
    return found


def tensors_among(graph: Graph, vertices: list[int]) -> list[int]:
    """Return the tensors between some vertices, in the order of :func:`induced`."""
    return _tensors(graph, _edges_among(graph, vertices))


def _tensors(graph: Graph, edges: list[int]) -> list[int]:
    return sorted({int(graph.edge_tensor[e]) for e in edges})


def induced(graph: Graph, vertices: list[int]) -> Graph:
    """Return some vertices, in this order, with all that is between them."""
    place = {v: i for i, v in enumerate(vertices)}
    edges = _edges_among(graph, vertices)
    tensors = _tensors(graph, edges)
    number = {tensor: i for i, tensor in enumerate(tensors)}
    chosen = np.array(vertices, dtype=np.int64)

    def numbers(found: list[int]) -> NDArray[np.int32]:
        return np.array(found, dtype=np.int32)

    return Graph(
        tuple(graph.names[v] for v in vertices),
        graph.ops.take(chosen),
        graph.memory.take(chosen),
        tuple(graph.device_types[v] for v in vertices),
        {place[v]: names for v, names in graph.allowed_devices.items() if v in place},
        numbers([place[int(graph.tensor_vertex[t])] for t in tensors]),
        graph.tensor_output[np.array(tensors, dtype=np.int64)],
        graph.tensor_size.take(np.array(tensors, dtype=np.int64)),
        {number[t]: matrix for t, matrix in graph.tensor_delay.items() if t in number},
        numbers([place[int(graph.edge_source[e])] for e in edges]),
        numbers([place[int(graph.edge_target[e])] for e in edges]),
        numbers([number[int(graph.edge_tensor[e])] for e in edges]),
        tuple(
            tuple(place[v] for v in group if v in place)
            for group in graph.colocation
            if sum(v in place for v in group) > 1
        ),
        tuple((place[v], place[w]) for v, w in graph.separation if v in place and w in place),
    )


def durations_of(
    instance: Instance, vertices: list[int], given: Mapping[int, int], before: Mapping[int, int]
) -> Durations:
    """Return the run times of some vertices, in this order.

    Parameters
    ----------
    given : mapping from vertex to device
        What some run on, if they may run there.
    before : mapping from vertex to device
        Where some have run already, which take no more time.
    """
    k = instance.devices
    allowed = instance.vertex_allowed[vertices]
    times = RationalArray.from_fractions(
        instance.duration(v, d) if allowed[i, d] and v not in before else Fraction(0)
        for i, v in enumerate(vertices)
        for d in range(k)
    ).reshape(len(vertices), k)
    for i, v in enumerate(vertices):
        if v in before:
            allowed[i] = np.arange(k) == before[v]
        elif v in given:
            allowed[i] &= np.arange(k) == given[v]
    return Durations(times, allowed)
