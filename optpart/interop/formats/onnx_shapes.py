"""Types and small constant values of an ONNX graph, node by node in the order of the file.

The library infers the shapes, one node at a time, and its reference implementation computes the
small constants that shapes depend on. So a graph takes time in proportion to its nodes, however it
computes its shapes, and no value that is larger than a shape ever exists.
"""

from __future__ import annotations

import copy
import functools
import math
from collections import ChainMap
from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from optpart.base.errors import InputError
from optpart.interop.formats.onnx_operators import known
from optpart.interop.formats.operator_cost import Tensor, has_size

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, TensorProto, TypeProto
    from onnx.defs import OpSchema

#: Shapes, and what they are computed from, have few elements; those of factors of a shape are not
#: whole numbers.
_MOST_ELEMENTS = 1024
_MOST_FACTORS = 16

#: NumPy's limit. A product of many more dimensions takes long before the file is large.
_MOST_AXES = 64

#: Their outputs are no constants although their inputs are: they draw, or, as runtimes keep
#: quantised weights, their input is what is stored.
_NEVER_CONSTANT = {
    "Bernoulli", "DequantizeLinear", "Multinomial", "RandomNormal", "RandomNormalLike",
    "RandomUniform", "RandomUniformLike",
}  # fmt: skip

#: Shapes are computed with these, which take no more time or space than their outputs.
_EVALUATED = {
    "Abs", "Add", "And", "Cast", "Ceil", "Clip", "Concat", "Constant", "ConstantOfShape", "CumSum",
    "Div", "Equal", "Expand", "Flatten", "Floor", "Gather", "Greater", "GreaterOrEqual",
    "Identity", "Less", "LessOrEqual", "Max", "Min", "Mod", "Mul", "Neg", "NonZero", "Not", "Or",
    "Pow", "Range", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum", "Reshape", "Round",
    "ScatterND", "Shape", "Sign", "Size", "Slice", "Split", "Sqrt", "Squeeze", "Sub", "Sum",
    "Tile", "Transpose", "Unsqueeze", "Where", "Xor",
}  # fmt: skip

#: Their first output is shaped as the first input, which the library does not tell.
_SHAPED_AS_INPUT = {
    "GroupNormalization", "MeanVarianceNormalization", "SimplifiedLayerNormalization",
    "com.microsoft.BiasGelu", "com.microsoft.FastGelu", "com.microsoft.Gelu",
    "com.microsoft.QuickGelu", "com.microsoft.RotaryEmbedding",
    "com.microsoft.SkipLayerNormalization", "com.microsoft.SkipSimplifiedLayerNormalization",
}  # fmt: skip

#: The input with one entry per axis of the output.
_SHAPE_INPUT = {"AffineGrid": 1, "ConstantOfShape": 0, "Expand": 1, "MaxUnpool": 2, "Reshape": 1}

_STATE = "state them in value_info of the file, or give one without this operation"
_REMEDY = "give a model that onnx.checker.check_model accepts"


