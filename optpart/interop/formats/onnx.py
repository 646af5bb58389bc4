"""ONNX models: the dataflow graph of one inference, with its weights, tensor sizes and work.

A vertex is a node of the file whose output depends on the inputs of the model. Everything else is
constant, as runtimes fold it before the first inference, and no vertex:

- Initializers, ``Constant`` nodes and what is computed of them alone are resident memory of the
  operations that read them, with the size in which they are read. Of a constant that several
  operations read, each holds a copy, since they may run on different devices. Quantised weights
  that ``DequantizeLinear`` reads stay quantised; it is a vertex.
- Arithmetic on shapes (``Shape``, ``Gather``, ``Concat``, …) is constant once the sizes of the
  inputs are known.

A node with bodies (``If``, ``Loop``, ``Scan``) is one vertex. Its work is that of the branch with
more operations, or of its body times the rounds; it holds all constants that its bodies read.

The inputs of the model are no vertices: their data lie ready on every device. An input with an
initializer, which gives it a value, is a constant. The outputs of the model stay where they are
computed. A vertex has an output for its first one, and for every further one that something reads.

Weights in files of their own are not read; their sizes follow from their shapes.
"""

from __future__ import annotations

import graphlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optpart.base.errors import FaultsOf, InputError
from optpart.base.files import MOST_BYTES, read_bytes
from optpart.base.languages import to_shell
from optpart.base.limits import check_size
from optpart.interop.formats.model_graph import Counts, ModelGraph, checked_cost
from optpart.interop.formats.onnx_bodies import CONTROL, Control, bodies, every_node, reads
from optpart.interop.formats.onnx_operators import Operation, cost, known
from optpart.interop.formats.onnx_shapes import Inference
from optpart.interop.formats.parsing import is_whole, listed
from optpart.problem.rational import shown
from optpart.problem.workload import Workload

if TYPE_CHECKING:
    from onnx import (
        FunctionProto,
        GraphProto,
        ModelProto,
        NodeProto,
        TensorProto,
        TypeProto,
        ValueInfoProto,
    )


#: Functions that call functions; the library inlines them by recursion.
_DEEPEST_CALLS = 100

_CHECK = "give a model that onnx.checker.check_model accepts"
_WHOLE = "give a whole model as onnx.save writes it"


def sniff(content: bytes) -> bool:
    """Return whether bytes begin as an ONNX model does, with a small version number in field 1."""
    return len(content) > 2 and content[0] == 0x08 and 0 < content[1] < 64


def read(path: str | Path, *, shapes: Mapping[str, int] | None = None) -> Workload:
    """Read a model.

    Parameters
    ----------
    shapes : mapping from str to int, optional
        Sizes for the symbols that the model uses in shapes, such as ``{"batch": 1}``. An open size
        without a name is called after its input and axis: ``x.0``.

    Returns
    -------
    Workload
        Sizes in bytes.

    Raises
    ------
    InputError
        If the file is no ONNX model or a faulty one, a size or the rounds of a loop stay open or
        depend on the data, an operation works on anything but dense tensors of numbers, or the
        library ``onnx`` is not installed.
    """
    _need_library(path)
    with FaultsOf(path):
        model = _inlined(_parsed(path))
        return _Reader(model, shapes or {}).workload(Path(path).stem)


@dataclass(frozen=True)
class Nodes:
    """The nodes of a model, and which of them are vertices.

    Attributes
    ----------
    model : ModelProto
        Whole, with its functions inlined; weights in files of their own are not loaded.
    vertices : tuple of (str or None), one per node
        Name of the vertex; ``None`` if the node is constant.
    inputs : tuple of str
        Inputs of the model that have no initializer.
    types : mapping from str to TypeProto
        Types of all values, with the given sizes.
    sizes : mapping from str to TensorProto
        Values of the constant nodes that depend on an input through its shape alone.
    """

    model: ModelProto
    vertices: tuple[str | None, ...]
    inputs: tuple[str, ...]
    types: Mapping[str, TypeProto]
    sizes: Mapping[str, TensorProto]


def read_nodes(path: str | Path, *, shapes: Mapping[str, int] | None = None) -> Nodes:
    """Tell which nodes of a model are which vertices of the workload that :func:`read` returns.

    Raises
    ------
    InputError
        As :func:`read` does.
    """
    _need_library(path)
    with FaultsOf(path):
        whole = model = _parsed(path)
        if model.functions:
            import onnx.inliner

            model = _inlined(model)  # checks the functions, and drops weights
            whole = onnx.inliner.inline_local_functions(_parsed(path))
        return _Reader(model, shapes or {}).nodes(whole)


