"""ResNet-50 (He et al. 2015): 25.6 million parameters.

The stride of a stage is in its first 3 × 3 convolution, as is now usual ("v1.5"), which gives 4.1
billion multiply-adds; in the paper, it is in the 1 × 1 convolution before, which gives 3.8 billion.
"""

from __future__ import annotations

from optpart.applications.ordering.models.operations import CLASSES, BaseModel, base_model_of
from optpart.applications.training.layers import Activation, Network

_STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))


def resnet50() -> BaseModel:
    """Build ResNet-50 for images of 224 × 224."""
    net = Network("resnet-50")
    x = net.convolution("conv1", Activation(None, (3, 224, 224)), 64, 7, stride=2)
    x = net.pool("pool1", x, 3, stride=2, padding=1)
    for stage, (blocks, width) in enumerate(_STAGES, 1):
        for block in range(1, blocks + 1):
            stride = 2 if stage > 1 and block == 1 else 1
            x = _bottleneck(net, f"block{stage}/unit_{block}", x, width, stride)
    net.loss(net.dense("logits", net.mean("pool5", x), CLASSES))
    return base_model_of(net, ("gamma", "beta"))


def _bottleneck(net: Network, name: str, x: Activation, width: int, stride: int) -> Activation:
    shortcut = x
    if x.shape[0] != 4 * width:
        shortcut = net.convolution(
            f"{name}/shortcut", x, 4 * width, 1, stride=stride, activated=False
        )
    y = net.convolution(f"{name}/conv1", x, width, 1)
    y = net.convolution(f"{name}/conv2", y, width, 3, stride=stride)
    y = net.convolution(f"{name}/conv3", y, 4 * width, 1, activated=False)
    return net.sum(name, [shortcut, y], activated=True)
