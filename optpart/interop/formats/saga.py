"""Task graphs on networks, in the JSON of SAGA.

::

    {"name": "two",
     "task_graph": {"tasks": [{"name": "a", "cost": 2.0}, {"name": "b", "cost": 1.5}],
                    "dependencies": [{"source": "a", "target": "b", "size": 3.0}]},
     "network": {"nodes": [{"name": "n1", "speed": 1.0}, {"name": "n2", "speed": 4.0}],
                 "edges": [{"source": "n1", "target": "n2", "speed": 0.5},
                           {"source": "n1", "target": "n1", "speed": 1e9}]}}

A task takes its ``cost`` over the ``speed`` of its node, and a dependency its ``size`` over the
speed of the edge between two nodes. An edge holds in both directions, unless the opposite one has
a row of its own. As a TF instance: an output tensor for every dependency, and communication
``delay``, since transfers do not wait for each other in SAGA. The edge of a node to itself stands
for its own memory: SAGA writes a speed that is as good as infinite, and here it is infinite, which
the instance's ``source`` says. A file where it is less than a thousand times that of the slowest
other edge is refused.

Source: [SAGA] J. Coleman, B. Krishnamachari: PISA: an adversarial approach to comparing task graph
scheduling algorithms, 2024.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from optpart.base.errors import FaultsOf, InputError, UnsupportedError
from optpart.base.files import Kind, of_document, write_text
from optpart.base.languages import to_json
from optpart.interop.formats.json import keys, read_json, sequence
from optpart.interop.formats.parsing import identifier, known, member
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.problem.model import Model
from optpart.problem.rational import non_negative

#: How many times as fast as the slowest other edge a node's edge to itself must be.
_LOCAL = 1000

#: The speed of a node's edge to itself in files that are written, as SAGA's own generators do.
_OWN_SPEED = 10**9


def sniff(document: Mapping[str, Any]) -> bool:
    """Return whether an object has a task graph and a network."""
    return "task_graph" in document and "network" in document


KIND = Kind("a task graph of SAGA", of_document(sniff))


def read(path: str | Path) -> Instance:
    """Read a task graph and its network; every fault is an :class:`InputError` with its place."""
    with FaultsOf(path):
        return from_dict(read_json(path), Path(path).stem)


def from_dict(document: Any, name: str) -> Instance:
    """Build an instance from the parsed document; ``name`` is used if that has none."""
    keys(document, {"name", "task_graph", "network"}, "")
    graph, network = member(document, "task_graph"), member(document, "network")
    keys(graph, {"tasks", "dependencies"}, "task_graph")
    keys(network, {"nodes", "edges"}, "network")
    builder, names = GraphBuilder(), set()
    for v, task in enumerate(sequence(member(graph, "tasks", "task_graph"), "task_graph.tasks")):
        place = f"task_graph.tasks[{v}]"
        keys(task, {"name", "cost"}, place)
        vertex = identifier(member(task, "name", place), f"{place}.name")
        cost = non_negative(member(task, "cost", place), f"{place}.cost")
        builder.vertex(vertex, cost, place=place)
        names.add(vertex)
    edges = sequence(member(graph, "dependencies", "task_graph"), "task_graph.dependencies")
    for e, edge in enumerate(edges):
        place = f"task_graph.dependencies[{e}]"
        keys(edge, {"source", "target", "size"}, place)
        source, target = (known(edge, key, names, place) for key in ("source", "target"))
        size = non_negative(member(edge, "size", place), f"{place}.size")
        builder.edge(source, target, builder.output(source, size), place=place)
    given = document.get("name")
    return Instance(
        builder.build(),
        _cluster(network),
        Model(),
        name=given if isinstance(given, str) and given else name,
        source="a task graph of SAGA; transfers within a node take no time",
    )


def _cluster(network: Mapping[str, Any]) -> Cluster:
    devices = []
    for d, node in enumerate(sequence(member(network, "nodes", "network"), "network.nodes")):
        place = f"network.nodes[{d}]"
        keys(node, {"name", "speed"}, place)
        speed = non_negative(member(node, "speed", place), f"{place}.speed")
        devices.append(Device(identifier(member(node, "name", place), f"{place}.name"), speed))
    at = {device.name: d for d, device in enumerate(devices)}
    names = {*at}
    speeds: dict[tuple[int, int], Fraction] = {}
    for e, edge in enumerate(sequence(member(network, "edges", "network"), "network.edges")):
        place = f"network.edges[{e}]"
        keys(edge, {"source", "target", "speed"}, place)
        pair = at[known(edge, "source", names, place)], at[known(edge, "target", names, place)]
        if pair in speeds:
            raise InputError(place, "an edge that another row gives already", "give each once")
        speeds[pair] = non_negative(member(edge, "speed", place), f"{place}.speed")
    slowest = min((speed for (d, e), speed in speeds.items() if d != e), default=Fraction(0))
    for (d, e), speed in speeds.items():
        if d == e and speed < _LOCAL * slowest:
            raise InputError(
                "network.edges",
                f"the edge of {devices[d].name!r} to itself takes time that counts",
                f"give it at least {_LOCAL} times the speed of the slowest other edge",
            )
    across = range(len(devices))
    rows = [
        [0 if d == e else speeds.get((d, e), speeds.get((e, d), 0)) for e in across] for d in across
    ]
    return Cluster.of(devices, rows)


def write(instance: Instance, path: str | Path) -> None:
    """Write an instance in this format.

    Raises
    ------
    UnsupportedError
        If the instance has what the format cannot say: memory limits, types, groups, latency,
        infinite links, run times of its own, or another model of communication.
    """
    write_text(Path(path), dumps(instance), KIND)


def dumps(instance: Instance) -> str:
    """Return the text that :func:`write` writes."""
    unsupported = next(_unsupported(instance), None)
    if unsupported is not None:
        raise UnsupportedError(*unsupported, "use the native format")
    graph, cluster = instance.graph, instance.cluster
    names = cluster.names
    tasks = [
        {"name": name, "cost": _decimal(graph.ops[v], f"the operations of {name!r}")}
        for v, name in enumerate(graph.names)
    ]
    dependencies = [
        {
            "source": graph.names[u],
            "target": graph.names[v],
            "size": _decimal(graph.tensor_size[tensor], f"an output of {graph.names[u]!r}"),
        }
        for u, v, tensor in graph.edges()
    ]
    nodes = [
        {"name": name, "speed": _decimal(cluster.speed[d], f"the speed of {name!r}")}
        for d, name in enumerate(names)
    ]
    edges: list[dict[str, Any]] = [
        {"source": one, "target": other, "speed": _OWN_SPEED if d == e else _decimal(rate, place)}
        for d, one in enumerate(names)
        for e, other in enumerate(names)
        for rate, place in [(cluster.bandwidth[d, e], f"the link from {one!r} to {other!r}")]
    ]
    document = {
        "name": instance.name,
        "task_graph": {"tasks": tasks, "dependencies": dependencies},
        "network": {"nodes": nodes, "edges": edges},
    }
    return to_json(document, indent=1) + "\n"


def _decimal(value: Fraction, place: str) -> float | int:
    """Return a number that JSON can hold exactly, as every reader of floats sees it."""
    if value.denominator == 1 and abs(value) < 2**53:
        return int(value)
    nearest = float(value)
    if Fraction(repr(nearest)) != value:
        raise UnsupportedError(place, f"{value} is no short decimal", "use the native format")
    return nearest


def _unsupported(instance: Instance) -> Iterator[tuple[str, str]]:
    """Yield what the format cannot express, as place and problem."""
    graph, cluster = instance.graph, instance.cluster
    if instance.model != Model():
        yield "model", "SAGA has only the delay model, without memory"
    if instance.given_durations is not None:
        yield "durations", "SAGA has only costs and speeds"
    if np.any(cluster.latency.numerators != 0):
        yield "latency", "SAGA has no latencies"
    across = ~np.eye(len(cluster), dtype=np.bool_)
    if np.any((cluster.infinite | ~cluster.linked) & across):
        yield "bandwidth", "SAGA's networks are complete, with a speed for every link"
    rates = (_LOCAL * cluster.bandwidth[d, e] for d, e in np.argwhere(across).tolist())
    if min(rates, default=Fraction(0)) > _OWN_SPEED:
        yield "bandwidth", "links are too fast beside the 10^9 of local transfers"
    if {*graph.device_types} != {None} or graph.allowed_devices:
        yield "devices of vertices", "SAGA's tasks may run on every node"
    if graph.colocation or graph.separation:
        yield "groups", "SAGA has neither colocation nor separation"
    if len({(u, v) for u, v, _ in graph.edges()}) < len(graph.edge_source):
        yield "edges", "SAGA has one dependency between two tasks"
    if graph.tensor_delay:
        yield "outputs", "SAGA has no measured transfer times"
