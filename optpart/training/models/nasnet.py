"""NASNet-A (large): B. Zoph and others: Learning transferable architectures, 2018.

The variant with 6 cells a stage and 4,032 channels at the end (6 @ 4032), as the authors' own in
TF-Slim and its ports to PyTorch, without the auxiliary classifier.
"""

from __future__ import annotations

from optpart.training.layers import WIDTH, Activation, Network, normalisation
from optpart.training.lines import Kernel

#: Channels of a cell's branches in the first stage; each stage doubles them.
_CHANNELS = 168

#: Normal cells of each of the three stages.
_CELLS = 6


def nasnet() -> Network:
    """Build NASNet-A (6 @ 4032) for images of 331 × 331 and 1,000 classes."""
    net = Network(
        "nasnet",
        "NASNet-A (6 @ 4032) without auxiliary classifier, images of 3 × 331 × 331, 1,000 classes",
    )
    image = Activation(None, (3, 331, 331))
    conv = net.convolution("conv0", image, 96, 3, stride=2, padding=0, activated=False)
    stem = _reduction(net, "stem0", _fitted(net, "stem0/h", conv, _CHANNELS // 4), conv)
    before, x = (
        stem,
        _reduction(
            net,
            "stem1",
            _fitted(net, "stem1/h", stem, _CHANNELS // 2),
            _halved(net, "stem1/p", conv, _CHANNELS // 2),
        ),
    )
    for stage in range(3):
        channels = _CHANNELS * 2**stage
        if stage:
            h = _fitted(net, f"reduction{stage}/h", x, channels)
            p = _fitted(net, f"reduction{stage}/p", before, channels)
            # What came two cells earlier is what the next cell sees, too.
            x = _reduction(net, f"reduction{stage}", h, p)
        for cell in range(_CELLS):
            name = f"stage{stage}/cell{cell}"
            h = _fitted(net, f"{name}/h", x, channels)
            fit = _halved if before.shape[1:] != x.shape[1:] else _fitted
            p = fit(net, f"{name}/p", before, channels)
            before, x = x, _normal(net, name, h, p)
    net.loss(net.dense("classifier", net.mean("mean", x), 1000))
    return net


def _normal(net: Network, name: str, h: Activation, p: Activation) -> Activation:
    """Add a normal cell: figure 4 of the paper, left."""

    def sep(part: str, x: Activation, kernel: int) -> Activation:
        return _separable(net, f"{name}/{part}", x, h.shape[0], kernel)

    def average(part: str, x: Activation) -> Activation:
        return net.pool(f"{name}/{part}", x, 3, padding=1, average=True)

    pairs = [
        (sep("0/left", h, 5), sep("0/right", p, 3)),
        (sep("1/left", p, 5), sep("1/right", p, 3)),
        (average("2/left", h), p),
        (average("3/left", p), average("3/right", p)),
        (sep("4/left", h, 3), h),
    ]
    sums = [net.sum(f"{name}/{i}/sum", pair, activated=False) for i, pair in enumerate(pairs)]
    return net.concatenation(f"{name}/concat", [p, *sums])


def _reduction(net: Network, name: str, h: Activation, p: Activation) -> Activation:
    """Add a reduction cell: figure 4 of the paper, right."""

    def sep(part: str, x: Activation, kernel: int, stride: int = 2) -> Activation:
        return _separable(net, f"{name}/{part}", x, h.shape[0], kernel, stride)

    def add(part: str, x: Activation, y: Activation) -> Activation:
        return net.sum(f"{name}/{part}/sum", [x, y], activated=False)

    def pool(part: str, x: Activation, *, stride: int = 2, average: bool) -> Activation:
        return net.pool(f"{name}/{part}", x, 3, stride=stride, padding=1, average=average)

    zero = add("0", sep("0/left", h, 5), sep("0/right", p, 7))
    one = add("1", pool("1/left", h, average=False), sep("1/right", p, 7))
    two = add("2", pool("2/left", h, average=True), sep("2/right", p, 5))
    three = add("3", pool("3/right", zero, stride=1, average=True), one)
    four = add("4", sep("4/left", zero, 3, stride=1), pool("4/right", h, average=False))
    return net.concatenation(f"{name}/concat", [one, two, three, four])


def _separable(
    net: Network, name: str, x: Activation, channels: int, kernel: int, stride: int = 1
) -> Activation:
    """Add two separable convolutions, each normalised."""
    for i, step in ((1, stride), (2, 1)):
        x = _half_separable(net, f"{name}/separable{i}", x, channels, kernel, step)
    return x


def _half_separable(
    net: Network, name: str, x: Activation, channels: int, kernel: int, stride: int
) -> Activation:
    depth, *size = x.shape
    height, width = ((n + 2 * (kernel // 2) - kernel) // stride + 1 for n in size)
    places = height * width
    deep, wide = depth * kernel**2, depth * channels
    inside, out = depth * places, channels * places
    kernels = [
        Kernel(
            "DepthwiseConv2dNative", 2 * deep * places, (x.count + inside) * WIDTH, deep * WIDTH
        ),
        Kernel("Conv", 2 * wide * places, (inside + out) * WIDTH, wide * WIDTH),
        normalisation("BatchNormalization", out, 2 * channels),
    ]
    return net.add(
        name,
        [x],
        (channels, height, width),
        kernels,
        multiply_adds=(deep + wide) * places,
        weights={
            f"{name}/depthwise": deep,
            f"{name}/pointwise": wide,
            f"{name}/normalisation": 2 * channels,
        },
        saved=inside + out,
        needs_output=True,
    )


def _fitted(net: Network, name: str, x: Activation, channels: int) -> Activation:
    return net.convolution(name, x, channels, 1, activated=False)


def _halved(net: Network, name: str, x: Activation, channels: int) -> Activation:
    """Halve height and width: two 1 × 1 convolutions of stride 2, one pixel apart, normalised."""
    depth, *size = x.shape
    height, width = ((n + 1) // 2 for n in size)
    weights, out = depth * channels, channels * height * width
    products = weights * height * width
    kernels = [
        Kernel("Conv", products, (x.count // 2 + out // 2) * WIDTH, weights // 2 * WIDTH)
    ] * 2
    kernels.append(normalisation("BatchNormalization", out, 2 * channels))
    return net.add(
        name,
        [x],
        (channels, height, width),
        kernels,
        multiply_adds=products,
        weights={f"{name}/weights": weights, f"{name}/normalisation": 2 * channels},
        saved=out,
    )
