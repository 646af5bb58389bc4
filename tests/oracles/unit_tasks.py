"""Tasks of equal length on equal machines: P|prec, p_j = p|Cmax."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from optpart import Cluster, GraphBuilder, Instance

#: What each task takes.
LENGTH = Fraction(2, 3)


def unit_tasks(
    n: int, arcs: Sequence[tuple[int, int]], machines: int, rng: np.random.Generator, name: str
) -> Instance:
    """Build an instance whose arcs cost no time: control dependencies, or tensors for free."""
    builder = GraphBuilder()
    for v in range(n):
        builder.vertex(f"v{v}", 2, outputs=[5])
    for u, v in arcs:
        builder.edge(f"v{u}", f"v{v}", None if rng.integers(2) else 0)
    cluster = Cluster.uniform(machines, speed=3, bandwidth=None)
    return Instance(builder.build(), cluster, name=name)


def list_length(
    n: int, arcs: Sequence[tuple[int, int]], machines: int, priority: Sequence[int]
) -> int:
    """Return the number of steps in which each takes the ready tasks of highest priority."""
    waiting = [0] * n
    after: list[list[int]] = [[] for _ in range(n)]
    for u, v in arcs:
        waiting[v] += 1
        after[u].append(v)
    ready = [v for v in range(n) if not waiting[v]]
    steps = 0
    while ready:
        ready.sort(key=lambda v: -priority[v])
        running, ready = ready[:machines], ready[machines:]
        for u in running:
            for v in after[u]:
                waiting[v] -= 1
                if not waiting[v]:
                    ready.append(v)
        steps += 1
    return steps
