"""Work of operations: conventions that all readers of models share.

Each reader knows how its format names operators, arguments and shapes. This module defines what
they cost, so that a model costs the same whichever format it is read from.

- A multiply-add counts as two operations. The bias of a contraction (a convolution, a matrix
  product) is the first summand of its sums and adds nothing, so that its operations are exactly
  twice its multiply-adds. Padding counts like data.
- A function of one number (``Relu``, ``Exp``, ``Erf``) counts as one operation, and so does each
  element that a sum, a maximum or a pool runs over.
- Work per row or channel (the root of a variance, the logarithm of a sum) does not count beside
  the work per element.
- An operation reads each input once, weights included, and writes each output once. It need not
  read all of what it picks from. A mere change of shape moves nothing.
- An unknown operator counts as one operation per element of its largest output.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

#: Operations of a multiply-add.
MULTIPLY_ADD = 2

#: Operations per element of a vector norm: its magnitude or square, and the sum.
NORM = 2
#: Operations per element of a division by the norm.
UNIT_NORM = NORM + 1

#: Operations per element of a variance: the mean, the deviation, its square, and their sum.
VARIANCE = 4
#: Operations per element of a division of the deviations by their standard deviation.
STANDARDIZATION = VARIANCE + 1
#: Operations per element of a normalisation by statistics of the input: it scales and shifts, too.
NORMALIZATION = STANDARDIZATION + 2
#: Operations per element of a normalisation by stored statistics.
STORED_NORMALIZATION = MULTIPLY_ADD
#: Operations per element of a root-mean-square normalisation: square, sum, division and scale.
RMS_NORMALIZATION = 4

#: Operations per element of a sum of exponentials: maximum, difference, exponential and sum.
LOG_SUM_EXP = 4
#: Operations per element of a softmax, or its logarithm: it takes the quotient, too.
SOFTMAX = LOG_SUM_EXP + 1

#: Operations per score (a query, a key and a head) besides the products: scaling and softmax.
SCORE = SOFTMAX + 1
#: Operations per score that a mask adds.
MASK = 1

_GATE = 3  # adds up both matrix products and a bias, and applies its function
#: Operations per hidden element and step of a long short-term memory besides the matrix products:
#: of four gates, and three elementwise products, a sum and a function.
LSTM = 4 * _GATE + 5
#: Those of a gated recurrent unit: of three gates, and three products, a difference and a sum.
GRU = 3 * _GATE + 5
#: Those of a plain recurrent layer, which is one gate.
RNN = _GATE


#: Bits of an element, by the names that PyTorch and ONNX (in lower case) have for its type.
_BITS = {
    "float": 32, "float16": 16, "float32": 32, "float64": 64, "bfloat16": 16, "double": 64,
    "complex32": 32, "complex64": 64, "complex128": 128, "bool": 8,
    "int8": 8, "int16": 16, "int32": 32, "int64": 64,
    "uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64,
    "int4": 4, "uint4": 4, "int2": 2, "uint2": 2, "float4e2m1": 4,
    "float8e4m3fn": 8, "float8e4m3fnuz": 8, "float8e5m2": 8, "float8e5m2fnuz": 8,
    "float8e8m0": 8,
    "float8_e4m3fn": 8, "float8_e4m3fnuz": 8, "float8_e5m2": 8, "float8_e5m2fnuz": 8,
}  # fmt: skip

_PRECISIONS = {"float": "float32", "double": "float64"}


@dataclass(frozen=True, slots=True)
class Tensor:
    """A dense tensor of known shape.

    Attributes
    ----------
    type : str
        The element type as its format calls it: ``"float"`` (ONNX), ``"float32"``, ``"int4"``.
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
    """Return whether elements of this type have a fixed size."""
    return element_type in _BITS


class Operation(Protocol):
    """An operation as a reader knows it; ``None`` where an optional tensor is left out."""

    @property
    def inputs(self) -> Sequence[Tensor | None]:
        """Tensors that it reads."""

    @property
    def outputs(self) -> Sequence[Tensor | None]:
        """Tensors that it writes."""


