"""The same instance in other words: vertices and devices renumbered, time measured otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from optpart import Cluster, Device, GraphBuilder, Instance
from optpart.problem.graph import CONTROL


def relabelled(instance: Instance, rng: np.random.Generator) -> Instance:
    """Renumber vertices, edges and devices at random; names stay with what they name."""
    return _rebuilt(
        instance,
        rng.permutation(instance.vertices).tolist(),
        rng.permutation(instance.devices).tolist(),
        rng.permutation(len(instance.graph.edge_source)).tolist(),
        Fraction(1),
    )


def stretched(instance: Instance, factor: Fraction) -> Instance:
    """Multiply every run time and every transfer time by a factor; memory stays as it is."""
    edges = range(len(instance.graph.edge_source))
    return _rebuilt(instance, range(instance.vertices), range(instance.devices), edges, factor)


def _rebuilt(
    instance: Instance,
    vertices: Sequence[int],
    devices: Sequence[int],
    edges: Sequence[int],
    factor: Fraction,
) -> Instance:
    graph, given = instance.graph, instance.given_durations
    names = graph.names
    builder = GraphBuilder()
    for v in vertices:
        builder.vertex(
            names[v],
            graph.ops[v] * factor,
            memory=graph.memory[v],
            device_type=graph.device_types[v],
            devices=graph.allowed_devices.get(v),
        )
    for tensor, u in enumerate(graph.tensor_vertex.tolist()):
        if graph.tensor_output[tensor] != CONTROL:
            delay = graph.tensor_delay.get(tensor)
            builder.output(
                names[u],
                graph.tensor_size[tensor],
                delay and [[_times(delay[d][e], factor) for e in devices] for d in devices],
            )
    for edge in edges:
        u, v = graph.edge_source[edge], graph.edge_target[edge]
        output = int(graph.tensor_output[graph.edge_tensor[edge]])
        builder.edge(names[u], names[v], None if output == CONTROL else output)
    for group in graph.colocation:
        builder.colocate(*(names[v] for v in group))
    for a, b in graph.separation:
        builder.separate(names[a], names[b])
    return Instance(
        builder.build(),
        _cluster(instance.cluster, devices, factor),
        instance.model,
        given
        and [
            [given.times[v, d] * factor if given.possible[v, d] else None for d in devices]
            for v in vertices
        ],
        name=instance.name,
    )


def _cluster(cluster: Cluster, devices: Sequence[int], factor: Fraction) -> Cluster:
    return Cluster.of(
        [
            Device(cluster.names[d], cluster.speed[d], cluster.types[d], cluster.memory[d])
            for d in devices
        ],
        [
            [None if cluster.infinite[d, e] else cluster.bandwidth[d, e] / factor for e in devices]
            for d in devices
        ],
        [[cluster.latency[d, e] * factor for e in devices] for d in devices],
    )


def _times(number: Fraction | None, factor: Fraction) -> Fraction | None:
    return None if number is None else number * factor
