"""VGG16, configuration D of [H]'s reference 30: 138.4 million parameters."""

from __future__ import annotations

from optpart.applications.ordering.models.network import CLASSES, BaseModel, Network

_BLOCKS = ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512))


def vgg16() -> BaseModel:
    """Build VGG16 for images of 224 × 224."""
    net = Network("vgg16")
    tensor = net.input(224, 224, 3)
    for block, (layers, filters) in enumerate(_BLOCKS, 1):
        for layer in range(1, layers + 1):
            tensor = net.conv(f"conv{block}_{layer}", tensor, filters, 3)
        tensor = net.pool(f"pool{block}", tensor, 2, 2)
    tensor = net.dense("fc6", tensor, 4096)
    tensor = net.dense("fc7", tensor, 4096)
    net.loss([net.dense("fc8", tensor, CLASSES, relu=False)])
    return net.build()
