"""Devices that only hold weights, which another device computes with.

Runtimes such as accelerate keep the weights of some modules with the processor or on disk, and copy
them to a GPU whenever it needs them. Such a device has ``computes_on`` in its cluster file. Its
operations take as long as on the other device, after their weights have come over the link between
both; what they read and hand on is there, too. One processor then works for several devices, so
operations come one after the other, in the order of the model.

Keys and values are where they are computed, and so are the weights that are being used: the
computing device keeps room for the keys and values of the whole model, and for the largest weights.
Where other devices compute, too, blocks count their keys and values where they are as well, which
is more than is needed, never less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from optpart.base.errors import InputError
from optpart.base.rounding import fixed
from optpart.interop.devices.named import NamedCluster
from optpart.interop.devices.spec import Spec
from optpart.problem.cluster import Cluster
from optpart.problem.graph import CONTROL, Graph
from optpart.problem.rational import RationalArray
from optpart.problem.workload import Workload


def computing(named: NamedCluster) -> list[int]:
    """Return the device that computes for each."""
    own = range(len(named.cluster))
    return [d if of is None else of for d, of in zip(own, named.computes_on or own, strict=True)]


def with_specs(named: NamedCluster) -> tuple[Spec | None, ...]:
    """Return what is known of the device that computes for each."""
    return tuple(named.specs[d] for d in computing(named))


def with_copies(
    workload: Workload, named: NamedCluster, columns: Sequence[Sequence[Fraction]]
) -> list[list[Fraction]]:
    """Add the time that weights take to where they are used.

    Parameters
    ----------
    columns : k sequences of n fractions
        Run times in nanoseconds.
    """
    found = [list(column) for column in columns]
    if not named.computes_on:
        return found
    weights = _weights(workload)
    for d, e in enumerate(computing(named)):
        if d == e:
            continue
        rate, latency = named.cluster.bandwidth[d, e], named.cluster.latency[d, e]
        if not named.cluster.infinite[d, e] and not rate:
            names = named.cluster.names
            problem = f"has no link to {names[e]!r}, which computes for it"
            raise InputError(f"device {names[d]!r}", problem, "give the link a bandwidth")
        for v, size in enumerate(weights):
            if size:
                over = Fraction(0) if named.cluster.infinite[d, e] else size / rate
                found[d][v] += latency + over
    return found


def shared(workload: Workload, named: NamedCluster) -> tuple[Graph, NamedCluster, tuple[str, ...]]:
    """Return graph and cluster as they are where devices compute for others, and what to say."""
    if not named.computes_on:
        return workload.graph, named, ()
    on = computing(named)
    names, limits = named.cluster.names, list(named.cluster.memory)
    cached, largest = sum(workload.cached), max(_weights(workload), default=Fraction(0))
    size = f"{fixed(Fraction(cached + largest, 2**30), 2, up=True)} GiB"
    remarks = []
    for e in sorted({e for d, e in enumerate(on) if d != e}):
        held = [names[d] for d in range(len(on)) if on[d] == e != d]
        limit = limits[e]
        if limit is not None:
            if limit < cached + largest:
                problem = "has no room for keys and values, and the weights that are in use"
                raise InputError(f"device {names[e]!r}", problem, "give it more memory")
            limits[e] = limit - cached - largest
        remarks.append(
            f"{names[e]} computes for {' and '.join(held)}, one operation after the other, and "
            f"gets the weights each time; it keeps {size} free for keys and values, and for the "
            "weights in use."
        )
    cluster = replace(_moved(named.cluster, on), memory=tuple(limits))
    graph = in_a_row(workload.graph)
    if len(set(on)) == 1:  # all keys and values are on the one device that computes
        graph = replace(graph, memory=RationalArray.from_fractions(_weights(workload)))
    return graph, replace(named, cluster=cluster), tuple(remarks)


def _weights(workload: Workload) -> list[Fraction]:
    held = workload.graph.memory.fractions()
    cached = workload.cached or (0,) * len(held)
    return [size - part for size, part in zip(held, cached, strict=True)]


def _moved(cluster: Cluster, on: Sequence[int]) -> Cluster:
    """Return the cluster with the links that the computing devices have."""
    pairs = np.ix_(on, on)
    same = np.equal.outer(on, on)
    bandwidth, latency = cluster.bandwidth.take(pairs), cluster.latency.take(pairs)
    infinite = cluster.infinite[pairs] | same
    return replace(
        cluster,
        bandwidth=replace(bandwidth, numerators=np.where(infinite, 0, bandwidth.numerators)),
        infinite=infinite,
        latency=replace(latency, numerators=np.where(same, 0, latency.numerators)),
    )


def in_a_row(graph: Graph) -> Graph:
    """Return the graph with a control dependency from every vertex to the next, if it has none."""
    order = graph.topological_order.tolist()
    known = {*zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True)}
    new = [pair for pair in pairwise(order) if pair not in known]
    made = zip(graph.tensor_vertex.tolist(), graph.tensor_output.tolist(), strict=True)
    tensor = {v: t for t, (v, output) in enumerate(made) if output == CONTROL}
    first = graph.tensors
    tensor |= {v: first + i for i, v in enumerate(u for u, _ in new if u not in tensor)}
    added = [v for v, t in tensor.items() if t >= first]
    sizes = graph.tensor_size.numerators
    sizes = np.concatenate([sizes, np.zeros(len(added), dtype=sizes.dtype)])

    def extended(array: NDArray[np.int32], more: list[int]) -> NDArray[np.int32]:
        return np.concatenate([array, np.array(more, dtype=np.int32)])

    return replace(
        graph,
        tensor_vertex=extended(graph.tensor_vertex, added),
        tensor_output=extended(graph.tensor_output, [CONTROL] * len(added)),
        tensor_size=RationalArray(sizes, graph.tensor_size.denominator),
        edge_source=extended(graph.edge_source, [u for u, _ in new]),
        edge_target=extended(graph.edge_target, [v for _, v in new]),
        edge_tensor=extended(graph.edge_tensor, [tensor[u] for u, _ in new]),
    )
