"""TensorFlow graphs: a ``GraphDef``, binary (``.pb``) or text (``.pbtxt``).

TensorFlow itself is not needed: the few fields that matter here are declared below, and all others
are skipped. A ``GraphDef`` says what depends on what, which operations share a device
(``loc:@NAME``) and where some of them must run; it holds no run times ([L] §6.2), so all costs of
the graph are zero until :mod:`optpart.interop.costs` gives it some. :func:`read` reads those
tensor sizes and weights, in bytes, that :mod:`~optpart.interop.formats.tensorflow_shapes` finds.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import networkx as nx
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.message import DecodeError

from optpart.base.errors import FaultsOf, InputError
from optpart.base.files import read_bytes, read_text
from optpart.interop.formats.graph_edits import NamedEdge, break_cycles
from optpart.interop.formats.parsing import listed
from optpart.interop.formats.tensorflow_shapes import Known, data_types, known_sizes
from optpart.problem.graph import CONTROL, Graph, GraphBuilder
from optpart.problem.workload import Workload

#: The messages that matter, by their fields: name, number and type; a star marks repeated ones.
_MESSAGES = {
    "GraphDef": "node 1 *NodeDef, library 2 FunctionDefLibrary",
    "FunctionDefLibrary": "function 1 *FunctionDef",
    "FunctionDef": "signature 1 OpDef",
    "OpDef": "name 1 string",
    "NameAttrList": "name 1 string",
    "NodeDef": "name 1 string, op 2 string, input 3 *string, device 4 string, attr 5 *AttrEntry",
    "NodeDef.AttrEntry": "key 1 string, value 2 AttrValue",
    "AttrValue": "list 1 ListValue, type 6 DataType, shape 7 TensorShapeProto, "
    "tensor 8 TensorProto, func 10 NameAttrList",
    "AttrValue.ListValue": "s 2 *bytes, shape 7 *TensorShapeProto, func 9 *NameAttrList",
    "TensorProto": "tensor_shape 2 TensorShapeProto",
    "TensorShapeProto": "dim 2 *Dim, unknown_rank 3 bool",
    "TensorShapeProto.Dim": "size 1 int64",
}

_FIELD = descriptor_pb2.FieldDescriptorProto

# An output index takes a few bytes in a file, but means that many tensors in memory.
_MOST_OUTPUTS = 10_000_000

_COLOCATION = b"loc:@"
_LOOP_OPS = {"NextIteration", "RefNextIteration"}
_REMEDY = "give a complete GraphDef as written by tf.io.write_graph (.pb, or .pbtxt for text)"


@dataclass(frozen=True)
class Counts:
    """Counts of the contents of a file.

    Attributes
    ----------
    vertices : int
    inputs : int
        Edges as written, including repeated and removed ones.
    edges : int
        Distinct triples (source, output, target): the edges of the graph.
    pairs : int
        Distinct pairs (source, target), as [L] table 7.2 and [M] table 1 count edges.
    groups, largest_group : int
        Colocation groups of at least two vertices, and the size of the largest.
    removed : tuple of NamedEdge
        Distinct edges removed to break cycles, in the order of the file.
    """

    vertices: int
    inputs: int
    edges: int
    pairs: int
    groups: int
    largest_group: int
    removed: tuple[NamedEdge, ...] = ()


def read_graph(
    path: str | Path, devices: Sequence[str] = (), *, break_cycles: bool = False
) -> tuple[Graph, Counts]:
    """Read a graph, with all costs zero.

    Parameters
    ----------
    devices : sequence of str
        Names of the cluster's devices. A vertex whose device is one of these names, or (part of) a
        TensorFlow device name that matches some of them, may run on these devices only. From any
        other device specification, such as ``/device:GPU:0``, only the type (``GPU``) is taken, as
        the required device type.
    break_cycles : bool
        Whether to remove edges from cycles, such as while loops: those that leave a
        ``NextIteration``, then those that
        :func:`~optpart.interop.formats.graph_edits.break_cycles` finds. What remains is one
        iteration of each loop.

    Returns
    -------
    Graph
        A vertex has as many outputs as its highest consumed output needs. Duplicate edges are
        merged; ``a:0`` and ``a:1`` are different tensors and hence different edges. Vertices that
        name the same ``loc:@X`` are colocated, with ``X`` if that is a vertex.
    Counts

    Raises
    ------
    InputError
        If the file is not a GraphDef or truncated, names an input that does not exist or a vertex
        twice, or has a cycle that may not be broken.
    """
    with FaultsOf(path):
        return _graph(_nodes(path), devices, break_cycles)


def read(path: str | Path, devices: Sequence[str] = (), *, break_cycles: bool = False) -> Workload:
    """Read a graph with the tensor sizes and weights that the file tells, in bytes.

    Parameters and errors are those of :func:`read_graph`, and a tensor of more than 2^62 bytes is
    refused.

    Returns
    -------
    Workload
        Without work. Sizes that are not known are 0, and ``assumed`` says of how many outputs.
    """
    with FaultsOf(path):
        message = _message(path)
        nodes = list(message.node)
        known = known_sizes(nodes)
        graph, counts = _graph(nodes, devices, break_cycles, known)
    outputs = [
        (graph.names[v], k)
        for v, k in zip(graph.tensor_vertex.tolist(), graph.tensor_output.tolist(), strict=True)
        if k != CONTROL
    ]
    told = sum(k < len(known[v].outputs) and known[v].outputs[k] is not None for v, k in outputs)
    remarks = [
        f"The sizes of {told} of {len(outputs)} consumed outputs are known; the others count as 0.",
        f"{counts.vertices} vertices, {counts.inputs} inputs, {counts.edges} distinct edges "
        f"between {counts.pairs} pairs, {counts.groups} colocation groups of two and more, "
        f"the largest of {counts.largest_group}.",
    ]
    calling = _calling(message)
    if calling:
        remarks.append(
            "A call of a function of the file is one vertex, without the operations inside: "
            f"{listed(calling)}."
        )
    for source, output, target in counts.removed:
        which = "control" if output is None else output
        remarks.append(f"Removed to break a cycle: {source} ({which}) → {target}.")
    return Workload(graph, name=Path(path).stem, source="GraphDef", assumed=tuple(remarks))


def _calling(message: Any) -> list[str]:
    """Return the nodes that call functions of the file, directly or by an attribute."""
    functions = {function.signature.name for function in message.library.function}
    if not functions:
        return []

    def called(node: Any) -> set[str]:
        values = node.attr.values()
        lists = (func.name for value in values for func in value.list.func)
        return {node.op, *(value.func.name for value in values), *lists}

    return [node.name for node in message.node if functions & called(node)]


@functools.cache
def _message_class() -> Any:
    schema = descriptor_pb2.FileDescriptorProto(
        name="graphdef.proto", package="tensorflow", syntax="proto3"
    )
    kinds = schema.enum_type.add(name="DataType")
    for name, code in data_types().items():
        kinds.value.add(name=name, number=code)
    full = {each.rpartition(".")[2]: f".tensorflow.{each}" for each in (*_MESSAGES, "DataType")}
    messages: dict[str, descriptor_pb2.DescriptorProto] = {}
    for path, fields in _MESSAGES.items():
        outer, _, name = path.rpartition(".")
        message = messages[outer].nested_type.add() if outer else schema.message_type.add()
        message.name, message.options.map_entry = name, name == "AttrEntry"
        messages[path] = message
        for text in fields.split(", "):
            field, number, type_ = text.split()
            kind = type_.removeprefix("*")
            scalar = "enum" if kind == "DataType" else "message" if kind in full else kind
            message.field.add(
                name=field,
                number=int(number),
                label=_FIELD.LABEL_OPTIONAL if kind == type_ else _FIELD.LABEL_REPEATED,
                type=_FIELD.Type.Value(f"TYPE_{scalar.upper()}"),
                type_name=full.get(kind),
            )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(schema)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tensorflow.GraphDef"))


def read_message(path: str | Path) -> Any:
    """Read a GraphDef; of a binary one, fields that are not declared here are kept.

    Raises
    ------
    InputError
        If the file is no GraphDef or cut short.
    """
    with FaultsOf(path):
        return _message(path)


def is_placed(stream: BinaryIO) -> bool:
    """Return whether a stream holds a binary GraphDef in which every node has a device."""
    graph = _message_class()()
    try:
        graph.ParseFromString(stream.read())
    except DecodeError:
        return False
    return bool(graph.node) and all(node.device for node in graph.node)


def _nodes(path: str | Path) -> list[Any]:
    """Return the NodeDef messages."""
    return list(_message(path).node)


def _message(path: str | Path) -> Any:
    graph = _message_class()()
    try:
        if Path(path).suffix.lower() == ".pbtxt":
            text_format.Parse(read_text(path), graph, allow_unknown_field=True)
        else:
            graph.ParseFromString(read_bytes(path))
    except text_format.ParseError as error:
        # The parser's message quotes the whole line, which may be the whole file.
        place = f"line {error.GetLine()}, column {error.GetColumn()}" if error.GetLine() else ""
        raise InputError(place, "is not a text GraphDef, or truncated", _REMEDY) from None
    except DecodeError:
        raise InputError("", "is not a binary GraphDef, or truncated", _REMEDY) from None
    except RecursionError:
        raise InputError("", "is nested too deeply", _REMEDY) from None
    if not graph.node:
        raise InputError("", "has no nodes", _REMEDY)
    return graph


def _graph(
    nodes: list[Any],
    devices: Sequence[str],
    may_break: bool,
    known: Mapping[str, Known] | None = None,
) -> tuple[Graph, Counts]:
    _check_nodes(nodes, may_break)
    inputs = kept = [_input(node, text) for node in nodes for text in node.input]
    removed: list[NamedEdge] = []
    if may_break:
        closing = {node.name for node in nodes if node.op in _LOOP_OPS}
        kept, removed = break_cycles([node.name for node in nodes], inputs, closing)
    outputs: Counter[str] = Counter()
    for source, output, _ in inputs:
        outputs[source] = max(outputs[source], 0 if output is None else output + 1)
    if outputs.total() > _MOST_OUTPUTS:
        name, count = outputs.most_common(1)[0]
        raise InputError(f"node {name!r}", f"{count} outputs", "give a graph with fewer outputs")

    constraints = _constraints(nodes, devices)
    builder = GraphBuilder()
    for node in nodes:
        device_type, allowed = constraints[node.device]
        found = Known() if known is None else known[node.name]
        count = outputs[node.name]
        sizes = [size or 0 for size in found.outputs[:count]]
        builder.vertex(
            node.name,
            memory=found.memory,
            outputs=sizes + [0] * (count - len(sizes)),
            device_type=device_type,
            devices=allowed,
        )
    for source, output, target in kept:
        builder.edge(source, target, output, place=f"input of node {target!r}")
    groups = list(_groups(nodes))
    for group in groups:
        builder.colocate(*group)
    graph = builder.build()
    return graph, Counts(
        vertices=len(graph),
        inputs=len(inputs),
        edges=len(graph.edge_source),
        pairs=len({(source, target) for source, _, target in kept}),
        groups=len(groups),
        largest_group=max(map(len, groups), default=0),
        removed=tuple(dict.fromkeys(removed)),
    )


def _check_nodes(nodes: list[Any], may_break: bool) -> None:
    seen: set[str] = set()
    for i, node in enumerate(nodes):
        if not node.name or not node.name.isprintable():
            raise InputError(f"node[{i}]", f"cannot have the name {node.name!r}", _REMEDY)
        if node.name in seen:
            raise InputError(f"node[{i}]", f"a second node {node.name!r}", "make names unique")
        if node.op in _LOOP_OPS and not may_break:
            raise InputError(
                f"node {node.name!r}",
                f"{node.op} closes a loop, and the graph must be acyclic",
                "unroll the loop, export it with tf.compat.v1.enable_control_flow_v2(), or let the "
                "import break cycles",
            )
        seen.add(node.name)


def _input(node: Any, text: str) -> NamedEdge:
    """Split ``name``, ``name:2`` or ``^name`` into source and output (``None`` for control)."""
    if text.startswith("^"):
        return text[1:], None, node.name
    source, colon, output = text.rpartition(":")
    if not colon:
        return text, 0, node.name
    if not (output.isascii() and output.isdecimal()) or len(output) > 9:
        raise InputError(
            f"node {node.name!r}",
            f"cannot have the input {text!r}",
            "give name, name:output or ^name",
        )
    return source, int(output), node.name


def _groups(nodes: list[Any]) -> Iterator[list[str]]:
    """Yield the colocation groups of at least two vertices, merged where they overlap."""
    position = {node.name: i for i, node in enumerate(nodes)}
    together: nx.Graph[Any] = nx.Graph()
    for node in nodes:
        for value in node.attr["_class"].list.s if "_class" in node.attr else ():
            if value.startswith(_COLOCATION):
                label = value.removeprefix(_COLOCATION).decode(errors="backslashreplace")
                # A label that is not a vertex still groups the vertices that name it.
                together.add_edge(node.name, label if label in position else (label,))
    for component in nx.connected_components(together):
        members = [name for name in component if isinstance(name, str)]
        if len(members) > 1:
            yield sorted(members, key=position.__getitem__)


def _constraints(
    nodes: list[Any], devices: Sequence[str]
) -> dict[str, tuple[str | None, list[str] | None]]:
    """Return the required type and the allowed devices for each device string of the file."""
    parts = {name: _device_parts(name) or {} for name in devices}
    return {spec: _constraint(spec, parts) for spec in dict.fromkeys(n.device for n in nodes)}


def _constraint(
    spec: str, devices: Mapping[str, Mapping[str, str]]
) -> tuple[str | None, list[str] | None]:
    if spec in devices:
        return None, [spec]
    wanted = _device_parts(spec)
    if wanted is None:
        raise InputError(
            f"device {spec!r}",
            "is neither a device of the cluster nor a TensorFlow device name",
            "write one such as /job:worker/task:1/device:GPU:0",
        )
    fitting = [
        name for name, parts in devices.items() if wanted and wanted.items() <= parts.items()
    ]
    return (None, fitting) if fitting else (wanted.get("type"), None)


def _device_parts(name: str) -> dict[str, str] | None:
    """Split ``/job:worker/replica:0/task:1/device:GPU:0``; ``None`` if the name has another form.

    Parts may be missing; ``*`` counts as missing. ``/gpu:0`` is an old form of ``/device:GPU:0``.
    """
    if name and not name.startswith("/"):
        return None
    parts: dict[str, str] = {}
    for part in name.split("/")[1:]:
        key, *values = part.split(":")
        if key.upper() in ("CPU", "GPU", "TPU"):
            key, values = "device", [key, *values]
        if not all(values):
            return None
        if key == "device" and len(values) in (1, 2):
            parts |= zip(("type", "index"), [values[0].upper(), *values[1:]], strict=False)
        elif key in ("job", "replica", "task") and len(values) == 1:
            parts[key] = values[0]
        else:
            return None
    return {key: value for key, value in parts.items() if value != "*"}
