"""Inception v2 (batch-normalised Inception) as in TF-slim: 11.2 million parameters.

Batch normalisation has an offset and no scale; the first convolution is a separable one.
"""

from __future__ import annotations

from typing import NamedTuple

from optpart.applications.ordering.models.network import CLASSES, BaseModel, Network, Tensor


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
    net = Network("inception-v2", norm="offset")
    tensor = net.separable_conv("Conv2d_1a_7x7", net.input(224, 224, 3), 64, 7, 2, multiplier=8)
    tensor = net.pool("MaxPool_2a_3x3", tensor, 3, 2)
    tensor = net.conv("Conv2d_2b_1x1", tensor, 64)
    tensor = net.conv("Conv2d_2c_3x3", tensor, 192, 3)
    tensor = net.pool("MaxPool_3a_3x3", tensor, 3, 2)
    for module in _MODULES:
        tensor = _module(net, tensor, module)
    tensor = net.average("AvgPool_1a", tensor)
    net.loss([net.dense("Logits", tensor, CLASSES, relu=False)])
    return net.build()


def _module(net: Network, given: Tensor, module: _Module) -> Tensor:
    name, single, narrow, deep, pool = module
    stride, branches = (1 if single else 2), []
    if single:
        branches.append(net.conv(f"{name}/Branch_0/1x1", given, single))
    tensor = net.conv(f"{name}/Branch_1/1x1", given, narrow[0])
    branches.append(net.conv(f"{name}/Branch_1/3x3", tensor, narrow[1], 3, stride))
    tensor = net.conv(f"{name}/Branch_2/1x1", given, deep[0])
    tensor = net.conv(f"{name}/Branch_2/3x3_a", tensor, deep[1], 3)
    branches.append(net.conv(f"{name}/Branch_2/3x3_b", tensor, deep[1], 3, stride))
    tensor = net.pool(f"{name}/Branch_3/pool", given, 3, stride)
    branches.append(net.conv(f"{name}/Branch_3/1x1", tensor, pool) if pool else tensor)
    return net.concat(f"{name}/concat", branches)
