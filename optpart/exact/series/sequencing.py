"""The compiled search for the best order of the vertices of a part, once all have a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from optpart.exact.series.lattice import NEVER
from optpart.kernels.compiled import inner
from optpart.kernels.struct import BoolMatrix, LongCube, LongMatrix, Longs, Struct


class Body(Struct):
    """The vertices of a part but its cut vertex, as seen from a device of the cut vertex before.

    They are positions ``0 … m − 1``, chain by chain
    (:class:`~optpart.exact.series.problem.Chains`).

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

    run: LongMatrix
    arrive: LongMatrix
    link: Longs
    leave: Longs
    order: Longs
    pred_first: Longs
    pred: Longs
    pred_row: Longs
    delays: LongCube
    need: Longs


class Sequencing(Struct):
    """The search for the best order.

    Attributes
    ----------
    device : ndarray, length m
        Of each vertex.
    start : ndarray, length m
        To be filled with the starts in the best schedule.
    tail : ndarray, length m
        Scratch: the least time from the end of each vertex to the start of the cut vertex.
    starts : ndarray, (m + 1) × m
        Scratch: starts when so many vertices run; −1 of the others.
    free : ndarray, (m + 1) × k
        Scratch: when each device is free then.
    tried : ndarray of bool, (m + 1) × m
        Scratch: the vertices that have been tried next.
    head, left : ndarray, length m
        Scratch: the earliest starts, and what is left of each run time.
    """

    device: Longs
    start: Longs
    tail: Longs
    starts: LongMatrix
    free: LongMatrix
    tried: BoolMatrix
    head: Longs
    left: Longs

    @classmethod
    def of(cls, vertices: int, devices: int) -> Sequencing:
        """Return the arrays for a part."""
        return cls(
            device=np.zeros(vertices, dtype=np.int64),
            start=np.zeros(vertices, dtype=np.int64),
            tail=np.zeros(vertices, dtype=np.int64),
            starts=np.zeros((vertices + 1, vertices), dtype=np.int64),
            free=np.zeros((vertices + 1, devices), dtype=np.int64),
            tried=np.zeros((vertices + 1, vertices), dtype=np.bool_),
            head=np.zeros(vertices, dtype=np.int64),
            left=np.zeros(vertices, dtype=np.int64),
        )


@inner
def sequenced(body: Body, s: Sequencing, end: int, direct: int, limit: int, most: int) -> Any:
    """Return a lower bound of the time until the cut vertex can start, and that of a schedule.

    The schedule is sought among the *active* ones, in which no vertex could start earlier without
    delaying another; one of them is optimal. Once the lower bound reaches the limit, the second
    value is −1. The third value is the number of lower bounds that it took.

    Parameters
    ----------
    end : int
        The device of the cut vertex after the part.
    direct : int
        When its input from the cut vertex before arrives.
    most : int
        Nodes to visit beyond the first schedule.
    """
    device, tail, starts = s.device, s.tail, s.starts
    m = len(device)
    _fill_tails(body, s, end, m)
    for x in range(m):
        starts[0, x] = -1
        s.tried[0, x] = False
    for d in range(s.free.shape[1]):
        s.free[0, d] = 0
    lowest = max(direct, _lowest(body, s, 0, m))
    if lowest >= limit:
        return lowest, np.int64(-1), 1
    best: Any = np.int64(NEVER)
    visited = depth = 0
    # Down to this depth, vertices have starts, those tried next at each depth are marked, and
    # ``best`` is the least time of all schedules seen.
    while depth >= 0:
        if depth == m:
            total = direct
            for x in range(m):
                total = max(total, starts[m, x] + body.run[x, device[x]] + tail[x])
            if total < best:
                best = total
                for x in range(m):
                    s.start[x] = starts[m, x]
            if best <= lowest:
                break
            depth -= 1
            continue
        x = _next(body, s, depth)
        if x < 0:
            depth -= 1
            continue
        s.tried[depth, x] = True
        visited += 1
        if visited > most + m:
            return lowest, best, visited
        _go_on(body, s, depth, x)
        if best < NEVER and _lowest(body, s, depth + 1, m) >= best:
            continue
        depth += 1
    return best, best if best < limit else np.int64(-1), 1 + visited


@inner
def decided(body: Body, s: Sequencing, end: int, count: int) -> Any:
    """Return a lower bound of the time where only the first vertices have a device."""
    _fill_tails(body, s, end, count)
    for x in range(count):
        s.starts[0, x] = -1
    for d in range(s.free.shape[1]):
        s.free[0, d] = 0
    return _lowest(body, s, 0, count)


@inner
def _fill_tails(body: Body, s: Sequencing, end: int, count: int) -> None:
    device, tail = s.device, s.tail
    for x in range(count):
        tail[x] = 0
    for z in range(len(device) - 1, -1, -1):
        x = body.order[z]
        if x >= count:
            continue
        if body.leave[x] >= 0:
            tail[x] = max(tail[x], body.delays[body.leave[x], device[x], end])
        for a in range(body.pred_first[x], body.pred_first[x + 1]):
            u = body.pred[a]
            if u >= count:
                continue
            delay = body.delays[body.pred_row[a], device[u], device[x]]
            tail[u] = max(tail[u], delay + body.run[x, device[x]] + tail[x])


@inner
def _go_on(body: Body, s: Sequencing, depth: int, x: int) -> None:
    """Start a vertex at its head."""
    for y in range(len(s.device)):
        s.starts[depth + 1, y] = s.starts[depth, y]
        s.tried[depth + 1, y] = False
    for d in range(s.free.shape[1]):
        s.free[depth + 1, d] = s.free[depth, d]
    s.starts[depth + 1, x] = s.head[x]
    s.free[depth + 1, s.device[x]] = s.head[x] + body.run[x, s.device[x]]


@inner
def _lowest(body: Body, s: Sequencing, depth: int, count: int) -> Any:
    """Return a lower bound of the time of the first vertices, where some have started.

    It is the longest path. On each device, it also is Jackson's preemptive schedule: of those whose
    inputs can be there, the vertex with the longest tail runs.
    """
    device, tail, head, left = s.device, s.tail, s.head, s.left
    start, free = s.starts[depth], s.free[depth]
    lowest = np.int64(0)
    for z in range(len(device)):
        x = body.order[z]
        if x >= count:
            continue
        at = start[x]
        if at < 0:
            at = max(body.arrive[x, device[x]], free[device[x]])
            for a in range(body.pred_first[x], body.pred_first[x + 1]):
                u = body.pred[a]
                if u >= count:
                    continue
                delay = body.delays[body.pred_row[a], device[u], device[x]]
                at = max(at, head[u] + body.run[u, device[u]] + delay)
        head[x] = at
        lowest = max(lowest, at + body.run[x, device[x]] + tail[x])
    if lowest >= NEVER:
        return lowest
    for d in range(body.run.shape[1]):
        waiting = 0
        for x in range(count):
            left[x] = body.run[x, d] if device[x] == d and start[x] < 0 else 0
            waiting += left[x] > 0
        now = np.int64(0)
        while waiting > 0:
            first = -1
            following = np.int64(NEVER)
            for x in range(count):
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
def _next(body: Body, s: Sequencing, depth: int) -> Any:
    """Return a vertex to run next, and put its start into ``head``; −1 if all have been tried.

    In an active schedule, the device of the vertex that could end first next runs one that could
    start before that end, or that vertex (Giffler and Thompson 1960). The one with the longest tail
    goes first.
    """
    device, tail, head = s.device, s.tail, s.head
    start, free, tried = s.starts[depth], s.free[depth], s.tried[depth]
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
