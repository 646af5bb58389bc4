"""Base models of [H] §2.3: operations and the parameters that they read, from layer shapes.

Operations and parameters count for one sample of the input and are computed from shapes alone:

- a convolution or matrix product has two operations per multiply-add;
- a pooling has one per element of its window and result;
- a batch normalisation has two per element, any other one per element of its result.

Convolutions with ``same`` padding map ``s`` to ``⌈s/stride⌉``, with ``valid`` padding to
``⌈(s − kernel + 1)/stride⌉``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Padding = Literal["same", "valid"]

#: The step after a convolution: a bias, or a batch normalisation with offset (and scale).
Norm = Literal["bias", "offset", "scale"]

#: Number of classes of ImageNet.
CLASSES = 1000


class Parameter(NamedTuple):
    """A persistent parameter that an operation reads: its name and number of elements."""

    name: str
    size: int


class Op(NamedTuple):
    """An operation of the forward pass; figures are for one sample."""

    name: str
    inputs: tuple[str, ...]  # operations whose results it reads
    parameters: tuple[Parameter, ...]
    operations: int
    multiply_adds: int  # of convolutions and matrix products; 0 for all others


@dataclass(frozen=True)
class BaseModel:
    """The forward pass of a model, in topological order."""

    name: str
    ops: tuple[Op, ...]

    @property
    def parameters(self) -> list[Parameter]:
        """All parameters, in the order of the operations that read them."""
        return [parameter for op in self.ops for parameter in op.parameters]

    @property
    def size(self) -> int:
        """Number of elements of all parameters."""
        return sum(parameter.size for parameter in self.parameters)

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds of the forward pass of one sample."""
        return sum(op.multiply_adds for op in self.ops)


class Tensor(NamedTuple):
    """The result of an operation for one sample."""

    name: str
    height: int
    width: int
    channels: int

    @property
    def elements(self) -> int:
        """Number of elements."""
        return self.height * self.width * self.channels


