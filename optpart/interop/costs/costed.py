"""The result of every source of costs: an instance, and the assumptions made for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from optpart.base.errors import InputError
from optpart.base.rounding import fixed
from optpart.interop.devices.named import NamedCluster
from optpart.problem.cluster import Cluster
from optpart.problem.graph import DelayMatrix, Graph
from optpart.problem.instance import Instance
from optpart.problem.model import Memory, Model
from optpart.problem.rational import RationalArray
from optpart.problem.workload import Workload


@dataclass(frozen=True)
class Costed:
    """An instance, and one sentence for everything in it that was drawn, assumed or rounded."""

    instance: Instance
    remarks: tuple[str, ...]


def costed(
    workload: Workload,
    graph: Graph,
    cluster: Cluster,
    how: str,
    remarks: Sequence[str],
    *,
    durations: Sequence[Sequence[int | Fraction | None]] | None = None,
    memory: Memory | None = None,
    time_unit: str = "",
) -> Costed:
    """Build the instance of a workload.

    Parameters
    ----------
    how : str
        The source of costs, in few words; it stands in the instance's ``source``.
    durations : n rows of k numbers, optional
    memory : {"none", "estimate", "edges", "refcount"}, optional
        Without it, limits of memory count if there are any (:func:`memory_model`).
    time_unit : str
        The unit of all times, if it is known.
    """
    source = f"{workload.source}, costs: {how}" if workload.source else f"costs: {how}"
    instance = Instance(
        graph, cluster, durations=durations, name=workload.name, source=source, time_unit=time_unit
    )
    chosen, why = memory_model(instance, memory)
    if chosen != instance.model.memory:
        instance = replace(instance, model=replace(instance.model, memory=chosen))
    return Costed(instance, (*remarks, *why))


def in_nanoseconds(
    workload: Workload,
    graph: Graph,
    named_cluster: NamedCluster,
    how: str,
    remarks: Sequence[str],
    durations: Sequence[Sequence[int | Fraction | None]],
    memory: Memory | None,
) -> Costed:
    """Build the instance of a workload whose run times are nanoseconds, as :func:`costed` does.

    Latencies and transfer times are rounded up to whole nanoseconds.
    """
    cluster, of_latencies = whole_latencies(named_cluster.cluster)
    graph, of_delays = whole_delays(graph, cluster)
    said = (*remarks, *of_latencies, *of_delays)
    return costed(
        workload, graph, cluster, how, said, durations=durations, memory=memory, time_unit="ns"
    )


def memory_model(instance: Instance, asked: Memory | None) -> tuple[Memory, tuple[str, ...]]:
    """Choose how memory counts.

    Without limits, and if nothing else is asked for: not at all. With limits: ``estimate`` if even
    the whole graph on one device, with every tensor held for the whole run, fits every device.
    No placement can then exceed a limit, under any memory model, and ``estimate`` is the cheapest.
    Otherwise ``refcount``, which counts what is held at each moment.
    """
    limits = [limit for limit in instance.cluster.memory if limit is not None]
    if asked is not None:
        if asked == "none" and limits:
            return asked, (
                "Memory: the limits of the devices do not count; a memory model would count them.",
            )
        return asked, ()
    if not limits:
        return "none", ()
    whole = replace(instance, model=Model(memory="estimate")).static_memory.sum()
    if whole <= min(limits):
        return "estimate", (
            "Memory: model estimate; the whole graph fits every device, so no limit can bind.",
        )
    return "refcount", (
        "Memory: model refcount, since the devices have limits: weights always count, "
        "tensors while they are held.",
    )


def reserved(workload: Workload, cluster: NamedCluster) -> tuple[NamedCluster, tuple[str, ...]]:
    """Keep the reserve of a workload free on every device with a limit."""
    if not workload.reserve or all(limit is None for limit in cluster.cluster.memory):
        return cluster, ()
    size = f"{fixed(Fraction(workload.reserve, 2**30), 2, up=True)} GiB"
    for name, limit in zip(cluster.cluster.names, cluster.cluster.memory, strict=True):
        if limit is not None and limit <= workload.reserve:
            problem = f"has no more memory than the {size} to keep free for {workload.reserved_for}"
            remedy = "give it more memory, or --reserve SIZE"
            raise InputError(f"device {name!r}", problem, remedy)
    left = tuple(
        None if limit is None else limit - workload.reserve for limit in cluster.cluster.memory
    )
    return replace(cluster, cluster=replace(cluster.cluster, memory=left)), (
        f"Of the memory of every device, {size} are kept free for {workload.reserved_for}; "
        "--reserve SIZE keeps another part free, --reserve 0 none.",
    )


def whole_latencies(cluster: Cluster) -> tuple[Cluster, tuple[str, ...]]:
    """Round latencies up to whole nanoseconds."""
    if cluster.latency.denominator == 1:
        return cluster, ()
    k = len(cluster)
    rounded = [math.ceil(value) for value in cluster.latency.fractions()]
    if rounded == cluster.latency.fractions():
        return cluster, ()
    latency = RationalArray.from_integers(rounded, 1).reshape(k, k)
    return replace(cluster, latency=latency), (
        "Links: latencies were rounded up to whole nanoseconds.",
    )


def whole_delays(graph: Graph, cluster: Cluster) -> tuple[Graph, tuple[str, ...]]:
    """Round transfer times up to whole nanoseconds, where they are not whole already.

    A tensor gets a matrix of delays if any of its transfer times is rounded. Delays that the graph
    gives already are kept. Latencies must be whole.
    """
    k = len(cluster)
    rate = [
        [None if cluster.infinite[d, e] else cluster.bandwidth[d, e] for e in range(k)]
        for d in range(k)
    ]
    linked, latency = cluster.linked, cluster.latency
    of_size: dict[Fraction, DelayMatrix | None] = {}

    def delays(size: Fraction) -> DelayMatrix | None:
        rows: list[tuple[Fraction | None, ...]] = []
        rounded = False
        for d in range(k):
            row: list[Fraction | None] = []
            for e in range(k):
                if d == e:
                    row.append(Fraction(0))
                    continue
                if not linked[d, e]:
                    row.append(None)
                    continue
                bandwidth = rate[d][e]
                exact = latency[d, e] + (Fraction(0) if bandwidth is None else size / bandwidth)
                row.append(Fraction(math.ceil(exact)))
                rounded |= exact.denominator != 1
            rows.append(tuple(row))
        return tuple(rows) if rounded else None

    found = dict(graph.tensor_delay)
    crossing = set(np.unique(graph.edge_tensor).tolist())
    count = 0
    for tensor in range(graph.tensors):
        size = graph.tensor_size[tensor]
        if tensor in found or tensor not in crossing or not size:
            continue
        if size not in of_size:
            of_size[size] = delays(size)
        matrix = of_size[size]
        if matrix is not None:
            found[tensor] = matrix
            count += 1
    if not count:
        return graph, ()
    return replace(graph, tensor_delay=found), (
        f"Transfers: times of {counted(count, 'tensor')} rounded up to whole nanoseconds.",
    )


def counted(count: int, noun: str) -> str:
    """Write a number and its noun: ``1 operation``, ``2 operations``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