class Cost(NamedTuple):
    """The cost of an operation.

    Attributes
    ----------
    flops : int
    read, written : int or None
        Bytes; ``None`` means all inputs and all outputs.
    """

    flops: int
    read: int | None = None
    written: int | None = None


_Op = TypeVar("_Op", bound=Operation)
_Function = TypeVar("_Function")
CostOf = Callable[[_Op], Cost]


def cost_by(table: Mapping[str, CostOf[_Op]], row: str, operation: _Op) -> tuple[int, int, int]:
    """Return the operations that one operation takes, and the bytes that it reads and writes.

    Parameters
    ----------
    table : mapping from str to cost function
    row : str
        An operator; without a row in the table, it counts as elementwise.
    operation : Operation

    Raises
    ------
    ArithmeticError, AttributeError, LookupError, TypeError, ValueError
        If its shapes or arguments do not fit the operator.
    """
    flops, read, written = table.get(row, elementwise(1))(operation)
    if read is None:
        read = _bytes(operation.inputs)
    if written is None:
        written = _bytes(operation.outputs)
    return flops, read, written


def rows(names: str, function: _Function) -> dict[str, _Function]:
    """Return one row for each of some operators, separated by spaces, that cost alike."""
    return dict.fromkeys(names.split(), function)


def elementwise(per_element: int) -> CostOf[Operation]:
    """Cost a fixed number of operations per element of the largest output."""
    return lambda op: Cost(
        per_element * max((t.elements for t in op.outputs if t is not None), default=0)
    )


def per_input(per_element: int) -> CostOf[Operation]:
    """Cost a fixed number of operations per element of the first input, as reductions do."""

    def cost(op: Operation) -> Cost:
        first = op.inputs[0]
        if first is None:
            raise ValueError("no input 0")
        return Cost(per_element * first.elements)

    return cost


def moves(op: Operation) -> Cost:
    """Cost a copy: it reads its inputs, writes its outputs, and computes nothing."""
    return Cost(0)


def reshapes(op: Operation) -> Cost:
    """Cost another view of the same memory: nothing."""
    return Cost(0, 0, 0)


def picks(picked: int, source: int, places: int) -> Cost:
    """Cost reading ``picked`` of ``source`` bytes, and all ``places`` bytes that locate them."""
    return Cost(0, min(picked, source) + places)


def contraction(sums: int, summands: int) -> int:
    """Return the operations of a number of sums of products; a bias adds nothing."""
    return MULTIPLY_ADD * sums * summands


def einsum(operands: int, products: int, *, summed: bool) -> int:
    """Return the operations of an Einstein sum, of all operands in one nest of loops.

    Parameters
    ----------
    operands : int
    products : int
        Values of all indices together; each is a product of all operands.
    summed : bool
        Whether the products are summed over an index.
    """
    return (operands if summed else operands - 1) * products


def recurrent(steps: int, matrices: int, hidden: int, rest: int) -> int:
    """Return the operations of a recurrent layer.

    Parameters
    ----------
    steps : int
        Steps of all sequences.
    matrices : int
        Elements of the weight matrices.
    hidden : int
        Elements of the hidden state, of all directions and layers.
    rest : {LSTM, GRU, RNN}
    """
    return steps * (contraction(1, matrices) + rest * hidden)


def attention(multiply_adds: int, scores: int, *, masked: bool) -> int:
    """Return the operations of attention: of both products, the softmax, and a mask if any.

    Parameters
    ----------
    multiply_adds : int
        Of queries with keys, and of the softmax with values.
    scores : int
        Pairs of a query and a key, of all heads. A caller whose kernels skip what a causal mask
        hides counts only the pairs that the mask admits.
    masked : bool
        Whether the mask is added to the scores.
    """
    return MULTIPLY_ADD * multiply_adds + scores * (SCORE + (MASK if masked else 0))


def _bytes(tensors: Sequence[Tensor | None]) -> int:
    return sum(tensor.bytes for tensor in tensors if tensor is not None)
