"""Work and traffic of one operation of PyTorch: a table from operator to cost function.

To add an operator, add a row to :data:`OPERATORS`. :mod:`~optpart.interop.formats.operator_cost`
defines what counts as work. What PyTorch makes a view of another tensor (``view``,
``permute``, ``slice``, ``expand``, …) moves nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
    STORED_NORMALIZATION,
    VARIANCE,
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


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation with the types of what it reads and writes.

    Attributes
    ----------
    kind : str
        The operator without its overload: ``"aten.convolution"``.
    tensors : mapping from str to tuple of Tensor
        Arguments that are tensors or lists of tensors, by name.
    values : mapping from str to value
        The other arguments: numbers, lists of them, texts.
    outputs : tuple of Tensor
    """

    kind: str
    tensors: Mapping[str, tuple[Tensor, ...]]
    values: Mapping[str, Any]
    outputs: tuple[Tensor, ...]

    def tensor(self, *names: str) -> Tensor:
        """Return the argument of the first of these names that there is."""
        for name in names:
            if self.tensors.get(name):
                return self.tensors[name][0]
        raise LookupError(f"no argument {names[0]}")

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """All tensors that are read."""
        return tuple(tensor for tensors in self.tensors.values() for tensor in tensors)

    @property
    def out(self) -> Tensor:
        """The first output."""
        return self.outputs[0]


CostFunction = CostOf[Operation]


def cost(operation: Operation) -> tuple[int, int, int]:
    """Return the operations that it takes, and the bytes that it reads and writes.

    An operator without a row counts as elementwise; :func:`known` tells.

    Raises
    ------
    ArithmeticError, AttributeError, LookupError, TypeError, ValueError
        If its shapes or arguments do not fit the operator.
    """
    return cost_by(OPERATORS, plain(operation.kind), operation)


def known(kind: str) -> bool:
    """Return whether an operator has a row in the table."""
    return plain(kind) in OPERATORS


def plain(kind: str) -> str:
    """Return the row of an operator: in place or not, ``aten.relu_`` is ``relu``."""
    namespace, _, name = kind.rpartition(".")
    return (name.rstrip("_") or name) if namespace in ("aten", "_operator") else kind


def in_place(kind: str) -> bool:
    """Return whether an operator changes its first argument."""
    return kind.startswith("aten.") and kind.endswith("_") and not kind.endswith("__")


def _picks(op: Operation) -> Cost:
    """Read of the largest input only what becomes output, and all that tells where it is."""
    whole = max((tensor.bytes for tensor in op.inputs), default=0)
    rest = sum(tensor.bytes for tensor in op.inputs) - whole
    return picks(op.out.bytes, whole, rest)


def _dropout(op: Operation) -> Cost:
    return Cost(2 * op.out.elements) if op.values.get("train", False) else reshapes(op)


def _convolution(op: Operation) -> Cost:
    if op.values.get("transposed", False):
        return _transposed_convolution(op)
    weight = op.tensor("weight").shape
    channels = op.tensor("input").shape[1 - len(weight)]
    if channels != weight[1] * op.values.get("groups", 1):
        raise ValueError("channels and groups differ")
    return Cost(contraction(op.out.elements, math.prod(weight[1:])))


def _transposed_convolution(op: Operation) -> Cost:
    source, weight = op.tensor("input"), op.tensor("weight").shape
    if source.shape[1 - len(weight)] != weight[0]:
        raise ValueError("channels differ")
    return Cost(contraction(source.elements, math.prod(weight[1:])))


def _product(*names: str) -> CostFunction:
    """Contract the last axis of an argument."""

    def cost(op: Operation) -> Cost:
        return Cost(contraction(op.out.elements, op.tensor(*names).shape[-1]))

    return cost


def _einsum(op: Operation) -> Cost:
    left, _, right = str(op.values["equation"]).replace(" ", "").partition("->")
    if "." in left:
        raise ValueError("an ellipsis")
    sizes: dict[str, int] = {}
    for term, tensor in zip(left.split(","), op.tensors["tensors"], strict=True):
        sizes |= dict(zip(term, tensor.shape, strict=True))
    products = math.prod(sizes.values())
    return Cost(einsum(len(op.tensors["tensors"]), products, summed=set(right) != set(sizes)))


def _attention(op: Operation) -> Cost:
    """Cost attention; a causal mask does not halve it."""
    query, key, value = (op.tensor(name) for name in ("query", "key", "value"))
    scores = math.prod(query.shape[:-1]) * key.shape[-2]
    masked = "attn_mask" in op.tensors or "attn_bias" in op.tensors
    masked = masked or bool(op.values.get("is_causal", False))
    width = query.shape[-1] + value.shape[-1]
    return Cost(attention(scores * width, scores, masked=masked))


