"""Critical path on a processor (Topcuoglu, Hariri and Wu 2002, §4.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optpart.kernels.compiled import arrays
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition
from optpart.strategies.partition.insertion import by_priority, insert
from optpart.strategies.partition.ranks import downward, mean_run, mean_transfer, upward


def cpop(instance: Instance, rng: np.random.Generator) -> Partition:
    """Place the critical path on one device and others where they finish first, with insertion.

    The vertex of largest upward plus downward rank goes first among those whose predecessors are
    placed. The device of the critical path is the one that may run most of its vertices, and of
    those the one on which they take the shortest time.

    The paper has no constraints. Here, if a colocation group has a vertex on the critical path, all
    its members belong to the path; vertices that do not fit on its device are placed like all
    others. See :func:`~optpart.strategies.partition.insertion.insert` for the placement of groups
    and for finish times.
    """
    run, transfer = mean_run(instance), mean_transfer(instance)
    from_here, before = upward(instance, run, transfer), downward(instance, run, transfer)
    path = critical_path(instance, from_here, transfer)
    wanted = np.full(len(instance.units), -1, dtype=np.int64)
    if len(path):
        wanted[instance.unit_of[path]] = _device_of(instance, path)
    return insert(instance, by_priority(instance, from_here + before), wanted=wanted)


def critical_path(
    instance: Instance, rank: NDArray[np.float64], transfer: NDArray[np.float64]
) -> NDArray[np.int32]:
    """Return the vertices of the longest path with mean run and transfer times, source first.

    ``rank`` is the upward rank; ties go to the path whose vertices have smaller numbers.
    """
    a = arrays(instance)
    sources = np.flatnonzero(np.diff(a.in_start) == 0)
    if not len(sources):
        return np.zeros(0, dtype=np.int32)
    path = [int(sources[np.argmax(rank[sources])])]
    while True:
        edges = slice(a.out_start[path[-1]], a.out_start[path[-1] + 1])
        after = a.out_target[edges]
        if not len(after):
            return np.array(path, dtype=np.int32)
        path.append(int(after[np.argmax(transfer[a.out_tensor[edges]] + rank[after])]))


def _device_of(instance: Instance, path: NDArray[np.int32]) -> int:
    a = arrays(instance)
    allowed = instance.allowed[instance.unit_of[path]]
    times = a.durations[path] if len(a.durations) else a.ops[path][:, None] / a.speed
    total = np.where(allowed, times, 0.0).sum(axis=0)
    return int(np.lexsort((total, -allowed.sum(axis=0)))[0])
