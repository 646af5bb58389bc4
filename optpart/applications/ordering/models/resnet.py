"""ResNet-50 (He et al. 2015): 25.6 million parameters.

The stride of a stage is in its first 3 × 3 convolution, as is now usual ("v1.5"), which gives 4.1
billion multiply-adds; in the paper, it is in the 1 × 1 convolution before, which gives 3.8 billion.
"""

from __future__ import annotations

from optpart.applications.ordering.models.network import CLASSES, BaseModel, Network, Tensor

_STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))


def resnet50() -> BaseModel:
    """Build ResNet-50 for images of 224 × 224."""
    net = Network("resnet-50", norm="scale")
    tensor = net.conv("conv1", net.input(224, 224, 3), 64, 7, 2)
    tensor = net.pool("pool1", tensor, 3, 2)
    for stage, (blocks, filters) in enumerate(_STAGES, 1):
        for block in range(1, blocks + 1):
            stride = 2 if stage > 1 and block == 1 else 1
            tensor = _bottleneck(net, f"block{stage}/unit_{block}", tensor, filters, stride)
    tensor = net.average("pool5", tensor)
    net.loss([net.dense("logits", tensor, CLASSES, relu=False)])
    return net.build()


def _bottleneck(net: Network, name: str, given: Tensor, filters: int, stride: int) -> Tensor:
    shortcut = given
    if given.channels != 4 * filters:
        shortcut = net.conv(f"{name}/shortcut", given, 4 * filters, 1, stride, relu=False)
    tensor = net.conv(f"{name}/conv1", given, filters)
    tensor = net.conv(f"{name}/conv2", tensor, filters, 3, stride)
    tensor = net.conv(f"{name}/conv3", tensor, 4 * filters, relu=False)
    tensor = net.add(f"{name}/add", [shortcut, tensor])
    return net.op(f"{name}/Relu", [tensor], tensor[1:])
