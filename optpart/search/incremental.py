"""Incremental changes of a plan: propagate, commit and rollback, with an undo log.

A change moves vertices and logs the previous state. :func:`settle` then propagates new times only
to the vertices that the change affects, and stops as soon as the schedule is certain to be too
long: heads and tails of unaffected vertices remain valid.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from optpart.kernels.compiled import Arrays, crossing_time, inner, run_time
from optpart.kernels.struct import Struct
from optpart.search.plan import Links, Plan


class Notes(Struct):
    """The undo log of a change.

    Attributes
    ----------
    counts : ndarray of int64
        Numbers of moved vertices, of delays, of times and of waiting vertices; the first waiting
        position; the last position touched by a change; the tensor whose eagerness was
        toggled, or −1; whether a vertex outside the frame has moved.
    moved, home, spot, place, run : one per moved vertex
        Vertex, and its device, neighbour before it, position and run time.
    edge, delay : one per delay that changed
    late, start : one per vertex whose start changed
    waits : ndarray of uint8, by position
        Whether a vertex waits for new times.
    frame : ndarray of int64, 2
        First position that may change, and the one after the last. A change that moves a vertex
        outside is to be taken back. Tails before the frame and times behind it are not kept up to
        date; tails behind it remain valid, and tell how long the schedule is.
    """

    counts: NDArray[np.int64]
    moved: NDArray[np.int32]
    home: NDArray[np.int32]
    spot: NDArray[np.int32]
    place: NDArray[np.int32]
    run: NDArray[np.float64]
    edge: NDArray[np.int32]
    delay: NDArray[np.float64]
    late: NDArray[np.int32]
    start: NDArray[np.float64]
    waits: NDArray[np.uint8]
    frame: NDArray[np.int64]


MOVED, DELAYS, LATE, WAITING, FIRST, TOUCHED, FLIPPED, OUTSIDE = range(8)


def notes(n: int, edges: int) -> Notes:
    """Make an empty undo log for ``n`` vertices."""
    room = 2 * n + 2
    return Notes(
        counts=np.array([0, 0, 0, 0, n, -1, -1, 0], dtype=np.int64),
        moved=np.zeros(room, dtype=np.int32),
        home=np.zeros(room, dtype=np.int32),
        spot=np.zeros(room, dtype=np.int32),
        place=np.zeros(room, dtype=np.int32),
        run=np.zeros(room),
        edge=np.zeros(4 * edges + 4, dtype=np.int32),
        delay=np.zeros(4 * edges + 4),
        late=np.zeros(n, dtype=np.int32),
        start=np.zeros(n),
        waits=np.zeros(n, dtype=np.uint8),
        frame=np.array([0, n], dtype=np.int64),
    )


@inner
def wait(s: Notes, position: Any) -> None:
    """Mark the vertex at a position for propagation, unless it is behind the frame."""
    count, waits = s.counts, s.waits
    if waits[position] == 0 and position < s.frame[1]:
        waits[position] = 1
        count[WAITING] += 1
        if position < count[FIRST]:
            count[FIRST] = position


@inner
def last_before(p: Plan, d: Any, position: Any) -> Any:
    """Return the last vertex on ``d`` whose position is below ``position``; −1 if there is none."""
    n = p.device.shape[0]
    w = p.last[d]
    if w < 0 or p.position[w] < position:
        return w
    count = np.int64(p.number[d])
    if count * count < 2 * n:
        while w >= 0 and p.position[w] >= position:
            w = p.before[w]
        return w
    i = position - 1
    while i >= 0 and p.device[p.order[i]] != d:
        i -= 1
    return p.order[i] if i >= 0 else np.int32(-1)


@inner
def _unlink(p: Plan, v: Any) -> None:
    x, y, d = p.before[v], p.after[v], p.device[v]
    if x >= 0:
        p.after[x] = y
    else:
        p.first[d] = y
    if y >= 0:
        p.before[y] = x
    else:
        p.last[d] = x
    p.number[d] -= 1


@inner
def _link(p: Plan, v: Any, d: Any, x: Any) -> None:
    """Put a vertex on a device, right after ``x``."""
    if x >= 0:
        y = p.after[x]
        p.after[x] = v
    else:
        y = p.first[d]
        p.first[d] = v
    if y >= 0:
        p.before[y] = v
    else:
        p.last[d] = v
    p.before[v] = x
    p.after[v] = y
    p.device[v] = d
    p.number[d] += 1


@inner
def _shift(p: Plan, v: Any, to: Any) -> None:
    """Move a vertex to a position of the order, shifting those in between."""
    i = p.position[v]
    step = 1 if to > i else -1
    while i != to:
        w = p.order[i + step]
        p.order[i] = w
        p.position[w] = i
        i += step
    p.order[to] = v
    p.position[v] = to


@inner
def move(a: Arrays, g: Links, p: Plan, s: Notes, v: Any, d: Any, to: Any) -> None:
    """Put a vertex on a device and at a position of the order; mark vertices that need new times.

    Waiting is marked by position: a change that moves several vertices keeps their positions.
    """
    count, position = s.counts, p.position
    m = count[MOVED]
    i = position[v]
    s.moved[m], s.home[m], s.spot[m], s.place[m], s.run[m] = (
        v, p.device[v], p.before[v], i, p.run[v]
    )  # fmt: skip
    count[MOVED] = m + 1
    if min(i, to) < s.frame[0] or max(i, to) >= s.frame[1]:
        count[OUTSIDE] = 1
    follower = p.after[v]
    _unlink(p, v)
    if to != i:
        _shift(p, v, to)
    count[TOUCHED] = max(count[TOUCHED], i, to)
    if follower >= 0:
        wait(s, position[follower])
    moved_away = p.device[v] != d
    _link(p, v, d, last_before(p, d, to))
    wait(s, to)
    if p.after[v] >= 0:
        wait(s, position[p.after[v]])
    if not moved_away:
        return
    p.run[v] = run_time(a, v, d)
    for e in range(a.in_start[v], a.in_start[v + 1]):
        _cross(p, s, e, max(0.0, crossing_time(a, a.in_tensor[e], p.device[a.in_source[e]], d)))
    for e in range(a.out_start[v], a.out_start[v + 1]):
        w = a.out_target[e]
        there = max(0.0, crossing_time(a, a.out_tensor[e], d, p.device[w]))
        if _cross(p, s, g.in_of_out[e], there):
            wait(s, position[w])


@inner
def _cross(p: Plan, s: Notes, e: Any, time: float) -> Any:
    """Set the transfer time of an in-edge; return whether it changed."""
    if p.delay[e] == time:
        return False
    j = s.counts[DELAYS]
    s.edge[j], s.delay[j] = e, p.delay[e]
    s.counts[DELAYS] = j + 1
    p.delay[e] = time
    return True


@inner
def settle(a: Arrays, g: Links, p: Plan, s: Notes, limit: float) -> Any:
    """Propagate new times to the waiting vertices; return whether the schedule meets ``limit``.

    If the frame ends before the order does, ``limit`` must not be below the length of the schedule
    before the change.

    If it does not, some times are inconsistent with the order: take the change back.
    """
    count, waits, order, start, end, run, tail, delay = (
        s.counts, s.waits, p.order, p.start, p.end, p.run, p.tail, p.delay
    )  # fmt: skip
    position, before, after = p.position, p.before, p.after
    in_start, in_source = a.in_start, a.in_source
    out_start, out_target, in_of_out = a.out_start, a.out_target, g.in_of_out
    late, old_start = s.late, s.start
    i, touched, waiting, logged = count[FIRST], count[TOUCHED], count[WAITING], count[LATE]
    high = s.frame[1]
    fits = True
    while waiting > 0:
        while waits[i] == 0:
            i += 1
        waits[i] = 0
        waiting -= 1
        if not fits:
            continue
        v = order[i]
        x = before[v]
        at = end[x] if x >= 0 else 0.0
        for e in range(in_start[v], in_start[v + 1]):
            there = end[in_source[e]] + delay[e]
            if there > at:
                at = there
        until = at + run[v]
        was = end[v]
        if at != start[v] or until != was:
            late[logged], old_start[logged] = v, start[v]
            logged += 1
            start[v] = at
            end[v] = until
            # Vertices after all touched positions still have valid tails.
            if until + (tail[v] if i > touched else 0.0) > limit:
                fits = False
                continue
            if until == was:
                continue
            y = after[v]
            if y >= 0:
                j = position[y]
                if j >= high:
                    fits = fits and until + run[y] + tail[y] <= limit
                elif waits[j] == 0:
                    waits[j] = 1
                    waiting += 1
            for e in range(out_start[v], out_start[v + 1]):
                w = out_target[e]
                j = position[w]
                if j >= high:
                    fits = fits and until + delay[in_of_out[e]] + run[w] + tail[w] <= limit
                elif waits[j] == 0:
                    crossing = delay[in_of_out[e]]
                    # Only vertices that waited for it, or now do, change their start.
                    if until + crossing > start[w] or was + crossing >= start[w]:
                        waits[j] = 1
                        waiting += 1
    count[WAITING] = 0
    count[LATE] = logged
    if fits and high < order.shape[0]:
        return _fits_behind(a, g, p, s, limit)
    if fits:
        for d in range(p.last.shape[0]):
            if p.last[d] >= 0 and end[p.last[d]] > limit:
                return False
    return fits


@inner
def _fits_behind(a: Arrays, g: Links, p: Plan, s: Notes, limit: float) -> Any:
    """Return whether the paths from moved vertices to what is behind the frame meet the limit."""
    high = s.frame[1]
    for m in range(s.counts[MOVED]):
        v = s.moved[m]
        y = p.after[v]
        if y >= 0 and p.position[y] >= high and p.end[v] + p.run[y] + p.tail[y] > limit:
            return False
        for e in range(a.out_start[v], a.out_start[v + 1]):
            w = a.out_target[e]
            there = p.end[v] + p.delay[g.in_of_out[e]] + p.run[w] + p.tail[w]
            if p.position[w] >= high and there > limit:
                return False
    return True


@inner
def take_back(p: Plan, s: Notes) -> None:
    """Roll the change back, times included."""
    count = s.counts
    for m in range(count[MOVED] - 1, -1, -1):
        v = s.moved[m]
        _unlink(p, v)
        if p.position[v] != s.place[m]:
            _shift(p, v, s.place[m])
        _link(p, v, s.home[m], s.spot[m])
        p.run[v] = s.run[m]
    for j in range(count[DELAYS] - 1, -1, -1):
        p.delay[s.edge[j]] = s.delay[j]
    for j in range(count[LATE] - 1, -1, -1):
        p.start[s.late[j]] = s.start[j]
    for j in range(count[LATE]):
        v = s.late[j]
        p.end[v] = p.start[v] + p.run[v]
    if count[FLIPPED] >= 0:
        p.eager[count[FLIPPED]] = not p.eager[count[FLIPPED]]
    forget(p, s)


@inner
def forget(p: Plan, s: Notes) -> None:
    """Begin the next change."""
    i = s.counts[FIRST]
    while s.counts[WAITING] > 0:
        if s.waits[i] != 0:
            s.waits[i] = 0
            s.counts[WAITING] -= 1
        i += 1
    s.counts[:] = 0
    s.counts[FIRST] = p.device.shape[0]
    s.counts[TOUCHED] = -1
    s.counts[FLIPPED] = -1


@inner
def keep(a: Arrays, g: Links, p: Plan, s: Notes) -> None:
    """Commit the change: update the tails, except before the frame."""
    count, waits, order, run, tail, delay = s.counts, s.waits, p.order, p.run, p.tail, p.delay
    position, low = p.position, s.frame[0]
    in_start, in_source = a.in_start, a.in_source
    top, waiting = -1, 0
    for m in range(count[MOVED]):
        v = s.moved[m]
        for x in (v, s.spot[m], p.before[v]):
            if x >= 0 and position[x] >= low and waits[position[x]] == 0:
                waits[position[x]] = 1
                waiting += 1
                top = max(top, position[x])
        for e in range(in_start[v], in_start[v + 1]):
            j = position[in_source[e]]
            if j >= low and waits[j] == 0:
                waits[j] = 1
                waiting += 1
                top = max(top, j)
    i = top
    while waiting > 0:
        while waits[i] == 0:
            i -= 1
        waits[i] = 0
        waiting -= 1
        v = order[i]
        y = p.after[v]
        rest = run[y] + tail[y] if y >= 0 else 0.0
        for e in range(a.out_start[v], a.out_start[v + 1]):
            w = a.out_target[e]
            there = delay[g.in_of_out[e]] + run[w] + tail[w]
            if there > rest:
                rest = there
        was = tail[v]
        if rest != was:
            tail[v] = rest
            x = p.before[v]
            if x >= 0 and position[x] >= low and waits[position[x]] == 0:
                waits[position[x]] = 1
                waiting += 1
            for e in range(in_start[v], in_start[v + 1]):
                j = position[in_source[e]]
                if j >= low and waits[j] == 0:
                    waits[j] = 1
                    waiting += 1
    forget(p, s)
