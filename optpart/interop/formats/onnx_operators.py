"""Work and traffic of one ONNX operation: a table from operator to cost function.

To add an operator, add a row to :data:`OPERATORS`. :mod:`~optpart.interop.formats.operator_cost`
defines what counts as work.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from optpart.interop.formats.operator_cost import (
    GRU,
    LOG_SUM_EXP,
    LSTM,
    MULTIPLY_ADD,
    NORM,
    NORMALIZATION,
    RMS_NORMALIZATION,
    RNN,
    SOFTMAX,
    STANDARDIZATION,
    STORED_NORMALIZATION,
    UNIT_NORM,
    Cost,
    CostOf,
    Tensor,
    attention,
    contraction,
    cost_by,
    einsum,
    elementwise,
    moves,
    per_input,
    picks,
    recurrent,
    reshapes,
    rows,
)
from optpart.problem.workload import Work


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
        """Return whether an optional input is given."""
        return i < len(self.inputs) and self.inputs[i] is not None

    @property
    def out(self) -> Tensor:
        """The first output that is given."""
        return next(tensor for tensor in self.outputs if tensor is not None)


CostFunction = CostOf[Operation]


def cost(operation: Operation) -> tuple[int, int, int]:
    """Return the operations that it takes, and the bytes that it reads and writes.

    An operator without a row counts as elementwise; :func:`known` tells.

    Raises
    ------
    ArithmeticError, AttributeError, LookupError, TypeError, ValueError
        If its shapes or attributes do not fit the operator.
    """
    return cost_by(OPERATORS, operation.kind, operation)


def known(kind: str) -> bool:
    """Return whether an operator has a row in the table."""
    return kind in OPERATORS


def multiply_adds(work: Work) -> int:
    """Count the multiply-adds of convolutions and matrix products, as publications count them."""
    contracts = np.array([kind in _CONTRACTIONS for kind in work.kinds], dtype=bool)
    flops: list[int] = work.flops[contracts].tolist()
    return sum(flops) // MULTIPLY_ADD


def _variadic(op: Operation) -> Cost:
    return Cost((len(op.inputs) - 1) * op.out.elements)


def _mean(op: Operation) -> Cost:
    return Cost(len(op.inputs) * op.out.elements)


def _picks(op: Operation) -> Cost:
    """Read of the first input only what becomes output, and all that tells where it is."""
    where = sum(tensor.bytes for tensor in op.inputs[1:] if tensor is not None)
    return picks(op.out.bytes, op.input(0).bytes, where)


def _dropout(op: Operation) -> Cost:
    # Without a mask, at inference, it hands its input through.
    return reshapes(op) if not any(op.outputs[1:]) else moves(op)


def _convolution(data: int, weight: int) -> CostFunction:
    def cost(op: Operation) -> Cost:
        _, channels, *_ = op.input(data).shape
        _, per_group, *kernel = op.input(weight).shape
        if channels != per_group * op.attributes.get("group", 1):
            raise ValueError("channels and groups differ")
        return Cost(contraction(op.out.elements, per_group * math.prod(kernel)))

    return cost


def _transposed_convolution(op: Operation) -> Cost:
    channels, per_group, *kernel = op.input(1).shape
    if channels != op.input(0).shape[1]:
        raise ValueError("channels differ")
    return Cost(contraction(op.input(0).elements, per_group * math.prod(kernel)))


def _gemm(op: Operation) -> Cost:
    height, width = op.input(0).shape
    summands = height if op.attributes.get("transA", 0) else width
    return Cost(contraction(op.out.elements, summands))


def _matmul(first: int) -> CostFunction:
    """Contract the last axis of the input ``first``, or the one before it where ``transA`` is."""

    def cost(op: Operation) -> Cost:
        shape = op.input(first).shape
        axis = -2 if op.attributes.get("transA", 0) and len(shape) > 1 else -1
        return Cost(contraction(op.out.elements, shape[axis]))

    return cost


def _matmul_quantised_weight(op: Operation) -> Cost:
    return Cost(contraction(op.out.elements, int(op.attributes["K"])))


def _einsum(op: Operation) -> Cost:
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
    products = math.prod(sizes.values())
    if op.out.elements < products:
        return Cost(einsum(len(op.inputs), products, summed=True))
    return Cost(einsum(len(op.inputs), op.out.elements, summed=False))


def _recurrent(rest: int) -> CostFunction:
    def cost(op: Operation) -> Cost:
        first, second, _ = op.input(0).shape
        weights, recurrence = op.input(1), op.input(2)
        directions, _, hidden = recurrence.shape
        matrices = weights.elements + recurrence.elements
        return Cost(recurrent(first * second, matrices, directions * hidden, rest))

    return cost


def _attention(batch: int, queries: int, keys: int, width: int, heads: int, masked: bool) -> int:
    pairs = batch * queries * keys
    return attention(pairs * width, pairs * heads, masked=masked)


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
    projections = contraction(batch * queries * outer, inner)
    past = op.input(4).shape[3] if op.has(4) else 0
    width = outer // 3 + op.out.shape[-1]
    heads = op.attributes["num_heads"]
    masked = op.has(3) or bool(op.attributes.get("unidirectional", 0))
    return Cost(projections + _attention(batch, queries, queries + past, width, heads, masked))


def _pool(op: Operation) -> Cost:
    return Cost(op.out.elements * math.prod(op.attributes["kernel_shape"]))


def _batch_normalization(op: Operation) -> Cost:
    training = op.attributes.get("training_mode", 0)
    return Cost((NORMALIZATION if training else STORED_NORMALIZATION) * op.input(0).elements)


def _local_response(op: Operation) -> Cost:
    # Per element a square, a sum over the window, a multiply-add, a power and a division.
    return Cost(op.input(0).elements * (op.attributes["size"] + 4))


def _resize(op: Operation) -> Cost:
    """Multiply-add the neighbours: 2 or 4 along every axis that changes, or copy the nearest."""
    mode = op.attributes.get("mode", b"nearest")
    taps = {b"nearest": 0, b"linear": 2, b"bilinear": 2, b"cubic": 4}[mode]
    shapes = zip(op.input(0).shape, op.out.shape, strict=True)
    axes = sum(before != after for before, after in shapes)
    return Cost(contraction(op.out.elements, taps**axes) if taps and axes else 0)


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


#: Operators and their cost functions.
OPERATORS: Mapping[str, CostFunction] = {
    **_CONVOLUTIONS,
    **_PRODUCTS,
    "Einsum": _einsum,
    "LSTM": _recurrent(LSTM),
    "GRU": _recurrent(GRU),
    "RNN": _recurrent(RNN),
    "Attention": _standard_attention,
    "com.microsoft.Attention": _packed_attention,
    "com.microsoft.MultiHeadAttention": _multi_head_attention,
    "com.microsoft.GroupQueryAttention": _grouped_query_attention,
    **rows("MaxPool AveragePool LpPool", _pool),
    **rows("GlobalAveragePool GlobalMaxPool", per_input(1)),
    "GlobalLpPool": per_input(NORM),
    "BatchNormalization": _batch_normalization,
    **rows(
        "LayerNormalization InstanceNormalization GroupNormalization",
        per_input(NORMALIZATION),
    ),
    "MeanVarianceNormalization": per_input(STANDARDIZATION),
    **rows("RMSNormalization SimplifiedLayerNormalization", per_input(RMS_NORMALIZATION)),
    "com.microsoft.SkipLayerNormalization": per_input(NORMALIZATION + 1),
    "com.microsoft.SkipSimplifiedLayerNormalization": per_input(RMS_NORMALIZATION + 1),
    "LpNormalization": per_input(UNIT_NORM),
    "LRN": _local_response,
    **rows("Softmax LogSoftmax", per_input(SOFTMAX)),
    **rows("Hardmax ArgMax ArgMin CumSum CumProd TopK", per_input(1)),
    **rows("ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd", per_input(1)),
    **rows("ReduceL1 ReduceL2 ReduceSumSquare", per_input(NORM)),
    "ReduceLogSum": per_input(2),  # as if it took the logarithm of every element
    "ReduceLogSumExp": per_input(LOG_SUM_EXP),
    **rows("Sum Max Min", _variadic),
    "Mean": _mean,
    **rows(
        "Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr "
        "BitwiseXor Ceil Celu Clip Cos Cosh Div Elu Equal Erf Exp Floor Gelu Greater "
        "GreaterOrEqual HardSigmoid HardSwish IsInf IsNaN LeakyRelu Less LessOrEqual Log Mish Mod "
        "Mul Neg Not Or PRelu Pow Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh "
        "Softplus Softsign Sqrt Sub Swish Tan Tanh ThresholdedRelu Where Xor Bernoulli "
        "RandomNormal RandomNormalLike RandomUniform RandomUniformLike "
        "com.microsoft.Gelu com.microsoft.FastGelu com.microsoft.QuickGelu",
        elementwise(1),
    ),
    **rows("DequantizeLinear QuantizeLinear com.microsoft.BiasGelu", elementwise(2)),
    "DynamicQuantizeLinear": elementwise(4),
    # Two multiply-adds, one of which rotates by the sine.
    **rows("RotaryEmbedding com.microsoft.RotaryEmbedding", per_input(3)),
    **rows("Resize Upsample", _resize),
    **rows(
        "BitCast Cast CastLike CenterCropPad Compress Concat ConstantOfShape DepthToSpace Expand "
        "EyeLike MaxUnpool NonZero OneHot Pad Range ReverseSequence Scatter ScatterElements "
        "ScatterND Shape Size SpaceToDepth Split TensorScatter Tile Transpose Trilu",
        moves,
    ),
    **rows("Gather GatherElements GatherND Slice", _picks),
    **rows("Constant Flatten Identity Reshape Squeeze Unsqueeze", reshapes),
    "Dropout": _dropout,
}
