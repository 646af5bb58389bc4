"""Heads and tails: the earliest start of a vertex on a device, and the least time after its end.

Everything is computed in integers on a :class:`~optpart.kernels.ticks.Grid` and thereby proven.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optpart.base import clock
from optpart.kernels.compiled import Arrays, arrays, inner, short_kernel, slowdown
from optpart.kernels.struct import BoolMatrix, IntMatrix, Ints, LongCube, LongMatrix, Longs, Struct
from optpart.kernels.ticks import Grid
from optpart.problem.instance import Instance

#: Head or tail of a vertex on a device that it cannot use.
NEVER = 2**60

#: Estimated seconds per vertex or edge and pair of devices.
_PER_PAIR = 2e-9


@dataclass(frozen=True, eq=False)
class Windows:
    """Heads, tails, and the devices that they leave possible.

    Attributes
    ----------
    head : ndarray of int64, n × k
        Earliest start of ``v`` on ``d`` in any schedule, in ticks; ``NEVER`` where ``v`` cannot be
        on ``d``.
    tail : ndarray of int64, n × k
        Least time from the end of ``v`` on ``d`` to the end of any schedule.
    through : ndarray of int64, units × k
        Largest head + run time + tail of a unit's members on a device: the makespan is at least
        this if the unit is there.
    possible : ndarray of bool, units × k
        Whether a unit can be on a device in a schedule of at most the given length.
    """

    head: NDArray[np.int64]
    tail: NDArray[np.int64]
    through: NDArray[np.int64]
    possible: NDArray[np.bool_]

    @property
    def bound(self) -> int | None:
        """Lower bound of the makespan in ticks; ``None`` if some unit has no device left."""
        if not len(self.through):
            return 0
        if not self.possible.any(axis=1).all():
            return None
        return int(self.through.min(axis=1).max())


def windows(
    instance: Instance,
    grid: Grid,
    limit: int | None = None,
    allowed: NDArray[np.bool_] | None = None,
    known: Windows | None = None,
    *,
    seconds: float = np.inf,
) -> Windows:
    """Compute device- and group-aware heads and tails (design §7).

    ``head[v,d]`` is the largest, over the inputs of ``v``, of the least over the devices ``e`` that
    the producer ``u`` may use of ``head[u,e] + p[u,e] + δ(τ,e,d)``; if ``u`` and ``v`` are
    colocated, only ``e = d`` counts. Tails are computed likewise, backwards.

    Parameters
    ----------
    limit : int, optional
        Only schedules of at most this many ticks count: devices on which a unit cannot meet the
        limit are dropped, which makes other heads and tails larger, until nothing changes.
    allowed : ndarray of bool, units × k, optional
        Where units may be, if more restricted than in the instance.
    known : Windows, optional
        Heads and tails proven before, which are passed on along the edges and only get larger.
    seconds : float
        Time limit. Where it is too short for any of this, transfers are ignored and every vertex
        takes its least run time, which needs a moment even for a large graph.
    """
    deadline = clock.now() + seconds
    if windows_seconds(instance) > seconds:
        return _without_transfers(instance, grid, limit, allowed)
    a = arrays(instance)
    if known is None:
        known = no_windows(instance)
    forwards = Crossings.of(instance, grid)
    backwards = Crossings.of(instance, grid, backwards=True)
    possible = (instance.allowed if allowed is None else allowed).copy()
    while True:
        head, tail, through = _raised(a, grid.duration, forwards, backwards, possible, known)
        left = possible & (through <= (NEVER - 1 if limit is None else limit))
        if (left == possible).all():
            return Windows(head, tail, through, possible)
        possible = left
        if not left.any(axis=1).all() or clock.now() > deadline:
            return Windows(head, tail, through, possible)


def windows_seconds(instance: Instance) -> float:
    """Return an estimate of the seconds that :func:`windows` takes."""
    pairs = (instance.vertices + len(instance.graph.edge_source)) * instance.devices**2
    return _PER_PAIR * pairs * slowdown(_windows)


def _without_transfers(
    instance: Instance, grid: Grid, limit: int | None, allowed: NDArray[np.bool_] | None
) -> Windows:
    """Return windows from longest paths of least run times alone."""
    a, n, units = arrays(instance), instance.vertices, len(instance.units)
    possible = instance.allowed if allowed is None else allowed
    usable = possible[instance.unit_of]
    duration = np.where(usable, grid.duration, NEVER)
    least = duration.min(axis=1, initial=NEVER)
    # As on a single device, where nothing has to cross.
    least = np.where(least < NEVER, least, 0).reshape(n, 1)
    nothing = np.zeros((n, 1), dtype=np.int64)
    alone = Crossings.of(instance, grid)
    anywhere = np.ones((units, 1), dtype=np.bool_)
    known = Windows(nothing, nothing, nothing, anywhere)
    head, tail, _ = _raised(a, least, alone, alone, anywhere, known)
    total = np.where(usable, head + duration + tail, NEVER)
    through = np.zeros(possible.shape, dtype=np.int64)
    np.maximum.at(through, instance.unit_of, total)
    left = possible & (through <= (NEVER - 1 if limit is None else limit))
    usable = left[instance.unit_of]
    return Windows(np.where(usable, head, NEVER), np.where(usable, tail, NEVER), through, left)


def _raised(
    a: Arrays,
    duration: NDArray[np.int64],
    forwards: Crossings,
    backwards: Crossings,
    possible: NDArray[np.bool_],
    known: Windows,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return heads, tails and what goes through each unit, at least what is known."""
    head, tail = known.head.copy(), known.tail.copy()
    through = np.zeros(possible.shape, dtype=np.int64)
    _windows(a, duration, forwards, backwards, possible, head, tail, through)
    return head, tail, through