def _need_library(path: str | Path) -> None:
    try:
        import onnx  # noqa: F401
    except ImportError:
        raise InputError("", "needs the library onnx", "install optpart[onnx]", str(path)) from None


def _parsed(path: str | Path) -> ModelProto:
    import onnx
    from google.protobuf.message import DecodeError

    if os.path.isfile(path) and os.path.getsize(path) > MOST_BYTES:
        remedy = "keep the weights beside it: onnx.save(..., save_as_external_data=True)"
        raise InputError("", "is longer than 1 GiB", remedy)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(read_bytes(path))
    except DecodeError:
        raise InputError("", "is no ONNX model, or cut short", _WHOLE) from None
    if not model.HasField("graph"):
        raise InputError("", "is no ONNX model", _WHOLE)
    return model


def _inlined(model: ModelProto) -> ModelProto:
    """Replace calls of the model's own functions by their bodies."""
    if not model.functions:
        return model
    import onnx.inliner

    for function in model.functions:
        _check_texts("functions", (function.domain, function.name, function.overload))
    _check_calls(model)
    # The library copies the model several times, and needs no weights for this.
    for tensor in model.graph.initializer:
        if len(tensor.dims) and max(tensor.dims) > 1024:
            tensor.ClearField("raw_data")
    try:
        inlined = onnx.inliner.inline_local_functions(model)
    except (RuntimeError, ValueError, TypeError) as error:
        raise InputError("functions", str(error), _CHECK) from None
    return inlined


def _check_calls(model: ModelProto) -> None:
    """Refuse functions that call themselves, or whose bodies are too many once inlined."""
    functions = {_callee(function, function.name): function for function in model.functions}
    calls = {
        key: [_callee(node, node.op_type) for node in every_node(function.node)]
        for key, function in functions.items()
    }
    depth: dict[tuple[str, str, str], int] = {}
    size: dict[tuple[str, str, str], int] = {}
    try:
        order = tuple(graphlib.TopologicalSorter(calls).static_order())
    except graphlib.CycleError as error:
        name = error.args[1][0][1]
        raise InputError(f"function {name!r}", "calls itself", _CHECK) from None
    for key in order:
        callees = calls.get(key)
        if callees is None:  # an operator
            depth[key], size[key] = 0, 1
            continue
        depth[key] = 1 + max((depth[callee] for callee in callees), default=0)
        # Only whether it is too large matters, and it may have more digits than can be shown.
        size[key] = min(sum(size[callee] for callee in callees), 10**18)
        if depth[key] > _DEEPEST_CALLS:
            problem = f"calls functions {depth[key]} deep"
            raise InputError(f"function {key[1]!r}", problem, f"give at most {_DEEPEST_CALLS}")
    nodes = every_node(model.graph.node)
    check_size(sum(size.get(_callee(node, node.op_type), 1) for node in nodes))


def _callee(message: NodeProto | FunctionProto, name: str) -> tuple[str, str, str]:
    return message.domain, name, message.overload


@dataclass
class _Vertex:
    """A node that is a vertex.

    Attributes
    ----------
    node : NodeProto
    operation : Operation
    place : str
        As errors name it.
    outputs : list of str
        Values that are tensors of the graph.
    reads : list of str
        Values that it reads, in its bodies too.
    cost : tuple of int, optional
        Operations, bytes read and bytes written, where they are those of bodies.
    memory : int
        Bytes of constants that are in its bodies alone.
    """

    node: NodeProto
    operation: Operation
    place: str
    outputs: list[str]
    reads: list[str]
    cost: Counts | None = None
    memory: int = 0


