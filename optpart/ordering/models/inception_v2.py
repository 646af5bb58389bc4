"""Inception v2 (batch-normalised Inception) as in TF-slim: 11.2 million parameters.

Batch normalisation has an offset and no scale; the first convolution is a separable one.
"""

from __future__ import annotations

from typing import NamedTuple

from optpart.ordering.models.network import CLASSES, BaseModel, Network, Tensor


class _Module(NamedTuple):
    """Filters of the four branches: 1×1; 1×1, 3×3; 1×1, 3×3, 3×3; pool, 1×1."""

    name: str
    single: int
    narrow: tuple[int, int]
    deep: tuple[int, int]
    pool: int


_MODULES = (
    _Module("Mixed_3b", 64, (64, 64), (64, 96), 32),
    _Module("Mixed_3c", 64, (64, 96), (64, 96), 64),
    _Module("Mixed_4b", 224, (64, 96), (96, 128), 128),
    _Module("Mixed_4c", 192, (96, 128), (96, 128), 128),
    _Module("Mixed_4d", 160, (128, 160), (128, 160), 96),
    _Module("Mixed_4e", 96, (128, 192), (160, 192), 96),
    _Module("Mixed_5b", 352, (192, 320), (160, 224), 128),
    _Module("Mixed_5c", 352, (192, 320), (192, 224), 128),
)

#: Modules that halve the image, by the module that follows: 1×1, 3×3; 1×1, 3×3, 3×3; pool.
_REDUCTIONS = {
    "Mixed_4b": ("Mixed_4a", (128, 160), (64, 96)),
    "Mixed_5b": ("Mixed_5a", (128, 192), (192, 256)),
}


def inception_v2() -> BaseModel:
    """Build Inception v2 for images of 224 × 224."""
    net = Network("inception-v2", norm="offset")
    tensor = net.separable_conv("Conv2d_1a_7x7", net.input(224, 224, 3), 64, 7, 2, multiplier=8)
    tensor = net.pool("MaxPool_2a_3x3", tensor, 3, 2)
    tensor = net.conv("Conv2d_2b_1x1", tensor, 64)
    tensor = net.conv("Conv2d_2c_3x3", tensor, 192, 3)
    tensor = net.pool("MaxPool_3a_3x3", tensor, 3, 2)
    for module in _MODULES:
        if module.name in _REDUCTIONS:
            tensor = _reduction(net, tensor, *_REDUCTIONS[module.name])
        tensor = _module(net, tensor, module)
    tensor = net.average("AvgPool_1a", tensor)
    net.loss([net.dense("Logits", tensor, CLASSES, relu=False)])
    return net.build()


def _module(net: Network, given: Tensor, module: _Module) -> Tensor:
    name = module.name
    branches = [
        net.conv(f"{name}/Branch_0/1x1", given, module.single),
        _narrow(net, name, given, module.narrow, 1),
        _deep(net, name, given, module.deep, 1),
    ]
    pooled = net.pool(f"{name}/Branch_3/pool", given, 3)
    branches.append(net.conv(f"{name}/Branch_3/1x1", pooled, module.pool))
    return net.concat(f"{name}/concat", branches)


def _reduction(
    net: Network, given: Tensor, name: str, narrow: tuple[int, int], deep: tuple[int, int]
) -> Tensor:
    branches = [
        _narrow(net, name, given, narrow, 2),
        _deep(net, name, given, deep, 2),
        net.pool(f"{name}/Branch_3/pool", given, 3, 2),
    ]
    return net.concat(f"{name}/concat", branches)


def _narrow(
    net: Network, name: str, given: Tensor, filters: tuple[int, int], stride: int
) -> Tensor:
    tensor = net.conv(f"{name}/Branch_1/1x1", given, filters[0])
    return net.conv(f"{name}/Branch_1/3x3", tensor, filters[1], 3, stride)


def _deep(net: Network, name: str, given: Tensor, filters: tuple[int, int], stride: int) -> Tensor:
    tensor = net.conv(f"{name}/Branch_2/1x1", given, filters[0])
    tensor = net.conv(f"{name}/Branch_2/3x3_a", tensor, filters[1], 3)
    return net.conv(f"{name}/Branch_2/3x3_b", tensor, filters[1], 3, stride)
