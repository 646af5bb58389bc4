"""Seeded random instances that are tiny, whole in a coarse unit of time, and hold every feature.

They are what formulations are compared on: few enough vertices and ticks to be enumerated, and
memory so scarce that it often decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TypeVar

import numpy as np

from optpart.cluster import Cluster, Device
from optpart.graph import Graph, GraphBuilder
from optpart.instance import Communication, Instance, Memory, Model, Release

T = TypeVar("T")

#: All times of an instance are whole multiples of one of these.
_UNITS = (Fraction(1), Fraction(1), Fraction(1, 2), Fraction(2, 3))

#: Capacity of a device in hundredths of all that it could ever hold: least and most.
_CAPACITY: dict[Memory, tuple[int, int]] = {
    "estimate": (40, 100),
    "edges": (0, 25),
    "refcount": (30, 75),
}


def tiny_instance(
    seed: int,
    communication: Communication = "delay",
    memory: Memory = "none",
    *,
    vertices: int | None = None,
    devices: int | None = None,
    release: Release | None = None,
    longest: int = 3,
) -> Instance:
    """Draw an instance; the same arguments give the same one.

    Device types, allowed devices, colocation, separation, missing and infinite links, latency,
    given run times and transfer times, control edges, tensors with several consumers and with
    none, zero sizes, zero run times and fractions all occur. Of the instances with a memory model
    about a third is infeasible, or takes longer than it would without.

    Parameters
    ----------
    vertices, devices : int, optional
        Otherwise 4 to 6 and 2 or 3.
    release : {"end", "start"}, optional
        Of ``refcount``; otherwise either.
    longest : int
        The longest run time on a fast device, in units of time; a slow one takes twice as long.
    """
    draw = _Draw(np.random.default_rng([seed, *map(ord, communication + memory)]))
    n = draw.between(4, 6) if vertices is None else vertices
    k = draw.between(2, 3) if devices is None else devices
    unit = draw.one_of(_UNITS)
    types = [draw.one_of(("CPU", "GPU")) for _ in range(k)]
    # Every vertex may run at home, and a group has one home: no group is without a device.
    home = [draw.between(0, k - 1) for _ in range(n)]
    group = draw.some(n, draw.between(2, 3)) if n > 2 and draw.chance(3) else []
    for v in group:
        home[v] = home[group[0]]
    graph = _graph(draw, home, group, types, unit, longest)
    send_ops = draw.one_of((0, 2, 2, 4)) if communication == "sendrecv" else 0
    either: tuple[Release, Release] = ("end", "start")
    drawn = draw.one_of(either) if release is None else release
    return Instance(
        graph,
        _cluster(draw, graph, types, unit, memory),
        Model(
            communication,
            memory,
            send_ops=unit * send_ops,
            channels=draw.between(1, 2) if communication == "port" else 1,
            release=drawn if memory == "refcount" else "end",
        ),
        _durations(draw, home, k, unit, longest) if draw.chance(4) else None,
        name=f"tiny-{communication}-{memory}-{seed}",
    )


class _Draw:
    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def between(self, low: int, high: int) -> int:
        """Draw a whole number, both bounds included."""
        return int(self.rng.integers(low, high, endpoint=True))

    def chance(self, of: int) -> bool:
        """Return ``True`` once in so many times."""
        return self.between(1, of) == 1

    def one_of(self, values: Sequence[T]) -> T:
        return values[self.between(0, len(values) - 1)]

    def some(self, n: int, size: int) -> list[int]:
        """Draw distinct numbers below ``n``, in random order."""
        return [int(x) for x in self.rng.permutation(n)[:size]]


def _graph(
    draw: _Draw, home: list[int], group: list[int], types: list[str], unit: Fraction, longest: int
) -> Graph:
    n, k = len(home), len(types)
    builder = GraphBuilder()
    outputs = [draw.one_of((0, 1, 1, 2)) for _ in range(n)]
    for v in range(n):
        own = sorted({home[v], draw.between(0, k - 1)})
        builder.vertex(
            f"v{v}",
            2 * unit * _length(draw, longest),
            memory=unit * draw.one_of((0, 0, 1, 2)),
            device_type=types[home[v]] if draw.chance(3) else None,
            devices=[f"d{d}" for d in own] if draw.chance(3) else None,
        )
        for _ in range(outputs[v]):
            builder.output(
                f"v{v}",
                2 * unit * draw.one_of((0, 1, 1, 2)),
                _measured(draw, k, unit) if draw.chance(6) else None,
            )
    _edges(draw, builder, outputs)
    for a, b in pairwise(group):  # closes transitively
        builder.colocate(f"v{a}", f"v{b}")
    apart = [(a, b) for a in range(n) for b in range(a) if home[a] != home[b]]
    if apart and draw.chance(3):
        a, b = draw.one_of(apart)
        builder.separate(f"v{a}", f"v{b}")
    return builder.build()


def _edges(draw: _Draw, builder: GraphBuilder, outputs: list[int]) -> None:
    """Draw edges along a random rank, so that numbers and topological order differ."""
    rank = draw.some(len(outputs), len(outputs))
    for i, u in enumerate(rank):
        for v in rank[i + 1 :]:
            for output in range(outputs[u]):
                if draw.chance(2):
                    builder.edge(f"v{u}", f"v{v}", output)
            if draw.chance(10):
                builder.edge(f"v{u}", f"v{v}", None)


def _cluster(
    draw: _Draw, graph: Graph, types: list[str], unit: Fraction, memory: Memory
) -> Cluster:
    k = len(types)
    everything = _everything(graph, memory)

    def capacity() -> Fraction | None:
        if memory == "none" or draw.chance(5):
            return None
        # A whole number of units, so that what just fits occurs.
        return unit * (everything * draw.between(*_CAPACITY[memory]) // (100 * unit))

    return Cluster.of(
        [Device(f"d{d}", draw.between(1, 2), types[d], capacity()) for d in range(k)],
        [[draw.one_of((None, 0, 1, 1, 1, 2, 2, 2)) for _ in range(k)] for _ in range(k)],
        [[unit * draw.one_of((0, 0, 1)) for _ in range(k)] for _ in range(k)],
    )


def _everything(graph: Graph, memory: Memory) -> Fraction:
    """The most that one device could have to hold."""
    if memory == "edges":
        return graph.tensor_size.sum(graph.edge_tensor)
    total = graph.memory.sum() + graph.tensor_size.sum()
    return total + (graph.tensor_size.sum(graph.edge_tensor) if memory == "estimate" else 0)


def _durations(
    draw: _Draw, home: list[int], k: int, unit: Fraction, longest: int
) -> list[list[Fraction | None]]:
    return [
        [None if d != at and draw.chance(5) else unit * _length(draw, longest) for d in range(k)]
        for at in home
    ]


def _length(draw: _Draw, longest: int) -> int:
    return 0 if draw.chance(8) else draw.between(1, longest)


def _measured(draw: _Draw, k: int, unit: Fraction) -> list[list[Fraction | None]]:
    return [
        [None if draw.chance(8) else unit * draw.between(0, 3) for _ in range(k)] for _ in range(k)
    ]