def _recurrent(rest: int) -> CostFunction:
    def cost(op: Operation) -> Cost:
        steps = math.prod(op.tensor("input").shape[:-1])
        matrices = [tensor for tensor in op.tensors["params"] if len(tensor.shape) == 2]
        hidden = sum(tensor.shape[-1] for tensor in matrices[1::2])
        return Cost(recurrent(steps, sum(each.elements for each in matrices), hidden, rest))

    return cost


def _pool(axes: int) -> CostFunction:
    def cost(op: Operation) -> Cost:
        kernel = op.values["kernel_size"]
        kernel = [kernel] if isinstance(kernel, int) else kernel
        window = kernel[0] ** axes if len(kernel) == 1 else math.prod(kernel)
        return Cost(op.out.elements * window)

    return cost


def _batch_norm(op: Operation) -> Cost:
    training = op.values.get("training", False)
    return Cost((NORMALIZATION if training else STORED_NORMALIZATION) * op.inputs[0].elements)


#: Operators of the namespace ``aten`` and their cost functions.
OPERATORS: Mapping[str, CostFunction] = {
    **rows("convolution _convolution conv1d conv2d conv3d", _convolution),
    **rows("conv_transpose1d conv_transpose2d conv_transpose3d", _transposed_convolution),
    "linear": _product("input"),
    "addmm": _product("mat1"),
    "addmv": _product("mat"),
    "baddbmm": _product("batch1"),
    **rows("mm bmm matmul mv dot", _product("self")),
    "einsum": _einsum,
    **rows(
        "scaled_dot_product_attention _scaled_dot_product_flash_attention "
        "_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_efficient_attention "
        "_scaled_dot_product_cudnn_attention",
        _attention,
    ),
    "lstm": _recurrent(LSTM),
    "gru": _recurrent(GRU),
    **rows("rnn_tanh rnn_relu", _recurrent(RNN)),
    **rows("max_pool1d avg_pool1d", _pool(1)),
    **rows("max_pool2d max_pool2d_with_indices avg_pool2d", _pool(2)),
    **rows("max_pool3d max_pool3d_with_indices avg_pool3d", _pool(3)),
    **rows(
        "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d _adaptive_avg_pool2d "
        "_adaptive_avg_pool3d adaptive_max_pool2d",
        per_input(1),
    ),
    **rows("batch_norm cudnn_batch_norm native_batch_norm", _batch_norm),
    "_native_batch_norm_legit_no_training": per_input(STORED_NORMALIZATION),
    **rows(
        "layer_norm native_layer_norm group_norm native_group_norm instance_norm "
        "_native_batch_norm_legit _native_batch_norm_legit_functional",
        per_input(NORMALIZATION),
    ),
    **rows("rms_norm _fused_rms_norm", per_input(RMS_NORMALIZATION)),
    **rows("softmax _softmax log_softmax _log_softmax _safe_softmax", per_input(SOFTMAX)),
    **rows(
        "sum mean max min amax amin prod argmax argmin cumsum cumprod topk sort any all",
        per_input(1),
    ),
    **rows("norm linalg_vector_norm", per_input(NORM)),
    **rows("var std var_mean", per_input(VARIANCE)),
    "logsumexp": per_input(LOG_SUM_EXP),
    **rows(
        "abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_not bitwise_or "
        "bitwise_xor ceil celu clamp clamp_max clamp_min cos cosh div elu eq erf exp expm1 floor "
        "floor_divide fmod ge gelu gt hardsigmoid hardswish hardtanh isinf isnan le leaky_relu "
        "log log10 log1p log2 logical_and logical_not logical_or logical_xor lt masked_fill "
        "maximum minimum mish mul ne neg pow prelu reciprocal relu relu6 remainder round rsqrt "
        "rsub selu sigmoid sign silu sin sinh softplus sqrt square sub tan tanh threshold trunc "
        "where",
        elementwise(1),
    ),
    **rows("addcdiv addcmul lerp", elementwise(3)),
    **rows("upsample_nearest1d upsample_nearest2d upsample_nearest3d", moves),
    "upsample_linear1d": elementwise(2 * MULTIPLY_ADD),
    "upsample_bilinear2d": elementwise(4 * MULTIPLY_ADD),
    "upsample_bicubic2d": elementwise(16 * MULTIPLY_ADD),
    **rows(
        "_to_copy cat clone constant_pad_nd contiguous copy flip full_like index_put "
        "new_ones new_zeros ones_like pad pixel_shuffle pixel_unshuffle repeat "
        "repeat_interleave replication_pad2d reflection_pad2d roll scatter select_scatter "
        "slice_scatter stack to tril triu type_as zeros_like",
        moves,
    ),
    **rows("embedding gather index index_select", _picks),
    **rows(
        "_reshape_alias _unsafe_view alias as_strided chunk detach diagonal expand expand_as "
        "flatten getitem lift_fresh_copy movedim narrow numpy_T permute reshape select slice split "
        "split_with_sizes squeeze swapaxes t transpose unbind unflatten unfold unsqueeze view "
        "view_as",
        reshapes,
    ),
    **rows("dropout feature_dropout", _dropout),
}
