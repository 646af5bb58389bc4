"""Critical path: the heaviest path on the fastest device, the rest by load ([L] §4.6)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from optpart.kernels.compiled import Arrays, arrays, fits, nothing_placed, short_kernel
from optpart.kernels.struct import Floats, Ints
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition, partition_of
from optpart.strategies.partition.common import (
    Variant,
    find_feasible,
    fit_together,
    is_paper,
    take,
    unit_time,
)
from optpart.strategies.partition.ranks import devices_by_speed, operations_rank, work


def critical_path(
    instance: Instance, rng: np.random.Generator, *, variant: Variant = "thesis"
) -> Partition:
    """Assign the path of most operations to the fastest feasible devices, then balance the load.

    Vertices colocated with the path go with it. Further units follow in topological order of their
    first vertex; ties go to the device of smallest number.

    Parameters
    ----------
    variant : {"thesis", "paper"}
        ``thesis`` ([L] §4.6): every unit of the path goes to the fastest device that is feasible
        for it; a further unit to the feasible device of least execution time so far (eq. 4.5),
        which does not count the unit itself. ``paper`` ([M] §3.2.2): the whole path goes to the
        fastest device that can hold all of it, and only where none can, each of its units to the
        fastest that is feasible; a further unit to the feasible device of least execution time,
        its own included (eq. 7). The two may also choose different paths, see
        :func:`heaviest_path`.
    """
    path = instance.unit_of[heaviest_path(instance, variant=variant)]
    units = path[np.sort(np.unique(path, return_index=True)[1])]
    state = _assign(arrays(instance), units, devices_by_speed(instance), is_paper(variant))
    return partition_of(instance, state)


def heaviest_path(instance: Instance, *, variant: Variant = "thesis") -> NDArray[np.int32]:
    """Return the vertices of the critical path, source first.

    Parameters
    ----------
    variant : {"thesis", "paper"}
        ``thesis`` ([L] §4.5, step 1): the path to the sink of largest operations source rank
        (eq. 4.3), which counts all operations of the path but those of the sink itself. ``paper``
        ([M] §3.2.2): the path to the sink of largest downward rank (eq. 6), which counts them as
        well, and of equally heavy paths one with the most vertices. Further ties go to the smallest
        number.
    """
    paper = is_paper(variant)
    source, ops = operations_rank(instance).source, work(instance)
    path: NDArray[np.int32] = _heaviest(arrays(instance), source, ops, paper)
    return path[::-1]


@short_kernel
def _heaviest(a: Arrays, source: Floats, ops: Floats, paper: bool) -> Any:
    """Return the critical path, sink first."""
    n = ops.shape[0]
    down = source + ops
    length = np.ones(n, np.int32)
    before = np.full(n, -1, np.int32)
    sink = -1
    for v in a.order:
        for e in range(a.in_start[v], a.in_start[v + 1]):
            u, b = a.in_source[e], before[v]
            if (
                b < 0
                or down[u] > down[b]
                or (paper and down[u] == down[b] and length[u] > length[b])
            ):
                before[v] = u
        if before[v] >= 0:
            length[v] = length[before[v]] + 1
    rank = down if paper else source
    for v in range(n):
        if a.out_start[v] == a.out_start[v + 1] and (
            sink < 0
            or rank[v] > rank[sink]
            or (paper and rank[v] == rank[sink] and length[v] > length[sink])
        ):
            sink = v
    path = np.empty(length[sink] if n else 0, np.int32)
    for i in range(path.shape[0]):
        path[i] = sink
        sink = before[sink]
    return path


@short_kernel
def _assign(a: Arrays, path: Ints, by_speed: Ints, paper: bool) -> Any:
    k = by_speed.shape[0]
    state = nothing_placed(a)
    load, feasible = np.zeros(k), np.empty(k, np.bool_)
    holder = -1
    if paper:
        for d in by_speed:
            if fit_together(a, path, d, state):
                holder = d
                break
    for unit in path:
        chosen = holder
        for d in by_speed:
            if chosen >= 0:
                break
            if fits(a, unit, d, state):
                chosen = d
        if chosen < 0:
            return state
        take(a, unit, chosen, state, load)
    for v in a.order:
        unit = a.unit[v]
        if state.device[unit] >= 0:
            continue
        best, chosen = np.inf, -1
        find_feasible(a, unit, state, feasible)
        for d in range(k):
            total = load[d] + (unit_time(a, unit, d) if paper else 0.0)
            if feasible[d] and (chosen < 0 or total < best):
                best, chosen = total, d
        if chosen < 0:
            return state
        take(a, unit, chosen, state, load)
    return state