class _Reader:
    """Reads one model; see :func:`read`."""

    def __init__(self, model: ModelProto, shapes: Mapping[str, int]) -> None:
        import onnx.defs

        self._graph = graph = model.graph
        check_size(sum(1 for _ in every_node(graph.node)), place="graph")
        if graph.sparse_initializer:
            raise InputError("graph", "has sparse initializers", "give a model of dense tensors")
        self._assumed: list[str] = []
        self._guessed: dict[str, None] = {}
        self._chosen: list[str] = []
        self._shortened: list[str] = []
        opsets = {_domain(each.domain): each.version for each in model.opset_import} or {"": 1}
        _check_texts("opset_import", opsets)
        for domain, version in opsets.items():
            if not 0 < version < 2**31:
                place = f"opset_import of domain {domain!r}"
                raise InputError(place, f"version {version}", "give a whole number ≥ 1")
        newest = onnx.defs.onnx_opset_version()
        if opsets.get("", 0) > newest:
            self._assumed.append(
                f"operators of opset {opsets['']} are as in opset {newest}, "
                f"the newest that onnx {onnx.__version__} knows"
            )
        if model.training_info:
            self._assumed.append("one inference is meant; the file's training_info is left out")
        self._symbols = symbols = _Symbols(shapes)
        inputs = {value.name: symbols.bound(value, is_input=True) for value in graph.input}
        declared = {
            value.name: symbols.bound(value, is_input=False)
            for value in (*graph.value_info, *graph.output)
        }
        symbols.check()
        _check_texts("graph", (graph.name, *(each.name for each in graph.initializer)))
        self._values = Inference(opsets, declared)
        for tensor in graph.initializer:
            if tensor.name in self._values:
                raise InputError(f"initializer {tensor.name!r}", "is there twice", _CHECK)
            self._values.add_constant(tensor.name, tensor)
        self._inputs = [name for name in inputs if name not in self._values]
        for name in self._inputs:
            self._values.add_input(name, inputs[name])

    def workload(self, name: str) -> Workload:
        """Read it."""
        vertices = list(self._vertices(self._graph, self._values))
        if not vertices:
            raise InputError(
                "graph", "no operation depends on an input", "give a model that has some"
            )
        for each in self._graph.output:
            if each.name not in self._values:
                raise InputError(f"output {each.name!r}", "is computed by no node", _CHECK)
        graph, names = ModelGraph(), self._names(vertices)
        readers: dict[str, list[int]] = {}
        for v, vertex in enumerate(vertices):
            memory = vertex.memory
            for value in vertex.reads:
                if value in self._values.constant:
                    memory += self._values.tensor(value, vertex.place).bytes
                    readers.setdefault(value, []).append(v)
            found, operation = _cost(vertex), vertex.operation
            writes = {each: self._values.tensor(each, vertex.place) for each in vertex.outputs}
            graph.add(names[v], operation.kind, operation, found, memory, vertex.reads, writes)
        self._assume_constants(readers)
        self._assume_operators()
        self._assume_devices()
        return graph.workload(self._graph.name or name, f"ONNX model {name}", self._assumed)

    def nodes(self, whole: ModelProto) -> Nodes:
        """Tell which nodes are vertices; ``whole`` is the model with its weights."""
        vertices = list(self._vertices(self._graph, self._values))
        names = self._names(vertices)
        computed_by = {
            vertex.outputs[0]: name for vertex, name in zip(vertices, names, strict=True)
        }
        of_node = [computed_by.get(next(filter(None, node.output))) for node in self._graph.node]
        values = self._values
        sizes: dict[str, TensorProto] = {}
        for node, name in zip(self._graph.node, of_node, strict=True):
            given = all(each in values.constant for each in node.input if each)
            if name is None and not given:  # Shape or Size
                sizes[node.output[0]] = values.value(node.output[0])
        outputs = [list(node.output) for node in self._graph.node]
        assert outputs == [list(node.output) for node in whole.graph.node]
        return Nodes(whole, tuple(of_node), tuple(self._inputs), values.types, sizes)

    def _vertices(
        self, graph: GraphProto, values: Inference, within: str = ""
    ) -> Iterator[_Vertex]:
        """Yield the nodes that are vertices, once it is known what they read and write.

        Parameters
        ----------
        within : str
            The node whose body the graph is, as errors name it.
        """
        constant = values.constant
        read = {name for node in graph.node for name in reads(node)}
        read |= {output.name for output in graph.output}
        for number, node in enumerate(graph.node):
            kind = _kind(node)
            place = f"{within}node {node.name or number!r} ({kind})"
            self._check(node, place, values)
            node.domain = _domain(node.domain)
            stored = _stored(node, kind)
            if stored is not None:
                values.add_constant(node.output[0], stored)
                continue
            found, memory = None, 0
            if kind in CONTROL:
                found, memory = self._control(node, kind, place, values)
            else:
                values.infer(node, kind, place)
            if all(name in constant for name in node.output if name):
                continue
            written = [name for name in node.output if name]
            kept = [name for i, name in enumerate(written) if i == 0 or name in read]
            for name in filter(None, (*node.input, *kept)):
                self._check_sized(name, place, values)
            operation = Operation(
                kind=kind,
                inputs=tuple(values.tensor(name, place) if name else None for name in node.input),
                outputs=tuple(
                    values.tensor(name, place) if name == written[0] or name in read else None
                    for name in node.output
                ),
                attributes=_attributes(node, place),
            )
            if found is None and not known(kind):
                self._guessed[kind] = None
            yield _Vertex(node, operation, place, kept, reads(node), found, memory)

    def _control(
        self, node: NodeProto, kind: str, place: str, values: Inference
    ) -> tuple[Counts, int]:
        """Learn the outputs of a node with bodies; return its cost and the bytes of its own."""
        control = Control(node, kind, place, values)
        costs, memory = [], 0
        for graph, scope in control.scopes:
            inner = list(self._vertices(graph, scope, f"{place}, "))
            works = [_cost(vertex) for vertex in inner]
            costs.append((*map(sum, zip(*works, strict=True)),) if works else (0, 0, 0))
            memory += sum(vertex.memory for vertex in inner)
            for name in dict.fromkeys(name for vertex in inner for name in vertex.reads):
                if name in scope.constant and name not in values:
                    memory += scope.tensor(name, place).bytes
        for name, type_ in zip(node.output, control.outputs(), strict=True):
            if name:
                values.add_input(name, type_)
        if len(costs) > 1:
            self._chosen.append(node.name or node.output[0])
        if control.may_end_early():
            self._shortened.append(node.name or node.output[0])
        flops, read, written = (control.rounds * each for each in max(costs))
        return (flops, read, written), memory

    def _check(self, node: NodeProto, place: str, values: Inference) -> None:
        """Check what holds of every node, whatever its operator."""
        texts = (node.name, node.op_type, node.domain, *node.input, *node.output)
        _check_texts(place, (*texts, *(attribute.name for attribute in node.attribute)))
        if bodies(node) and _kind(node) not in CONTROL:
            problem = "contains a subgraph, and how often it runs is unknown"
            raise InputError(place, problem, f"give one of {', '.join(CONTROL)}")
        for body in bodies(node):
            named = (*body.input, *body.output, *body.value_info)
            _check_texts(place, (each.name for each in named))
            _check_texts(place, (each.name for each in body.initializer))
        for name in reads(node):
            if name not in values:
                problem = f"reads {name!r}, which is no input and computed by no node before it"
                raise InputError(place, problem, "put the nodes in topological order")
        if not any(node.output):
            raise InputError(place, "has no output", _CHECK)
        seen = set()
        for name in filter(None, node.output):
            if name in values or name in seen:
                raise InputError(place, f"computes {name!r}, which is there already", _CHECK)
            seen.add(name)

    def _check_sized(self, name: str, place: str, values: Inference) -> None:
        """Say which sizes to give if the shape of a value depends on them."""
        if values.is_sized(name):
            return
        symbols = self._symbols.open_in(*self._inputs, name)
        if symbols:
            listed = ", ".join(map(repr, symbols))
            options = to_shell(word for each in symbols for word in ("--shape", f"{each}=1"))
            remedy = f"give them as in {options}"
            raise InputError(place, f"the shape of {name!r} depends on the open {listed}", remedy)

    def _names(self, vertices: list[_Vertex]) -> list[str]:
        """Name vertices after nodes or, if unnamed, first outputs; double names get a number."""
        wanted = [each.node.name or next(filter(None, each.node.output)) for each in vertices]
        taken, count = set(wanted), Counter(wanted)
        double = {name for name, times in count.items() if times > 1}
        number = dict.fromkeys(double, 1)
        names = []
        for name in wanted:
            if name in double and number[name] > 1:
                unique = name
                while unique in taken:
                    unique = f"{name}_{number[name]}"
                    number[name] += 1
                taken.add(unique)
                names.append(unique)
            else:
                number[name] = 2
                names.append(name)
        if double:
            self._assumed.append(f"operations of the same name are numbered: {listed(double)}")
        return names

    def _assume_constants(self, readers: Mapping[str, list[int]]) -> None:
        """Say what became of inputs, and of constants that none or several operations read."""
        values = self._values
        if self._inputs:
            self._assumed.append(f"the inputs lie ready on every device: {listed(self._inputs)}")
        copies: dict[str, dict[str, int]] = {}
        vertices: dict[str, set[int]] = {}
        for name, reading in readers.items():
            whole, size = values.constant[name], values.tensor(name, "").bytes
            copies.setdefault(whole, {})[name] = len(reading) * size
            vertices.setdefault(whole, set()).update(reading)
        excess = {
            whole: sum(sizes.values()) - values.tensor(whole, "").bytes
            for whole, sizes in copies.items()
            if len(vertices[whole]) > 1
        }
        tied = sorted((name for name in excess if excess[name] > 0), key=lambda n: -excess[n])
        if tied:
            total = sum(excess[name] for name in tied)
            self._assumed.append(
                f"constants that several operations read are counted at each, {total} bytes in "
                f"excess: {listed(tied)}"
            )
        used = {name for node in self._graph.node for name in reads(node)}
        unused = [each.name for each in self._graph.initializer if each.name not in used]
        if unused:
            self._assumed.append(
                f"initializers that no operation reads take no memory: {listed(unused)}"
            )
        if values.contradicted:
            names = listed(values.contradicted)
            self._assumed.append(f"shapes that the file states differently are inferred: {names}")

    def _assume_operators(self) -> None:
        """Say what the work of some operators is taken to be."""
        for names, said in (
            (
                self._guessed,
                "operators whose work is unknown count one operation per output element",
            ),
            (self._chosen, "of branches, the one with more operations counts"),
            (self._shortened, "loops that may end early run as often as they can"),
        ):
            if names:
                self._assumed.append(f"{said}: {listed(names)}")

    def _assume_devices(self) -> None:
        """Say that placements which a file suggests do not bind."""
        placed = [
            node.name or node.op_type
            for node in self._graph.node
            if len(getattr(node, "device_configurations", ()))  # since ONNX 1.18
        ]
        if placed:
            self._assumed.append(f"device configurations do not bind: {listed(placed)}")