class Network:
    """A builder that adds layers one by one; each method returns the layer's result."""

    def __init__(self, name: str, norm: Norm = "bias") -> None:
        self.name = name
        self.norm: Norm = norm
        self._ops: list[Op] = []

    def build(self) -> BaseModel:
        """Return the model."""
        return BaseModel(self.name, tuple(self._ops))

    def op(
        self,
        name: str,
        inputs: Iterable[Tensor],
        shape: tuple[int, int, int],
        *,
        parameters: Sequence[Parameter] = (),
        multiply_adds: int = 0,
        operations: int | None = None,
    ) -> Tensor:
        """Add an operation; by default, it counts one per element of its result."""
        result = Tensor(name, *shape)
        count = result.elements if operations is None else operations
        names = tuple(tensor.name for tensor in inputs)
        self._ops.append(Op(name, names, tuple(parameters), count, multiply_adds))
        return result

    def input(self, height: int, width: int, channels: int) -> Tensor:
        """Add the input sample, which costs nothing to read."""
        return self.op("input", (), (height, width, channels), operations=0)

    def conv(
        self,
        name: str,
        given: Tensor,
        filters: int,
        kernel: int | tuple[int, int] = 1,
        stride: int = 1,
        padding: Padding = "same",
        *,
        norm: Norm | None = None,
        relu: bool = True,
    ) -> Tensor:
        """Add a convolution, the step after it (by default the network's ``norm``), and a ReLU."""
        height, width = (kernel, kernel) if isinstance(kernel, int) else kernel
        rows = _length(given.height, height, stride, padding)
        columns = _length(given.width, width, stride, padding)
        size = height * width * given.channels * filters
        shape = rows, columns, filters
        result = self._product(f"{name}/Conv2D", given, shape, f"{name}/weights", size)
        return self.normalised(name, result, norm or self.norm, relu=relu)

    def _product(
        self, name: str, given: Tensor, shape: tuple[int, int, int], weights: str, size: int
    ) -> Tensor:
        """Add products with weights, all of which every position reads."""
        products = shape[0] * shape[1] * size
        return self.op(
            name,
            [given],
            shape,
            parameters=[Parameter(weights, size)],
            multiply_adds=products,
            operations=2 * products,
        )

    def separable_conv(
        self, name: str, given: Tensor, filters: int, kernel: int, stride: int, multiplier: int
    ) -> Tensor:
        """Add a depthwise convolution with ``multiplier`` filters per channel, then a pointwise."""
        rows, columns = (_length(s, kernel, stride, "same") for s in (given.height, given.width))
        between, tensor = given.channels * multiplier, given
        for op, weights, channels, size in (
            ("depthwise", "depthwise_weights", between, kernel * kernel * between),
            ("Conv2D", "pointwise_weights", filters, between * filters),
        ):
            shape = rows, columns, channels
            tensor = self._product(f"{name}/{op}", tensor, shape, f"{name}/{weights}", size)
        return self.normalised(name, tensor, self.norm, relu=True)

    def normalised(self, name: str, given: Tensor, norm: Norm, *, relu: bool) -> Tensor:
        """Add a bias or a batch normalisation, and a ReLU."""
        shape, channels = given[1:], given.channels
        if norm == "bias":
            biases = Parameter(f"{name}/biases", channels)
            given = self.op(f"{name}/BiasAdd", [given], shape, parameters=[biases])
        else:
            parts = ("gamma", "beta") if norm == "scale" else ("beta",)
            learnt = [Parameter(f"{name}/{part}", channels) for part in parts]
            count = 2 * given.elements
            given = self.op(
                f"{name}/BatchNorm", [given], shape, parameters=learnt, operations=count
            )
        return self.op(f"{name}/Relu", [given], shape) if relu else given

    def dense(self, name: str, given: Tensor, units: int, *, relu: bool = True) -> Tensor:
        """Add a fully connected layer: a convolution whose window is its whole input."""
        window = given.height, given.width
        return self.conv(name, given, units, window, 1, "valid", norm="bias", relu=relu)

    def matmul(self, name: str, given: Tensor, units: int) -> Tensor:
        """Add a matrix product without a bias."""
        size = given.elements * units
        return self._product(f"{name}/MatMul", given, (1, 1, units), f"{name}/weights", size)

    def pool(
        self, name: str, given: Tensor, kernel: int, stride: int = 1, padding: Padding = "same"
    ) -> Tensor:
        """Add a pooling, by maximum or average, which cost the same."""
        rows, columns = (_length(s, kernel, stride, padding) for s in (given.height, given.width))
        shape = rows, columns, given.channels
        window = rows * columns * given.channels * kernel * kernel
        return self.op(name, [given], shape, operations=window)

    def average(self, name: str, given: Tensor) -> Tensor:
        """Add an average over all positions."""
        return self.op(name, [given], (1, 1, given.channels), operations=given.elements)

    def concat(self, name: str, parts: Sequence[Tensor]) -> Tensor:
        """Add a concatenation of channels."""
        shape = parts[0].height, parts[0].width, sum(part.channels for part in parts)
        return self.op(name, parts, shape)

    def add(self, name: str, parts: Sequence[Tensor], *, operations: int | None = None) -> Tensor:
        """Add a sum of tensors of equal shape."""
        count = (len(parts) - 1) * parts[0].elements if operations is None else operations
        return self.op(name, parts, parts[0][1:], operations=count)

    def loss(self, scores: Sequence[Tensor]) -> None:
        """Add the loss of one or more scores, the end of the model."""
        self.op("loss", scores, (1, 1, 1), operations=sum(tensor.elements for tensor in scores))


def _length(size: int, kernel: int, stride: int, padding: Padding) -> int:
    if padding == "valid":
        size = size - kernel + 1
    return -(-size // stride)
