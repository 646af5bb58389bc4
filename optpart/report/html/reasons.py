"""Which lower bound of the makespan is as large as proven, and what it is made of."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from optpart.bounds.load import load_ticks
from optpart.bounds.windows import NEVER, Windows, windows
from optpart.kernels.ticks import Grid
from optpart.problem.instance import Instance


@dataclass(frozen=True)
class Reason:
    """A lower bound with its evidence.

    Attributes
    ----------
    exact : bool
        Whether no time was rounded down for it.
    path : list of (int, int)
        A vertex and the device on which it counts, in the order of time; for ``critical-path``.
    vertex : int
        The vertex of the path on whose device all of it is least; -1 without a path.
    """

    name: str
    value: Fraction
    exact: bool
    path: list[tuple[int, int]]
    vertex: int = -1


def reasons_of(instance: Instance) -> list[Reason]:
    """Return the bounds that take little time on graphs of any size.

    Returns
    -------
    list of Reason
        Empty if a vertex can run nowhere.
    """
    if not instance.vertices:
        return []
    grid = Grid.of(instance)
    window = windows(instance, grid)
    if window.bound is None:
        return []
    path, peak = _path(instance, grid, window)
    load = grid.time(load_ticks(instance, grid, window))
    return [
        Reason("critical-path", grid.time(window.bound), grid.exact, path, peak),
        Reason("load", load, grid.exact, []),
    ]


def _path(instance: Instance, grid: Grid, window: Windows) -> tuple[list[tuple[int, int]], int]:
    """Return a chain through the vertex whose head, run time and tail are largest.

    Each vertex of the chain is on the device where its head or tail counts.
    """
    unit = int(np.argmax(window.through.min(axis=1)))
    d = int(np.argmin(window.through[unit]))
    members = instance.units[unit]
    total = window.head[members, d] + grid.duration[members, d] + window.tail[members, d]
    peak = int(members[int(np.argmax(total))])
    graph = instance.graph
    before = _walk(instance, grid, window.head, peak, d, graph.in_edges, graph.edge_source, True)
    after = _walk(instance, grid, window.tail, peak, d, graph.out_edges, graph.edge_target, False)
    return [*before[::-1], (peak, d), *after], peak


def _walk(
    instance: Instance,
    grid: Grid,
    times: NDArray[np.int64],
    v: int,
    d: int,
    edges: tuple[NDArray[np.int32], NDArray[np.int32]],
    other: NDArray[np.int32],
    back: bool,
) -> list[tuple[int, int]]:
    """Follow the neighbours that a head (``back``) or a tail is made of."""
    graph, chain = instance.graph, []
    start, numbers = edges
    while times[v, d] > 0:
        best: tuple[int, int, int] | None = None
        for edge in numbers[start[v] : start[v + 1]].tolist():
            u, tensor = int(other[edge]), int(graph.edge_tensor[edge])
            least: tuple[int, int, int] | None = None
            for e in range(instance.devices):
                if times[u, e] >= NEVER or grid.duration[u, e] < 0:
                    continue
                if e != d and instance.unit_of[u] == instance.unit_of[v]:
                    continue
                sender, receiver = (e, d) if back else (d, e)
                delay = 0 if e == d else grid.delay(tensor, sender, receiver)
                if delay < 0:
                    continue
                if e != d and instance.model.communication == "sendrecv":
                    delay += int(grid.send[sender])
                found = int(times[u, e] + grid.duration[u, e]) + delay
                if least is None or found < least[0]:
                    least = found, u, e
            if least is not None and (best is None or least[0] > best[0]):
                best = least
        if best is None:
            break
        _, v, d = best
        chain.append((v, d))
    return chain
