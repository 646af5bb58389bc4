"""Inception v3 ([H]'s reference 32) as in TF-slim: 23.8 million parameters.

With its auxiliary head it has 27.1 million. Batch normalisation has an offset and no scale.
"""

from __future__ import annotations

from optpart.applications.ordering.models.operations import CLASSES, BaseModel, base_model_of
from optpart.applications.training.layers import Activation, Network
from optpart.applications.training.models.inception_v3 import MODULES, Module, stem


def inception_v3(*, auxiliary: bool = False) -> BaseModel:
    """Build Inception v3 for images of 299 × 299.

    Parameters
    ----------
    auxiliary : bool
        Whether to include the auxiliary head, which only training needs.
    """
    net = Network("inception-v3-aux" if auxiliary else "inception-v3")
    x = stem(net, lambda step: step.slim)
    read = {}
    for module in MODULES:
        read[module.slim] = x
        x = _module(net, module, x)
    logits = [net.dense("Logits", net.mean("AvgPool_1a", x), CLASSES)]
    if auxiliary:
        x = net.pool("AuxLogits/AvgPool_1a_5x5", read["Mixed_7a"], 5, stride=3, average=True)
        x = net.convolution("AuxLogits/Conv2d_1b_1x1", x, 128, 1)
        x = net.convolution("AuxLogits/Conv2d_2a", x, 768, 5, padding=0)
        logits.append(net.dense("AuxLogits/Logits", x, CLASSES))
    net.loss(*logits)
    return base_model_of(net)


def _module(net: Network, module: Module, x: Activation) -> Activation:
    ends = []
    for i, branch in enumerate(module.branches):
        name, y = f"{module.slim}/Branch_{i}", x
        for j, (filters, window) in enumerate(branch.chain):
            halves = j == len(branch.chain) - 1 and not module.pooled
            stride, padding = (2, 0) if halves else (1, None)
            label = f"{name}/{j}_{window[0]}x{window[1]}"
            y = net.convolution(label, y, filters, window, stride=stride, padding=padding)
        if branch.forked:
            wide = net.convolution(f"{name}/1x3", y, 384, (1, 3))
            high = net.convolution(f"{name}/3x1", y, 384, (3, 1))
            y = net.concatenation(f"{name}/concat", [wide, high])
        ends.append(y)
    last = f"{module.slim}/Branch_{len(module.branches)}"
    if module.pooled:
        pool = net.pool(f"{last}/pool", x, 3, padding=1, average=True)
        ends.append(net.convolution(f"{last}/1x1", pool, module.pooled, 1))
    else:
        ends.append(net.pool(f"{last}/pool", x, 3, stride=2))
    return net.concatenation(f"{module.slim}/concat", ends)
