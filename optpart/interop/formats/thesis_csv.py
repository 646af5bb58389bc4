"""Graph and devices in two CSV files, as in [L] §3.1.1 and §6.2.

[L] says what its files contain, but not in which columns. Here a graph is::

    id,name,ops,memory,size,device,successors,colocated
    0,load,30,4,50,CPU,1;2,
    1,,20.5,4,50,ALL,,2
    2,norm,1/3,4,,GPU,,

``id`` is any text without a semicolon; an empty ``name`` is the id. ``size`` is the size of the one
output tensor, which all outgoing edges carry ([L] §2.2); a vertex without a size has no output, and
its outgoing edges are control dependencies. ``device`` is CPU, GPU, TPU or ALL. ``successors`` and
``colocated`` are ids separated by semicolons; colocation closes transitively ([L] §2.3).

The devices are::

    id,memory,speed,type,rates
    d0,900,10,CPU,25;50
    d1,900,30,GPU,40
    d2,,40,GPU,

Row ``i`` has the transfer rates to the devices ``i+1 … k−1``: the upper triangle of a symmetric
matrix, since rates apply in both directions and a device reaches itself at once ([L] §6.2). An
empty ``memory`` means unlimited; a device with an empty ``type`` runs only vertices with ALL.

Instances have the ``delay`` model and, if any device has limited memory, the ``estimate`` of
[L] §4.1 (3). There, the vertices on a device must need *less* than its memory; in optpart they may
fill it, so a memory of 900 here corresponds to one of just over 900 there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np

from optpart.base.errors import FaultsOf, InputError, UnsupportedError
from optpart.base.files import Kind, check_target, of_table, write_text
from optpart.interop.formats.tables import dumps, entries, read_rows
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import CONTROL, Graph, GraphBuilder
from optpart.problem.instance import Instance
from optpart.problem.model import Model
from optpart.problem.rational import non_negative

_VERTEX = ("id", "name", "ops", "memory", "size", "device", "successors", "colocated")
_DEVICE = ("id", "memory", "speed", "type", "rates")
KIND = Kind("a thesis graph", of_table(*_VERTEX))
DEVICES = Kind("devices of a thesis graph", of_table(*_DEVICE))
_TYPES = ("CPU", "GPU", "TPU")
_ALL = "ALL"


def read(graph_path: str | Path, devices_path: str | Path) -> Instance:
    """Read an instance; every fault is an :class:`InputError` that names file and line."""
    with FaultsOf(devices_path):
        cluster = _read_cluster(devices_path)
    with FaultsOf(graph_path):
        return Instance(
            _read_graph(graph_path), cluster, _model(cluster), name=Path(graph_path).stem
        )


def _model(cluster: Cluster) -> Model:
    limited = any(memory is not None for memory in cluster.memory)
    return Model(communication="delay", memory="estimate" if limited else "none")


def _read_cluster(path: str | Path) -> Cluster:
    rows = read_rows(path, _DEVICE)
    k = len(rows)
    devices = []
    rates: list[list[Fraction | None]] = [[None] * k for _ in range(k)]
    for d, (place, row) in enumerate(rows):
        speed = non_negative(row["speed"], f"{place}, speed")
        if not speed:
            raise InputError(f"{place}, speed", "0 is not positive", "give a speed > 0")
        memory = non_negative(row["memory"], f"{place}, memory") if row["memory"].strip() else None
        kind = _choice(row["type"], ("", *_TYPES), f"{place}, type")
        devices.append(Device(row["id"], speed, kind or None, memory))
        triangle = entries(row["rates"])
        if len(triangle) != k - 1 - d:
            raise InputError(
                f"{place}, rates",
                f"{len(triangle)} rates",
                f"give {k - 1 - d}, one for every device below",
            )
        for e, rate in enumerate(triangle, start=d + 1):
            rates[d][e] = rates[e][d] = non_negative(rate, f"{place}, rates")
    return Cluster.of(devices, rates)


def _choice(field: str, choices: Sequence[str], place: str) -> str:
    choice = field.strip()
    if choice not in choices:
        known = ", ".join(filter(None, choices))
        raise InputError(place, f"unknown device type {choice!r}", f"choose one of {known}")
    return choice


def _read_graph(path: str | Path) -> Graph:
    rows = read_rows(path, _VERTEX)
    builder = GraphBuilder()
    names: dict[str, str] = {}
    for place, row in rows:
        identity = row["id"].strip()
        if not identity or identity in names or ";" in identity:
            raise InputError(
                f"{place}, id", f"cannot be {identity!r}", "give a unique id without a semicolon"
            )
        names[identity] = row["name"] or identity
        size = row["size"].strip()
        kind = _choice(row["device"], (*_TYPES, _ALL), f"{place}, device")
        builder.vertex(
            names[identity],
            non_negative(row["ops"], f"{place}, ops"),
            memory=non_negative(row["memory"], f"{place}, memory"),
            outputs=[non_negative(size, f"{place}, size")] if size else [],
            device_type=None if kind == _ALL else kind,
            place=place,
        )
    for place, row in rows:
        source = names[row["id"].strip()]
        for target in _named(row["successors"], names, f"{place}, successors"):
            builder.edge(source, target, 0 if row["size"].strip() else None, place=place)
        colocated = _named(row["colocated"], names, f"{place}, colocated")
        if colocated:
            builder.colocate(source, *colocated, place=place)
    return builder.build()


def _named(field: str, names: dict[str, str], place: str) -> list[str]:
    identities = entries(field)
    for identity in identities:
        if identity not in names:
            raise InputError(place, f"no vertex {identity!r}", "use ids from the file")
    return [names[identity] for identity in identities]


def write(instance: Instance, graph_path: str | Path, devices_path: str | Path) -> None:
    """Write the two files of an instance, each completely or not at all.

    Raises
    ------
    UnsupportedError
        If the format cannot express the instance: another model than the one described above,
        durations, latencies, infinite or one-way transfer rates, other device types, lists of
        allowed devices, separation, several outputs of a vertex, control dependencies of a vertex
        with an output, or measured transfer times.
    """
    unsupported = next(_unsupported(instance), None)
    if unsupported is not None:
        raise UnsupportedError(*unsupported, "use the native format")
    vertices, devices = (
        dumps(_VERTEX, _vertices(instance.graph)),
        dumps(_DEVICE, _devices(instance)),
    )
    check_target(devices_path, DEVICES)  # no graph without its devices
    write_text(graph_path, vertices, KIND)
    write_text(devices_path, devices, DEVICES)


def _unsupported(instance: Instance) -> Iterator[tuple[str, str]]:
    """Yield what the format cannot express, as place and problem."""
    graph, cluster = instance.graph, instance.cluster
    rates = cluster.bandwidth.numerators
    if instance.model != _model(cluster):
        yield "model", "thesis CSV has only the delay model, with estimates if memory is limited"
    if instance.given_durations is not None:
        yield "durations", "thesis CSV has only operations and speeds"
    if np.any(cluster.latency.numerators != 0):
        yield "latency", "thesis CSV has no latencies"
    if np.any(cluster.infinite & ~np.eye(len(cluster), dtype=np.bool_)):
        yield "bandwidth", "thesis CSV has no infinite rates"
    if np.any(rates != rates.T):
        yield "bandwidth", "thesis CSV has one rate for both directions"
    if not {*cluster.types, *graph.device_types} <= {None, *_TYPES}:
        yield "device types", f"thesis CSV has only {', '.join(_TYPES)}"
    if graph.allowed_devices:
        yield "devices of vertices", "thesis CSV has only device types"
    if graph.separation:
        yield "separation", "thesis CSV has no separated pairs"
    if graph.tensor_delay:
        yield "outputs", "thesis CSV has no measured transfer times"
    if np.any(graph.tensor_output > 0):
        yield "outputs", "thesis CSV has only one output per vertex"
    signals = graph.tensor_vertex[graph.tensor_output == CONTROL]
    if np.any(np.isin(signals, graph.tensor_vertex[graph.tensor_output != CONTROL])):
        yield "edges", "thesis CSV has no control dependencies of a vertex with an output"


def _vertices(graph: Graph) -> Iterator[list[str]]:
    start, edges = graph.out_edges
    sizes = {
        int(graph.tensor_vertex[tensor]): str(graph.tensor_size[tensor])
        for tensor in np.flatnonzero(graph.tensor_output != CONTROL).tolist()
    }
    colocated: dict[int, list[int]] = {}
    for first, *others in graph.colocation:
        colocated.setdefault(first, []).extend(others)
    for v, name in enumerate(graph.names):
        successors = graph.edge_target[edges[start[v] : start[v + 1]]].tolist()
        yield [
            str(v),
            name,
            str(graph.ops[v]),
            str(graph.memory[v]),
            sizes.get(v, ""),
            graph.device_types[v] or _ALL,
            ";".join(map(str, successors)),
            ";".join(map(str, colocated.get(v, []))),
        ]


def _devices(instance: Instance) -> Iterator[list[str]]:
    cluster = instance.cluster
    for d, name in enumerate(cluster.names):
        memory = cluster.memory[d]
        yield [
            name,
            "" if memory is None else str(memory),
            str(cluster.speed[d]),
            cluster.types[d] or "",
            ";".join(str(cluster.bandwidth[d, e]) for e in range(d + 1, len(cluster))),
        ]
