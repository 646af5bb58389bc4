"""Inception v3: C. Szegedy and others: Rethinking the Inception architecture, 2016.

The modules and their channels are those of ``torchvision`` and TF-Slim, without the auxiliary
classifier.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from optpart.applications.training.layers import Activation, Network


class Step(NamedTuple):
    """A step of the stem: a convolution, or a max pooling without filters; windows are squares."""

    name: str
    slim: str  # in TF-Slim
    filters: int
    window: int
    stride: int = 1
    padded: bool = False


class Branch(NamedTuple):
    """A chain of convolutions: filters and window of each."""

    name: str
    chain: tuple[tuple[int, tuple[int, int]], ...]
    #: Whether two convolutions, 1×3 and 3×1 of 384 filters, follow side by side.
    forked: bool = False


class Module(NamedTuple):
    """Branches whose outputs are concatenated.

    ``pooled`` are the filters behind an average pooling; with 0, the last branch is a max pooling,
    and all branches halve the image at their end.
    """

    name: str
    slim: str
    branches: tuple[Branch, ...]
    pooled: int = 0


_STEM = (
    Step("conv1", "Conv2d_1a_3x3", 32, 3, 2),
    Step("conv2", "Conv2d_2a_3x3", 32, 3),
    Step("conv3", "Conv2d_2b_3x3", 64, 3, padded=True),
    Step("pool1", "MaxPool_3a_3x3", 0, 3, 2),
    Step("conv4", "Conv2d_3b_1x1", 80, 1, padded=True),
    Step("conv5", "Conv2d_4a_3x3", 192, 3),
    Step("pool2", "MaxPool_5a_3x3", 0, 3, 2),
)

_ONE, _THREE, _FIVE, _WIDE, _HIGH = (1, 1), (3, 3), (5, 5), (1, 7), (7, 1)
_DOUBLE = Branch("3x3", ((64, _ONE), (96, _THREE), (96, _THREE)))


def _factorised(name: str, slim: str, n: int) -> Module:
    double = (n, _ONE), (n, _HIGH), (n, _WIDE), (n, _HIGH), (192, _WIDE)
    branches = (
        Branch("1x1", ((192, _ONE),)),
        Branch("7x7", ((n, _ONE), (n, _WIDE), (192, _HIGH))),
        Branch("double", double),
    )
    return Module(name, slim, branches, 192)


_A = (Branch("1x1", ((64, _ONE),)), Branch("5x5", ((48, _ONE), (64, _FIVE))), _DOUBLE)
_E = (
    Branch("1x1", ((320, _ONE),)),
    Branch("3x3", ((384, _ONE),), forked=True),
    Branch("double", ((448, _ONE), (384, _THREE)), forked=True),
)

MODULES = (
    Module("a1", "Mixed_5b", _A, 32),
    Module("a2", "Mixed_5c", _A, 64),
    Module("a3", "Mixed_5d", _A, 64),
    Module("b", "Mixed_6a", (Branch("3x3", ((384, _THREE),)), _DOUBLE._replace(name="double"))),
    _factorised("c1", "Mixed_6b", 128),
    _factorised("c2", "Mixed_6c", 160),
    _factorised("c3", "Mixed_6d", 160),
    _factorised("c4", "Mixed_6e", 192),
    Module(
        "d",
        "Mixed_7a",
        (
            Branch("3x3", ((192, _ONE), (320, _THREE))),
            Branch("7x7", ((192, _ONE), (192, _WIDE), (192, _HIGH), (192, _THREE))),
        ),
    ),
    Module("e1", "Mixed_7b", _E, 192),
    Module("e2", "Mixed_7c", _E, 192),
)


def inception_v3() -> Network:
    """Build Inception v3 for images of 299 × 299 and 1,000 classes."""
    net = Network(
        "inception_v3",
        "Inception v3 without auxiliary classifier, images of 3 × 299 × 299, 1,000 classes",
    )
    x = stem(net, lambda step: step.name)
    for module in MODULES:
        x = _module(net, module, x)
    net.loss(net.dense("fc", net.mean("mean", x), 1000))
    return net


def stem(net: Network, name_of: Callable[[Step], str]) -> Activation:
    """Add what precedes the modules, to an image."""
    x = Activation(None, (3, 299, 299))
    for step in _STEM:
        name, window, stride = name_of(step), step.window, step.stride
        padding = window // 2 if step.padded else 0
        if step.filters:
            x = net.convolution(name, x, step.filters, window, stride=stride, padding=padding)
        else:
            x = net.pool(name, x, window, stride=stride)
    return x


def _module(net: Network, module: Module, x: Activation) -> Activation:
    ends: dict[str, Activation] = {}
    for branch in sorted(module.branches, key=lambda branch: not branch.forked):
        y = x
        for i, (filters, window) in enumerate(branch.chain, start=1):
            halves = i == len(branch.chain) and not module.pooled
            stride, padding = (2, 0) if halves else (1, None)
            name = f"{module.name}/{branch.name}_{i}"
            y = net.convolution(name, y, filters, window, stride=stride, padding=padding)
        ends[branch.name] = y
    outputs: list[Activation] = []
    for branch in module.branches:
        y = ends[branch.name]
        if branch.forked:
            name = f"{module.name}/{branch.name}"
            outputs.append(net.convolution(f"{name}/wide", y, 384, (1, 3)))
            outputs.append(net.convolution(f"{name}/high", y, 384, (3, 1)))
        else:
            outputs.append(y)
    if module.pooled:
        pool = net.pool(f"{module.name}/average", x, 3, padding=1, average=True)
        outputs.append(net.convolution(f"{module.name}/projection", pool, module.pooled, 1))
    else:
        outputs.append(net.pool(f"{module.name}/pool", x, 3, stride=2))
    return net.concatenation(f"{module.name}/concat", outputs)
