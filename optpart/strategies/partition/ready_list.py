"""List scheduling of ready vertices: each one's best device first, then the choice among them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from optpart.kernels.compiled import Arrays, arrays, assign, kernel, nothing_placed, run_time
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition, partition_of
from optpart.strategies.partition.common import NOWHERE, find_feasible
from optpart.strategies.partition.insertion import arrivals, topological_position


def schedule_ready(
    instance: Instance,
    *,
    finish: float = 0.0,
    regret: float = 0.0,
    base: NDArray[np.float64] | None = None,
) -> Partition:
    """Run, of all ready vertices, the one of largest key next, where it finishes first.

    A vertex is ready when all its predecessors are placed. It starts on a device when its inputs
    have arrived and the vertices placed there before have ended; it does not fill earlier gaps. Its
    device is the one where it finishes first, of equal ones that of smallest number. Its key is

        base + finish · (finish time there) + regret · (finish time on the next best device − that)

    with infinity for the next best if there is only one device; of equal keys, the topologically
    first vertex goes first.

    The first member of a colocation group that is placed chooses among the devices that all members
    may use and that have memory for all of them; the others follow it, each in its own turn. Finish
    times are those of the ``delay`` model, regardless of the instance's model.

    Parameters
    ----------
    finish, regret : float
        Weights of the key.
    base : ndarray of float64, length n, optional
        In the unit of :class:`~optpart.kernels.compiled.Arrays`; 0 by default.

    Notes
    -----
    Time is proportional to the vertices, times the number of those ready at once, times the
    devices.
    """
    n = instance.vertices
    if base is None:
        base = np.zeros(n)
    by_position = np.argsort(topological_position(instance)).astype(np.int32)
    state, order = _schedule_ready(arrays(instance), by_position, finish, regret, base)
    return partition_of(instance, state, order.tolist())


@kernel
def _schedule_ready(a: Arrays, by_position: Any, finish: float, regret: float, base: Any) -> Any:
    n, k = base.shape[0], a.speed.shape[0]
    state = nothing_placed(a)
    order = np.empty(n, np.int32)
    waiting = a.in_start[1:] - a.in_start[:-1]
    end, idle = np.zeros(n), np.zeros(k)
    position = np.empty(n, np.int64)
    for i in range(n):
        position[by_position[i]] = i
    feasible = np.empty(k, np.bool_)
    # The ready vertices, in any order, and the arrival of their inputs: one row for each place in
    # that list, since arrivals no longer change once all predecessors are placed.
    ready = np.empty(n, np.int32)
    count = 0
    arrival = np.empty((16, k))
    for v in by_position:
        if waiting[v] == 0:
            arrival = _with_room(arrival, count)
            arrivals(a, v, state.device, end, arrival[count], NOWHERE)
            ready[count] = v
            count += 1
    for step in range(n):
        best, chosen, target, until = -np.inf, -1, -1, 0.0
        for i in range(count):
            v = ready[i]
            unit = a.unit[v]
            home = state.device[unit]
            if home < 0:
                find_feasible(a, unit, state, feasible)
            first, second, device = np.inf, np.inf, -1
            for d in range(k):
                if (d != home) if home >= 0 else not feasible[d]:
                    continue
                at = max(idle[d], arrival[i, d]) + run_time(a, v, d)
                if at < first:
                    first, second, device = at, first, d
                elif at < second:
                    second = at
            if device < 0:
                continue
            key = base[v] + finish * first
            if regret != 0.0:
                key += regret * (second - first)
            if key > best or chosen < 0 or (key == best and position[v] < position[ready[chosen]]):
                best, chosen, target, until = key, i, device, first
        if chosen < 0:
            return state, order
        v = ready[chosen]
        count -= 1
        ready[chosen] = ready[count]
        arrival[chosen] = arrival[count]
        if state.device[a.unit[v]] < 0:
            assign(a, a.unit[v], target, state)
        end[v] = idle[target] = until
        order[step] = v
        for e in range(a.out_start[v], a.out_start[v + 1]):
            w = a.out_target[e]
            waiting[w] -= 1
            if waiting[w] == 0:
                arrival = _with_room(arrival, count)
                arrivals(a, w, state.device, end, arrival[count], NOWHERE)
                ready[count] = w
                count += 1
    return state, order


@kernel
def _with_room(rows: Any, count: int) -> Any:
    """Return an array with the same rows and room for one more than ``count``."""
    if count < rows.shape[0]:
        return rows
    more = np.empty((2 * rows.shape[0], rows.shape[1]))
    more[:count] = rows
    return more
