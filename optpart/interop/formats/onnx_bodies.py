"""Control flow of an ONNX graph: the bodies of ``If``, ``Loop`` and ``Scan``.

A node with bodies is one operation, which runs where all its bodies do. How often each of them runs
must follow from the file and the sizes of the inputs, except that an ``If`` may choose.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from optpart.base.errors import InputError
from optpart.interop.formats.onnx_shapes import Inference

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, TensorProto, TypeProto

_CHECK = "give a model that onnx.checker.check_model accepts"

#: Operators with bodies, and the attributes that hold them.
CONTROL = {"If": ("then_branch", "else_branch"), "Loop": ("body",), "Scan": ("body",)}


def bodies(node: NodeProto) -> list[GraphProto]:
    """Return the graphs among the attributes of a node."""
    return [
        graph
        for attribute in node.attribute
        for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs)
    ]


def every_node(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Yield nodes and those in their bodies."""
    for node in nodes:
        yield node
        for body in bodies(node):
            yield from every_node(body.node)


def reads(node: NodeProto) -> list[str]:
    """Return the values that a node reads, itself or in its bodies, each once."""
    found = dict.fromkeys(filter(None, node.input))
    for body in bodies(node):
        inside = {each.name for each in body.input} | {each.name for each in body.initializer}
        inside.update(value for each in body.node for value in each.output)
        read = [value for each in body.node for value in reads(each)]
        read += [each.name for each in body.output]
        found |= dict.fromkeys(value for value in read if value not in inside)
    return list(found)