def no_windows(instance: Instance) -> Windows:
    """Return trivial windows, which only tell where units are allowed."""
    nothing = np.zeros((instance.vertices, instance.devices), dtype=np.int64)
    through = np.zeros(instance.allowed.shape, dtype=np.int64)
    return Windows(nothing, nothing, through, instance.allowed)


class Crossings(Struct):
    """Times to cross between devices, in one direction of time, as arrays for compiled code.

    From ``e`` to ``d`` means from the device of the vertex that is earlier in that direction; so
    backwards, everything is transposed.

    Attributes
    ----------
    size_class : ndarray of int32, length t
    link_class : ndarray of int32, k × k
    delays, measured : ndarray of int64
        As in :class:`~optpart.kernels.ticks.Grid`.
    leaving, reaching : ndarray of int64, length k
        Run times of the send, where it is one on the device crossed from, and to.
    """

    size_class: Ints
    link_class: IntMatrix
    delays: LongMatrix
    measured: LongCube
    leaving: Longs
    reaching: Longs

    @classmethod
    def of(cls, instance: Instance, grid: Grid, *, backwards: bool = False) -> Crossings:
        """Return those of an instance, with sends if its model has them."""
        nothing = np.zeros(instance.devices, dtype=np.int64)
        sending = grid.send if instance.model.sends else nothing
        sizes, links, delays, measured = grid.arrays
        if not backwards:
            return cls(sizes, links, delays, measured, sending, nothing)
        links = np.ascontiguousarray(links.T)
        measured = np.ascontiguousarray(measured.transpose(0, 2, 1))
        return cls(sizes, links, delays, measured, nothing, sending)


# The row of a tensor is looked up once, and then everything runs along rows of the matrices: on
# many devices, this takes nearly all of the time of windows.
@inner
def cross(least: Any, end: Any, tensor: int, c: Crossings) -> None:
    """Lower ``least[d]`` to when a tensor that exists from ``end[e]`` on ``e`` can be on ``d``.

    Only crossings from other devices count.
    """
    k = len(end)
    row, reaching = c.size_class[tensor], c.reaching
    for e in range(k):
        if end[e] >= NEVER:
            continue
        sent = end[e] + c.leaving[e]
        if row < c.delays.shape[0]:
            table, link = c.delays[row], c.link_class[e]
            for d in range(k):
                delay = table[link[d]]
                if delay >= 0 and d != e:
                    least[d] = min(least[d], sent + delay + reaching[d])
        else:
            given = c.measured[row - c.delays.shape[0], e]
            for d in range(k):
                if given[d] >= 0 and d != e:
                    least[d] = min(least[d], sent + given[d] + reaching[d])


@short_kernel
def _windows(
    a: Arrays,
    duration: LongMatrix,
    forwards: Crossings,
    backwards: Crossings,
    possible: BoolMatrix,
    head: LongMatrix,
    tail: LongMatrix,
    through: LongMatrix,
) -> None:
    """Raise heads along the edges, tails against them, and fill in what goes through each unit.

    Once a vertex is passed, in topological order, its heads are final, and so are the arrivals of
    its tensors; tails likewise, from the last vertex to the first.
    """
    n, k = duration.shape
    # Earliest arrival of each tensor on each device, over all devices of its producer.
    arrival = np.full((len(forwards.size_class), k), -1, np.int64)
    time, after = np.empty(k, np.int64), np.empty(k, np.int64)
    for i in range(n):
        v = a.order[i]
        for d in range(k):
            if not possible[a.unit[v], d]:
                head[v, d] = NEVER
        for j in range(a.in_start[v], a.in_start[v + 1]):
            u, tensor = a.in_source[j], a.in_tensor[j]
            if a.unit[u] == a.unit[v]:
                for d in range(k):
                    if head[v, d] < NEVER:
                        head[v, d] = max(head[v, d], head[u, d] + duration[u, d])
                continue
            if arrival[tensor, 0] < 0:
                for e in range(k):
                    time[e] = NEVER if head[u, e] >= NEVER else head[u, e] + duration[u, e]
                    arrival[tensor, e] = time[e]
                cross(arrival[tensor], time, tensor, forwards)
            for d in range(k):
                head[v, d] = max(head[v, d], arrival[tensor, d])
        for d in range(k):
            head[v, d] = min(head[v, d], NEVER)
    for i in range(n - 1, -1, -1):
        u = a.order[i]
        for d in range(k):
            if head[u, d] >= NEVER:
                tail[u, d] = NEVER
        for j in range(a.out_start[u], a.out_start[u + 1]):
            v, tensor = a.out_target[j], a.out_tensor[j]
            for e in range(k):
                time[e] = NEVER if tail[v, e] >= NEVER else duration[v, e] + tail[v, e]
                after[e] = time[e]
            if a.unit[u] != a.unit[v]:
                cross(after, time, tensor, backwards)
            for d in range(k):
                tail[u, d] = min(NEVER, max(tail[u, d], after[d]))
    for v in range(n):
        for d in range(k):
            if head[v, d] >= NEVER or tail[v, d] >= NEVER:
                through[a.unit[v], d] = NEVER
            else:
                total = head[v, d] + duration[v, d] + tail[v, d]
                through[a.unit[v], d] = max(through[a.unit[v], d], total)