class _Symbols:
    """The sizes that a model leaves open, and those that are given.

    Raises
    ------
    InputError
        If a given one is no size.
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        for symbol, size in sizes.items():
            if not is_whole(size, 0, 2**63 - 1):
                place = f"shape {symbol!r}"
                raise InputError(place, f"size {shown(size)}", "give a whole number ≥ 0")
        self._sizes = sizes
        self._seen: dict[str, None] = {}
        self._open: dict[str, list[str]] = {}

    def bound(self, value: ValueInfoProto, *, is_input: bool) -> TypeProto:
        """Return the type of a value with the given sizes.

        Of inputs, sizes without a name, which some exporters write as 0 or less, get one.
        """
        import onnx

        _check_texts("graph", (value.name,))
        type_ = onnx.TypeProto()
        type_.CopyFrom(value.type)
        for axis, dim in enumerate(type_.tensor_type.shape.dim):
            symbol = dim.dim_param
            _check_texts(f"value {value.name!r}", (symbol,))
            if not symbol and is_input and dim.dim_value <= 0:
                symbol = f"{value.name}.{axis}"
            if symbol:
                self._seen[symbol] = None
                if symbol in self._sizes:
                    dim.dim_value = self._sizes[symbol]
                else:
                    dim.dim_param = symbol
                    self._open.setdefault(value.name, []).append(symbol)
            elif dim.dim_value < 0:
                dim.ClearField("dim_value")
        return type_

    def check(self) -> None:
        """Refuse sizes of what the model does not have."""
        for symbol in self._sizes:
            if symbol not in self._seen:
                remedy = f"choose one of {listed(self._seen)}" if self._seen else "leave it out"
                raise InputError(f"shape {symbol!r}", "the model has no such size", remedy)

    def open_in(self, *names: str) -> list[str]:
        """Return the symbols without a size in the types of these values."""
        return list(dict.fromkeys(each for name in names for each in self._open.get(name, ())))


def _cost(vertex: _Vertex) -> Counts:
    """Return operations, bytes read and bytes written."""
    if vertex.cost is None:
        return checked_cost(lambda: cost(vertex.operation), vertex.place, "attributes", _CHECK)
    known_cost = vertex.cost
    return checked_cost(lambda: known_cost, vertex.place, "attributes", _CHECK)


def _stored(node: NodeProto, kind: str) -> TensorProto | None:
    """Return the tensor that a node hands out, if it is no more than that."""
    if kind != "Constant" or len(node.attribute) != 1 or len(node.output) != 1:
        return None
    return node.attribute[0].t if node.attribute[0].HasField("t") else None


def _attributes(node: NodeProto, place: str) -> dict[str, Any]:
    from onnx.helper import get_attribute_value

    try:
        return {each.name: get_attribute_value(each) for each in node.attribute}
    except ValueError as error:
        raise InputError(place, str(error), _CHECK) from None


def _check_texts(place: str, texts: Iterable[str]) -> None:
    """Refuse names that are no UTF-8, which the library hands over as bytes."""
    for text in texts:
        if not isinstance(text, str):
            raise InputError(place, f"the name {shown(text)} is no UTF-8 text", _WHOLE)


def _kind(node: NodeProto) -> str:
    domain = _domain(node.domain)
    return f"{domain}.{node.op_type}" if domain else node.op_type


def _domain(name: str) -> str:
    """Return the domain; that of ONNX itself has two names."""
    return "" if name == "ai.onnx" else name
