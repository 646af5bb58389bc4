"""Instances and schedules in the notation of papers on task graphs."""

from __future__ import annotations

from optpart import Cluster, GraphBuilder, Instance, retime
from optpart.solution.verifier import verify
from optpart.strategies.base import Partition


def task_graph(weights: list[int], edges: list[list[int]], machines: int) -> Instance:
    """Tasks numbered from 1; an edge of three numbers has a tensor of the third."""
    builder = GraphBuilder()
    for v, weight in enumerate(weights, 1):
        builder.vertex(str(v), weight)
    for u, v, *size in edges:
        if size:
            builder.edge(str(u), str(v), size=size[0])
        else:
            builder.edge(str(u), str(v), None)
    return Instance(builder.build(), Cluster.uniform(machines, bandwidth=1))


def devices_and_starts(instance: Instance, partition: Partition) -> tuple[list[int], list[float]]:
    """Device and start of every vertex in the order that a list heuristic gives, verified."""
    assert partition.order is not None
    schedule = retime(instance, partition.placement, partition.order)
    assert verify(instance, schedule) == []
    return partition.placement.tolist(), [float(start) for start in schedule.start.fractions()]
