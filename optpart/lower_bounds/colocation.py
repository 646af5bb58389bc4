"""Heads and tails where members of a colocation group run one after another, whatever the device.

A group is a machine: wherever it is, its members run there one at a time. So a vertex starts no
earlier than Jackson's preemptive schedule of those of its ancestors that are in one group ends,
with the least time from each of them to the vertex as its tail; and no schedule is shorter than
that of a whole group with its heads and tails. Nothing here depends on devices: every vertex takes
its least run time, and no tensor takes any. Where groups have dozens of members in many levels of
a large graph, as in [L] table 7.1, this says more than bounds that know devices and transfers, and
in less time (one-machine relaxation of the job shop: Carlier & Pinson 1989).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optpart.base import clock
from optpart.kernels.compiled import arrays, inner, short_kernel
from optpart.kernels.struct import Bools, Ints, LongMatrix, Longs, Struct
from optpart.kernels.ticks import Grid
from optpart.lower_bounds.jackson import Waiting, jackson, one_after_the_other, sort
from optpart.lower_bounds.windows import NEVER
from optpart.problem.graph import grouped
from optpart.problem.instance import Instance

#: Vertices and edges looked at between two checks of the time.
_STEPS = 50_000_000


def colocation_bound(instance: Instance, seconds: float = np.inf) -> Fraction | None:
    """Bound the makespan by groups whose members run one after another.

    Parameters
    ----------
    seconds : float
        Time limit; vertices that are not reached by then only wait for their predecessors.

    Returns
    -------
    Fraction or None
        The longest path without groups of several vertices; ``None`` if some unit has no device at
        all, which proves the instance infeasible.
    """
    deadline = clock.now() + seconds
    a = arrays(instance)
    if not a.allowed.any(axis=1).all():
        return None
    units = len(instance.units)
    if not units:
        return Fraction(0)
    if units == instance.vertices:
        deadline = -np.inf  # every vertex only waits for its predecessors
    grid = Grid.of(instance)
    least = np.where(a.allowed[a.unit], grid.duration, NEVER).min(axis=1, keepdims=True)
    head = _heads(_Side(a.order, a.in_start, a.in_source, a.unit, least), deadline)
    tail = _heads(_Side(a.order[::-1].copy(), a.out_start, a.out_target, a.unit, least), deadline)
    of_units = one_after_the_other(*grouped(a.unit, units), least, head, tail)
    return grid.time(int(of_units.max()))


class _Side(Struct):
    """The graph in one direction of time.

    Attributes
    ----------
    order : ndarray of int32, length n
        The vertices, each after those before it.
    start, before : ndarray of int32
        ``before[start[v]:start[v + 1]]`` are those directly before ``v``.
    unit : ndarray of int32, length n
    least : ndarray of int64, n × 1
        Least run times.
    """

    order: Ints
    start: Ints
    before: Ints
    unit: Ints
    least: LongMatrix


def _heads(side: _Side, deadline: float) -> NDArray[np.int64]:
    """Return the least start of each vertex: its head or, backwards, its tail."""
    n, unit = len(side.order), side.unit
    first, _ = grouped(unit, int(unit.max()) + 1)
    work = _Work(
        several=np.diff(first)[unit] > 1,
        first=first,
        count=np.zeros(len(first) - 1, np.int32),
        found=np.empty(n, np.int32),
        met=np.empty(len(first) - 1, np.int32),
        mark=np.full(n, -1, np.int32),
        after=np.zeros(n, np.int64),
        release=np.zeros(n, np.int64),
        waiting=Waiting(np.empty(n, np.int64), np.empty(n, np.int32)),
    )
    head = np.zeros((n, 1), np.int64)
    chunk = max(1, _STEPS // (n + len(side.before)))
    for position in range(0, n, chunk):
        late = clock.now() > deadline
        _raise_heads(side, work, head, position, min(n, position + chunk), late)
    return head


class _Work(Struct):
    """Scratch of a pass over the vertices.

    Attributes
    ----------
    several : ndarray of bool, length n
        Whether the unit of a vertex has other members.
    first, count, found : ndarray of int32
        ``found[first[u]:][:count[u]]`` are the ancestors in unit ``u``.
    met : ndarray of int32, length units
        The units with such ancestors.
    mark : ndarray of int32, length n
        The last position of which a vertex is an ancestor.
    after : ndarray of int64, length n
        From the end of an ancestor, the least time to the start of the vertex.
    release : ndarray of int64, length n
        Heads.
    """

    several: Bools
    first: Ints
    count: Ints
    found: Ints
    met: Ints
    mark: Ints
    after: Longs
    release: Longs
    waiting: Waiting


@short_kernel
def _raise_heads(
    side: _Side, s: _Work, head: LongMatrix, first: int, last: int, late: bool
) -> None:
    """Fill in the heads of the vertices at positions ``first`` to ``last`` of the order."""
    start, before, least = side.start, side.before, side.least
    for position in range(first, last):
        v = side.order[position]
        ready = 0
        for j in range(start[v], start[v + 1]):
            ready = max(ready, head[before[j], 0] + least[before[j], 0])
        if not late:
            for i in range(_ancestors(side, s, position)):
                u = s.met[i]
                size = s.count[u]
                s.count[u] = 0
                if size > 1:
                    job = s.found[s.first[u] : s.first[u] + size]
                    sort(job, size, s.release)
                    # Those in the order of their heads take no less than Jackson's schedule.
                    now, longest = 0, 0
                    for b in range(size):
                        now = max(now, s.release[job[b]]) + least[job[b], 0]
                        longest = max(longest, now + s.after[job[b]])
                    if longest > ready:
                        end = jackson(job, size, head, least, 0, s.after, s.waiting)
                        ready = max(ready, end)
        head[v, 0] = s.release[v] = ready


@inner
def _ancestors(side: _Side, s: _Work, position: int) -> Any:
    """List the ancestors of a vertex in groups, by group; return how many groups there are."""
    start, before, mark, after, several = side.start, side.before, s.mark, s.after, s.several
    v = side.order[position]
    mark[v], after[v], groups = position, 0, 0
    for earlier in range(position, -1, -1):
        x = side.order[earlier]
        if mark[x] == position:
            if several[x] and x != v:
                u = side.unit[x]
                if s.count[u] == 0:
                    s.met[groups] = u
                    groups += 1
                s.found[s.first[u] + s.count[u]] = x
                s.count[u] += 1
            through = after[x] + (0 if x == v else side.least[x, 0])
            for j in range(start[x], start[x + 1]):
                w = before[j]
                if mark[w] != position:
                    mark[w], after[w] = position, through
                else:
                    after[w] = max(after[w], through)
    return groups
