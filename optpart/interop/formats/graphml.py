"""Graphs in GraphML, with the attributes that :mod:`optpart.interop.formats.attributes` names.

::

    <graphml xmlns="http://graphml.graphdrawing.org/xmlns">
      <key id="k0" for="node" attr.name="ops" attr.type="double"/>
      <key id="k1" for="edge" attr.name="size" attr.type="long"/>
      <graph id="two" edgedefault="directed">
        <node id="a"><data key="k0">30</data></node>
        <node id="b"><data key="k0">0.1</data></node>
        <edge source="a" target="b"><data key="k1">50</data></edge>
      </graph>
    </graphml>

Numbers are read as they are written, whatever type their key declares: 0.1 is one tenth. A key's
``<default>`` counts where the attribute is missing. The file has no units of its own, and no
devices. Nested graphs, ports, hyperedges and undirected edges are refused, and so is any document
type or entity: a few lines of those expand to gigabytes.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from optpart.base.errors import FaultsOf, InputError
from optpart.base.files import read_text
from optpart.interop.formats import attributes
from optpart.interop.formats.parsing import parse_xml
from optpart.problem.rational import shown
from optpart.problem.workload import Workload

_EDGE = ("id", "source", "target", "directed", "sourceport", "targetport")
_SPACE = "{http://graphml.graphdrawing.org/xmlns}"


def sniff(text: str) -> bool:
    """Return whether a text begins as GraphML does."""
    return "<graphml" in text[:2000]


def read(path: str | Path) -> Workload:
    """Read a graph, without work; every fault names file and place."""
    with FaultsOf(path):
        return _Reader(_root(read_text(path))).workload(Path(path).stem)


def _root(text: str) -> ElementTree.Element:
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise InputError("", "has a document type", "give a GraphML file without any")
    root = parse_xml(text, "a GraphML file")
    if _tag(root) != "graphml":
        raise InputError("", f"begins with <{_tag(root)}>", "give a GraphML file")
    return root


class _Reader:
    """One document."""

    def __init__(self, root: ElementTree.Element) -> None:
        self._names: dict[str, tuple[str, str]] = {}
        self._defaults: dict[str, dict[str, str]] = {"node": {}, "edge": {}, "graph": {}}
        graphs = []
        for k, child in enumerate(root):
            match _tag(child):
                case "key":
                    self._key(child, f"key[{k}]")
                case "graph":
                    graphs.append(child)
                case "desc":
                    pass
                case tag:
                    raise InputError(f"<{tag}>", "is not read", "remove it")
        if len(graphs) != 1:
            raise InputError("", f"{len(graphs)} graphs", "give exactly one")
        self._graph = graphs[0]

    def workload(self, name: str) -> Workload:
        """Return what the graph holds."""
        if self._graph.get("edgedefault") != "directed":
            raise InputError("graph", "is not directed", 'write edgedefault="directed"')
        nodes, edges = [], []
        for child in self._graph:
            match _tag(child):
                case "node":
                    place = f"node {shown(child.get('id', ''))}"
                    _check_known(child, ("id",), place)
                    nodes.append((child.get("id", ""), self._values(child, "node", place), place))
                case "edge":
                    start, end = child.get("source", ""), child.get("target", "")
                    place = f"edge {shown(start)} to {shown(end)}"
                    _check_known(child, _EDGE, place)
                    if child.get("directed", "true") != "true":
                        raise InputError(place, "is not directed", "make all edges directed")
                    for port in ("sourceport", "targetport"):
                        if port in child.attrib:
                            raise InputError(place, f"has a {port}", "leave out ports")
                    edges.append((start, end, self._values(child, "edge", place), place))
                case "data" | "desc":
                    pass
                case tag:
                    raise InputError("graph", f"<{tag}> is not read", "give nodes and edges only")
        given = self._values(self._graph, "graph", "graph", skip=("node", "edge"))
        return attributes.build(nodes, edges, given, self._graph.get("id") or name, "GraphML")

    def _key(self, key: ElementTree.Element, place: str) -> None:
        identity, kind = key.get("id", ""), key.get("for", "all")
        name = key.get("attr.name") or identity
        if not identity or identity in self._names:
            raise InputError(place, f"the id is {shown(identity)}", "make ids of keys unique")
        if kind not in (*self._defaults, "all"):
            raise InputError(place, f"is for {shown(kind)}", "give node, edge, graph or all")
        self._names[identity] = (name, kind)
        for child in key:
            if _tag(child) == "default":
                for each in self._defaults if kind == "all" else (kind,):
                    self._defaults[each][name] = _content(child, place)

    def _values(
        self, element: ElementTree.Element, kind: str, place: str, skip: tuple[str, ...] = ()
    ) -> dict[str, str]:
        found: dict[str, str] = {}
        for child in element:
            tag = _tag(child)
            if tag in ("desc", *skip):
                continue
            if tag != "data":
                raise InputError(place, f"<{tag}> is not read", "give <data> only")
            key = child.get("key", "")
            name, meant = self._names.get(key, ("", ""))
            if meant not in (kind, "all"):
                raise InputError(place, f"no key {shown(key)} for {kind}s", "declare the key")
            if name in found:
                raise InputError(place, f"{name} for the second time", "give it once")
            found[name] = _content(child, place)
        return {**self._defaults[kind], **found}


def _check_known(element: ElementTree.Element, known: tuple[str, ...], place: str) -> None:
    """Refuse attributes of XML in place of ``<data>``; statistics and other namespaces may stay."""
    for name in element.attrib:
        if name not in known and not name.startswith(("parse.", "{")):
            raise InputError(place, f"attribute {shown(name)} is not read", "give it as <data>")


def _content(element: ElementTree.Element, place: str) -> str:
    if len(element):
        raise InputError(place, f"<{_tag(element[0])}> is not read", "give text")
    return (element.text or "").strip()


def _tag(element: ElementTree.Element) -> str:
    return element.tag.removeprefix(_SPACE)
