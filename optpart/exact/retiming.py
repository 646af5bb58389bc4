"""Conversion of the solver's whole ticks to schedules in exact time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from optpart.exact.messages import Incumbent
from optpart.kernels.ticks import Grid
from optpart.problem.instance import Instance
from optpart.problem.rational import RationalArray
from optpart.solution.schedule import Schedule, Transfers, crossings, retime
from optpart.strategies.base import Partition
from optpart.strategies.scheduling.pct import pct
from optpart.strategies.simulator import simulate


def schedules(instance: Instance, found: Incumbent, grid: Grid) -> Iterator[Schedule]:
    """Yield candidate schedules of a solution, most promising first; the verifier decides.

    The solver's order, started as early as possible, is valid and shortest if starting earlier
    never hurts. Memory that changes with time may forbid this; then the solver's own starts are
    used, which are true times only on an exact grid.
    """
    if found.start is None:
        yield retime(instance, found.placement, instance.graph.topological_order.tolist())
        return
    dynamic = instance.model.timed_memory
    if dynamic and grid.exact:
        yield _as_found(instance, found, grid)
    yield retime(instance, found.placement, _order(instance, found, grid))
    if not dynamic and grid.exact:
        yield _as_found(instance, found, grid)


def prompt(instance: Instance, placement: NDArray[np.int32]) -> Schedule:
    """Return a short schedule of a placement, by a list scheduler."""
    return simulate(instance, Partition(placement), pct)


def _order(instance: Instance, found: Incumbent, grid: Grid) -> list[int | tuple[int, int]]:
    """Sort vertices and queueing transfers by start, then end, then producers first."""
    assert found.start is not None
    graph, model = instance.graph, instance.model
    position = np.empty(instance.vertices, dtype=np.int64)
    position[graph.topological_order] = 2 * np.arange(instance.vertices)
    keys: list[tuple[int, int, int, int | tuple[int, int]]] = []
    for v, (start, d) in enumerate(
        zip(found.start.tolist(), found.placement.tolist(), strict=True)
    ):
        keys.append((start, start + int(grid.duration[v, d]), int(position[v]), v))
    for tensor, target in crossings(instance, found.placement):
        if (begin := found.begin.get((tensor, target))) is None:
            continue
        u = int(graph.tensor_vertex[tensor])
        e = int(found.placement[u])
        # A send queues on its device, where it is over when it is sent.
        sending = model.sends
        length = int(grid.send[e]) if sending else grid.delay(tensor, e, target)
        keys.append((begin, begin + length, int(position[u]) + 1, (tensor, target)))
    keys.sort(key=lambda key: key[:3])
    return [item for *_, item in keys]


def _as_found(instance: Instance, found: Incumbent, grid: Grid) -> Schedule:
    assert found.start is not None
    start, placement = found.start.tolist(), found.placement.tolist()
    rows = []
    for tensor, target in crossings(instance, found.placement):
        u = int(instance.graph.tensor_vertex[tensor])
        e = placement[u]
        begin = found.begin.get((tensor, target), start[u] + int(grid.duration[u, e]))
        length = grid.delay(tensor, e, target)
        if instance.model.sends:
            length += int(grid.send[e])
        rows.append((tensor, target, grid.time(begin), grid.time(begin + length)))
    return Schedule(
        found.placement,
        RationalArray.from_fractions(grid.time(ticks) for ticks in start),
        Transfers.of(rows),
    )
