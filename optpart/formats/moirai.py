"""Model graphs with measured times per device and per pair of devices, in Moirai's JSON.

::

    {"name": "two", "devices": 2, "capacity": [14.0, 16.0],
     "nodes": [{"id": 0, "p": [8.0, 9.0], "mem": 5.0}, {"id": 1, "p": [7.0, 6.0], "mem": 2.0}],
     "edges": [{"src": 0, "dst": 1, "comm": [[0.0, 3.0], [4.0, 0.0]]}]}

``p`` is a node's run time per device, ``mem`` the memory that it takes on any device,
``capacity`` the memory of each device, and ``comm`` the transfer time of an edge from a device
(row) to another (column). As a TF instance: devices ``d0``, ``d1``, …; run times given per device;
an output tensor for every edge with its transfer times; and the memory model ``estimate``, which is
the sum of ``mem`` here, as the file has no tensor sizes and they are 0. All numbers are in the
units of the file. The ``comm_task`` of an edge in the published files is not read; any other key
is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from optpart.errors import FaultsOf, InputError
from optpart.files import read_text
from optpart.formats.json import Entry, numbers, parse_json, sequence
from optpart.limits import MOST_DEVICES
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.problem.model import Model

_KEYS = {"name", "devices", "capacity", "nodes", "edges"}
_NODE = {"id", "p", "mem"}
_EDGE = {"src", "dst", "comm", "comm_task"}


def sniff(document: Mapping[str, Any]) -> bool:
    """Return whether an object gives the memory of devices."""
    return "capacity" in document


def read(path: str | Path) -> Instance:
    """Read a model graph; every fault is an :class:`InputError` that names file and place."""
    with FaultsOf(path):
        return from_dict(parse_json(read_text(path)), Path(path).stem)


def from_dict(document: Any, name: str) -> Instance:
    """Build an instance from the parsed document; ``name`` is used if that has none."""
    top = Entry(document, "", _KEYS)
    devices = top.whole("devices", 1, MOST_DEVICES)
    capacity = top.numbers("capacity", devices, "device")
    nodes, edges = top.entries("nodes", _NODE), top.entries("edges", _EDGE)
    builder = GraphBuilder()
    names = {node.identifier("id") for node in nodes}
    for node in nodes:
        builder.vertex(node.identifier("id"), memory=node.number("mem"), place=node.place)
    durations = [node.numbers("p", devices, "device") for node in nodes]
    for edge in edges:
        source, target = (edge.identifier(key, names) for key in ("src", "dst"))
        rows = sequence(edge["comm"], edge.at("comm"))
        if len(rows) != devices:
            raise InputError(
                edge.at("comm"), f"{len(rows)} rows", f"give {devices}, one per device"
            )
        delay = [
            numbers(row, devices, f"{edge.at('comm')}[{d}]", "device") for d, row in enumerate(rows)
        ]
        builder.edge(source, target, builder.output(source, 0, delay), place=edge.place)
    given = top.get("name")
    return Instance(
        builder.build(),
        Cluster.of([Device(f"d{d}", memory=capacity[d]) for d in range(devices)]),
        Model(memory="estimate"),
        durations=durations,
        name=given if isinstance(given, str) and given else name,
    )
