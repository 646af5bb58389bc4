"""The native document of an instance: the content of its files and of its fingerprint."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from optpart.problem.cluster import Cluster
from optpart.problem.durations import Durations
from optpart.problem.graph import CONTROL, Graph
from optpart.problem.model import Model
from optpart.problem.rational import RationalArray

FORMAT = "optpart-instance/1"


def number(value: Fraction) -> int | str:
    """Write a rational as JSON: an integer, or a string such as ``"1/3"``."""
    return value.numerator if value.denominator == 1 else str(value)


def _numbers(values: RationalArray) -> list[int | str]:
    if values.denominator == 1:
        return [int(n) for n in values.numerators.ravel().tolist()]
    return [number(value) for value in values.fractions()]


def _rows(values: list[Any], width: int) -> list[list[Any]]:
    return [values[i : i + width] for i in range(0, len(values), width)]


def document(
    graph: Graph,
    cluster: Cluster,
    model: Model,
    durations: Durations | None,
    name: str,
    source: str,
) -> dict[str, Any]:
    """Return the native document of an instance's parts, ``optpart-instance/1``."""
    k = len(cluster)
    ops, memory = _numbers(graph.ops), _numbers(graph.memory)
    vertices: list[dict[str, Any]] = []
    for v, vertex_name in enumerate(graph.names):
        vertex: dict[str, Any] = {"name": vertex_name, "ops": ops[v]}
        if memory[v]:
            vertex["memory"] = memory[v]
        if graph.device_types[v] is not None:
            vertex["device_type"] = graph.device_types[v]
        if v in graph.allowed_devices:
            vertex["devices"] = list(graph.allowed_devices[v])
        vertices.append(vertex)
    for tensor, size in enumerate(_numbers(graph.tensor_size)):
        if graph.tensor_output[tensor] == CONTROL:
            continue
        delay = graph.tensor_delay.get(tensor)
        entry: Any = size
        if delay is not None:
            rows = [[None if f is None else number(f) for f in row] for row in delay]
            entry = {"size": size, "delay": rows}
        vertices[graph.tensor_vertex[tensor]].setdefault("outputs", []).append(entry)
    output = graph.tensor_output[graph.edge_tensor].tolist()
    content: dict[str, Any] = {
        "format": FORMAT,
        "name": name,
        "source": source,
        "vertices": vertices,
        "edges": [
            [graph.names[u], graph.names[v], None if k_ == CONTROL else k_]
            for u, v, k_ in zip(
                graph.edge_source.tolist(), graph.edge_target.tolist(), output, strict=True
            )
        ],
        "devices": [_device(cluster, d) for d in range(k)],
        "bandwidth": _rows(
            [
                None if free else rate
                for rate, free in zip(
                    _numbers(cluster.bandwidth), cluster.infinite.ravel().tolist(), strict=True
                )
            ],
            k,
        ),
        "model": _model(model),
    }
    if graph.colocation:
        content["colocation"] = [[graph.names[v] for v in group] for group in graph.colocation]
    if graph.separation:
        content["separation"] = [[graph.names[v] for v in pair] for pair in graph.separation]
    if np.any(cluster.latency.numerators != 0):
        content["latency"] = _rows(_numbers(cluster.latency), k)
    if durations is not None:
        cells = zip(_numbers(durations.times), durations.possible.ravel().tolist(), strict=True)
        content["durations"] = _rows([time if can else None for time, can in cells], k)
    return content


def _device(cluster: Cluster, d: int) -> dict[str, Any]:
    device: dict[str, Any] = {"name": cluster.names[d], "speed": number(cluster.speed[d])}
    if cluster.types[d] is not None:
        device["type"] = cluster.types[d]
    memory = cluster.memory[d]
    if memory is not None:
        device["memory"] = number(memory)
    return device


def _model(model: Model) -> dict[str, Any]:
    document: dict[str, Any] = {"communication": model.communication, "memory": model.memory}
    if model.send_ops:
        document["send_ops"] = number(model.send_ops)
    if model.channels != 1:
        document["channels"] = model.channels
    if model.release != "end":
        document["release"] = model.release
    return document
