"""What one ONNX operation computes and moves: a table from operator to cost function.

To add an operator, add a row to :data:`OPERATORS`. The conventions:

- A multiply-add counts as two operations. The bias of a contraction (``Conv``, ``Gemm``, …) is the
  first summand of its sums and adds nothing, so that its operations are exactly twice its
  multiply-adds. Padding counts like data.
- A function of one number (``Relu``, ``Exp``, ``Erf``) counts as one operation.
- Normalisation by stored statistics is one multiply-add per element.
- An operation reads each input once, weights included, and writes each output once. It need not
  read all of what it picks from (``Gather``, ``Slice``). A mere change of shape moves nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from optpart.problem.workload import Work

#: Bits of an element, by ONNX's name of the type in lower case.
_BITS = {
    "float": 32, "float16": 16, "bfloat16": 16, "double": 64, "complex64": 64, "complex128": 128,
    "bool": 8, "int8": 8, "int16": 16, "int32": 32, "int64": 64,
    "uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64,
    "int4": 4, "uint4": 4, "int2": 2, "uint2": 2, "float4e2m1": 4,
    "float8e4m3fn": 8, "float8e4m3fnuz": 8, "float8e5m2": 8, "float8e5m2fnuz": 8,
    "float8e8m0": 8,
}  # fmt: skip

_PRECISIONS = {"float": "float32", "double": "float64"}


@dataclass(frozen=True, slots=True)
class Tensor:
    """A dense tensor of known shape.

    Attributes
    ----------
    type : str
        ONNX's name of the element type, in lower case: ``"float"``, ``"int4"``.
    shape : tuple of int
    """

    type: str
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Size in bytes; elements of less than a byte are packed.

        Raises
        ------
        KeyError
            If the elements have no fixed size, as strings.
        """
        return -(-self.elements * _BITS[self.type] // 8)

    @property
    def precision(self) -> str:
        """Name of the element type with its width: ``"float32"``."""
        return _PRECISIONS.get(self.type, self.type)


def has_size(element_type: str) -> bool:
    """Whether elements of this type have a fixed size."""
    return element_type in _BITS


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation with the types of what it reads and writes.

    Attributes
    ----------
    kind : str
        The operator; of another domain than ONNX's own, ``"com.microsoft.Attention"``.
    inputs, outputs : tuple of (Tensor or None)
        ``None`` where an optional one is left out.
    attributes : mapping from str to value
        Those that the file gives; a tensor as such.
    """

    kind: str
    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor | None, ...]
    attributes: Mapping[str, Any]

    def input(self, i: int) -> Tensor:
        """Return a required input."""
        tensor = self.inputs[i]
        if tensor is None:
            raise ValueError(f"no input {i}")
        return tensor

    def has(self, i: int) -> bool:
        """Whether an optional input is given."""
        return i < len(self.inputs) and self.inputs[i] is not None

    @property
    def out(self) -> Tensor:
        """The first output that is given."""
        return next(tensor for tensor in self.outputs if tensor is not None)


class Cost(NamedTuple):
    """What an operation costs.

    Attributes
    ----------
    flops : int
    read, written : int or None
        Bytes; ``None`` means all inputs and all outputs.
    """

    flops: int
    read: int | None = None
    written: int | None = None


CostFunction = Callable[[Operation], Cost]


def cost(operation: Operation) -> tuple[int, int, int]:
    """Return the operations that it takes, and the bytes that it reads and writes.

    An operator without a row counts as elementwise; :func:`known` tells.

    Raises
    ------
    ArithmeticError, AttributeError, LookupError, TypeError, ValueError
        If its shapes or attributes do not fit the operator.
    """
    flops, read, written = OPERATORS.get(operation.kind, _elementwise(1))(operation)
    if read is None:
        read = sum(tensor.bytes for tensor in operation.inputs if tensor is not None)
    if written is None:
        written = sum(tensor.bytes for tensor in operation.outputs if tensor is not None)
    return flops, read, written


def known(kind: str) -> bool:
    """Whether an operator has a row in the table."""
    return kind in OPERATORS


def multiply_adds(work: Work) -> int:
    """Count the multiply-adds of convolutions and matrix products, as publications count them."""
    contraction = np.array([kind in _CONTRACTIONS for kind in work.kinds], dtype=bool)
    flops: list[int] = work.flops[contraction].tolist()
    return sum(flops) // 2


def _elementwise(per_element: int) -> CostFunction:
    """Cost a fixed number of operations per element of the largest output."""
    return lambda op: Cost(per_element * _largest(op.outputs))


def _per_input(per_element: int) -> CostFunction:
    """Cost a fixed number of operations per element of the first input, as reductions do."""
    return lambda op: Cost(per_element * op.input(0).elements)


def _largest(tensors: tuple[Tensor | None, ...]) -> int:
    return max((tensor.elements for tensor in tensors if tensor is not None), default=0)


def _variadic(op: Operation) -> Cost:
    return Cost((len(op.inputs) - 1) * op.out.elements)


def _mean(op: Operation) -> Cost:
    return Cost(len(op.inputs) * op.out.elements)


def _moves(op: Operation) -> Cost:
    return Cost(0)


def _reshapes(op: Operation) -> Cost:
    return Cost(0, 0, 0)


def _picks(op: Operation) -> Cost:
    """Read of the first input only what becomes output, and all that tells where it is."""
    where = sum(tensor.bytes for tensor in op.inputs[1:] if tensor is not None)
    return Cost(0, min(op.out.bytes, op.input(0).bytes) + where)


def _dropout(op: Operation) -> Cost:
    # Without a mask, at inference, it hands its input through.
    return _reshapes(op) if not any(op.outputs[1:]) else _moves(op)


def _convolution(data: int, weight: int) -> CostFunction:
    def cost(op: Operation) -> Cost:
        _, channels, *_ = op.input(data).shape
        _, per_group, *kernel = op.input(weight).shape
        if channels != per_group * op.attributes.get("group", 1):
            raise ValueError("channels and groups differ")
        return Cost(2 * op.out.elements * per_group * math.prod(kernel))

    return cost


def _transposed_convolution(op: Operation) -> Cost:
    channels, per_group, *kernel = op.input(1).shape
    if channels != op.input(0).shape[1]:
        raise ValueError("channels differ")
    return Cost(2 * op.input(0).elements * per_group * math.prod(kernel))


def _gemm(op: Operation) -> Cost:
    rows, columns = op.input(0).shape
    return Cost(2 * op.out.elements * (rows if op.attributes.get("transA", 0) else columns))


def _matmul(first: int) -> CostFunction:
    """Contract the last axis of the input ``first``, or the one before it where ``transA`` is."""

    def cost(op: Operation) -> Cost:
        shape = op.input(first).shape
        axis = -2 if op.attributes.get("transA", 0) and len(shape) > 1 else -1
        return Cost(2 * op.out.elements * shape[axis])

    return cost


def _matmul_quantised_weight(op: Operation) -> Cost:
    return Cost(2 * op.out.elements * int(op.attributes["K"]))


def _einsum(op: Operation) -> Cost:
    """Count the product over all indices; of more than two operands, in one nest of loops."""
    equation = op.attributes["equation"].decode().replace(" ", "")
    left = equation.partition("->")[0]
    sizes: dict[str, int] = {}
    for term, i in zip(left.split(","), range(len(op.inputs)), strict=True):
        shape = op.input(i).shape
        labels = term.replace("...", ".")
        spread = len(shape) - len(labels) + 1
        at = 0
        for label in labels:
            if label == ".":
                for k in range(spread):  # counted from the right, as broadcasting does
                    axis = f".{spread - k}"
                    sizes[axis] = max(sizes.get(axis, 1), shape[at + k])
                at += spread
            else:
                sizes[label] = max(sizes.get(label, 1), shape[at])
                at += 1
        if at != len(shape):
            raise ValueError("the equation has another number of axes")
    contracted = op.out.elements < math.prod(sizes.values())
    factors = len(op.inputs) - 1
    if not contracted:
        return Cost(factors * op.out.elements)
    return Cost((factors + 1) * math.prod(sizes.values()))


def _recurrent(rest: int) -> CostFunction:
    """Cost the products with both weight matrices and ``rest`` operations per hidden element."""

    def cost(op: Operation) -> Cost:
        first, second, _ = op.input(0).shape
        weights, recurrence = op.input(1), op.input(2)
        directions, _, hidden = recurrence.shape
        matrices = weights.elements + recurrence.elements
        return Cost(first * second * (2 * matrices + rest * directions * hidden))

    return cost


def _attention(batch: int, queries: int, keys: int, width: int, heads: int, masked: bool) -> int:
    """Cost two products over all pairs of a query and a key, scaling, softmax and mask."""
    pairs = batch * queries * keys
    return 2 * pairs * width + pairs * heads * (7 if masked else 6)


def _standard_attention(op: Operation) -> Cost:
    """Cost ``Attention`` of ONNX; a causal mask does not halve it."""
    query, key, value = (op.input(i) for i in range(3))
    if len(query.shape) == 4:
        batch, heads, queries, head_width = query.shape
        key_length, value_width = key.shape[2], value.shape[3]
    else:
        batch, queries, hidden = query.shape
        heads = op.attributes["q_num_heads"]
        head_width, key_length = hidden // heads, key.shape[1]
        value_width = value.shape[2] // op.attributes["kv_num_heads"]
    if op.has(4):
        key_length += op.input(4).shape[2]
    width = heads * (head_width + value_width)
    masked = op.has(3) or bool(op.attributes.get("is_causal", 0))
    return Cost(_attention(batch, queries, key_length, width, heads, masked))


def _multi_head_attention(op: Operation) -> Cost:
    """Cost ``MultiHeadAttention`` of com.microsoft with query, key and value apart."""
    batch, queries, hidden = op.input(0).shape
    key, value = op.input(1), op.input(2)
    past = op.input(6).shape[2] if op.has(6) else 0
    keys = key.shape[-2] + past
    width = hidden + (value.shape[2] if len(value.shape) == 3 else math.prod(value.shape[1::2]))
    masked = op.has(4) or op.has(5)
    return Cost(_attention(batch, queries, keys, width, op.attributes["num_heads"], masked))


def _grouped_query_attention(op: Operation) -> Cost:
    """Cost ``GroupQueryAttention`` of com.microsoft with query, key and value apart."""
    batch, queries, hidden = op.input(0).shape
    # The buffer of past keys has room for the new ones, or is followed by them.
    past = op.input(3).shape[2] if op.has(3) else 0
    keys = past + op.input(1).shape[1]
    heads = op.attributes["num_heads"]
    return Cost(_attention(batch, queries, keys, 2 * hidden, heads, masked=True))


def _packed_attention(op: Operation) -> Cost:
    """Cost ``Attention`` of com.microsoft, which computes query, key and value itself."""
    batch, queries, _ = op.input(0).shape
    inner, outer = op.input(1).shape
    projections = 2 * batch * queries * inner * outer
    past = op.input(4).shape[3] if op.has(4) else 0
    width = outer // 3 + op.out.shape[-1]
    heads = op.attributes["num_heads"]
    masked = op.has(3) or bool(op.attributes.get("unidirectional", 0))
    return Cost(projections + _attention(batch, queries, queries + past, width, heads, masked))


def _pool(op: Operation) -> Cost:
    return Cost(op.out.elements * math.prod(op.attributes["kernel_shape"]))


def _batch_normalization(op: Operation) -> Cost:
    training = op.attributes.get("training_mode", 0)
    return Cost((_NORMALIZATION if training else 2) * op.input(0).elements)


def _local_response(op: Operation) -> Cost:
    # Per element a square, a sum over the window, a multiply-add, a power and a division.
    return Cost(op.input(0).elements * (op.attributes["size"] + 4))


def _resize(op: Operation) -> Cost:
    """Multiply-add the neighbours: 2 or 4 along every axis that changes, or copy the nearest."""
    mode = op.attributes.get("mode", b"nearest")
    taps = {b"nearest": 0, b"linear": 2, b"bilinear": 2, b"cubic": 4}[mode]
    shapes = zip(op.input(0).shape, op.out.shape, strict=True)
    axes = sum(before != after for before, after in shapes)
    return Cost(2 * op.out.elements * taps**axes if taps and axes else 0)


#: Mean, deviations, their squares, variance, and three operations to divide, scale and shift.
_NORMALIZATION = 7
#: Squares, their mean, and two operations to divide and scale.
_RMS_NORMALIZATION = 4
#: Maximum, difference, exponential, sum, quotient.
_SOFTMAX = 5

_CONVOLUTIONS: dict[str, CostFunction] = {
    "Conv": _convolution(0, 1),
    "ConvInteger": _convolution(0, 1),
    "ConvTranspose": _transposed_convolution,
    "DeformConv": _convolution(0, 1),
    "QLinearConv": _convolution(0, 3),
    "com.microsoft.FusedConv": _convolution(0, 1),
}

_PRODUCTS: dict[str, CostFunction] = {
    "Gemm": _gemm,
    "MatMul": _matmul(0),
    "MatMulInteger": _matmul(0),
    "QLinearMatMul": _matmul(0),
    "com.microsoft.FusedGemm": _gemm,
    "com.microsoft.FusedMatMul": _matmul(0),
    "com.microsoft.MatMulNBits": _matmul_quantised_weight,
}

#: Their operations are multiply-adds and nothing else.
_CONTRACTIONS = frozenset(_CONVOLUTIONS | _PRODUCTS)


def _rows(names: str, function: CostFunction) -> dict[str, CostFunction]:
    return dict.fromkeys(names.split(), function)


#: Operators and their cost functions.
OPERATORS: Mapping[str, CostFunction] = {
    **_CONVOLUTIONS,
    **_PRODUCTS,
    "Einsum": _einsum,
    # Per hidden element and step, with biases, sums of both products, functions and products.
    "LSTM": _recurrent(17),
    "GRU": _recurrent(14),
    "RNN": _recurrent(3),
    "Attention": _standard_attention,
    "com.microsoft.Attention": _packed_attention,
    "com.microsoft.MultiHeadAttention": _multi_head_attention,
    "com.microsoft.GroupQueryAttention": _grouped_query_attention,
    **_rows("MaxPool AveragePool LpPool", _pool),
    **_rows("GlobalAveragePool GlobalMaxPool", _per_input(1)),
    "GlobalLpPool": _per_input(2),
    "BatchNormalization": _batch_normalization,
    **_rows(
        "LayerNormalization InstanceNormalization GroupNormalization",
        _per_input(_NORMALIZATION),
    ),
    "MeanVarianceNormalization": _per_input(5),
    **_rows("RMSNormalization SimplifiedLayerNormalization", _per_input(_RMS_NORMALIZATION)),
    "com.microsoft.SkipLayerNormalization": _per_input(_NORMALIZATION + 1),
    "com.microsoft.SkipSimplifiedLayerNormalization": _per_input(_RMS_NORMALIZATION + 1),
    "LpNormalization": _per_input(3),
    "LRN": _local_response,
    **_rows("Softmax LogSoftmax", _per_input(_SOFTMAX)),
    **_rows("Hardmax ArgMax ArgMin CumSum CumProd TopK", _per_input(1)),
    **_rows("ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd", _per_input(1)),
    **_rows("ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum", _per_input(2)),
    "ReduceLogSumExp": _per_input(4),
    **_rows("Sum Max Min", _variadic),
    "Mean": _mean,
    **_rows(
        "Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr "
        "BitwiseXor Ceil Celu Clip Cos Cosh Div Elu Equal Erf Exp Floor Gelu Greater "
        "GreaterOrEqual HardSigmoid HardSwish IsInf IsNaN LeakyRelu Less LessOrEqual Log Mish Mod "
        "Mul Neg Not Or PRelu Pow Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh "
        "Softplus Softsign Sqrt Sub Swish Tan Tanh ThresholdedRelu Where Xor Bernoulli "
        "RandomNormal RandomNormalLike RandomUniform RandomUniformLike "
        "com.microsoft.Gelu com.microsoft.FastGelu com.microsoft.QuickGelu",
        _elementwise(1),
    ),
    **_rows("DequantizeLinear QuantizeLinear com.microsoft.BiasGelu", _elementwise(2)),
    "DynamicQuantizeLinear": _elementwise(4),
    # Two multiply-adds, one of which rotates by the sine.
    **_rows("RotaryEmbedding com.microsoft.RotaryEmbedding", _per_input(3)),
    **_rows("Resize Upsample", _resize),
    **_rows(
        "BitCast Cast CastLike CenterCropPad Compress Concat ConstantOfShape DepthToSpace Expand "
        "EyeLike MaxUnpool NonZero OneHot Pad Range ReverseSequence Scatter ScatterElements "
        "ScatterND Shape Size SpaceToDepth Split TensorScatter Tile Transpose Trilu",
        _moves,
    ),
    **_rows("Gather GatherElements GatherND Slice", _picks),
    **_rows("Constant Flatten Identity Reshape Squeeze Unsqueeze", _reshapes),
    "Dropout": _dropout,
}
