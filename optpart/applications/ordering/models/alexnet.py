"""AlexNet in one tower, the variant of TF-slim (``alexnet_v2``): 50.3 million parameters.

The network of [H]'s reference 24 has 61 million: it is split over two devices, and its first fully
connected layer reads 6 × 6 positions instead of 5 × 5.
"""

from __future__ import annotations

from functools import partial

from optpart.applications.ordering.models.operations import CLASSES, BaseModel, base_model_of
from optpart.applications.training.layers import Activation, Network


def alexnet() -> BaseModel:
    """Build AlexNet for images of 224 × 224."""
    net = Network("alexnet")
    convolution = partial(net.convolution, bias=True, normalised=False)
    x = convolution("conv1", Activation(None, (3, 224, 224)), 64, 11, stride=4, padding=0)
    x = net.pool("pool1", x, 3, stride=2)
    x = convolution("conv2", x, 192, 5)
    x = net.pool("pool2", x, 3, stride=2)
    for name, channels in (("conv3", 384), ("conv4", 384), ("conv5", 256)):
        x = convolution(name, x, channels, 3)
    x = net.pool("pool5", x, 3, stride=2)
    for name in ("fc6", "fc7"):
        x = net.dense(name, x, 4096, activated=True)
    net.loss(net.dense("fc8", x, CLASSES))
    return base_model_of(net)
