"""The two extreme models of [H] §6.

[H] gives their structure but no sizes. Here, every layer is a matrix product of 1,024 × 1,024, with
a single parameter. Joining results costs nothing.
"""

from __future__ import annotations

from optpart.applications.ordering.models.operations import BaseModel, base_model_of
from optpart.applications.training.layers import Activation, Layer, Network
from optpart.applications.training.lines import Kernel

LAYERS = 32
_UNITS = 1024

_INPUT = Activation(None, (_UNITS,))


def par_32() -> BaseModel:
    """Build 32 parallel layers: every order is optimal if all transfers take equally long."""
    net = Network("par-32")
    return _joined(net, [_layer(net, i, _INPUT) for i in range(LAYERS)])


def seq_32() -> BaseModel:
    """Build 32 successive layers: only one of the 32! orders is optimal."""
    net, x = Network("seq-32"), _INPUT
    for i in range(LAYERS):
        x = _layer(net, i, x)
    return _joined(net, [x])


def _layer(net: Network, i: int, x: Activation) -> Activation:
    return net.dense(f"layer_{i:02}", x, _UNITS, bias=False)


def _joined(net: Network, results: list[Activation]) -> BaseModel:
    net.add(Layer("loss", [Kernel("Identity", 0, 0)]), results, (_UNITS,))
    return base_model_of(net)
