"""Sizes in a TensorFlow ``GraphDef``: the shapes and data types in its attributes.

Constants, placeholders and variables carry their own; any operation does where the graph was saved
with ``_output_shapes``, and its data types follow from its attributes if the operation is one of
those below. Nothing is inferred from one operation for the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from optpart.base.errors import InputError

#: The numbers of ``tensorflow.DataType`` with bytes per element; the others vary or pack bits.
_TYPES = {
    "DT_FLOAT": (1, 4),
    "DT_DOUBLE": (2, 8),
    "DT_INT32": (3, 4),
    "DT_UINT8": (4, 1),
    "DT_INT16": (5, 2),
    "DT_INT8": (6, 1),
    "DT_STRING": (7, None),
    "DT_COMPLEX64": (8, 8),
    "DT_INT64": (9, 8),
    "DT_BOOL": (10, 1),
    "DT_QINT8": (11, 1),
    "DT_QUINT8": (12, 1),
    "DT_QINT32": (13, 4),
    "DT_BFLOAT16": (14, 2),
    "DT_QINT16": (15, 2),
    "DT_QUINT16": (16, 2),
    "DT_UINT16": (17, 2),
    "DT_COMPLEX128": (18, 16),
    "DT_HALF": (19, 2),
    "DT_RESOURCE": (20, None),
    "DT_VARIANT": (21, None),
    "DT_UINT32": (22, 4),
    "DT_UINT64": (23, 8),
    "DT_FLOAT8_E5M2": (24, 1),
    "DT_FLOAT8_E4M3FN": (25, 1),
    "DT_FLOAT8_E4M3FNUZ": (26, 1),
    "DT_FLOAT8_E4M3B11FNUZ": (27, 1),
    "DT_FLOAT8_E5M2FNUZ": (28, 1),
    "DT_INT4": (29, None),
    "DT_UINT4": (30, None),
    "DT_INT2": (31, None),
    "DT_UINT2": (32, None),
}
_BYTES = {number: size for number, size in _TYPES.values() if size is not None}
_BOOL = 10
_REF = 100


def data_types() -> dict[str, int]:
    """Return ``DataType``; the type of a reference is that of its value plus 100."""
    numbers = {name: number for name, (number, _) in _TYPES.items()}
    references = {f"{name}_REF": number + _REF for name, number in numbers.items()}
    return {"DT_INVALID": 0, **numbers, **references}


_VARIABLES = frozenset({"Variable", "VariableV2"})

#: Operations by the attribute that is the data type of all their outputs.
_TYPE_OF = {
    op: attribute
    for attribute, ops in {
        "dtype": "Const Placeholder PlaceholderV2 PlaceholderWithDefault Variable VariableV2 "
        "ReadVariableOp RandomUniform RandomStandardNormal TruncatedNormal Empty",
        "DstT": "Cast",
        "out_type": "Shape Size",
        "output_type": "ArgMax ArgMin",
        "T": "Abs Add AddN AddV2 Assign AssignAdd AssignSub AvgPool AvgPoolGrad BatchMatMul "
        "BatchMatMulV2 BiasAdd BiasAddGrad ConcatV2 Conv2D Conv2DBackpropFilter "
        "Conv2DBackpropInput DepthwiseConv2dNative Div Elu Exp ExpandDims Fill Floor FloorDiv "
        "FloorMod Gelu Identity LeakyRelu Log LogSoftmax MatMul Max MaxPool MaxPoolGrad Maximum "
        "Mean Min Minimum MirrorPad Mul Neg OnesLike Pack Pad PadV2 Pow Prod RealDiv "
        "Reciprocal Relu Relu6 Relu6Grad ReluGrad Reshape Rsqrt Select SelectV2 Selu Sigmoid "
        "SigmoidGrad Sign Slice Softmax Softplus Split SplitV Sqrt Square SquaredDifference "
        "Squeeze StopGradient StridedSlice Sub Sum Switch Tanh TanhGrad Tile Transpose Unpack "
        "ZerosLike",
    }.items()
    for op in ops.split()
}

_PREDICATES = frozenset(
    {"Equal", "Greater", "GreaterEqual", "IsFinite", "Less", "LessEqual", "NotEqual"}
    | {"LogicalAnd", "LogicalNot", "LogicalOr"}
)

#: More than any memory; a longer product is not worth its digits.
_MOST_BYTES = 2**62


@dataclass(frozen=True)
class Known:
    """Bytes of a vertex, as far as its node tells.

    Attributes
    ----------
    memory : int
        Of the weights that it holds: a variable's or a constant's.
    outputs : tuple of (int or None)
        Of the first outputs; ``None`` where unknown.
    """

    memory: int = 0
    outputs: tuple[int | None, ...] = ()


def known_sizes(nodes: Iterable[Any]) -> Mapping[str, Known]:
    """Return what each ``NodeDef`` tells, by name."""
    return {node.name: _known(node) for node in nodes}


def _known(node: Any) -> Known:
    kind = _kind(node)
    own = _own_shape(node)
    shapes = [own] if own is not None else []
    if not shapes and "_output_shapes" in node.attr:
        shapes = list(node.attr["_output_shapes"].list.shape)
    if node.op == "VarHandleOp":  # hands out a handle, and holds the value itself
        kind = node.attr["dtype"].type if "dtype" in node.attr else 0
        held = _size(node, node.attr["shape"].shape, kind) if "shape" in node.attr else None
        return Known(memory=held or 0)
    sizes = tuple(_size(node, shape, kind) for shape in shapes)
    holds = node.op == "Const" or node.op in _VARIABLES
    return Known((sizes[0] or 0) if holds and sizes else 0, sizes)


def _kind(node: Any) -> int:
    """Return the data type of all outputs; 0 if it is not known."""
    if node.op in _PREDICATES:
        return _BOOL
    attribute = _TYPE_OF.get(node.op, "")
    if not attribute or attribute not in node.attr:
        return 0
    kind = int(node.attr[attribute].type)
    return kind - _REF if kind > _REF else kind


def _own_shape(node: Any) -> Any:
    if node.op == "Const":
        if "value" in node.attr and node.attr["value"].HasField("tensor"):
            return node.attr["value"].tensor.tensor_shape
        return None
    if "shape" not in node.attr:
        return None
    shape = node.attr["shape"].shape
    if node.op in _VARIABLES:
        return shape
    # A placeholder without dimensions takes any shape, not only a scalar.
    return shape if node.op.startswith("Placeholder") and shape.dim else None


def _size(node: Any, shape: Any, kind: int) -> int | None:
    if kind not in _BYTES or shape.unknown_rank:
        return None
    size = _BYTES[kind]
    dimensions = [dim.size for dim in shape.dim]
    if any(length < 0 for length in dimensions):
        return None
    if 0 in dimensions:
        return 0
    for length in dimensions:
        size *= length
        if size > _MOST_BYTES:
            raise InputError(
                f"node {node.name!r}", "has a tensor of more than 2^62 bytes", "correct its shape"
            )
    return size
