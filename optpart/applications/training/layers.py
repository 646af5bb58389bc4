"""Networks layer by layer: shapes, multiply-adds, activations and weights of one sample.

A layer is a convolution, a product or another operation together with the bias, normalisation and
activation function that follow it; each normalisation is a kernel of its own, biases and activation
functions are computed in place by the kernel before them. All numbers are float32.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import islice

from optpart.applications.training.backward import (
    Forward,
    ForwardOperation,
    Tensor,
    batched,
    with_backward,
)
from optpart.applications.training.graph import Line, Parameter, TrainingGraph
from optpart.applications.training.lines import Kernel, lines, scaled, total
from optpart.interop.costs.efficiency import Efficiencies
from optpart.interop.devices.spec import Spec

#: Bytes of a number.
WIDTH = 4


@dataclass(frozen=True)
class Activation:
    """The output of a layer: its number (``None`` for an input of the network) and its shape."""

    layer: int | None
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        """Numbers of a sample."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Layer:
    """One layer; all figures are for one sample.

    Attributes
    ----------
    multiply_adds : int
        As publications count them: those of convolutions and matrix products.
    weights : mapping from str to int
        Trained numbers by name; a name that an earlier layer has is shared with it.
    saved : int
        Numbers that it keeps for its backward pass besides inputs and output.
    products : int
        Kernels' work of the backward pass, as a multiple of the forward pass: one for the gradient
        of what it reads and one for that of its weights, or two for a product of activations.
        By default 2 with weights, else 1.
    needs_reads, needs_output : bool
        Whether its backward pass reads what it read, and what it returned.
    reads : tuple of int
        Layers, distinct.
    count : int
        Numbers that it returns.
    """

    name: str
    kernels: Sequence[Kernel]
    multiply_adds: int = 0
    weights: Mapping[str, int] = field(default_factory=dict)
    saved: int = 0
    products: int = 0
    needs_reads: bool = True
    needs_output: bool = False
    reads: tuple[int, ...] = ()
    count: int = 0


