"""The two extreme models of [H] §6.

[H] gives their structure but no sizes. Here, every layer is a matrix product of 1,024 × 1,024, with
a single parameter. Joining results costs nothing.
"""

from __future__ import annotations

from optpart.applications.ordering.models.network import BaseModel, Network

LAYERS = 32
_UNITS = 1024


def par_32() -> BaseModel:
    """Build 32 parallel layers: every order is optimal if all transfers take equally long."""
    net = Network("par-32")
    given = net.input(1, 1, _UNITS)
    layers = [net.matmul(f"layer_{i:02}", given, _UNITS) for i in range(LAYERS)]
    net.add("loss", layers, operations=0)
    return net.build()


def seq_32() -> BaseModel:
    """Build 32 successive layers: only one of the 32! orders is optimal."""
    net = Network("seq-32")
    tensor = net.input(1, 1, _UNITS)
    for i in range(LAYERS):
        tensor = net.matmul(f"layer_{i:02}", tensor, _UNITS)
    net.add("loss", [tensor])
    return net.build()
