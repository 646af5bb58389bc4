"""The compiled search for the best order of the vertices of a part, once all have a device."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.kernels.compiled import inner
from optpart.series.lattice import NEVER


class Body(NamedTuple):
    """The vertices of a part but its cut vertex, as seen from a device of the cut vertex before.

    They are positions ``0 … m − 1``, chain by chain (:class:`~optpart.series.chains.Chains`).

    Attributes
    ----------
    run : ndarray, m × k
        Ticks; ``NEVER`` where a vertex is not allowed.
    arrive : ndarray, m × k
        Earliest starts as far as the cut vertex before says, which ends at 0.
    link, leave : ndarray, length m
        Row of ``delays`` from the vertex before in the chain, and to the cut vertex after the part;
        −1 without an edge.
    order : ndarray, length m
        Positions in topological order.
    pred_first, pred, pred_row : ndarray
        Predecessors, with rows of ``delays``.
    delays : ndarray, rows × k × k
    need : ndarray, length m
        Memory.
    """

    run: NDArray[np.int64]
    arrive: NDArray[np.int64]
    link: NDArray[np.int64]
    leave: NDArray[np.int64]
    order: NDArray[np.int64]
    pred_first: NDArray[np.int64]
    pred: NDArray[np.int64]
    pred_row: NDArray[np.int64]
    delays: NDArray[np.int64]
    need: NDArray[np.int64]


@inner
def sequenced(
    body: Body, device: Any, end: int, direct: Any, limit: Any, most: int, start: Any
) -> Any:
    """Return a lower bound of the time until the cut vertex can start, and that of a schedule.

    The schedule is sought among the *active* ones, in which no vertex could start earlier without
    delaying another; one of them is optimal. Once the lower bound reaches the limit, the second
    value is −1.

    Parameters
    ----------
    device : ndarray, length m
    end : int
        The device of the cut vertex after the part.
    direct : int
        When its input from the cut vertex before arrives.
    most : int
        Nodes to visit beyond the first schedule.
    start : ndarray, length m
        To be filled with the starts in the schedule.
    """
    m = len(device)
    tail = np.zeros(m, dtype=np.int64)
    for z in range(m - 1, -1, -1):
        x = body.order[z]
        if body.leave[x] >= 0:
            tail[x] = max(tail[x], body.delays[body.leave[x], device[x], end])
        for a in range(body.pred_first[x], body.pred_first[x + 1]):
            u = body.pred[a]
            delay = body.delays[body.pred_row[a], device[u], device[x]]
            tail[u] = max(tail[u], delay + body.run[x, device[x]] + tail[x])
    starts = np.full((m + 1, m), -1, dtype=np.int64)
    free = np.zeros((m + 1, body.run.shape[1]), dtype=np.int64)
    tried = np.zeros((m + 1, m), dtype=np.bool_)
    head = np.empty(m, dtype=np.int64)
    lowest = max(direct, _lowest(body, device, tail, starts[0], free[0], head))
    if lowest >= limit:
        return lowest, np.int64(-1)
    best = np.int64(NEVER)
    visited = depth = 0
    while depth >= 0:
        if depth == m:
            total = np.int64(direct)
            for x in range(m):
                total = max(total, starts[m, x] + body.run[x, device[x]] + tail[x])
            if total < best:
                best = total
                start[:] = starts[m]
            if best <= lowest:
                break
            depth -= 1
            continue
        x = _next(body, device, tail, starts[depth], free[depth], tried[depth], head)
        if x < 0:
            depth -= 1
            continue
        tried[depth, x] = True
        visited += 1
        if visited > most + m:
            return lowest, best
        starts[depth + 1] = starts[depth]
        starts[depth + 1, x] = head[x]
        free[depth + 1] = free[depth]
        free[depth + 1, device[x]] = head[x] + body.run[x, device[x]]
        tried[depth + 1] = False
        if best < NEVER:
            least = _lowest(body, device, tail, starts[depth + 1], free[depth + 1], head)
            if least >= best:
                continue
        depth += 1
    return best, best if best < limit else np.int64(-1)


@inner
def _lowest(body: Body, device: Any, tail: Any, start: Any, free: Any, head: Any) -> Any:
    """Return a lower bound of the time, where some vertices have started.

    It is the longest path. On each device, it also is Jackson's preemptive schedule: of those whose
    inputs can be there, the vertex with the longest tail runs.
    """
    m = len(device)
    lowest = np.int64(0)
    for z in range(m):
        x = body.order[z]
        at = start[x]
        if at < 0:
            at = max(body.arrive[x, device[x]], free[device[x]])
            for a in range(body.pred_first[x], body.pred_first[x + 1]):
                u = body.pred[a]
                delay = body.delays[body.pred_row[a], device[u], device[x]]
                at = max(at, head[u] + body.run[u, device[u]] + delay)
        head[x] = at
        lowest = max(lowest, at + body.run[x, device[x]] + tail[x])
    if lowest >= NEVER:
        return lowest
    left = np.empty(m, dtype=np.int64)
    for d in range(body.run.shape[1]):
        waiting = 0
        for x in range(m):
            left[x] = body.run[x, d] if device[x] == d and start[x] < 0 else 0
            waiting += left[x] > 0
        now = np.int64(0)
        while waiting > 0:
            first = -1
            following = np.int64(NEVER)
            for x in range(m):
                if left[x] == 0:
                    continue
                if head[x] > now:
                    following = min(following, head[x])
                elif first < 0 or tail[x] > tail[first]:
                    first = x
            if first < 0:
                now = following
                continue
            done = min(left[first], following - now)
            left[first] -= done
            now += done
            if left[first] == 0:
                waiting -= 1
                lowest = max(lowest, now + tail[first])
    return lowest


@inner
def _next(body: Body, device: Any, tail: Any, start: Any, free: Any, tried: Any, head: Any) -> Any:
    """Return a vertex to run next, and put its start into ``head``; −1 if all have been tried.

    In an active schedule, the device of the vertex that could end first next runs one that could
    start before that end, or that vertex (Giffler and Thompson 1960). The one with the longest tail
    goes first.
    """
    m = len(device)
    soonest = np.int64(NEVER)
    where = -1
    for x in range(m):
        if start[x] >= 0:
            continue
        at = max(body.arrive[x, device[x]], free[device[x]])
        for a in range(body.pred_first[x], body.pred_first[x + 1]):
            u = body.pred[a]
            if start[u] < 0:
                at = np.int64(NEVER)
                break
            delay = body.delays[body.pred_row[a], device[u], device[x]]
            at = max(at, start[u] + body.run[u, device[u]] + delay)
        head[x] = at
        if at + body.run[x, device[x]] < soonest:
            soonest = at + body.run[x, device[x]]
            where = device[x]
    found = -1
    for x in range(m):
        if start[x] >= 0 or device[x] != where or tried[x]:
            continue
        possible = head[x] < soonest or head[x] + body.run[x, where] == soonest
        if possible and (found < 0 or tail[x] > tail[found]):
            found = x
    return found
