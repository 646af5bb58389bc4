"""The attributes of a networkx graph that :meth:`~optpart.problem.graph.Graph.from_networkx` reads.

Any other is refused by name, and so is one that another would override.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Number
from typing import TYPE_CHECKING, Any

from optpart.base.choices import choice
from optpart.base.errors import InputError
from optpart.problem.rational import shown

if TYPE_CHECKING:
    import networkx as nx

NODE = ("ops", "weight", "memory", "device_type", "devices", "outputs", "delays")
EDGE = ("output", "size", "weight")
GRAPH = ("colocation", "separation")

#: Where attributes that graphs often have are given instead.
_ELSEWHERE = {
    "name": "give the name to Instance(name=…) and delete the attribute",
    "latency": "give transfer times by node attribute delays, or latencies to the cluster",
}


def check_graph(graph: object) -> None:
    """Refuse what is no graph of networkx."""
    if not hasattr(graph, "is_directed"):
        problem = f"is of type {type(graph).__name__}"
        raise InputError("graph", problem, "give a DiGraph or a MultiDiGraph of networkx")


def renamed(graph: Any, attributes: Mapping[str, str]) -> Any:
    """Return a graph with the names of attributes that are read, in place of other ones.

    Parameters
    ----------
    attributes : mapping from str to str
        What the graph calls an attribute, by the name that is read: ``{"ops": "cost"}``. Names of
        attributes of vertices concern vertices, those of edges edges, ``weight`` both. A vertex or
        an edge without such an attribute is refused, except that edges may lack ``output``.

    Raises
    ------
    InputError
        If no attribute of this name is read, or one that the mapping names is missing.
    """
    for name in attributes:
        if name not in (*NODE, *EDGE):
            remedy = choice(name, dict.fromkeys((*NODE, *EDGE)))
            raise InputError("attributes", f"no attribute {shown(name)} is read", remedy)
    found = graph.copy()
    rows: list[tuple[tuple[str, ...], str, Any]]
    rows = [(NODE, f"node {shown(node)}", data) for node, data in found.nodes(data=True)]
    for source, target, data in found.edges(data=True):
        rows.append((EDGE, f"edge {shown(source)} → {shown(target)}", data))
    for known, place, data in rows:
        taken = {name: theirs for name, theirs in attributes.items() if name in known}
        values = {}
        for name, theirs in taken.items():
            if theirs in data:
                values[name] = data[theirs]
            elif name != "output":
                remedy = f"give it, or leave {name!r} out of the option attributes"
                raise InputError(place, f"no attribute {shown(theirs)}", remedy)
        for theirs in taken.values():
            data.pop(theirs, None)
        data.update(values)
    return found


def check(graph: nx.DiGraph[Any]) -> None:
    """Refuse a graph with anything that would be lost.

    Raises
    ------
    InputError
        If the graph is undirected, an attribute is unknown, or two attributes say the same.
    """
    if not graph.is_directed():
        raise InputError("graph", "is undirected", "give a DiGraph or a MultiDiGraph")
    _only(graph.graph, GRAPH, "graph")
    for key in GRAPH:
        for i, group in enumerate(_listed(graph.graph.get(key, ()), f"graph, {key}")):
            place = f"graph, {key}[{i}]"
            if key == "separation" and len(_listed(group, place)) != 2:
                raise InputError(place, f"{len(group)} nodes", "separate pairs of nodes")
            for node in _listed(group, place):
                if node not in graph:
                    raise InputError(place, f"no node {shown(node)}", "name nodes of the graph")
    for node, data in graph.nodes(data=True):
        place = f"node {shown(node)}"
        _only(data, NODE, place)
        _one(data, ("ops", "weight"), place)
        outputs = _listed(data.get("outputs", ()), f"{place}, outputs")
        delays = data.get("delays", {})
        if not isinstance(delays, Mapping):
            raise InputError(f"{place}, delays", f"is {shown(delays)}", "give {output: matrix}")
        for output in delays:
            if isinstance(output, bool) or output not in range(len(outputs)):
                raise InputError(
                    f"{place}, delays",
                    f"no output {shown(output)} (there are {len(outputs)})",
                    "give delays by the number of an output, from 0",
                )
    for source, target, data in graph.edges(data=True):
        place = f"edge {shown(source)} → {shown(target)}"
        _only(data, EDGE, place)
        _one(data, EDGE, place)
    if graph.is_multigraph():
        _check_keys(graph)


def _check_keys(graph: Any) -> None:
    """Refuse a key that may be a size: the third item of an edge, where a weight often stands."""
    for source, target, key, data in graph.edges(keys=True, data=True):
        counted = key in range(graph.number_of_edges(source, target))
        if not data and isinstance(key, Number) and not counted:
            raise InputError(
                f"edge {shown(source)} → {shown(target)}",
                f"key {shown(key)}, but no attributes",
                "give a size as an attribute, such as size=5; keys only tell edges apart",
            )


def _only(given: Mapping[Any, Any], known: tuple[str, ...], place: str) -> None:
    for key in given:
        if key not in known:
            remedy = _ELSEWHERE.get(key) or choice(key, known, lead="known ones are")
            raise InputError(place, f"unknown attribute {shown(key)}", remedy)


def _one(given: Mapping[str, Any], keys: tuple[str, ...], place: str) -> None:
    both = [key for key in keys if key in given]
    if len(both) > 1:
        raise InputError(place, f"both {both[0]} and {both[1]}", "give one of them")


def _listed(value: Any, place: str) -> Sequence[Any]:
    if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__len__"):
        raise InputError(place, f"{shown(value)} is not a list", "give a list")
    found: Sequence[Any] = value
    return found
