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
from fractions import Fraction
from pathlib import Path
from typing import Any

from optpart.base.errors import FaultsOf, InputError
from optpart.base.limits import MOST_DEVICES
from optpart.interop.formats.json import keys, read_json, sequence
from optpart.interop.formats.parsing import identifier, known, member, whole_member
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.problem.model import Model
from optpart.problem.rational import non_negative

_KEYS = {"name", "devices", "capacity", "nodes", "edges"}
_NODE = {"id", "p", "mem"}
_EDGE = {"src", "dst", "comm", "comm_task"}


def sniff(document: Mapping[str, Any]) -> bool:
    """Return whether an object gives the memory of devices."""
    return "capacity" in document


def read(path: str | Path) -> Instance:
    """Read a model graph; every fault is an :class:`InputError` that names file and place."""
    with FaultsOf(path):
        return from_dict(read_json(path), Path(path).stem)


def from_dict(document: Any, name: str) -> Instance:
    """Build an instance from the parsed document; ``name`` is used if that has none."""
    keys(document, _KEYS, "")
    devices = whole_member(document, "devices", 1, MOST_DEVICES)
    capacity = _numbers(member(document, "capacity"), devices, "capacity")
    nodes = sequence(member(document, "nodes"), "nodes")
    edges = sequence(member(document, "edges"), "edges")
    builder = GraphBuilder()
    names = set()
    durations = []
    for v, node in enumerate(nodes):
        place = f"nodes[{v}]"
        keys(node, _NODE, place)
        vertex = identifier(member(node, "id", place), f"{place}.id")
        memory = non_negative(member(node, "mem", place), f"{place}.mem")
        builder.vertex(vertex, memory=memory, place=place)
        names.add(vertex)
        durations.append(_numbers(member(node, "p", place), devices, f"{place}.p"))
    for e, edge in enumerate(edges):
        place = f"edges[{e}]"
        keys(edge, _EDGE, place)
        source, target = (known(edge, key, names, place) for key in ("src", "dst"))
        delay = _matrix(member(edge, "comm", place), devices, f"{place}.comm")
        builder.edge(source, target, builder.output(source, 0, delay), place=place)
    given = document.get("name")
    return Instance(
        builder.build(),
        Cluster.of([Device(f"d{d}", memory=capacity[d]) for d in range(devices)]),
        Model(memory="estimate"),
        durations=durations,
        name=given if isinstance(given, str) and given else name,
    )


def _matrix(value: Any, size: int, place: str) -> list[list[Fraction]]:
    rows = sequence(value, place)
    if len(rows) != size:
        raise InputError(place, f"{len(rows)} rows", f"give {size}, one per device")
    return [_numbers(row, size, f"{place}[{d}]") for d, row in enumerate(rows)]


def _numbers(value: Any, count: int, place: str) -> list[Fraction]:
    numbers = sequence(value, place)
    if len(numbers) != count:
        raise InputError(place, f"{len(numbers)} entries", f"give {count}, one per device")
    return [non_negative(number, f"{place}[{i}]") for i, number in enumerate(numbers)]
