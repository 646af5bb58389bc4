"""Instances on which whole pieces of work do not fit where shares of them would."""

from __future__ import annotations

from typing import Literal

import numpy as np

from optpart import Cluster, Device, GraphBuilder, Instance, Model


def crowd(seed: int, memory: Literal["none", "estimate"]) -> Instance:
    """Seven pieces between a first and a last one, on devices of which each may lack some."""
    rng = np.random.default_rng(seed)
    builder = GraphBuilder().vertex("first", 2).vertex("last", 3)
    devices = int(rng.integers(2, 4))
    for v in range(7):
        there = tuple(f"d{d}" for d in range(devices) if rng.random() < 0.8) or None
        builder.vertex(f"v{v}", int(rng.integers(1, 30)), memory=v + 5, devices=there)
        builder.edge("first", f"v{v}", None).edge(f"v{v}", "last", None)
    cluster = Cluster.of([Device(f"d{d}", 1 + d, memory=24) for d in range(devices)])
    return Instance(builder.build(), cluster, model=Model(memory=memory), name="crowd")