class Inference:
    """Shapes, types and small constants of the values of a graph.

    Parameters
    ----------
    opsets : mapping from str to int
        Version by domain.
    declared : mapping from str to TypeProto
        Types that the file states; they help where inference does not tell.

    Attributes
    ----------
    constant : mapping from str to str
        Values that do not depend on the inputs of the model, each with the constant that it is,
        or is a part of, in another order or type; itself if there is no such.
    contradicted : list of str
        Values that have another shape than the file states.
    """

    def __init__(self, opsets: Mapping[str, int], declared: Mapping[str, TypeProto]) -> None:
        import onnx.checker
        import onnx.helper

        self.constant: MutableMapping[str, str] = {}
        self.contradicted: list[str] = []
        self._opsets = dict(opsets)
        self._imports = [onnx.helper.make_opsetid(*each) for each in opsets.items()]
        self._declared = declared
        self._types: MutableMapping[str, TypeProto] = {}
        self._tensors: MutableMapping[str, Tensor] = {}
        self._values: MutableMapping[str, TensorProto] = {}
        self._schemas: dict[str, OpSchema | None] = {}
        self._context = onnx.checker.C.CheckerContext()
        self._context.ir_version = onnx.IR_VERSION
        self._context.opset_imports = self._opsets

    def inside(self, graph: GraphProto) -> Inference:
        """Return an inference for a body, which knows what is known here, and tells nothing back.

        The names of a body are none of those outside, as the format wants it.
        """
        inner = copy.copy(self)
        inner._declared = {each.name: each.type for each in (*graph.value_info, *graph.output)}
        inner._types, inner._tensors, inner._values, inner.constant = (
            ChainMap({}, known)
            for known in (self._types, self._tensors, self._values, self.constant)
        )
        return inner

    @property
    def types(self) -> Mapping[str, TypeProto]:
        """Types of all values so far."""
        return self._types

    def value(self, name: str) -> TensorProto:
        """Return a small constant that is computed; ``KeyError`` if it is not."""
        return self._values[name]

    def __contains__(self, name: str) -> bool:
        return name in self._types

    def add_input(self, name: str, type_: TypeProto) -> None:
        """Add an input of the model."""
        self._types[name] = type_

    def add_constant(self, name: str, tensor: TensorProto) -> None:
        """Add a constant that the file stores, in itself or beside it.

        Raises
        ------
        InputError
            If its shape is impossible, or not that of its data.
        """
        import onnx.helper

        type_ = onnx.helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
        self._types[name] = type_
        self.constant[name] = name
        stored = tensor.data_location != onnx.TensorProto.EXTERNAL
        if tensor.data_type != onnx.TensorProto.STRING:
            place = f"tensor {name!r}"
            size, found = self.tensor(name, place).bytes, len(tensor.raw_data)
            if stored and tensor.HasField("raw_data") and size != found:
                problem = f"{found} bytes of data"
                raise InputError(place, problem, f"give {size}, as its shape says")
        if stored and _is_small(type_):
            self._values[name] = tensor

    def tensor(self, name: str, place: str) -> Tensor:
        """Return the type and shape of a value.

        Raises
        ------
        InputError
            If they are unknown, or such a value has no size.
        """
        if name not in self._tensors:
            self._tensors[name] = self._tensor(name, place)
        return self._tensors[name]

    def _tensor(self, name: str, place: str) -> Tensor:
        type_ = self._types[name]
        field = type_.WhichOneof("value")
        if field is None:
            raise InputError(place, f"type and shape of {name!r} are unknown", _STATE)
        if field != "tensor_type":
            raise InputError(place, f"{name!r} is a {field}", "give a model of dense tensors")
        dtype = _type_names().get(type_.tensor_type.elem_type, "undefined")
        if not has_size(dtype):
            problem = f"{name!r} has elements of type {dtype}"
            raise InputError(place, problem, "give a model of tensors of numbers")
        shape = _shape(type_)
        if shape is None:
            raise InputError(place, f"the shape of {name!r} is unknown", _STATE)
        if len(shape) > _MOST_AXES or min(shape, default=0) < 0:
            problem = f"{name!r} has the shape {_shown(shape)}"
            raise InputError(place, problem, f"give at most {_MOST_AXES} sizes ≥ 0")
        tensor = Tensor(dtype, shape)
        if tensor.bytes >= 2**63:
            raise InputError(place, f"{name!r} has the shape {_shown(shape)}", "give a smaller one")
        return tensor

    def is_sized(self, name: str) -> bool:
        """Return whether the shape of a value is known."""
        return name in self._tensors or _shape(self._types[name]) is not None

    def infer(self, node: NodeProto, kind: str, place: str) -> None:
        """Learn what a node tells of its outputs; its inputs are known.

        Raises
        ------
        InputError
            If the node is not as its operator wants it.
        """
        inferred = self._inferred(node, kind, place)
        if kind in _SHAPED_AS_INPUT and node.input[:1] and node.input[0] and node.output[0]:
            inferred[node.output[0]] = self._types[node.input[0]]
        for name in filter(None, node.output):
            self._types[name] = self._completed(name, inferred.get(name))
        if self._is_constant(node, kind):
            stored = [name for name in node.input if name in self.constant]
            main = max(stored, key=self._elements, default="")
            for name in filter(None, node.output):
                is_part = main and self._elements(name) <= self._elements(main)
                self.constant[name] = self.constant[main] if is_part else name
            if node.op_type in _EVALUATED:
                self._evaluate(node)

    def _inferred(self, node: NodeProto, kind: str, place: str) -> dict[str, TypeProto]:
        import onnx.checker
        import onnx.shape_inference

        schema = self._schema(node, kind)
        if schema is None:
            return {}
        _check_attributes(node, place)
        axes = _SHAPE_INPUT.get(kind, len(node.input))
        if axes < len(node.input) and node.input[axes]:
            shape = _shape(self._types[node.input[axes]])
            if shape is not None and max(shape, default=0) > _MOST_AXES:
                problem = f"an output with more than {_MOST_AXES} axes"
                raise InputError(place, problem, "give an entry per axis")
        inputs = set(filter(None, node.input))
        try:
            onnx.checker.check_node(node, self._context)
            return onnx.shape_inference.infer_node_outputs(
                schema,
                node,
                {name: self._types[name] for name in inputs},
                {name: self._values[name] for name in inputs if name in self._values},
                opset_imports=self._imports,
            )
        except (
            onnx.checker.ValidationError,
            onnx.shape_inference.InferenceError,
            RuntimeError,
            TypeError,
            ValueError,
        ) as error:
            raise InputError(place, str(error), _REMEDY) from None

    def _schema(self, node: NodeProto, kind: str) -> OpSchema | None:
        """Return the library's knowledge of an operator, or ``None``."""
        import onnx.defs

        if kind not in self._schemas:
            domain = "" if kind == node.op_type else node.domain
            version = self._opsets.get(domain, 0)
            try:
                self._schemas[kind] = onnx.defs.get_schema(node.op_type, version, domain)
            except onnx.defs.SchemaError:
                self._schemas[kind] = None
        return self._schemas[kind]

    def _completed(self, name: str, inferred: TypeProto | None) -> TypeProto:
        """Fill what inference leaves open with what the file states."""
        import onnx

        declared = self._declared.get(name)
        if inferred is None or not inferred.WhichOneof("value"):
            return declared or onnx.TypeProto()
        if declared is None or not declared.tensor_type.HasField("shape"):
            return inferred
        completed = onnx.TypeProto()
        completed.CopyFrom(inferred)
        if not inferred.tensor_type.HasField("shape"):
            completed.tensor_type.shape.CopyFrom(declared.tensor_type.shape)
            return completed
        ours, theirs = completed.tensor_type.shape.dim, declared.tensor_type.shape.dim
        fits = len(ours) == len(theirs)
        for our, their in zip(ours, theirs, strict=False):
            if fits and not our.HasField("dim_value") and their.HasField("dim_value"):
                our.dim_value = their.dim_value
            fits &= not their.HasField("dim_value") or our.dim_value == their.dim_value
        if not fits:
            self.contradicted.append(name)
        return completed

    def _elements(self, name: str) -> int:
        shape = _shape(self._types[name])
        return 0 if shape is None else math.prod(shape[:_MOST_AXES])

    def _is_constant(self, node: NodeProto, kind: str) -> bool:
        inputs = [name for name in node.input if name]
        if kind in ("Shape", "Size") and inputs and self.is_sized(inputs[0]):
            return True
        if not known(kind) or kind in _NEVER_CONSTANT:
            return False
        return all(name in self.constant for name in inputs)

    def _evaluate(self, node: NodeProto) -> None:
        """Compute small outputs of small constants."""
        import onnx.numpy_helper
        import onnx.reference

        outputs = [name for name in node.output if name]
        # As many as its input has elements, per axis.
        if node.op_type != "NonZero" and not all(_is_small(self._types[name]) for name in outputs):
            return
        inputs = [name for name in node.input if name]
        asks_shape = node.op_type in ("Shape", "Size")
        if not asks_shape and not all(name in self._values for name in inputs):
            return
        results: list[Any]
        try:
            if asks_shape:
                results = [_asked(node, self.tensor(inputs[0], ""))]
            else:
                feeds = {name: onnx.numpy_helper.to_array(self._values[name]) for name in inputs}
                with np.errstate(all="ignore"):
                    evaluator = onnx.reference.ReferenceEvaluator(node, opsets=self._opsets)
                    results = list(evaluator.run(None, feeds))
        # They raise what NumPy raises, of every kind. Then the value stays unknown, and with it
        # every shape that depends on it, which is an error of its own.
        except Exception:
            return
        for name, result in zip(outputs, results, strict=True):
            value = onnx.numpy_helper.from_array(np.asarray(result), name)
            type_ = onnx.helper.make_tensor_type_proto(value.data_type, value.dims)
            if type_.tensor_type.elem_type == self._types[name].tensor_type.elem_type:
                self._types[name], self._values[name] = type_, value


