"""Base models of [H] §2.3: operations and the parameters that they read, from layer shapes.

A network of layers is taken apart into what TensorFlow executes: a product, its bias or batch
normalisation, and its ReLU are one op each. Operations and parameters count for one sample:

- a convolution or matrix product has two operations per multiply-add;
- a pooling has one per element of its window and result;
- a batch normalisation has two per element, any other one per element of its result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from optpart.applications.training.layers import Layer, Network

#: Number of classes of ImageNet.
CLASSES = 1000

#: What the name of a product's op ends with, by kind of kernel.
_PRODUCTS = {"Conv": "/Conv2D", "Gemm": "/Conv2D", "DepthwiseConv2dNative": ""}


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


def base_model_of(net: Network, learnt: tuple[str, ...] = ("beta",)) -> BaseModel:
    """Return the forward pass of a network, op by op.

    Parameters
    ----------
    learnt : tuple of str
        What a batch normalisation learns for each channel: its offset, or scale and offset
        (``gamma``, ``beta``).
    """
    ops = [Op("input", (), (), 0, 0)]
    result: list[str] = []  # by layer, the op that returns it
    for layer in net.layers:
        inputs = tuple(result[read] for read in layer.reads) or (ops[0].name,)
        for op in _ops_of(net, layer, learnt):
            ops.append(op._replace(inputs=inputs))
            inputs = (op.name,)
        result.append(ops[-1].name)
    return BaseModel(net.name, tuple(ops))


def _ops_of(net: Network, layer: Layer, learnt: tuple[str, ...]) -> list[Op]:
    """Return the ops of a layer in their order, each of which reads the one before."""
    name, count, kernel = layer.name, layer.count, layer.kernels[0]
    biases, norm = (layer.weights.get(f"{name}/{what}", 0) for what in ("bias", "normalisation"))
    match kernel.kind:
        case "Concat":
            return [Op(name, (), (), count, 0)]
        case "SoftmaxCrossEntropyLoss":
            return [Op(name, (), (), sum(net.layers[read].count for read in layer.reads), 0)]
        case "Add":
            ops = [Op(f"{name}/add", (), (), kernel.flops, 0)]
        case kind if kind in _PRODUCTS:
            weights = Parameter(*next(iter(layer.weights.items())))
            suffix = "/MatMul" if kind == "Gemm" and not biases else _PRODUCTS[kind]
            ops = [Op(name + suffix, (), (weights,), kernel.flops, layer.multiply_adds)]
        case _:
            return [Op(name, (), (), kernel.flops, 0)]
    if biases:
        ops.append(Op(f"{name}/BiasAdd", (), (Parameter(f"{name}/biases", biases),), count, 0))
    if norm:  # two numbers for each channel
        parts = tuple(Parameter(f"{name}/{part}", norm // 2) for part in learnt)
        ops.append(Op(f"{name}/BatchNorm", (), parts, 2 * count, 0))
    if layer.needs_output:
        ops.append(Op(f"{name}/Relu", (), (), count, 0))
    return ops
