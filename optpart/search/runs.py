"""Moves of whole stretches: what a device runs in sequence, and parts of the graph.

Real networks are long and narrow. In a good placement of one, few tensors cross, and a single
vertex on another device adds two crossings; so these moves carry many vertices at once.

A *stretch* is a sequence of vertices on a device; a *block* is a longest stretch without a pause; a
*part* is what lies between two cut vertices (:mod:`optpart.exact.series.parts`). Stretches
preferably begin and end where little data crosses.

As in :mod:`optpart.search.moves`, ``least`` is the longest schedule that would be accepted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optpart.kernels.compiled import Arrays, crossing_time, inner, run_time
from optpart.kernels.rng import below, uniform
from optpart.search.incremental import MOVED, Notes, take_back
from optpart.search.plan import Links, Plan
from optpart.search.units import is_compatible, move_unit, release, target

#: Maximal number of vertices that move together, so that moves in large graphs stay cheap.
_LONGEST = 500

#: Maximal number of vertices by which the beginning of a stretch moves to where less data crosses.
_SNAP = 30

#: Probability that the second of two stretches goes to any device instead of that of the first.
_THIRD = 0.25


@inner
def stretch(a: Arrays, g: Links, p: Plan, s: Notes, state: Any, v: Any, least: float) -> Any:
    """Put a stretch that begins or ends near ``v`` on another device, as far as it fits there."""
    later = uniform(state) < 0.5
    v = _snapped(g, p, v, not later, state)
    d = _device_beside(a, g, p, v, not later, state)
    if d == p.device[v]:
        return False
    found = _light(g, _stretch(p, v, later, _drawn(p, v, state), False), later)
    return _carry(a, g, p, s, found, d, later, least)


@inner
def block(a: Arrays, g: Links, p: Plan, s: Notes, state: Any, v: Any, least: float) -> Any:
    """Put the block of ``v`` on another device, which may merge it with a neighbour."""
    found = _block(p, v)
    earlier = uniform(state) < 0.5
    d = _device_beside(a, g, p, found[0] if earlier else found[-1], earlier, state)
    return _carry(a, g, p, s, found, d, True, least)


@inner
def boundary(a: Arrays, g: Links, p: Plan, s: Notes, state: Any, v: Any, least: float) -> Any:
    """Shift the boundary between the block of ``v`` and the one before or after it.

    The stretch from near ``v`` to the end of its block goes where the next block is, or the stretch
    from its beginning to near ``v`` where the previous one is; both as far as they fit.
    """
    earlier = uniform(state) < 0.5
    v = _snapped(g, p, v, not earlier, state)
    found = _stretch(p, v, not earlier, _LONGEST, True)
    d = _device_beside(a, g, p, found[-1], earlier, state)
    return _carry(a, g, p, s, found[::-1], d, earlier, least)


@inner
def part(a: Arrays, g: Links, p: Plan, s: Notes, state: Any, v: Any, least: float) -> Any:
    """Put the part of ``v``, or several consecutive parts, on one device, as far as they fit.

    In every topological order, the vertices between two cut vertices are consecutive. In a graph
    without cut vertices, as many vertices move as are drawn.
    """
    n, reach = p.device.shape[0], 0
    first = np.int64(p.position[v])
    joined = g.cut_vertices > 0
    while joined and first > 0 and reach < _LONGEST and not g.cut_vertex[p.order[first - 1]]:
        first -= 1
        reach += 1
    last, most = first, min(n, first + _LONGEST)
    drawn = first + _length(state, min(n, _LONGEST))
    while last < most and (last < drawn or (joined and not g.cut_vertex[p.order[last - 1]])):
        last += 1
    d = _device_beside(a, g, p, p.order[first], True, state)
    found = _light(g, p.order[first:last].copy(), True)
    return _carry(a, g, p, s, found, d, True, least)


@inner
def exchange_stretches(a: Arrays, g: Links, p: Plan, s: Notes, state: Any, v: Any, w: Any) -> Any:
    """Exchange the devices of a stretch from near ``v`` on and of one from near ``w`` on.

    The second is long enough to make room for the first, and may go to a third device.
    """
    d, e = np.int64(p.device[v]), np.int64(p.device[w])
    if d == e:
        return False
    v, w = _snapped(g, p, v, True, state), _snapped(g, p, w, True, state)
    one = _light(g, _stretch(p, v, True, _drawn(p, v, state), False), True)
    missing = p.used[e] - a.capacity[e]
    for u in one:
        missing += _need(a, u)
    other = _stretch(p, w, True, _LONGEST, False)
    drawn, count = min(len(other), _drawn(p, w, state)), 0
    while count < len(other) and missing > 0:
        missing -= _need(a, other[count])
        count += 1
    if missing > 0:
        return False
    if count < drawn:
        count += len(_light(g, other[count:drawn], True))
    back = below(state, p.last.shape[0]) if uniform(state) < _THIRD else d
    return _exchange(a, g, p, s, one, e, other[:count], back)


@inner
def exchange_blocks(a: Arrays, g: Links, p: Plan, s: Notes, v: Any, w: Any) -> Any:
    """Exchange the devices of the blocks of ``v`` and ``w``."""
    d, e = np.int64(p.device[v]), np.int64(p.device[w])
    if d == e:
        return False
    return _exchange(a, g, p, s, _block(p, v), e, _block(p, w), d)


@inner
def _length(state: Any, most: Any) -> Any:
    """Draw a length of at most ``most``; every order of magnitude is equally likely."""
    return np.int64(np.float64(most + 1) ** uniform(state))


@inner
def _drawn(p: Plan, v: Any, state: Any) -> Any:
    """Draw the length of a stretch on the device of ``v``."""
    return _length(state, min(np.int64(p.number[p.device[v]]), _LONGEST))


@inner
def _stretch(p: Plan, v: Any, later: Any, most: Any, joined: Any) -> Any:
    """Return the vertices on a device from ``v`` on or, in reverse, up to it.

    Parameters
    ----------
    joined : bool
        Whether they end at a pause.
    """
    found = np.empty(min(most, np.int64(p.number[p.device[v]])), np.int32)
    count = 0
    w = np.int32(v)
    while w >= 0 and count < len(found):
        found[count] = w
        count += 1
        x = p.after[w] if later else p.before[w]
        if joined and x >= 0:
            pause = p.start[x] - p.end[w] if later else p.start[w] - p.end[x]
            if pause > 0.0:
                break
        w = x
    return found[:count]


@inner
def _block(p: Plan, v: Any) -> Any:
    """Return the block of ``v``."""
    first = _stretch(p, v, False, _LONGEST, True)[-1]
    return _stretch(p, first, True, _LONGEST, True)


@inner
def _snapped(g: Links, p: Plan, v: Any, earlier: Any, state: Any) -> Any:
    """Return the vertex before or behind which the least crosses, of some before or after ``v``.

    Parameters
    ----------
    earlier : bool
        Whether it is to begin a stretch; otherwise it is to end one.
    """
    best = v
    w = np.int32(v)
    for _ in range(_length(state, _SNAP) - 1):
        w = p.before[w] if earlier else p.after[w]
        if w < 0:
            break
        if (g.entering[w] < g.entering[best]) if earlier else (g.leaving[w] < g.leaving[best]):
            best = np.int64(w)
    return best


@inner
def _light(g: Links, vertices: Any, later: Any) -> Any:
    """Cut a stretch off, in its last half, where the least crosses."""
    best = len(vertices)
    for i in range(len(vertices) - 1, len(vertices) // 2, -1):
        now, then = vertices[i - 1], vertices[best - 1]
        if (g.leaving[now] < g.leaving[then]) if later else (g.entering[now] < g.entering[then]):
            best = i
    return vertices[:best]


@inner
def _device_beside(a: Arrays, g: Links, p: Plan, v: Any, earlier: Any, state: Any) -> Any:
    """Draw the device of a predecessor or successor elsewhere or, as often, any device."""
    d = np.int64(p.device[v])
    if uniform(state) < 0.5:
        if earlier:
            for e in range(a.in_start[v], a.in_start[v + 1]):
                if p.device[a.in_source[e]] != d:
                    return np.int64(p.device[a.in_source[e]])
        else:
            for e in range(a.out_start[v], a.out_start[v + 1]):
                if p.device[a.out_target[e]] != d:
                    return np.int64(p.device[a.out_target[e]])
    return target(g, state)


@inner
def _need(a: Arrays, v: Any) -> Any:
    """Return the static memory of a unit if ``v`` is its first vertex."""
    unit = a.unit[v]
    return a.need[unit] if a.unit_vertex[a.unit_start[unit]] == v else np.int64(0)


@inner
def _carry(
    a: Arrays, g: Links, p: Plan, s: Notes, vertices: Any, d: Any, later: Any, least: float
) -> Any:
    """Put the units of vertices on ``d``, up to the first that finds no room there.

    Parameters
    ----------
    vertices : ndarray of int32
        In the order in which they run or, unless ``later``, in reverse.
    """
    room = a.capacity[d] - p.used[d]
    count, total, away = 0, 0.0, 0
    for v in vertices:
        if p.device[v] != d:
            room -= _need(a, v)
            if room < 0 or not a.allowed[a.unit[v], d]:
                break
            away += 1
        total += run_time(a, v, d)
        count += 1
    if away == 0:
        return False
    if least < np.inf and a.need.shape[0] == p.device.shape[0]:
        first, last = vertices[0], vertices[count - 1]
        if not later:
            first, last = last, first
        if _around(a, p, first, last, d) + total > least:
            return False
    for v in vertices[:count]:
        if p.device[v] != d:
            move_unit(a, g, p, s, a.unit[v], d)
    return _is_valid(a, p, s)


@inner
def _around(a: Arrays, p: Plan, first: Any, last: Any, d: Any) -> Any:
    """Return the least time before and after vertices that run on ``d`` one after another.

    Nothing before the first changes its head, and nothing after the last its tail.
    """
    head, tail = 0.0, 0.0
    for e in range(a.in_start[first], a.in_start[first + 1]):
        u = a.in_source[e]
        head = max(head, p.end[u] + max(0.0, crossing_time(a, a.in_tensor[e], p.device[u], d)))
    for e in range(a.out_start[last], a.out_start[last + 1]):
        w = a.out_target[e]
        crossing = max(0.0, crossing_time(a, a.out_tensor[e], d, p.device[w]))
        tail = max(tail, crossing + p.run[w] + p.tail[w])
    return head + tail


@inner
def _exchange(
    a: Arrays, g: Links, p: Plan, s: Notes, one: Any, e: Any, other: Any, back: Any
) -> Any:  # fmt: skip
    """Put one stretch on ``e``, and the other one, which is there, on another device."""
    d = p.device[one[0]]
    if back == e:
        return False
    room = a.capacity[back] - p.used[back]
    for v in one:
        if not a.allowed[a.unit[v], e]:
            return False
        if back == d:
            room += _need(a, v)
    for v in other:
        room -= _need(a, v)
        if room < 0 or not a.allowed[a.unit[v], back]:
            return False
    for v in one:
        if p.device[v] == d:
            move_unit(a, g, p, s, a.unit[v], e)
    for v in other:
        if p.device[v] == e:
            move_unit(a, g, p, s, a.unit[v], back)
    return _is_valid(a, p, s)


@inner
def _is_valid(a: Arrays, p: Plan, s: Notes) -> Any:
    """Return whether all that has moved may be where it is; if not, take the change back."""
    for m in range(s.counts[MOVED]):
        v = s.moved[m]
        d, unit = p.device[v], a.unit[v]
        if a.unit_vertex[a.unit_start[unit]] != v:
            continue
        if p.used[d] > a.capacity[d] or not is_compatible(a, p, unit, d):
            release(a, p, s)
            take_back(p, s)
            return False
    return True
