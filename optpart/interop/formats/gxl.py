"""Task graphs with communication in GXL, as published by the University of Auckland.

A graph gives its ``Number of processors``; a node has a ``Weight``, its run time; an edge has a
``Weight``, the time that its data takes between two different processors. As a TF instance:
identical devices of speed 1, an output tensor for every edge, bandwidth 1 and no contention
(P|prec,c_ij|Cmax). The published schedule of a node and the statistics of the graph are not read;
other attributes of nodes and edges are refused.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

from optpart.base.choices import choice
from optpart.base.errors import FaultsOf, InputError
from optpart.base.files import read_text
from optpart.interop.formats.parsing import parse_xml
from optpart.problem.cluster import Cluster
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.problem.rational import non_negative, shown

_MOST_PROCESSORS = 1000

#: The published schedule.
_SCHEDULE = ("Start time", "Finish time", "Processor")


def read(path: str | Path) -> Instance:
    """Read a task graph; every fault is an :class:`InputError` that names file and place."""
    with FaultsOf(path):
        return _instance(_graph_element(read_text(path)), Path(path).stem)


def _graph_element(text: str) -> ElementTree.Element:
    if "<!ENTITY" in text:  # a few lines of entities can expand to gigabytes
        raise InputError("", "declares entities", "give a GXL file without entities")
    root = parse_xml(text, "a GXL file")
    graph = root.find("graph") if root.tag == "gxl" else None
    if graph is None:
        raise InputError("", "has no <gxl><graph>", "give a GXL file")
    return graph


def _instance(graph: ElementTree.Element, name: str) -> Instance:
    builder = GraphBuilder()
    for v, node in enumerate(graph.findall("node")):
        place = f"node[{v}]"
        _check_known(node, ("Weight", *_SCHEDULE), place)
        builder.vertex(node.get("id", ""), _number(node, "Weight", place), place=place)
    for e, edge in enumerate(graph.findall("edge")):
        place = f"edge[{e}]"
        _check_known(edge, ("Weight",), place)
        size = _number(edge, "Weight", place)
        builder.edge(edge.get("from", ""), edge.get("to", ""), size=size, place=place)
    return Instance(
        builder.build(),
        Cluster.uniform(_processors(graph), bandwidth=1),
        name=name,
    )


def _processors(graph: ElementTree.Element) -> int:
    attribute = "Number of processors"
    number = _number(graph, attribute, "graph")
    if number.denominator != 1 or not 1 <= number <= _MOST_PROCESSORS:
        raise InputError(
            f"graph: {attribute}",
            f"cannot be {number}",
            f"give a whole number from 1 to {_MOST_PROCESSORS}",
        )
    return int(number)


def _check_known(element: ElementTree.Element, known: tuple[str, ...], place: str) -> None:
    for attr in element.findall("attr"):
        name = attr.get("name", "")
        if name not in known:
            remedy = choice(name, known, lead="known ones are")
            raise InputError(place, f"unknown attribute {shown(name)}", remedy)


def _number(element: ElementTree.Element, attribute: str, place: str) -> Fraction:
    """Read ``<attr name="attribute"><int>…</int></attr>``."""
    for attr in element.findall("attr"):
        if attr.get("name") == attribute and len(attr):
            return non_negative(attr[0].text or "", f"{place}: {attribute}")
    raise InputError(place, f"no attribute {attribute!r}", "give one with a number")
