"""Horizons in ticks: how long a schedule need be at most."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from optpart.kernels.ticks import Grid
from optpart.problem.instance import Instance


def horizon(instance: Instance, grid: Grid) -> int:
    """Return ticks within which some schedule of least makespan ends, if there is a schedule.

    It is the length of the serial schedule with the slowest times, under every model. If something
    runs at every moment up to the makespan, the claim is evident. An interval in which nothing runs
    and nothing crosses can be cut out of any schedule: the order stays the same, and so does what
    is in memory at the same time, under every model of memory. Under ``delay``, all transfers of a
    tensor run together. On a rounded grid, each time exceeds its whole number by less than a tick.
    """
    return sum(_longest(instance, grid))


def _longest(instance: Instance, grid: Grid) -> Iterator[int]:
    """Yield the longest time of each vertex and each transfer, in ticks rounded up."""
    up = 0 if grid.exact else 1
    yield from (int(p) + up for p in grid.duration.max(axis=1, initial=0))
    delays = grid.delays.max(axis=1, initial=0).tolist()
    measured = grid.measured.max(axis=(1, 2), initial=0).tolist()
    send = int(grid.send.max(initial=0)) if instance.model.communication == "sendrecv" else 0
    consumers = np.bincount(instance.graph.edge_tensor, minlength=instance.graph.tensors)
    for row, count in zip(grid.size_class.tolist(), consumers.tolist(), strict=True):
        copies = min(count, 1 if instance.model.communication == "delay" else instance.devices - 1)
        longest = delays[row] if row < len(delays) else measured[row - len(delays)]
        yield copies * (longest + send + 2 * up)


def horizon_without_queues(grid: Grid) -> int:
    """Return ticks that no earliest-start schedule exceeds if no transfer waits for another.

    It is the length of the serial schedule on the grid itself, whose times may be rounded down:
    enough for relaxations that ignore queues, and for the model ``delay``.
    """
    run = np.maximum(grid.duration.max(axis=1, initial=0), 0).sum()
    table = grid.delays.max(axis=1, initial=0)
    measured = grid.measured.max(axis=(1, 2), initial=0)
    longest = np.maximum(np.concatenate((table, measured)), 0)[grid.size_class]
    return int(run) + int(longest.sum()) + len(longest) * int(grid.send.max(initial=0))
