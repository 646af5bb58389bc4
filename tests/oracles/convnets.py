"""Multiply-adds and weights of published networks, from the tables of their layers alone.

Every network is written down as its publication does, layer by layer. Spatial sizes are given, and
not computed, so that nothing here knows how a convolution pads.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Network:
    """Counts of a network.

    Attributes
    ----------
    multiply_adds : int
        Of convolutions and fully connected layers, at batch size 1.
    weights : int
        Their weights and biases.
    normalised : int
        Channels that are normalised, with a mean and a variance, a factor and a summand each.
    """

    multiply_adds: int = 0
    weights: int = 0
    normalised: int = 0

    def conv(self, side, before, after, kernel, groups=1, bias=True, norm=False) -> int:
        """Add a convolution with an output of ``side`` x ``side``; return its channels."""
        weights = after * (before // groups) * kernel * kernel
        self.multiply_adds += side * side * weights
        self.weights += weights + (after if bias else 0)
        self.normalised += after if norm else 0
        return after

    def full(self, before, after) -> int:
        """Add a fully connected layer; return its width."""
        self.multiply_adds += before * after
        self.weights += before * after + after
        return after


def alexnet(sides=(55, 27, 13)) -> Network:
    """Krizhevsky et al. (2012), in two groups as on two GPUs; 227 x 227 in the first place."""
    net = Network()
    net.conv(sides[0], 3, 96, 11)
    net.conv(sides[1], 96, 256, 5, groups=2)
    net.conv(sides[2], 256, 384, 3)
    net.conv(sides[2], 384, 384, 3, groups=2)
    net.conv(sides[2], 384, 256, 3, groups=2)
    net.full(256 * 6 * 6, 4096)
    net.full(4096, 4096)
    net.full(4096, 1000)
    return net


def zfnet512() -> Network:
    """Zeiler and Fergus (2014), with 512 maps in layers 3 to 5 and 1024 in layer 7."""
    net = Network()
    net.conv(109, 3, 96, 7)
    net.conv(25, 96, 256, 5)
    for before in (256, 512, 512):
        net.conv(12, before, 512, 3)
    net.full(512 * 6 * 6, 4096)
    net.full(4096, 1024)
    net.full(1024, 1000)
    return net


def vgg19() -> Network:
    """Simonyan and Zisserman (2015), configuration E."""
    net, channels = Network(), 3
    for side, width, layers in (
        (224, 64, 2),
        (112, 128, 2),
        (56, 256, 4),
        (28, 512, 4),
        (14, 512, 4),
    ):
        for _ in range(layers):
            channels = net.conv(side, channels, width, 3)
    net.full(512 * 7 * 7, 4096)
    net.full(4096, 4096)
    net.full(4096, 1000)
    return net


def resnet50() -> Network:
    """He et al. (2016), with the stride in the 3 x 3 convolutions, as is usual today."""
    net = Network()
    channels = net.conv(112, 3, 64, 7, bias=False, norm=True)
    side = 56
    for stage, (width, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(blocks):
            before = side
            if stage and not block:
                side //= 2
            if not block:
                net.conv(side, channels, 4 * width, 1, bias=False, norm=True)
            net.conv(before, channels, width, 1, bias=False, norm=True)
            net.conv(side, width, width, 3, bias=False, norm=True)
            channels = net.conv(side, width, 4 * width, 1, bias=False, norm=True)
    net.full(2048, 1000)
    return net


def densenet121() -> Network:
    """Huang et al. (2017), growth 32; what is normalised is the input of each convolution."""
    net = Network()
    channels = net.conv(112, 3, 64, 7, bias=False, norm=True)
    for side, layers in ((56, 6), (28, 12), (14, 24), (7, 16)):
        for _ in range(layers):
            net.normalised += channels
            net.conv(side, channels, 128, 1, bias=False, norm=True)
            channels += net.conv(side, 128, 32, 3, bias=False)
        net.normalised += channels
        if side > 7:
            channels = net.conv(side, channels, channels // 2, 1, bias=False)
    net.full(1024, 1000)
    return net


#: Per module: stage, then 1x1; 3x3 reduced and 3x3; 5x5 reduced and 5x5; behind the pool.
_INCEPTION_V1 = (
    (3, 64, 96, 128, 16, 32, 32),
    (3, 128, 128, 192, 32, 96, 64),
    (4, 192, 96, 208, 16, 48, 64),
    (4, 160, 112, 224, 24, 64, 64),
    (4, 128, 128, 256, 24, 64, 64),
    (4, 112, 144, 288, 32, 64, 64),
    (4, 256, 160, 320, 32, 128, 128),
    (5, 256, 160, 320, 32, 128, 128),
    (5, 384, 192, 384, 48, 128, 128),
)


def inception_v1(sides=(56, 28, 14, 7)) -> Network:
    """Szegedy et al. (2015), table 1, without the auxiliary classifiers; sides of stages 2 to 5."""
    net = Network()
    net.conv(112, 3, 64, 7)
    net.conv(sides[0], 64, 64, 1)
    channels = net.conv(sides[0], 64, 192, 3)
    for stage, one, three_in, three, five_in, five, pool in _INCEPTION_V1:
        side = sides[stage - 2]
        after = net.conv(side, channels, one, 1)
        after += net.conv(side, net.conv(side, channels, three_in, 1), three, 3)
        after += net.conv(side, net.conv(side, channels, five_in, 1), five, 5)
        after += net.conv(side, channels, pool, 1)
        channels = after
    net.full(channels, 1000)
    return net


#: Per module: side of the output, then 1x1; 3x3 reduced and 3x3; double 3x3 reduced and double
#: 3x3; behind the pool. Without 1x1 it halves the side and hands its input through the pool.
_INCEPTION_V2 = (
    (28, 64, 64, 64, 64, 96, 32),
    (28, 64, 64, 96, 64, 96, 64),
    (14, 0, 128, 160, 64, 96, 0),
    (14, 224, 64, 96, 96, 128, 128),
    (14, 192, 96, 128, 96, 128, 128),
    (14, 160, 128, 160, 128, 160, None),
    (14, 96, 128, 192, 160, 192, None),
    (7, 0, 128, 192, 192, 256, 0),
    (7, 352, 192, 320, 160, 224, 128),
    (7, 352, 192, 320, 192, 224, 128),
)


def inception_v2(pooled=128) -> Network:
    """Ioffe and Szegedy (2015), figure 5; ``pooled`` is the width behind the pools of 4c and 4d."""
    net = Network()

    def conv(side, before, after, kernel):
        return net.conv(side, before, after, kernel, bias=False, norm=True)

    conv(112, 3, 64, 7)
    conv(56, 64, 64, 1)
    channels = conv(56, 64, 192, 3)
    for side, one, three_in, three, double_in, double, pool in _INCEPTION_V2:
        wide = side if one else 2 * side
        after = conv(side, channels, one, 1) if one else channels
        after += conv(side, conv(wide, channels, three_in, 1), three, 3)
        after += conv(side, conv(wide, conv(wide, channels, double_in, 1), double, 3), double, 3)
        after += conv(side, channels, pooled if pool is None else pool, 1) if pool != 0 else 0
        channels = after
    net.full(channels, 1000)
    return net


def squeezenet() -> Network:
    """Iandola et al. (2016), version 1.1: 3 x 3 filters first, and earlier pools."""
    net = Network()
    channels = net.conv(111, 3, 64, 3)
    for side, squeeze, expand in (
        (55, 16, 64), (55, 16, 64), (27, 32, 128), (27, 32, 128),
        (13, 48, 192), (13, 48, 192), (13, 64, 256), (13, 64, 256),
    ):  # fmt: skip
        squeezed = net.conv(side, channels, squeeze, 1)
        channels = net.conv(side, squeezed, expand, 1) + net.conv(side, squeezed, expand, 3)
    net.conv(13, channels, 1000, 1)
    return net


def shufflenet() -> Network:
    """Zhang et al. (2018) with 4 groups, half as wide and without bottlenecks, as Caffe2 has it."""
    net = Network()
    channels = net.conv(112, 3, 24, 3, norm=True)
    for side, width, units in ((28, 136, 4), (14, 272, 8), (7, 544, 4)):
        for unit in range(units):
            inner = width if unit else width - channels
            before = side if unit else 2 * side
            net.conv(before, channels, inner, 1, groups=4, bias=False, norm=True)
            net.conv(side, inner, inner, 3, groups=inner, bias=False, norm=True)
            net.conv(side, inner, inner, 1, groups=4, bias=False, norm=True)
            channels = width
    net.full(channels, 1000)
    return net
