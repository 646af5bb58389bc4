"""List scheduling of ready vertices: each one's best device first, then the choice among them.

Min-Min and Max-Min (Ibarra and Kim 1977; Braun et al. 2001) and Sufferage (Maheswaran et al. 1999)
differ in that choice only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from optpart.base.clock import check_time
from optpart.kernels.compiled import (
    Arrays,
    State,
    arrays,
    assign,
    inner,
    kernel,
    nothing_placed,
    run_time,
)
from optpart.kernels.struct import FloatMatrix, Floats, Ints, Longs, Struct
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition, partition_of
from optpart.strategies.partition.common import find_feasible
from optpart.strategies.partition.insertion import arrivals

#: Pairs of a ready vertex and a device to look at between two looks at the clock.
_WORK = 2**22

#: Rows, to begin with, of the table of arrivals at ready vertices.
_ROOM = 16


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
    a = arrays(instance)
    key, state, found = _Key(finish, regret, base), nothing_placed(a), _nothing_scheduled(instance)
    # Nothing has to arrive at a vertex without inputs.
    arrival = np.zeros((max(_ROOM, int(found.counts[1])), instance.devices))
    done = False
    while not done:
        check_time()
        arrival, done = _go_on(a, key, state, found, arrival, _WORK)
    return partition_of(instance, state, found.order.tolist())


class _Key(Struct):
    """The key by which vertices are chosen; see :func:`schedule_ready`."""

    finish: float
    regret: float
    base: Floats


class _Partial(Struct):
    """A schedule of some of the vertices, and those that are ready.

    Attributes
    ----------
    order : ndarray of int32, length n
        Of which ``counts[0]`` are scheduled.
    waiting : ndarray of int32, length n
        The number of in-edges from vertices that are not scheduled.
    end, idle : ndarray of float64
        When each vertex ends, and from when on each device is idle.
    position : ndarray of int64, length n
        In the topological order.
    ready : ndarray of int32, length n
        Of which ``counts[1]`` are ready, in any order.
    """

    order: Ints
    waiting: Ints
    end: Floats
    idle: Floats
    position: Longs
    ready: Ints
    counts: Longs


def _nothing_scheduled(instance: Instance) -> _Partial:
    """Return the empty schedule; vertices without inputs are ready."""
    n, position = instance.vertices, instance.graph.position
    waiting = np.diff(arrays(instance).in_start)
    ready = np.zeros(n, dtype=np.int32)
    sources = np.flatnonzero(waiting == 0)
    ready[: len(sources)] = sources[np.argsort(position[sources])]
    return _Partial(
        order=np.zeros(n, dtype=np.int32),
        waiting=waiting,
        end=np.zeros(n),
        idle=np.zeros(instance.devices),
        position=position,
        ready=ready,
        counts=np.array([0, len(sources)], dtype=np.int64),
    )


@kernel
def _go_on(
    a: Arrays, by: _Key, state: State, found: _Partial, arrival: FloatMatrix, work: int
) -> Any:
    """Schedule vertices until the work is done; return the arrivals, and whether no more follow.

    Row ``i`` of ``arrival`` says when the inputs of the ready vertex ``i`` arrive at each device;
    it does not change once all predecessors are placed.
    """
    n, k = found.order.shape[0], a.speed.shape[0]
    end, idle = found.end, found.idle
    position, ready = found.position, found.ready
    step, count = found.counts[0], found.counts[1]
    feasible = np.empty(k, np.bool_)
    while step < n and work > 0:
        work -= count * k
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
            key = by.base[v] + by.finish * first
            if by.regret != 0.0:
                key += by.regret * (second - first)
            if key > best or chosen < 0 or (key == best and position[v] < position[ready[chosen]]):
                best, chosen, target, until = key, i, device, first
        if chosen < 0:
            return arrival, True
        v = ready[chosen]
        count -= 1
        ready[chosen] = ready[count]
        for d in range(k):
            arrival[chosen, d] = arrival[count, d]
        if state.device[a.unit[v]] < 0:
            assign(a, a.unit[v], target, state)
        end[v] = idle[target] = until
        found.order[step] = v
        step += 1
        for e in range(a.out_start[v], a.out_start[v + 1]):
            w = a.out_target[e]
            found.waiting[w] -= 1
            if found.waiting[w] == 0:
                arrival = _with_room(arrival, count)
                arrivals(a, w, state.device, end, arrival[count], -1)
                ready[count] = w
                count += 1
        found.counts[0], found.counts[1] = step, count
    return arrival, step == n


@inner
def _with_room(rows: Any, count: int) -> Any:
    """Return an array with the same rows and room for one more than ``count``."""
    if count < rows.shape[0]:
        return rows
    more = np.empty((2 * rows.shape[0], rows.shape[1]))
    for i in range(count):
        for d in range(rows.shape[1]):
            more[i, d] = rows[i, d]
    return more
