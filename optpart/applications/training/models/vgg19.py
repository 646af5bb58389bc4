"""VGG19 (configuration E): K. Simonyan, A. Zisserman: Very deep convolutional networks, 2015."""

from __future__ import annotations

from optpart.applications.training.layers import Activation, Network

#: Convolutions of each block, and their channels.
_BLOCKS = ((2, 64), (2, 128), (4, 256), (4, 512), (4, 512))


def vgg19() -> Network:
    """Build VGG19 for images of 224 × 224 and 1,000 classes."""
    net = Network("vgg19", "VGG19, images of 3 × 224 × 224, 1,000 classes")
    x = Activation(None, (3, 224, 224))
    for block, (count, channels) in enumerate(_BLOCKS, start=1):
        for i in range(1, count + 1):
            name = f"conv{block}_{i}"
            x = net.convolution(name, x, channels, 3, bias=True, normalised=False)
        x = net.pool(f"pool{block}", x, 2, stride=2)
    for name in ("fc6", "fc7"):
        x = net.dense(name, x, 4096, activated=True)
    net.loss(net.dense("fc8", x, 1000))
    return net
