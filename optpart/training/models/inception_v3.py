"""Inception v3: C. Szegedy and others: Rethinking the Inception architecture, 2016.

The modules and their channels are those of ``torchvision`` and TF-Slim, without the auxiliary
classifier.
"""

from __future__ import annotations

from optpart.training.layers import Activation, Network

_Size = int | tuple[int, int]


def inception_v3() -> Network:
    """Build Inception v3 for images of 299 × 299 and 1,000 classes."""
    net = Network(
        "inception_v3",
        "Inception v3 without auxiliary classifier, images of 3 × 299 × 299, 1,000 classes",
    )
    x = net.convolution("conv1", Activation(None, (3, 299, 299)), 32, 3, stride=2, padding=0)
    x = net.convolution("conv2", x, 32, 3, padding=0)
    x = net.convolution("conv3", x, 64, 3)
    x = net.pool("pool1", x, 3, stride=2)
    x = net.convolution("conv4", x, 80, 1)
    x = net.convolution("conv5", x, 192, 3, padding=0)
    x = net.pool("pool2", x, 3, stride=2)
    for i, channels in enumerate((32, 64, 64), start=1):
        x = _a(net, f"a{i}", x, channels)
    x = _b(net, "b", x)
    for i, channels in enumerate((128, 160, 160, 192), start=1):
        x = _c(net, f"c{i}", x, channels)
    x = _d(net, "d", x)
    for i in (1, 2):
        x = _e(net, f"e{i}", x)
    net.loss(net.dense("fc", net.mean("mean", x), 1000))
    return net


def _chain(
    net: Network, name: str, x: Activation, *layers: tuple[int, _Size], last: int = 1
) -> Activation:
    """Add convolutions one after the other; the last may have a stride, then without padding."""
    for i, (channels, kernel) in enumerate(layers, start=1):
        stride = last if i == len(layers) else 1
        padding = 0 if stride > 1 else None
        x = net.convolution(f"{name}_{i}", x, channels, kernel, stride=stride, padding=padding)
    return x


def _averaged(net: Network, name: str, x: Activation, channels: int) -> Activation:
    pool = net.pool(f"{name}/average", x, 3, padding=1, average=True)
    return net.convolution(f"{name}/projection", pool, channels, 1)


def _a(net: Network, name: str, x: Activation, channels: int) -> Activation:
    branches = [
        _chain(net, f"{name}/1x1", x, (64, 1)),
        _chain(net, f"{name}/5x5", x, (48, 1), (64, 5)),
        _chain(net, f"{name}/3x3", x, (64, 1), (96, 3), (96, 3)),
        _averaged(net, name, x, channels),
    ]
    return net.concatenation(f"{name}/concat", branches)


def _b(net: Network, name: str, x: Activation) -> Activation:
    branches = [
        _chain(net, f"{name}/3x3", x, (384, 3), last=2),
        _chain(net, f"{name}/double", x, (64, 1), (96, 3), (96, 3), last=2),
        net.pool(f"{name}/pool", x, 3, stride=2),
    ]
    return net.concatenation(f"{name}/concat", branches)


def _c(net: Network, name: str, x: Activation, n: int) -> Activation:
    wide, high = (1, 7), (7, 1)
    branches = [
        _chain(net, f"{name}/1x1", x, (192, 1)),
        _chain(net, f"{name}/7x7", x, (n, 1), (n, wide), (192, high)),
        _chain(net, f"{name}/double", x, (n, 1), (n, high), (n, wide), (n, high), (192, wide)),
        _averaged(net, name, x, 192),
    ]
    return net.concatenation(f"{name}/concat", branches)


def _d(net: Network, name: str, x: Activation) -> Activation:
    branches = [
        _chain(net, f"{name}/3x3", x, (192, 1), (320, 3), last=2),
        _chain(net, f"{name}/7x7", x, (192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3), last=2),
        net.pool(f"{name}/pool", x, 3, stride=2),
    ]
    return net.concatenation(f"{name}/concat", branches)


def _e(net: Network, name: str, x: Activation) -> Activation:
    three = _chain(net, f"{name}/3x3", x, (384, 1))
    double = _chain(net, f"{name}/double", x, (448, 1), (384, 3))
    branches = [
        _chain(net, f"{name}/1x1", x, (320, 1)),
        *_halves(net, f"{name}/3x3", three),
        *_halves(net, f"{name}/double", double),
        _averaged(net, name, x, 192),
    ]
    return net.concatenation(f"{name}/concat", branches)


def _halves(net: Network, name: str, x: Activation) -> list[Activation]:
    return [
        net.convolution(f"{name}/wide", x, 384, (1, 3)),
        net.convolution(f"{name}/high", x, 384, (3, 1)),
    ]