class Network:
    """A network that grows layer by layer.

    Images have the shape (channels, height, width), sequences (length, width). ``source`` says
    where the structure is described.
    """

    def __init__(self, name: str, source: str = "") -> None:
        self.name = name
        self.source = source
        self.layers: list[Layer] = []
        #: Trained numbers by name.
        self.weights: dict[str, int] = {}
        #: Assumptions about what the structure leaves open, one sentence each.
        self.assumed: list[str] = []

    @property
    def parameters(self) -> int:
        """Trained numbers."""
        return sum(self.weights.values())

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds of the forward pass of one sample."""
        return sum(layer.multiply_adds for layer in self.layers)

    # --- layers ------------------------------------------------------------------------------

    def add(self, layer: Layer, inputs: Sequence[Activation], shape: tuple[int, ...]) -> Activation:
        """Add any layer, and return its output."""
        for key, count in layer.weights.items():
            assert self.weights.setdefault(key, count) == count, key
        products = layer.products or (2 if layer.weights else 1)
        reads = tuple(dict.fromkeys(x.layer for x in inputs if x.layer is not None))
        self.layers.append(replace(layer, products=products, reads=reads, count=math.prod(shape)))
        return Activation(len(self.layers) - 1, shape)

    def convolution(
        self,
        name: str,
        x: Activation,
        channels: int,
        kernel: int | tuple[int, int],
        *,
        stride: int = 1,
        padding: int | tuple[int, int] | None = None,
        groups: int = 1,
        bias: bool = False,
        normalised: bool = True,
        activated: bool = True,
        weights: str | None = None,
    ) -> Activation:
        """Add a convolution with what follows it.

        Parameters
        ----------
        weights : str, optional
            Their name, by default that of the layer and ``/weights``.
        padding : int or tuple of int, optional
            On each side; without it, such that with stride 1 the size does not change.
        """
        depth, *size = x.shape
        extent = (kernel, kernel) if isinstance(kernel, int) else kernel
        if padding is None:
            padding = (extent[0] // 2, extent[1] // 2)
        margin = (padding, padding) if isinstance(padding, int) else padding
        height, width = (
            (n + 2 * p - k) // stride + 1 for n, p, k in zip(size, margin, extent, strict=True)
        )
        count = channels * depth // groups * math.prod(extent)
        products, out = count * height * width, channels * height * width
        held = {weights or f"{name}/weights": count} | ({f"{name}/bias": channels} if bias else {})
        kind = "DepthwiseConv2dNative" if groups == depth and groups > 1 else "Conv"
        kernels = [product(kind, products, x.count + out, sum(held.values()))]
        if normalised:
            held[f"{name}/normalisation"] = 2 * channels
            kernels.append(normalisation("BatchNormalization", out, 2 * channels))
        saved = out if normalised else 0
        layer = Layer(name, kernels, products, held, saved, needs_output=activated)
        return self.add(layer, [x], (channels, height, width))

    def dense(
        self,
        name: str,
        x: Activation,
        width: int,
        *,
        bias: bool = True,
        activated: bool = False,
        weights: str | None = None,
    ) -> Activation:
        """Add a matrix product with weights, at each place of a sequence; an image is flattened.

        ``weights`` names the weights if they are shared.
        """
        *places, depth = x.shape
        if len(x.shape) == 3:
            places, depth = [], x.count
        shape, count = (*places, width), depth * width
        held = {weights or f"{name}/weights": count} | ({f"{name}/bias": width} if bias else {})
        products = count * math.prod(places)
        kernel = product("Gemm", products, x.count + math.prod(shape), sum(held.values()))
        layer = Layer(name, [kernel], products, held, needs_output=activated)
        return self.add(layer, [x], shape)

    def pool(
        self,
        name: str,
        x: Activation,
        kernel: int,
        *,
        stride: int = 1,
        padding: int = 0,
        average: bool = False,
    ) -> Activation:
        """Add a pooling layer."""
        depth, *size = x.shape
        height, width = ((n + 2 * padding - kernel) // stride + 1 for n in size)
        out = depth * height * width
        kind = "AveragePool" if average else "MaxPool"
        pooling = Kernel(kind, out * kernel**2, (x.count + out) * WIDTH)
        layer = Layer(name, [pooling], needs_reads=not average, needs_output=not average)
        return self.add(layer, [x], (depth, height, width))

    def mean(self, name: str, x: Activation) -> Activation:
        """Add the mean over all places of an image."""
        depth = x.shape[0]
        kernel = Kernel("GlobalAveragePool", x.count, (x.count + depth) * WIDTH)
        return self.add(Layer(name, [kernel], needs_reads=False), [x], (depth,))

    def sum(self, name: str, inputs: Sequence[Activation], *, activated: bool) -> Activation:
        """Add the sum of activations of one shape."""
        shape, count = inputs[0].shape, inputs[0].count
        assert all(x.shape == shape for x in inputs), name
        kernel = Kernel("Add", count * (len(inputs) - 1), (len(inputs) + 1) * count * WIDTH)
        layer = Layer(name, [kernel], needs_reads=False, needs_output=activated)
        return self.add(layer, inputs, shape)

    def concatenation(self, name: str, inputs: Sequence[Activation]) -> Activation:
        """Add the concatenation of images along their channels."""
        assert len({x.shape[1:] for x in inputs}) == 1, name
        shape = (sum(x.shape[0] for x in inputs), *inputs[0].shape[1:])
        kernel = Kernel("Concat", 0, 2 * math.prod(shape) * WIDTH)
        return self.add(Layer(name, [kernel], needs_reads=False), inputs, shape)

    def loss(self, *logits: Activation) -> Activation:
        """Add the cross-entropy of one or more logits, the end of the forward pass."""
        count = sum(x.count for x in logits)
        kernel = Kernel("SoftmaxCrossEntropyLoss", 5 * count, 2 * count * WIDTH)
        return self.add(Layer("loss", [kernel]), logits, (1,))

    # --- graphs ------------------------------------------------------------------------------

    def forward(
        self, specs: Mapping[str, Spec], *, slots: int = 2, efficiencies: Efficiencies | None = None
    ) -> Forward:
        """Return the forward pass with times from the figures of devices, by kind.

        The optimiser keeps ``slots`` tensors of each trained one; Adam has two.
        """
        flat = [kernel for layer in self.layers for kernel in layer.kernels]
        found, assumed = lines(flat, specs, efficiencies=efficiencies)
        users: dict[str, list[int]] = {name: [] for name in self.weights}
        operations, timed = [], iter(found)
        for number, layer in enumerate(self.layers):
            for name in layer.weights:
                users[name].append(number)
            times = total(list(islice(timed, len(layer.kernels))), len(specs))
            operations.append(
                ForwardOperation(
                    layer.name,
                    times,
                    scaled(times, layer.products),
                    tuple(Tensor(read) for read in layer.reads),
                    (batched(0, layer.count * WIDTH),),
                    saved=Line(beta=Fraction(layer.saved * WIDTH)) if layer.saved else None,
                    needs_reads=layer.needs_reads,
                    needs_outputs=layer.needs_output,
                    first_backward_times=scaled(times, max(1, layer.products - 1)),
                )
            )
        sizes = [count * WIDTH for count in self.weights.values()]
        updates = update_lines(sizes, specs, slots, efficiencies)
        return Forward(
            self.name,
            tuple(specs),
            tuple(operations),
            tuple(
                Parameter(name, Fraction(size), tuple(users[name]))
                for name, size in zip(self.weights, sizes, strict=True)
            ),
            tuple(updates),
            self.source,
            (*self.assumed, *assumed, *BACKWARD_REMARKS, update_remark(slots)),
        )

    def training_graph(
        self, specs: Mapping[str, Spec], *, slots: int = 2, efficiencies: Efficiencies | None = None
    ) -> TrainingGraph:
        """Return the graph of one iteration; see :meth:`forward`."""
        return with_backward(self.forward(specs, slots=slots, efficiencies=efficiencies))


def product(kind: str, products: int, moved: int, weights: int) -> Kernel:
    """Return the kernel of multiply-adds that moves so many numbers, besides its weights."""
    return Kernel(kind, 2 * products, moved * WIDTH, weights * WIDTH)


def normalisation(kind: str, count: int, weights: int) -> Kernel:
    """Return the kernel that normalises ``count`` numbers with so many weights."""
    # Training reads its input twice: for mean and variance, then to normalise.
    return Kernel(kind, 8 * count, 3 * count * WIDTH, weights * WIDTH)


#: Remarks on derived backward passes.
BACKWARD_REMARKS = (
    "The backward pass of an operation is assumed to take twice as long as the forward pass if it "
    "has weights (gradients of inputs and of weights) or multiplies activations, otherwise as "
    "long; only once where no gradient of inputs is needed.",
    "Gradients of a tensor with several readers are summed in the backward operation that reads "
    "them, at no time; gradients are as large as their tensors.",
)


def update_lines(
    sizes: Sequence[int],
    specs: Mapping[str, Spec],
    slots: int,
    efficiencies: Efficiencies | None = None,
) -> list[tuple[Line, ...]]:
    """Return the times of updates of weights of these sizes, in bytes, by kind of device.

    An update reads weights, gradient and slots, and writes weights and slots. It computes at most
    a dozen operations for each number, less than any device of the library could meanwhile.
    """
    kernels = [Kernel("AssignSub", 0, 0, (3 + 2 * slots) * size) for size in sizes]
    found, _ = lines(kernels, specs, efficiencies=efficiencies)
    return found


def update_remark(slots: int) -> str:
    """Return the remark on times of updates."""
    return (
        f"An update reads weights, gradient and {slots} slots of the optimiser, and writes weights "
        "and slots, at the bandwidth of the memory."
    )


def measured(
    name: str,
    kinds: Sequence[str],
    operations: Sequence[ForwardOperation],
    weights: Sequence[Parameter],
    figures: Mapping[str, Spec] | None,
    slots: int,
    source: str,
    assumed: Sequence[str],
) -> TrainingGraph:
    """Return the graph of a measured profile, which does not contain updates.

    They are timed by the figures of each kind; without any, they take no time.
    """
    if figures is None:
        updates = [tuple(Line() for _ in kinds)] * len(weights)
        remark = "Updates were not measured and take no time."
    else:
        chosen = {kind: figures[kind] for kind in kinds}
        updates = update_lines([round(w.size) for w in weights], chosen, slots)
        remark = update_remark(slots)
    parts = tuple(kinds), tuple(operations), tuple(weights), tuple(updates)
    return with_backward(Forward(name, *parts, source, (*assumed, remark)))
