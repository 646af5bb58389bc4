"""VGG: K. Simonyan, A. Zisserman: Very deep convolutional networks, 2015."""

from __future__ import annotations

from optpart.applications.training.layers import Activation, Network

#: Channels of each block.
_CHANNELS = (64, 128, 256, 512, 512)


def vgg(layers: int, convolutions: tuple[int, ...]) -> Network:
    """Build a VGG for images of 224 × 224 and 1,000 classes.

    Parameters
    ----------
    layers : int
        Of the whole network, for its name.
    convolutions : tuple of int
        Of each of the five blocks.
    """
    net = Network(f"vgg{layers}", f"VGG{layers}, images of 3 × 224 × 224, 1,000 classes")
    x = Activation(None, (3, 224, 224))
    for block, (count, channels) in enumerate(zip(convolutions, _CHANNELS, strict=True), start=1):
        for i in range(1, count + 1):
            name = f"conv{block}_{i}"
            x = net.convolution(name, x, channels, 3, bias=True, normalised=False)
        x = net.pool(f"pool{block}", x, 2, stride=2)
    for name in ("fc6", "fc7"):
        x = net.dense(name, x, 4096, activated=True)
    net.loss(net.dense("fc8", x, 1000))
    return net


def vgg16() -> Network:
    """Build configuration D: 138.4 million parameters."""
    return vgg(16, (2, 2, 3, 3, 3))


def vgg19() -> Network:
    """Build configuration E."""
    return vgg(19, (2, 2, 4, 4, 4))
