"""The contiguous split of least latency: one segment of a topological order per device."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optpart.base.clock import is_time_up
from optpart.kernels.compiled import (
    Arrays,
    arrays,
    crossing_time,
    inner,
    run_time,
    short_kernel,
    slowdown,
)
from optpart.kernels.segments import Segment, in_any_order, in_order
from optpart.kernels.struct import IntMatrix, Ints
from optpart.problem.graph import inverse
from optpart.problem.instance import Instance
from optpart.strategies.base import NoPlacementError, Partition
from optpart.strategies.partition.contiguous import (
    SKIPPED,
    Line,
    Split,
    best_splits,
    cut_time,
    line,
    settle,
    split_line,
)
from optpart.strategies.partition.insertion import in_degrees
from optpart.strategies.partition.ranks import devices_by_speed, upward_rank
from optpart.strategies.partition.sequential_fill import sequential_fill

#: Larger instances are split in their own order only.
_ALL_ORDERS = 100_000
#: Entries of the table of a dynamic programme.
_TABLE = 2**24
#: Splits of least estimate that are timed, per order and dynamic programme.
_TIMED = 32
#: Fastest devices of which every two are tried, and vertices to time in their splits, per order.
_PAIRED, _WORK = 16, 2**23


def contiguous_split(instance: Instance, rng: np.random.Generator) -> Partition:
    """Cut a topological order into segments, one per device, for the least latency.

    The *estimate* of a split is the sum of the run times of all vertices on their devices and, for
    every cut, of the time in which all tensors that are live at it cross to the next device: the
    longest of their transfer times or, under ``link`` and ``port``, their sum. Nothing overlaps,
    and what only later segments need is handed on from device to device.

    Three orders are tried: the instance's own, depth-first, and by falling upward rank; only the
    first of them if there are more than 100,000 vertices. In each, a dynamic programme over sets of
    devices finds the split of least estimate for every set and last device, single devices
    included, so that all orders of devices are compared. If there are too many sets of all devices
    (from about 9 devices on), it does so with the fastest devices, and another one takes all
    devices in a given order (by speed, by memory, and as listed), in which up to 7 devices in a row
    may be left out.

    The splits of least estimate are timed: every device runs its segment in the order, under the
    ``delay`` model. So are the splits between every two devices (of many, the fastest): all of
    them or, on large instances, those of least estimate. The split of least makespan wins, and
    its order is the order of execution.

    When a time limit is over, what is not yet tried is left out.

    Segments keep to allowed devices, separation and static memory. If no such split exists, units
    that may not run on the device of their segment, or must be separated, are placed on other
    devices; if that fails as well, one device is filled after the other, as in
    :func:`~optpart.strategies.partition.sequential_fill.sequential_fill`.

    Raises
    ------
    NoPlacementError
        If that leaves a unit without a device.
    """
    if not instance.vertices:
        return Partition(np.zeros(0, dtype=np.int32), None, [])
    add = instance.model.queues and not instance.model.sends
    best, rows = _Best(), orders(instance)
    for vertices in rows:
        best.try_splits(instance, line(instance, vertices, add=add))
        if is_time_up():
            break
    if not np.isfinite(best.makespan):
        for vertices in rows:
            best.try_repairs(instance, line(instance, vertices, add=add, strict=False))
            if is_time_up():
                break
    if best.partition is not None:
        return best.partition
    filled = sequential_fill(instance, rng)
    return filled._replace(order=instance.graph.topological_order.tolist())


def orders(instance: Instance) -> list[NDArray[np.int32]]:
    """Return topological orders: the instance's own, depth-first, and by falling upward rank.

    The depth-first order continues with the successor that became ready last, so that it follows a
    branch to its end. Equal orders are returned once, and of large instances the first only.
    """
    own = arrays(instance).order
    if instance.vertices > _ALL_ORDERS:
        return [own]
    by_rank = np.lexsort((instance.graph.position, -upward_rank(instance)))
    found = [own, _depth_first(arrays(instance)), by_rank.astype(np.int32)]
    return list({order.tobytes(): order for order in found}.values())


@short_kernel
def _depth_first(a: Arrays) -> Any:
    n = a.order.shape[0]
    order, stack, size = np.empty(n, np.int32), np.empty(n, np.int32), 0
    missing = in_degrees(a)
    for i in range(n - 1, -1, -1):
        v = a.order[i]
        if missing[v] == 0:
            stack[size] = v
            size += 1
    for i in range(n):
        size -= 1
        v = stack[size]
        order[i] = v
        for e in range(a.out_start[v + 1] - 1, a.out_start[v] - 1, -1):
            w = a.out_target[e]
            missing[w] -= 1
            if missing[w] == 0:
                stack[size] = w
                size += 1
    return order


class _Best:
    """The split of least makespan so far."""

    def __init__(self) -> None:
        self.makespan = np.inf
        self.partition: Partition | None = None

    def try_splits(self, instance: Instance, row: Line) -> None:
        self._try(instance, row, [split.devices(row) for split in splits(instance, row)])
        if is_time_up():
            return
        pairs = _pairs(instance, row)
        makespan, chosen = _best_pair(arrays(instance), row, pairs, self.makespan)
        if makespan < self.makespan:
            s, d, cut = pairs[chosen].tolist()
            split = Split(0.0, [Segment(0, cut, s), Segment(cut, len(row.units), d)])
            self._try(instance, row, [split.devices(row)])

    def try_repairs(self, instance: Instance, row: Line) -> None:
        by_speed, found = devices_by_speed(instance), []
        for split in splits(instance, row):
            try:
                settled = settle(instance, row.units, split.devices(row), by_speed)
            except NoPlacementError:
                continue
            device = np.empty(len(row.units), dtype=np.int32)
            device[instance.unit_of] = settled.placement
            found.append(device)
        self._try(instance, row, found)

    def _try(self, instance: Instance, row: Line, devices: list[NDArray[np.int32]]) -> None:
        """Keep the best of these, given as the device of each unit, if it is better."""
        if not devices:
            return
        a, limit = arrays(instance), self.makespan
        makespan, chosen = _best_of(a, row.vertices, np.stack(devices), limit)
        if not makespan < self.makespan:
            return
        self.makespan = makespan
        placed = inverse(row.units)
        unit = instance.unit_of
        self.partition = Partition(devices[chosen][unit], placed[unit], row.vertices.tolist())


def splits(instance: Instance, row: Line) -> list[Split]:
    """Return the splits of least estimate per set of devices and last device, the least first."""
    cuts = len(row.units) + 1
    by_speed = devices_by_speed(instance)
    by_speed = by_speed[(row.first[by_speed] < np.arange(cuts)).any(axis=1)]
    count = len(by_speed)
    table = _TABLE // slowdown(split_line)
    while count * cuts << count > table and count > 1:
        count -= 1
    find = partial(best_splits, row, add=True, most=_TIMED)
    found = find(in_any_order(by_speed[:count].tolist()))
    if count < len(by_speed):
        memory = arrays(instance).capacity[by_speed]
        for devices in (by_speed, by_speed[np.argsort(-memory, kind="stable")], np.sort(by_speed)):
            if is_time_up():
                break
            few = devices[: max(1, table // cuts)]
            found += find(in_order(few.tolist(), skipped=SKIPPED))
    return found


@inner
def _makespan(
    a: Arrays, vertices: Any, device: Any, begin: int, idle: Any, end: Any, limit: float
) -> Any:
    """Return the makespan if every device runs its vertices in this order.

    It is infinite if a tensor cannot cross, or from ``limit`` on. Vertices before ``begin`` are
    timed already: their ends are given, and when the devices are idle; both are overwritten.
    """
    makespan = 0.0
    for i in range(begin, vertices.shape[0]):
        v = vertices[i]
        d = device[a.unit[v]]
        start = idle[d]
        for e in range(a.in_start[v], a.in_start[v + 1]):
            u = a.in_source[e]
            sender = device[a.unit[u]]
            if sender == d:
                continue  # it has ended, since vertices come in order
            time = crossing_time(a, a.in_tensor[e], sender, d)
            if time < 0.0:
                return np.inf
            start = max(start, end[u] + time)
        end[v] = idle[d] = start + run_time(a, v, d)
        if end[v] >= limit:
            return np.inf
        makespan = max(makespan, end[v])
    return makespan


def _pairs(instance: Instance, row: Line) -> NDArray[np.int32]:
    """Return splits between two devices, as rows of both devices and the cut.

    They are all of them or, if these are too many to time, those of least estimate for every two of
    the fastest devices.
    """
    cuts = np.arange(1, len(row.units))
    count, slower = _PAIRED, slowdown(_best_pair)
    while count > 2 and count * (count - 1) * len(row.units) > _TABLE // slower:
        count -= 1
    devices = devices_by_speed(instance)[:count].tolist()
    most = max(1, _WORK // slower // max(1, instance.vertices * len(devices) * (len(devices) - 1)))
    found = [np.zeros((0, 3), dtype=np.int32)]
    for s in devices:
        for d in devices:
            able = cuts[(row.first[s, cuts] == 0) & (row.first[d, -1] <= cuts)]
            if s == d or not len(able):
                continue
            if len(able) > most:
                time = _cut_times(row, s, d)[able] + row.run[s, able] - row.run[d, able]
                able = np.sort(able[np.argpartition(time, most)[:most]])
            found.append(np.column_stack((np.full((len(able), 2), (s, d)), able)).astype(np.int32))
    return np.concatenate(found)


@short_kernel
def _cut_times(row: Line, s: int, d: int) -> Any:
    time = np.empty(row.units.shape[0] + 1)
    for i in range(time.shape[0]):
        time[i] = cut_time(row, i, s, d)
    return time


@short_kernel
def _best_of(a: Arrays, vertices: Ints, devices: IntMatrix, limit: float) -> Any:
    """Return the least makespan, if any is below ``limit``, and the row of ``devices`` it is of."""
    best, chosen = np.inf, 0
    idle, end = np.empty(a.speed.shape[0]), np.empty(vertices.shape[0])
    for index in range(devices.shape[0]):
        idle[:] = 0.0
        time = _makespan(a, vertices, devices[index], 0, idle, end, limit)
        if time < limit:
            best, chosen, limit = time, index, time
    return best, chosen


@short_kernel
def _best_pair(a: Arrays, row: Line, pairs: IntMatrix, limit: float) -> Any:
    """Do as ``_best_of`` does, for splits between two devices."""
    m, n = row.units.shape[0], row.vertices.shape[0]
    best, chosen = np.inf, 0
    idle, end, device = np.empty(a.speed.shape[0]), np.empty(n), np.empty(m, np.int32)
    for index in range(pairs.shape[0]):
        s, d, cut = pairs[index, 0], pairs[index, 1], pairs[index, 2]
        for i in range(m):
            device[row.units[i]] = s if i < cut else d
        idle[:] = 0.0
        begin, before = 0, 0.0
        if m == n:  # every unit is a vertex, and nothing before the cut waits
            begin, before = cut, row.run[s, cut]
            for i in range(cut):
                end[row.vertices[i]] = row.run[s, i + 1]
        if before < limit:
            time = _makespan(a, row.vertices, device, begin, idle, end, limit)
            time = max(time, before)
            if time < limit:
                best, chosen, limit = time, index, time
    return best, chosen
