"""ResNet-200: K. He and others: Identity mappings in deep residual networks, 2016."""

from __future__ import annotations

from optpart.applications.training.layers import Activation, Network

#: Blocks of each stage, and the channels inside them.
_STAGES = ((3, 64), (24, 128), (36, 256), (3, 512))


def resnet200() -> Network:
    """Build ResNet-200 for images of 224 × 224 and 1,000 classes.

    Blocks have three convolutions, the second of which has the stride, and are normalised before
    they are added up, as in ``timm`` and ``torchvision``.
    """
    net = Network("resnet200", "ResNet-200, images of 3 × 224 × 224, 1,000 classes")
    x = net.convolution("conv1", Activation(None, (3, 224, 224)), 64, 7, stride=2)
    x = net.pool("pool1", x, 3, stride=2, padding=1)
    for stage, (count, width) in enumerate(_STAGES, start=1):
        for block in range(count):
            stride = 2 if stage > 1 and block == 0 else 1
            x = _block(net, f"stage{stage}/block{block}", x, width, stride)
    net.loss(net.dense("fc", net.mean("mean", x), 1000))
    return net


def _block(net: Network, name: str, x: Activation, width: int, stride: int) -> Activation:
    y = net.convolution(f"{name}/conv1", x, width, 1)
    y = net.convolution(f"{name}/conv2", y, width, 3, stride=stride)
    y = net.convolution(f"{name}/conv3", y, 4 * width, 1, activated=False)
    if x.shape != y.shape:
        x = net.convolution(f"{name}/shortcut", x, 4 * width, 1, stride=stride, activated=False)
    return net.sum(f"{name}/sum", [x, y], activated=True)
