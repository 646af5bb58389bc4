"""Inception v3 ([H]'s reference 32) as in TF-slim: 23.8 million parameters.

With its auxiliary head it has 27.1 million. Batch normalisation has an offset and no scale.
"""

from __future__ import annotations

from optpart.ordering.models.network import CLASSES, BaseModel, Network, Padding, Tensor

#: A chain of convolutions: filters and window of each.
_Chain = tuple[tuple[int, int | tuple[int, int]], ...]


def inception_v3(*, auxiliary: bool = False) -> BaseModel:
    """Build Inception v3 for images of 299 × 299.

    Parameters
    ----------
    auxiliary : bool
        Whether to include the auxiliary head, which only training needs.
    """
    net = Network("inception-v3-aux" if auxiliary else "inception-v3", norm="offset")
    tensor = _stem(net)
    for name, pool in (("Mixed_5b", 32), ("Mixed_5c", 64), ("Mixed_5d", 64)):
        tensor = _module(
            net,
            name,
            tensor,
            ((64, 1),),
            ((48, 1), (64, 5)),
            ((64, 1), (96, 3), (96, 3)),
            pool=pool,
        )
    tensor = _reduction(net, "Mixed_6a", tensor, ((384, 3),), ((64, 1), (96, 3), (96, 3)))
    for name, filters in (
        ("Mixed_6b", 128),
        ("Mixed_6c", 160),
        ("Mixed_6d", 160),
        ("Mixed_6e", 192),
    ):
        tensor = _factorised(net, name, tensor, filters)
    between = tensor
    tensor = _reduction(
        net,
        "Mixed_7a",
        tensor,
        ((192, 1), (320, 3)),
        ((192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3)),
    )
    for name in ("Mixed_7b", "Mixed_7c"):
        tensor = _expanded(net, name, tensor)
    tensor = net.average("AvgPool_1a", tensor)
    scores = [net.dense("Logits", tensor, CLASSES, relu=False)]
    if auxiliary:
        scores.append(_auxiliary(net, between))
    net.loss(scores)
    return net.build()


def _stem(net: Network) -> Tensor:
    tensor = net.conv("Conv2d_1a_3x3", net.input(299, 299, 3), 32, 3, 2, "valid")
    tensor = net.conv("Conv2d_2a_3x3", tensor, 32, 3, 1, "valid")
    tensor = net.conv("Conv2d_2b_3x3", tensor, 64, 3)
    tensor = net.pool("MaxPool_3a_3x3", tensor, 3, 2, "valid")
    tensor = net.conv("Conv2d_3b_1x1", tensor, 80)
    tensor = net.conv("Conv2d_4a_3x3", tensor, 192, 3, 1, "valid")
    return net.pool("MaxPool_5a_3x3", tensor, 3, 2, "valid")


def _auxiliary(net: Network, given: Tensor) -> Tensor:
    tensor = net.pool("AuxLogits/AvgPool_1a_5x5", given, 5, 3, "valid")
    tensor = net.conv("AuxLogits/Conv2d_1b_1x1", tensor, 128)
    tensor = net.conv("AuxLogits/Conv2d_2a", tensor, 768, 5, 1, "valid")
    return net.dense("AuxLogits/Logits", tensor, CLASSES, relu=False)


def _module(net: Network, name: str, given: Tensor, *chains: _Chain, pool: int) -> Tensor:
    """Add branches of convolutions, and a branch of a pooling and a convolution."""
    branches = [_chain(net, f"{name}/Branch_{i}", given, chain) for i, chain in enumerate(chains)]
    branches.append(_pooled(net, f"{name}/Branch_{len(chains)}", given, pool))
    return net.concat(f"{name}/concat", branches)


def _reduction(net: Network, name: str, given: Tensor, *chains: _Chain) -> Tensor:
    """Add branches whose last step halves the image."""
    branches = [
        _chain(net, f"{name}/Branch_{i}", given, chain, stride=2) for i, chain in enumerate(chains)
    ]
    branches.append(net.pool(f"{name}/Branch_{len(chains)}/pool", given, 3, 2, "valid"))
    return net.concat(f"{name}/concat", branches)


def _factorised(net: Network, name: str, given: Tensor, filters: int) -> Tensor:
    across, along = (1, 7), (7, 1)
    return _module(
        net,
        name,
        given,
        ((192, 1),),
        ((filters, 1), (filters, across), (192, along)),
        ((filters, 1), (filters, along), (filters, across), (filters, along), (192, across)),
        pool=192,
    )


def _expanded(net: Network, name: str, given: Tensor) -> Tensor:
    """Add a module with two branches that end in two parallel convolutions."""
    branches = [_chain(net, f"{name}/Branch_0", given, ((320, 1),))]
    before: tuple[_Chain, ...] = (((384, 1),), ((448, 1), (384, 3)))
    for i, chain in enumerate(before, 1):
        branch = f"{name}/Branch_{i}"
        tensor = _chain(net, branch, given, chain)
        sides = [
            net.conv(f"{branch}/1x3", tensor, 384, (1, 3)),
            net.conv(f"{branch}/3x1", tensor, 384, (3, 1)),
        ]
        branches.append(net.concat(f"{branch}/concat", sides))
    branches.append(_pooled(net, f"{name}/Branch_3", given, 192))
    return net.concat(f"{name}/concat", branches)


def _chain(net: Network, name: str, given: Tensor, chain: _Chain, stride: int = 1) -> Tensor:
    """Add successive convolutions; only the last may have a stride, and is then unpadded."""
    tensor = given
    for i, (filters, kernel) in enumerate(chain):
        last = i == len(chain) - 1
        step = stride if last else 1
        padding: Padding = "valid" if step > 1 else "same"
        window = (kernel, kernel) if isinstance(kernel, int) else kernel
        label = f"{name}/{i}_{window[0]}x{window[1]}"
        tensor = net.conv(label, tensor, filters, kernel, step, padding)
    return tensor


def _pooled(net: Network, name: str, given: Tensor, filters: int) -> Tensor:
    return net.conv(f"{name}/1x1", net.pool(f"{name}/pool", given, 3), filters)
