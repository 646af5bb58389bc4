"""AlexNet in one tower, the variant of TF-slim (``alexnet_v2``): 50.3 million parameters.

The network of [H]'s reference 24 has 61 million: it is split over two devices, and its first fully
connected layer reads 6 × 6 positions instead of 5 × 5.
"""

from __future__ import annotations

from optpart.applications.ordering.models.network import CLASSES, BaseModel, Network


def alexnet() -> BaseModel:
    """Build AlexNet for images of 224 × 224."""
    net = Network("alexnet")
    tensor = net.conv("conv1", net.input(224, 224, 3), 64, 11, 4, "valid")
    tensor = net.pool("pool1", tensor, 3, 2, "valid")
    tensor = net.conv("conv2", tensor, 192, 5)
    tensor = net.pool("pool2", tensor, 3, 2, "valid")
    for name, filters in (("conv3", 384), ("conv4", 384), ("conv5", 256)):
        tensor = net.conv(name, tensor, filters, 3)
    tensor = net.pool("pool5", tensor, 3, 2, "valid")
    tensor = net.dense("fc6", tensor, 4096)
    tensor = net.dense("fc7", tensor, 4096)
    net.loss([net.dense("fc8", tensor, CLASSES, relu=False)])
    return net.build()
