"""Contiguous splits: a topological order cut into segments, each on a device of its own."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.kernels.compiled import (
    Arrays,
    arrays,
    inner,
    run_time,
    short_kernel,
)
from optpart.kernels.segments import (
    FloatTables,
    Segment,
    States,
    append_segments,
    no_segments,
    segments,
)
from optpart.kernels.struct import FloatCube, FloatMatrix, Floats, IntMatrix, Ints, Longs, Struct
from optpart.problem.graph import inverse
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition, partition_of
from optpart.strategies.partition.common import first_fit

#: In one order of many devices, so many in a row may be left out between two segments.
SKIPPED = 7


class Line(Struct):
    """Units in a row, and what segments of the row cost.

    Position ``i`` is a cut: between the first ``i`` units and the others. Times are in units of
    :class:`~optpart.kernels.compiled.Arrays`. A tensor is *live* at a cut if units on both sides of
    it produce or consume it.

    Attributes
    ----------
    vertices : ndarray of int32, length n
        All vertices, topologically sorted.
    units : ndarray of int32, length m
        All units, by their first vertex in that order.
    run : ndarray of float64, k × (m + 1)
        Run time of the first ``i`` units on each device.
    first : ndarray of int32, k × (m + 1)
        The least ``j`` such that units ``j`` to ``i - 1`` may share the device; ``i`` if not even
        unit ``i - 1`` may run there.
    until : ndarray of float64, k × (m + 1)
        The same.
    live : ndarray of int32, m + 1
        Number of live tensors whose transfer times follow from bandwidth and latency.
    size : ndarray of float64, m + 1
        Their largest size, or the sum of their sizes.
    measured : ndarray of float64, (m + 1) × k × k, or 0 × k × k if no transfer times are given
        The largest given transfer time of a live tensor, or their sum; infinite if one cannot
        cross.
    bandwidth, latency : ndarray of float64, k × k
    add : bool
        Whether it is the sums.
    """

    vertices: Ints
    units: Ints
    run: FloatMatrix
    until: FloatMatrix
    first: IntMatrix
    live: Ints
    size: Floats
    measured: FloatCube
    bandwidth: FloatMatrix
    latency: FloatMatrix
    add: bool


def line(
    instance: Instance, vertices: NDArray[np.int32], *, add: bool, strict: bool = True
) -> Line:
    """Put the units of an instance in a row.

    Parameters
    ----------
    vertices : ndarray of int32, length n
        All vertices, topologically sorted.
    add : bool
        Whether live tensors cross one after the other, so that their times add up; otherwise they
        cross together, and the longest counts.
    strict : bool
        Whether a segment must not contain units that may not run on its device, nor two that must
        be separated. Otherwise units that may not run there are taken to run elsewhere, in their
        shortest time and without memory.
    """
    unit = instance.unit_of[vertices]
    units = np.argsort(np.unique(unit, return_index=True)[1]).astype(np.int32)
    a = arrays(instance)
    position = np.empty(len(units), dtype=np.int32)
    position[units] = np.arange(len(units))
    run, first = _segments(a, units, position, strict)
    largest_first = np.argsort(-a.size, kind="stable")
    live, size, measured = _cuts(a, position, largest_first, add)
    return Line(vertices, units, run, run, first, live, size, measured, a.bandwidth, a.latency, add)


@short_kernel
def _segments(a: Arrays, units: Ints, position: Ints, strict: bool) -> Any:
    """Return ``run`` and ``first`` of :class:`Line`."""
    m, k = units.shape[0], a.speed.shape[0]
    run, first = np.zeros((k, m + 1)), np.zeros((k, m + 1), np.int32)
    for i in range(m):
        unit = units[i]
        elsewhere = np.inf
        for d in range(k):
            total = 0.0
            for at in range(a.unit_start[unit], a.unit_start[unit + 1]):
                total += run_time(a, a.unit_vertex[at], d)
            run[d, i + 1] = total
            if a.allowed[unit, d]:
                elsewhere = min(elsewhere, total)
        for d in range(k):
            run[d, i + 1] = run[d, i] + (run[d, i + 1] if a.allowed[unit, d] else elsewhere)
    for d in range(k):
        j, used = 0, 0
        for i in range(m):
            unit = units[i]
            if a.allowed[unit, d]:
                used += a.need[unit]
            least = j
            if strict:
                if not a.allowed[unit, d]:
                    least = i + 1
                for at in range(a.apart_start[unit], a.apart_start[unit + 1]):
                    if position[a.apart[at]] <= i:
                        least = max(least, position[a.apart[at]] + 1)
            while j < least or used > a.capacity[d]:
                if a.allowed[units[j], d]:
                    used -= a.need[units[j]]
                j += 1
            first[d, i + 1] = j
    return run, first


@short_kernel
def _cuts(a: Arrays, position: Ints, largest_first: Longs, add: bool) -> Any:
    """Return ``live``, ``size`` and ``measured`` of :class:`Line`."""
    m, k = position.shape[0], a.speed.shape[0]
    live, size = np.zeros(m + 1, np.int32), np.zeros(m + 1)
    measured = np.zeros((m + 1 if a.measured.shape[0] else 0, k, k))
    low, high = _extent(a, position)
    # The next cut, from a given one on, that has no size yet: every cut gets the largest.
    bare = np.empty(m + 2, np.int64)
    for i in range(m + 2):
        bare[i] = i
    for tensor in largest_first:
        begin, end = low[tensor] + 1, high[tensor] + 1
        if begin >= end:
            continue
        row = a.measured_row[tensor]
        if row >= 0:
            _add_measured(a, row, measured[begin:end], add)
            continue
        live[begin] += 1
        if end <= m:
            live[end] -= 1
        if add:
            size[begin] += a.size[tensor]
            if end <= m:
                size[end] -= a.size[tensor]
            continue
        i = _next_bare(bare, begin)
        while i < end:
            size[i] = a.size[tensor]
            bare[i] = i + 1
            i = _next_bare(bare, i)
    for i in range(m):
        live[i + 1] += live[i]
        if add:
            size[i + 1] = size[i + 1] + size[i] if live[i + 1] else 0.0
    return live, size, measured


@inner
def _next_bare(bare: Any, i: int) -> Any:
    while bare[i] != i:
        bare[i] = bare[bare[i]]
        i = bare[i]
    return i


@inner
def _add_measured(a: Arrays, row: int, measured: Any, add: bool) -> None:
    for s in range(a.speed.shape[0]):
        for d in range(a.speed.shape[0]):
            time = a.measured[row, s, d]
            if time < 0.0 or a.bandwidth[s, d] == 0.0:
                time = np.inf
            for i in range(measured.shape[0]):
                measured[i, s, d] = (
                    measured[i, s, d] + time if add else max(measured[i, s, d], time)
                )


@inner
def _extent(a: Arrays, position: Any) -> Any:
    """Return the first and the last position of a unit that produces or consumes each tensor."""
    tensors = a.size.shape[0]
    low, high = np.empty(tensors, np.int32), np.empty(tensors, np.int32)
    for tensor in range(tensors):
        low[tensor] = high[tensor] = position[a.unit[a.tensor_vertex[tensor]]]
    for v in range(a.unit.shape[0]):
        at = position[a.unit[v]]
        for e in range(a.in_start[v], a.in_start[v + 1]):
            tensor = a.in_tensor[e]
            low[tensor] = min(low[tensor], at)
            high[tensor] = max(high[tensor], at)
    return low, high


@inner
def cut_time(row: Line, i: int, s: int, d: int) -> Any:
    """Return the time in which what is live at cut ``i`` crosses from ``s`` to ``d``."""
    time = row.measured[i, s, d] if row.measured.shape[0] else 0.0
    if row.live[i] == 0:
        return time
    rate = row.bandwidth[s, d]
    if rate == 0.0:
        return np.inf
    if row.add:
        return time + row.live[i] * row.latency[s, d] + row.size[i] / rate
    return max(time, row.latency[s, d] + row.size[i] / rate)


class Split(NamedTuple):
    """A split of a row of units.

    Attributes
    ----------
    value : float
        In the unit of :class:`~optpart.kernels.compiled.Arrays`.
    segments : list of Segment
    """

    value: float
    segments: list[Segment]

    def devices(self, row: Line) -> NDArray[np.int32]:
        """Return the device of each unit."""
        device = np.empty(len(row.units), dtype=np.int32)
        for begin, end, d in self.segments:
            device[row.units[begin:end]] = d
        return device


def best_splits(row: Line, states: States, *, add: bool, most: int = 1) -> list[Split]:
    """Return the best splits that end in different states, the least value first.

    Parameters
    ----------
    row : Line
        Of at least one unit.
    add : bool
        Whether run times of segments and times of cuts add up; otherwise the largest is the value,
        and of equal ones, that of the shortest last segment is taken.
    """
    tables = no_segments(states, len(row.units), whole=False)
    split_line(states, row, add, tables)
    value, found = tables.value[:, -1], []
    for state in np.argsort(value, kind="stable")[:most].tolist():
        if not np.isfinite(value[state]):
            break
        found.append(Split(float(value[state]), segments(states, tables, state)))
    return found


@short_kernel
def split_line(states: States, row: Line, add: bool, tables: FloatTables) -> None:
    """Find the best splits of the first units of a row, for all states."""
    append_segments(states, row, cut_time, add, True, tables, 0, states.device.shape[0])


def settle(
    instance: Instance,
    units: NDArray[np.int32],
    device: NDArray[np.int32],
    devices: NDArray[np.int32],
) -> Partition:
    """Place every unit on the device meant for it or, if it does not fit there, on another one.

    Units are placed in turn. If one is left without a device, all are placed again: those that may
    use the fewest devices first, of these the ones that need most memory.

    Parameters
    ----------
    units : ndarray of int32
        All units.
    device : ndarray of int32, one per unit
    devices : ndarray of int32, length k
        The devices; a unit that does not fit on one tries those that follow it, the first after
        the last.

    Raises
    ------
    NoPlacementError
        If a unit is left without a device again.
    """
    place = inverse(devices)
    a = arrays(instance)
    state = first_fit(a, units, place[device], devices)
    if (state.device < 0).any():
        choices = instance.allowed.sum(axis=1)
        units = np.lexsort((-a.need, choices)).astype(np.int32)
        state = first_fit(a, units, place[device], devices)
    return partition_of(instance, state)
