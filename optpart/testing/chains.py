"""Small training graphs and clusters by hand, for tests and measurements."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from optpart.applications.training.cluster import TrainingCluster
from optpart.applications.training.graph import (
    Edge,
    Layout,
    Line,
    Operation,
    Output,
    Parameter,
    Role,
)
from optpart.applications.training.graph import TrainingGraph as Graph
from optpart.problem.cluster import Cluster, Device, Matrix
from optpart.problem.rational import Number

_FORWARD, _NOTHING = Line(Fraction(0), Fraction(10)), Line()


def chain(
    layers: int,
    kinds: Sequence[str] = ("a",),
    *,
    forward: Sequence[Sequence[Line]] | Line = _FORWARD,
    activation: Number = 4,
    weights: Number = 100,
    apply: Line = _NOTHING,
) -> Graph:
    """Return a chain of layers: forward, backward and apply of each.

    Backward takes twice as long as forward. Every layer has one parameter.

    Parameters
    ----------
    forward : Line, or by layer and kind
    activation : number
        Bytes per sample of every activation and of its gradient.
    weights : number
        Bytes of every parameter.
    """
    per_sample = Output(Layout.BATCHED, Line.of(0, activation))
    gradient = Output(Layout.SUMMED, Line.of(weights))
    times = (
        [[forward] * len(kinds)] * layers if isinstance(forward, Line) else [*map(list, forward)]
    )
    operations = [
        Operation(f"f{i}", Role.FORWARD, tuple(times[i]), (per_sample,)) for i in range(layers)
    ]
    operations += [
        Operation(f"b{i}", Role.BACKWARD, tuple(t + t for t in times[i]), (gradient, per_sample))
        for i in range(layers)
    ]
    operations += [Operation(f"a{i}", Role.APPLY, (apply,) * len(kinds)) for i in range(layers)]
    edges = [Edge(i, 0, i + 1) for i in range(layers - 1)]
    edges.append(Edge(layers - 1, 0, 2 * layers - 1))  # the loss
    for i in range(layers):
        if i:
            edges += [Edge(layers + i, 1, layers + i - 1), Edge(i - 1, 0, layers + i)]
        edges.append(Edge(layers + i, 0, 2 * layers + i))
    parameters = tuple(
        Parameter(f"w{i}", Fraction(weights), (i, layers + i, 2 * layers + i))
        for i in range(layers)
    )
    return Graph("chain", tuple(kinds), tuple(operations), tuple(edges), parameters)


def cluster(
    kinds: Sequence[str],
    *,
    servers: Sequence[int] | None = None,
    bandwidth: Matrix = 1,
    latency: Matrix = 0,
    memory: Sequence[Number | None] | None = None,
    copying: Number | None = None,
) -> TrainingCluster:
    """Return devices of these kinds, by default on one server and without limits of memory."""
    limits = memory or [None] * len(kinds)
    devices = [
        Device(f"{kind}{d}", 1, kind, limit)
        for d, (kind, limit) in enumerate(zip(kinds, limits, strict=True))
    ]
    return TrainingCluster(
        Cluster.of(devices, bandwidth, latency),
        tuple(kinds),
        tuple(servers or [0] * len(kinds)),
        tuple(None if copying is None else Fraction(copying) for _ in kinds),
    )
