"""Inception v3 ([H]'s reference 32) as in TF-slim: 23.8 million parameters.

With its auxiliary head it has 27.1 million. Batch normalisation has an offset and no scale.
"""

from __future__ import annotations

from optpart.applications.ordering.models.network import (
    CLASSES,
    BaseModel,
    Network,
    Padding,
    Tensor,
)
from optpart.applications.training.models.inception_v3 import MODULES, STEM, Module


def inception_v3(*, auxiliary: bool = False) -> BaseModel:
    """Build Inception v3 for images of 299 × 299.

    Parameters
    ----------
    auxiliary : bool
        Whether to include the auxiliary head, which only training needs.
    """
    net = Network("inception-v3-aux" if auxiliary else "inception-v3", norm="offset")
    tensor = net.input(299, 299, 3)
    for _, name, filters, window, stride, padded in STEM:
        padding: Padding = "same" if padded else "valid"
        if filters:
            tensor = net.conv(name, tensor, filters, window, stride, padding)
        else:
            tensor = net.pool(name, tensor, window, stride, padding)
    read = {}
    for module in MODULES:
        read[module.slim] = tensor
        tensor = _module(net, module, tensor)
    tensor = net.average("AvgPool_1a", tensor)
    scores = [net.dense("Logits", tensor, CLASSES, relu=False)]
    if auxiliary:
        tensor = net.pool("AuxLogits/AvgPool_1a_5x5", read["Mixed_7a"], 5, 3, "valid")
        tensor = net.conv("AuxLogits/Conv2d_1b_1x1", tensor, 128)
        tensor = net.conv("AuxLogits/Conv2d_2a", tensor, 768, 5, 1, "valid")
        scores.append(net.dense("AuxLogits/Logits", tensor, CLASSES, relu=False))
    net.loss(scores)
    return net.build()


def _module(net: Network, module: Module, given: Tensor) -> Tensor:
    ends = []
    for i, branch in enumerate(module.branches):
        name, tensor = f"{module.slim}/Branch_{i}", given
        for j, (filters, window) in enumerate(branch.chain):
            halves = j == len(branch.chain) - 1 and not module.pooled
            label = f"{name}/{j}_{window[0]}x{window[1]}"
            tensor = net.conv(
                label, tensor, filters, window, *((2, "valid") if halves else (1, "same"))
            )
        if branch.forked:
            sides = [
                net.conv(f"{name}/1x3", tensor, 384, (1, 3)),
                net.conv(f"{name}/3x1", tensor, 384, (3, 1)),
            ]
            tensor = net.concat(f"{name}/concat", sides)
        ends.append(tensor)
    last = f"{module.slim}/Branch_{len(module.branches)}"
    if module.pooled:
        ends.append(net.conv(f"{last}/1x1", net.pool(f"{last}/pool", given, 3), module.pooled))
    else:
        ends.append(net.pool(f"{last}/pool", given, 3, 2, "valid"))
    return net.concat(f"{module.slim}/concat", ends)
