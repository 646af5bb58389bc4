"""Attributes of vertices, edges and graphs that a file gives as text (DOT, GraphML).

They are those of :meth:`~optpart.problem.graph.Graph.from_networkx`; any other is refused by name,
and so is one that another overrides there:

- of a vertex: ``ops`` or ``weight``, ``memory``, ``device_type``; ``devices`` and ``outputs``,
  lists separated by semicolons, such as ``50;20``;
- of an edge: ``output``, the number of the output that it consumes, or ``size`` (or ``weight``) of
  a tensor of its own; with none of them, or with an empty ``output``, a control dependency;
- of the graph: ``colocation`` and ``separation``, groups of vertices separated by ``|``, their
  members by semicolons: ``a;b|c;d``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import networkx as nx

from optpart.base.choices import choice
from optpart.base.errors import InputError
from optpart.interop.formats.tables import entries
from optpart.problem.graph import Graph
from optpart.problem.rational import non_negative, shown
from optpart.problem.workload import Workload

_NODE = ("ops", "weight", "memory", "device_type", "devices", "outputs")
_EDGE = ("output", "size", "weight")
_GRAPH = ("colocation", "separation")


def build(
    nodes: Iterable[tuple[str, Mapping[str, str], str]],
    edges: Iterable[tuple[str, str, Mapping[str, str], str]],
    attributes: Mapping[str, str],
    name: str,
    source: str,
) -> Workload:
    """Build a workload of vertices (name, attributes, place) and edges (with places as well)."""
    graph: nx.MultiDiGraph[Any] = nx.MultiDiGraph()
    for node, given, place in nodes:
        if not node:
            raise InputError(place, "no name", "name every vertex")
        if node in graph:
            raise InputError(place, f"a second vertex {shown(node)}", "make names unique")
        graph.add_node(node, **_node(given, place))
    for start, end, given, place in edges:
        for name_ in (start, end):
            if name_ not in graph:
                raise InputError(place, f"no vertex {shown(name_)}", "name a vertex of the file")
        graph.add_edge(start, end, **_edge(given, place))
    _only(attributes, _GRAPH, "graph")
    for key in _GRAPH:
        graph.graph[key] = _groups(attributes.get(key, ""), key, graph)
    return Workload(Graph.from_networkx(graph), name=name, source=source)


def _node(given: Mapping[str, str], place: str) -> dict[str, Any]:
    _only(given, _NODE, place)
    _one(given, ("ops", "weight"), place)
    found: dict[str, Any] = {
        key: non_negative(given[key], f"{place}, {key}")
        for key in ("ops", "weight", "memory")
        if key in given
    }
    found["outputs"] = [
        non_negative(size, f"{place}, outputs") for size in entries(given.get("outputs", ""))
    ]
    if "devices" in given:
        found["devices"] = entries(given["devices"])
        if not all(found["devices"]) or not found["devices"]:
            raise InputError(f"{place}, devices", "an empty name", "name devices, d0;d1")
    if "device_type" in given:
        if not given["device_type"]:
            raise InputError(f"{place}, device_type", "is empty", "name a type, or leave it out")
        found["device_type"] = given["device_type"]
    return found


def _edge(given: Mapping[str, str], place: str) -> dict[str, Any]:
    _only(given, _EDGE, place)
    _one(given, _EDGE, place)
    if "output" in given:
        number = given["output"].strip()
        if number and (not (number.isascii() and number.isdecimal()) or len(number) > 9):
            raise InputError(
                f"{place}, output", shown(number), "give the number of an output, from 0"
            )
        return {"output": int(number) if number else None}
    return {key: non_negative(value, f"{place}, {key}") for key, value in given.items()}


def _groups(text: str, key: str, graph: nx.MultiDiGraph[Any]) -> list[list[str]]:
    groups = [entries(group) for group in text.split("|")] if text.strip() else []
    for group in groups:
        for name in group:
            if name not in graph:
                raise InputError(f"graph, {key}", f"no vertex {shown(name)}", "name vertices, a;b")
        if len(group) < 2 or (key == "separation" and len(group) != 2):
            raise InputError(
                f"graph, {key}", f"a group of {len(group)}", "separate groups by |, members by ;"
            )
    return groups


def _only(given: Mapping[str, str], known: tuple[str, ...], place: str) -> None:
    for key in given:
        if key not in known:
            raise InputError(
                place, f"unknown attribute {shown(key)}", choice(key, known, lead="known ones are")
            )


def _one(given: Mapping[str, str], keys: tuple[str, ...], place: str) -> None:
    both = [key for key in keys if key in given]
    if len(both) > 1:
        raise InputError(place, f"both {both[0]} and {both[1]}", "give one of them")
