"""Horizons: upper bounds, in ticks, on the length of schedules worth considering."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from optpart.kernels.ticks import Grid
from optpart.problem.instance import Instance


def horizon(instance: Instance, grid: Grid) -> int:
    """Return an upper bound on the optimal makespan in ticks, provided that a schedule exists.

    The bound, valid under every model, is the length of the serial schedule with the longest times.
    If a task or transfer runs at every moment up to the makespan, the claim is evident. Otherwise,
    an interval in which nothing runs and nothing crosses can be cut out of the schedule: the order
    is unchanged, and so are the tensors that share memory at any moment, under every memory model.
    Under ``delay``, all transfers of a tensor run simultaneously. On a rounded grid, each time
    exceeds its rounded value by less than one tick.
    """
    return sum(_longest(instance, grid))


def _longest(instance: Instance, grid: Grid) -> Iterator[int]:
    """Yield the longest time of each vertex and each transfer in ticks, rounded up."""
    up = 0 if grid.exact else 1
    yield from (int(p) + up for p in grid.duration.max(axis=1, initial=0))
    delays = grid.delays.max(axis=1, initial=0).tolist()
    measured = grid.measured.max(axis=(1, 2), initial=0).tolist()
    send = int(grid.send.max(initial=0)) if instance.model.sends else 0
    consumers = np.bincount(instance.graph.edge_tensor, minlength=instance.graph.tensors)
    for row, count in zip(grid.size_class.tolist(), consumers.tolist(), strict=True):
        copies = min(count, instance.devices - 1 if instance.model.queues else 1)
        longest = delays[row] if row < len(delays) else measured[row - len(delays)]
        yield copies * (longest + send + 2 * up)


def horizon_without_queues(grid: Grid) -> int:
    """Return an upper bound, in ticks, on earliest-start schedules if transfers never queue.

    This is the length of the serial schedule on the grid itself, whose times may be rounded down.
    It suffices for relaxations that ignore queues, and for the model ``delay``.
    """
    run = np.maximum(grid.duration.max(axis=1, initial=0), 0).sum()
    table = grid.delays.max(axis=1, initial=0)
    measured = grid.measured.max(axis=(1, 2), initial=0)
    longest = np.maximum(np.concatenate((table, measured)), 0)[grid.size_class]
    return int(run) + int(longest.sum()) + len(longest) * int(grid.send.max(initial=0))