def stored_tensors(graph: GraphProto) -> Iterator[TensorProto]:
    """Yield the tensors that a graph stores: initializers and attributes, in bodies too."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
        for body in bodies(node):
            yield from stored_tensors(body)


class Control:
    """A node with bodies, in a graph whose values before it are known.

    Parameters
    ----------
    kind : str
        One of :data:`CONTROL`.
    place : str
        As errors name the node.

    Attributes
    ----------
    scopes : list of (GraphProto, Inference)
        Bodies that may run, and what is known in them before their first node.
    rounds : int
        How often they run; one of several runs.

    Raises
    ------
    InputError
        If the node is not as its operator wants it, or how often its body runs is unknown.
    """

    def __init__(self, node: NodeProto, kind: str, place: str, values: Inference) -> None:
        self._node, self._kind, self._place, self._values = node, kind, place, values
        named = {each.name: each for each in node.attribute}
        graphs = [named[name].g for name in CONTROL[kind] if name in named]
        if len(graphs) < len(CONTROL[kind]):
            raise InputError(place, f"has no {' and '.join(CONTROL[kind])}", _CHECK)
        self._lists = {each.name: list(each.ints) for each in node.attribute}
        self.rounds = 1
        if kind == "If":
            taken = self._known(0)
            if taken is not None:
                graphs = [graphs[0 if taken else 1]]
            given: list[TypeProto] = []
        elif kind == "Loop":
            self.rounds, given = self._loop_rounds(), self._loop_inputs()
            self._states = len(given) - 2
        else:
            scanned = named["num_scan_inputs"].i if "num_scan_inputs" in named else 0
            self._states = len(node.input) - scanned
            if scanned < 1 or self._states < 0 or not all(node.input):
                raise InputError(place, "its inputs and num_scan_inputs do not fit", _CHECK)
            given = self._scan_inputs()
        self.scopes = [(graph, self._scope(graph, given)) for graph in graphs]

    def outputs(self) -> list[TypeProto]:
        """Return the types of the outputs, once the nodes of all bodies are known."""
        found = [
            [self._type(values, each.name) for each in graph.output]
            for graph, values in self.scopes
        ]
        first = found[0]
        if self._kind == "If":
            if any(each != first for each in found):
                problem = "its branches have outputs of different types or shapes"
                raise InputError(self._place, problem, "give a model in which they have the same")
        else:
            skip = 1 if self._kind == "Loop" else 0
            before = [self._type(self._values, each) for each in self._node.input[2 * skip :]]
            states, scanned = first[skip:][: self._states], first[skip:][self._states :]
            if states != before[: self._states]:
                problem = "the type or shape of a value changes from one round to the next"
                raise InputError(self._place, problem, "give a model in which it does not")
            axes = self._axes("scan_output_axes", len(scanned))
            first = states + [self._stacked(*each) for each in zip(scanned, axes, strict=True)]
        if len(first) != len(self._node.output):
            problem = f"has {len(self._node.output)} outputs, and its body {len(first)}"
            raise InputError(self._place, problem, _CHECK)
        return first

    def may_end_early(self) -> bool:
        """Return whether a loop can run less often than its rounds, once its body is known."""
        graph, values = self.scopes[0]
        return self._kind == "Loop" and not _value(values, graph.output[0].name)

    def _known(self, i: int) -> int | None:
        """Return the value of a scalar input, or ``None`` if it is not known."""
        name = self._node.input[i] if i < len(self._node.input) else ""
        return _value(self._values, name)

    def _loop_rounds(self) -> int:
        if self._known(1) == 0:
            return 0
        rounds = self._known(0)
        if rounds is None:
            problem = "how often its body runs depends on the data"
            raise InputError(self._place, problem, "give a model whose loop has a constant count")
        return max(rounds, 0)

    def _loop_inputs(self) -> list[TypeProto]:
        from onnx import TensorProto, helper

        scalars = [
            helper.make_tensor_type_proto(each, [])
            for each in (TensorProto.INT64, TensorProto.BOOL)
        ]
        return scalars + [self._type(self._values, each) for each in self._node.input[2:]]

    def _scan_inputs(self) -> list[TypeProto]:
        from onnx import helper

        types = [self._type(self._values, each) for each in self._node.input]
        given, lengths = types[: self._states], set()
        axes = self._axes("scan_input_axes", len(types) - self._states)
        for type_, axis in zip(types[self._states :], axes, strict=True):
            sizes = [each.dim_value for each in type_.tensor_type.shape.dim]
            if not -len(sizes) <= axis < len(sizes):
                raise InputError(self._place, f"axis {axis} of {len(sizes)}", _CHECK)
            lengths.add(sizes.pop(axis))
            given.append(helper.make_tensor_type_proto(type_.tensor_type.elem_type, sizes))
        if len(lengths) > 1:
            raise InputError(self._place, "its scan inputs have different lengths", _CHECK)
        self.rounds = lengths.pop()
        return given

    def _axes(self, name: str, count: int) -> list[int]:
        axes = self._lists.get(name) or [0] * count
        if len(axes) != count:
            raise InputError(self._place, f"{name} has {len(axes)} entries", f"give {count}")
        return axes

    def _stacked(self, type_: TypeProto, axis: int) -> TypeProto:
        from onnx import helper

        sizes = [each.dim_value for each in type_.tensor_type.shape.dim]
        if not -len(sizes) - 1 <= axis <= len(sizes):
            raise InputError(self._place, f"axis {axis} of {len(sizes) + 1}", _CHECK)
        sizes.insert(axis if axis >= 0 else axis + len(sizes) + 1, self.rounds)
        return helper.make_tensor_type_proto(type_.tensor_type.elem_type, sizes)

    def _scope(self, graph: GraphProto, given: list[TypeProto]) -> Inference:
        from onnx import numpy_helper

        if len(graph.input) != len(given):
            problem = f"its body has {len(graph.input)} inputs, not {len(given)}"
            raise InputError(self._place, problem, _CHECK)
        if self._kind == "Loop" and not graph.output:
            raise InputError(self._place, "its body has no output", _CHECK)
        scope = self._values.inside(graph)
        for each, type_ in zip(graph.input, given, strict=True):
            scope.add_input(each.name, type_)
        if self._kind == "Loop":  # a round runs only where the condition holds
            name = graph.input[1].name
            scope.add_constant(name, numpy_helper.from_array(np.array(True), name))
        for tensor in graph.initializer:
            scope.add_constant(tensor.name, tensor)
        return scope

    def _type(self, values: Inference, name: str) -> TypeProto:
        """Return the type and shape of a value, and nothing else that the file states of it."""
        from onnx import TensorProto, helper

        if name not in values:
            raise InputError(self._place, f"{name!r} is computed by no node", _CHECK)
        tensor = values.tensor(name, self._place)
        number = TensorProto.DataType.Value(tensor.type.upper())
        return helper.make_tensor_type_proto(number, tensor.shape)


def _value(values: Inference, name: str) -> int | None:
    from onnx import numpy_helper

    try:
        found = numpy_helper.to_array(values.value(name))
    except (KeyError, ValueError, TypeError):
        return None
    return int(found.reshape(-1)[0]) if found.size == 1 else None
