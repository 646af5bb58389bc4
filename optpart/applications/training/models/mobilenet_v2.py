"""MobileNet v2: M. Sandler and others: Inverted residuals and linear bottlenecks, 2018."""

from __future__ import annotations

from optpart.applications.training.layers import Activation, Network

#: Expansion, channels, repetitions, stride of the first: table 2 of the paper.
_ROWS = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def mobilenet_v2() -> Network:
    """Build MobileNet v2 of width 1 for images of 224 × 224 and 1,000 classes."""
    net = Network("mobilenet_v2", "MobileNet v2, images of 3 × 224 × 224, 1,000 classes")
    x = net.convolution("conv0", Activation(None, (3, 224, 224)), 32, 3, stride=2)
    number = 0
    for expansion, channels, repetitions, first in _ROWS:
        for i in range(repetitions):
            number += 1
            stride = first if i == 0 else 1
            x = _bottleneck(net, f"block{number}", x, expansion, channels, stride)
    x = net.convolution("conv18", x, 1280, 1)
    net.loss(net.dense("classifier", net.mean("mean", x), 1000))
    return net


def _bottleneck(
    net: Network, name: str, x: Activation, expansion: int, channels: int, stride: int
) -> Activation:
    width = x.shape[0] * expansion
    y = net.convolution(f"{name}/expand", x, width, 1) if expansion > 1 else x
    y = net.convolution(f"{name}/depthwise", y, width, 3, stride=stride, groups=width)
    y = net.convolution(f"{name}/project", y, channels, 1, activated=False)
    return net.sum(f"{name}/sum", [x, y], activated=False) if x.shape == y.shape else y
