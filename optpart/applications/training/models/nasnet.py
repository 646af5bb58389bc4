"""NASNet-A: B. Zoph and others: Learning transferable architectures, 2018.

The large variant has 6 cells a stage and 4,032 channels at the end (6 @ 4032), the mobile one 4 and
1,056 (4 @ 1056), as the authors' own in TF-Slim and their ports to Keras and PyTorch, without the
auxiliary classifier.
"""

from __future__ import annotations

from optpart.applications.training.layers import Activation, Layer, Network, normalisation, product


def nasnet() -> Network:
    """Build NASNet-A (6 @ 4032) for images of 331 × 331 and 1,000 classes."""
    return _nasnet("nasnet", "6 @ 4032", cells=6, channels=168, stem=96, size=331)


def nasnet_mobile() -> Network:
    """Build NASNet-A (4 @ 1056) for images of 224 × 224 and 1,000 classes."""
    return _nasnet("nasnet_mobile", "4 @ 1056", cells=4, channels=44, stem=32, size=224)


def _nasnet(name: str, variant: str, *, cells: int, channels: int, stem: int, size: int) -> Network:
    """Build a variant with so many normal cells in each of the three stages.

    ``channels`` are those of a cell's branches in the first stage, which each stage doubles;
    ``stem`` those of the first convolution; ``size`` is height and width of images.
    """
    net = Network(
        name,
        f"NASNet-A ({variant}) without auxiliary classifier, images of 3 × {size} × {size}, "
        "1,000 classes",
    )
    image = Activation(None, (3, size, size))
    conv = net.convolution("conv0", image, stem, 3, stride=2, padding=0, activated=False)
    before = _reduction(net, "stem0", _fitted(net, "stem0/h", conv, channels // 4), conv)
    h = _fitted(net, "stem1/h", before, channels // 2)
    x = _reduction(net, "stem1", h, _halved(net, "stem1/p", conv, channels // 2))
    for stage in range(3):
        width = channels * 2**stage
        if stage:
            h = _fitted(net, f"reduction{stage}/h", x, width)
            p = _fitted(net, f"reduction{stage}/p", before, width)
            # The first cell of a stage still sees what the reduction saw.
            x = _reduction(net, f"reduction{stage}", h, p)
        for cell in range(cells):
            at = f"stage{stage}/cell{cell}"
            h = _fitted(net, f"{at}/h", x, width)
            fit = _halved if before.shape[1:] != x.shape[1:] else _fitted
            p = fit(net, f"{at}/p", before, width)
            before, x = x, _normal(net, at, h, p)
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
        product("DepthwiseConv2dNative", deep * places, x.count + inside, deep),
        product("Conv", wide * places, inside + out, wide),
        normalisation("BatchNormalization", out, 2 * channels),
    ]
    weights = {
        f"{name}/depthwise": deep,
        f"{name}/pointwise": wide,
        f"{name}/normalisation": 2 * channels,
    }
    products = (deep + wide) * places
    layer = Layer(name, kernels, products, weights, saved=inside + out, needs_output=True)
    return net.add(layer, [x], (channels, height, width))


def _fitted(net: Network, name: str, x: Activation, channels: int) -> Activation:
    return net.convolution(name, x, channels, 1, activated=False)


def _halved(net: Network, name: str, x: Activation, channels: int) -> Activation:
    """Halve height and width: two 1 × 1 convolutions of stride 2, one pixel apart, normalised."""
    depth, *size = x.shape
    height, width = ((n + 1) // 2 for n in size)
    weights, out = depth * channels, channels * height * width
    products = weights * height * width
    half = product("Conv", products // 2, x.count // 2 + out // 2, weights // 2)
    kernels = [half, half, normalisation("BatchNormalization", out, 2 * channels)]
    held = {f"{name}/weights": weights, f"{name}/normalisation": 2 * channels}
    return net.add(Layer(name, kernels, products, held, saved=out), [x], (channels, height, width))