def _asked(node: NodeProto, tensor: Tensor) -> NDArray[np.int64]:
    """Return the value of ``Shape`` or ``Size``."""
    if node.op_type == "Size":
        return np.array(tensor.elements, dtype=np.int64)
    limits = {attribute.name: attribute.i for attribute in node.attribute}
    return np.array(tensor.shape[limits.get("start", 0) : limits.get("end")], dtype=np.int64)


@functools.cache
def _type_names() -> dict[int, str]:
    """Return the library's names of element types, in lower case."""
    from onnx import TensorProto

    return {number: name.lower() for name, number in TensorProto.DataType.items()}


def _check_attributes(node: NodeProto, place: str) -> None:
    """Refuse what makes the library take all memory, or crash."""
    for attribute in node.attribute:
        name, values = attribute.name, [attribute.i, *attribute.ints]
        if name == "num_outputs" and attribute.i != len(node.output):
            problem = f"num_outputs is {attribute.i}"
            raise InputError(place, problem, f"give {len(node.output)}, as it has outputs")
        if name.endswith(("axis", "axes")) and max(map(abs, values)) > _MOST_AXES:
            problem = f"{name} is beyond {_MOST_AXES}"
            raise InputError(place, problem, "give axes of its inputs")


def _shape(type_: TypeProto) -> tuple[int, ...] | None:
    """Return the shape if it is wholly known."""
    if not type_.HasField("tensor_type") or not type_.tensor_type.HasField("shape"):
        return None
    dims = type_.tensor_type.shape.dim
    if not all(dim.HasField("dim_value") for dim in dims):
        return None
    return tuple(dim.dim_value for dim in dims)


def _shown(shape: tuple[int, ...]) -> str:
    text = "x".join(map(str, shape[:8])) or "()"
    return f"{text}x…" if len(shape) > 8 else text


def _is_small(type_: TypeProto) -> bool:
    """Return whether values have a known shape of few elements, which are numbers."""
    from onnx import TensorProto

    shape = _shape(type_)
    if shape is None or len(shape) > _MOST_AXES or min(shape, default=0) < 0:
        return False
    whole = (TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL)
    is_whole = type_.tensor_type.elem_type in whole
    is_text = type_.tensor_type.elem_type == TensorProto.STRING
    return not is_text and math.prod(shape) <= (_MOST_ELEMENTS if is_whole else _MOST_FACTORS)
