"""Inception v2 (batch-normalised Inception) as in TF-slim: 11.2 million parameters.

Batch normalisation has an offset and no scale; the first convolution is a separable one.
"""

from __future__ import annotations

from typing import NamedTuple

from optpart.applications.ordering.models.operations import CLASSES, BaseModel, base_model_of
from optpart.applications.training.layers import Activation, Network


class _Module(NamedTuple):
    """Filters of the branches: 1×1; 1×1, 3×3; 1×1, 3×3, 3×3; pool, 1×1.

    Without the first and the last, the image is halved.
    """

    name: str
    single: int
    narrow: tuple[int, int]
    deep: tuple[int, int]
    pool: int


_MODULES = (
    _Module("Mixed_3b", 64, (64, 64), (64, 96), 32),
    _Module("Mixed_3c", 64, (64, 96), (64, 96), 64),
    _Module("Mixed_4a", 0, (128, 160), (64, 96), 0),
    _Module("Mixed_4b", 224, (64, 96), (96, 128), 128),
    _Module("Mixed_4c", 192, (96, 128), (96, 128), 128),
    _Module("Mixed_4d", 160, (128, 160), (128, 160), 96),
    _Module("Mixed_4e", 96, (128, 192), (160, 192), 96),
    _Module("Mixed_5a", 0, (128, 192), (192, 256), 0),
    _Module("Mixed_5b", 352, (192, 320), (160, 224), 128),
    _Module("Mixed_5c", 352, (192, 320), (192, 224), 128),
)


def inception_v2() -> BaseModel:
    """Build Inception v2 for images of 224 × 224."""
    net = Network("inception-v2")
    name, depth = "Conv2d_1a_7x7", 3 * 8
    x = net.convolution(
        f"{name}/depthwise",
        Activation(None, (3, 224, 224)),
        depth,
        7,
        stride=2,
        groups=3,
        normalised=False,
        activated=False,
        weights=f"{name}/depthwise_weights",
    )
    x = net.convolution(name, x, 64, 1, weights=f"{name}/pointwise_weights")
    x = net.pool("MaxPool_2a_3x3", x, 3, stride=2, padding=1)
    x = net.convolution("Conv2d_2b_1x1", x, 64, 1)
    x = net.convolution("Conv2d_2c_3x3", x, 192, 3)
    x = net.pool("MaxPool_3a_3x3", x, 3, stride=2, padding=1)
    for module in _MODULES:
        x = _module(net, x, module)
    net.loss(net.dense("Logits", net.mean("AvgPool_1a", x), CLASSES))
    return base_model_of(net)


def _module(net: Network, x: Activation, module: _Module) -> Activation:
    name, single, narrow, deep, pool = module
    stride, branches = (1 if single else 2), []
    if single:
        branches.append(net.convolution(f"{name}/Branch_0/1x1", x, single, 1))
    y = net.convolution(f"{name}/Branch_1/1x1", x, narrow[0], 1)
    branches.append(net.convolution(f"{name}/Branch_1/3x3", y, narrow[1], 3, stride=stride))
    y = net.convolution(f"{name}/Branch_2/1x1", x, deep[0], 1)
    y = net.convolution(f"{name}/Branch_2/3x3_a", y, deep[1], 3)
    branches.append(net.convolution(f"{name}/Branch_2/3x3_b", y, deep[1], 3, stride=stride))
    y = net.pool(f"{name}/Branch_3/pool", x, 3, stride=stride, padding=1)
    branches.append(net.convolution(f"{name}/Branch_3/1x1", y, pool, 1) if pool else y)
    return net.concatenation(f"{name}/concat", branches)
