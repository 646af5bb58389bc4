"""The compiled loop: labels of one downset after the other, with dominance and bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from optpart.exact.series.lattice import APART, NEVER, SAME, Lattice
from optpart.kernels.compiled import inner, long_kernel
from optpart.kernels.struct import LongCube, LongMatrix, Longs, Struct

#: Kept labels of the same downset with which a label is compared.
_MOST_COMPARED = 4000

#: Labels kept of all downsets of one size, which limits the memory taken.
_MOST_KEPT = 150_000

#: Bits of a cell for all devices together.
_CELL_BITS = 56

#: Devices of which all sets are looked at for every label.
_MOST_DEVICES = 10

#: Columns of a table of labels: cost, bound, downset; the entry in the history (of a new label,
#: that of the label before); the vertex placed last, and its device. Then comes the memory taken
#: per device, and then times: the latest end, when each device is free, and when each slot of the
#: downset can start on each device.
COST, BOUND, NODE, ENTRY, VERTEX, DEVICE, MEMORY = range(7)


class Tasks(Struct):
    """The vertices of an instance, as seen from a part.

    Attributes
    ----------
    duration : ndarray, n × k
        −1 where a vertex is not allowed.
    delays : ndarray, matrices × k × k
    capacity : ndarray, length k
        −1 where there is no limit.
    place : ndarray, length n
        Position of each vertex in the part, from 1; 0 outside.
    rest_need : ndarray, length downsets
        Memory of the units of which no member is placed yet.
    cost : ndarray, n × k
        What a vertex adds to the cost of a label.
    """

    duration: LongMatrix
    delays: LongCube
    capacity: Longs
    place: Longs
    rest_need: Longs
    cost: LongMatrix


class Prices(Struct):
    """Prices of memory, and what is still to come at these prices.

    Attributes
    ----------
    price : ndarray, duals × k
        Ticks per unit of memory, times ``2**shift``.
    shift : int
    remain : ndarray, duals × n × k
        The least time from the start of each vertex, with costs, to the end of the schedule.
    rest_cost : ndarray, duals × downsets
        The least cost of what is still to be placed in the part.
    after : ndarray, duals × k
        What follows the part, by the device of its cut vertex.
    """

    price: LongMatrix
    shift: int
    remain: LongCube
    rest_cost: LongMatrix
    after: LongMatrix


class Limits(Struct):
    """Which labels are made, and which are kept.

    Attributes
    ----------
    upper : int
        Labels whose bound reaches this are left out.
    beam : int
        Labels to keep per downset.
    most : int
        Labels to make.
    pareto : bool
        Whether memory has limits and labels are compared by it; otherwise, it has a price.
    whole : bool
        Whether labels hold all memory taken since the start of the schedule.
    open_end : bool
        Whether the part has no cut vertex at its end.
    by_end : bool
        Whether labels of the whole part are compared only with those of the same last device.
    """

    upper: int
    beam: int
    most: int
    pareto: bool
    whole: bool
    open_end: bool
    by_end: bool


class Scratch(Struct):
    """Scratch for the refutation of labels.

    Attributes
    ----------
    head : ndarray, m × k
        The least start of each vertex of the part on each device.
    load : ndarray, length 2**k
        The work that must go to one of a set of devices; empty if there are too many sets, so that
        no label is refuted.
    begin, tail : ndarray, length k
        The least start of a vertex on a device, and the least time after the last one there.
    """

    head: LongMatrix
    load: Longs
    begin: Longs
    tail: Longs

    @classmethod
    def of(cls, vertices: int, devices: int) -> Scratch:
        """Return scratch for a part."""
        return cls(
            head=np.zeros((vertices, devices), dtype=np.int64),
            load=np.zeros(1 << devices if devices <= _MOST_DEVICES else 0, dtype=np.int64),
            begin=np.zeros(devices, dtype=np.int64),
            tail=np.zeros(devices, dtype=np.int64),
        )


def table(
    lattice: Lattice,
    time: NDArray[np.int64],
    cost: NDArray[np.int64],
    memory: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the labels before a part as a table, to be extended by :func:`advance`."""
    count, k = memory.shape
    width = 1 + k + k * int(np.diff(lattice.slot_first).max())
    rows = np.zeros((count, MEMORY + k + width), dtype=np.int64)
    rows[:, COST] = cost
    rows[:, ENTRY] = -1 - np.arange(count)
    rows[:, MEMORY : MEMORY + k] = memory
    rows[:, MEMORY + k : MEMORY + k + time.shape[1]] = time
    return rows


@inner
def memory_cost(price: Any, shift: int, capacity: Any, memory: Any) -> Any:
    """Return what memory costs less what all that there is would cost, rounded down."""
    total = np.int64(0)
    for d in range(len(capacity)):
        if capacity[d] >= 0:
            total += price[d] * (memory[d] - capacity[d])
    return total >> shift


@inner
def _bound(
    lattice: Lattice, tasks: Tasks, prices: Prices, limits: Limits, row: Any, node: int, ended: int
) -> Any:
    """Return the largest completion bound over all price vectors.

    ``ended`` is the device of the cut vertex, if it has been placed; otherwise −1.
    """
    devices = len(tasks.capacity)
    memory, time = row[MEMORY:], row[MEMORY + devices :]
    best = np.int64(-NEVER)
    first, last = lattice.slot_first[node], lattice.slot_first[node + 1]
    for j in range(len(prices.price)):
        longest = time[0] if limits.open_end else np.int64(0)
        if ended >= 0:
            longest = time[0] + prices.after[j, ended]
        for s in range(first, last):
            v = lattice.slot_vertex[s]
            if tasks.place[v] == 0:
                continue
            least = np.int64(NEVER)
            for d in range(devices):
                at = time[1 + devices + (s - first) * devices + d]
                if at < NEVER:
                    least = min(least, at + prices.remain[j, v, d])
            longest = max(longest, least)
        total = longest + prices.rest_cost[j, node] + row[COST]
        if limits.pareto:
            total += memory_cost(prices.price[j], prices.shift, tasks.capacity, memory)
        best = max(best, total)
    return best


@inner
def _place(
    lattice: Lattice, tasks: Tasks, limits: Limits, before: Any, step: int, d: int, row: Any
) -> Any:
    """Fill in a label after a step on a device, but its bound; return whether it is possible."""
    devices = len(tasks.capacity)
    v, to = lattice.step_vertex[step], lattice.step_to[step]
    old, time = before[MEMORY + devices :], row[MEMORY + devices :]
    begin = old[1 + devices + lattice.step_slot[step] * devices + d]
    if begin >= NEVER or tasks.duration[v, d] < 0:
        return False
    begin = max(begin, old[1 + d])
    room, need = tasks.capacity[d], lattice.step_need[step]
    if limits.pareto and room >= 0 and before[MEMORY + d] + need > room:
        return False
    end = begin + tasks.duration[v, d]
    final = to == len(lattice.slot_first) - 2
    # In a closed part nothing outlasts the last vertex.
    time[0] = max(old[0], end) if limits.open_end else (end if final else 0)
    for e in range(devices):
        time[1 + e] = old[1 + e]
    time[1 + d] = end
    slots = lattice.slot_first[to + 1] - lattice.slot_first[to]
    for s in range(slots):
        if not _arrive(lattice, tasks, old, step, s, d, end, time):
            return False
    for x in range(1 + devices + slots * devices, len(time)):
        time[x] = 0
    _lift(time, devices, slots, begin)
    row[COST] = before[COST] + tasks.cost[v, d]
    row[NODE], row[ENTRY], row[VERTEX], row[DEVICE] = to, before[ENTRY], v, d
    return _take(tasks, limits, before, d, need, to, row)


@inner
def _arrive(
    lattice: Lattice, tasks: Tasks, old: Any, step: int, slot: int, d: int, end: int, time: Any
) -> Any:
    """Fill in when a slot can start on each device after a step; return whether it can on any."""
    devices = len(tasks.capacity)
    move = lattice.move_first[step] + slot
    source, sent, rule = lattice.move_from[move], lattice.move_delay[move], lattice.move_rule[move]
    w = lattice.slot_vertex[lattice.slot_first[lattice.step_to[step]] + slot]
    possible = False
    for e in range(devices):
        at = old[1 + devices + source * devices + e] if source >= 0 else np.int64(0)
        if tasks.duration[w, e] < 0:
            at = np.int64(NEVER)
        if sent >= 0 and at < NEVER:
            delay = tasks.delays[sent, d, e]
            at = max(at, end + delay) if delay < NEVER else np.int64(NEVER)
        if (rule == SAME and e != d) or (rule == APART and e == d):
            at = np.int64(NEVER)
        if at < NEVER:
            possible = True
        time[1 + devices + slot * devices + e] = at
    return possible


@inner
def _take(tasks: Tasks, limits: Limits, before: Any, d: int, need: int, to: int, row: Any) -> Any:
    """Fill in the memory taken after a step; return whether all that is left to place can fit."""
    free = np.int64(0)
    unlimited = False
    checked = limits.pareto and limits.whole
    for e in range(len(tasks.capacity)):
        taken = before[MEMORY + e] + (need if e == d else 0)
        if checked:
            if tasks.capacity[e] < 0:
                taken = np.int64(0)
                unlimited = True
            else:
                free += tasks.capacity[e] - taken
                # More room than all that is left to place is no advantage.
                taken = max(taken, tasks.capacity[e] - tasks.rest_need[to])
        row[MEMORY + e] = taken
    return not checked or unlimited or free >= tasks.rest_need[to]


@long_kernel
def advance(
    lattice: Lattice,
    tasks: Tasks,
    prices: Prices,
    limits: Limits,
    scratch: Scratch,
    labels: LongMatrix,
) -> Any:
    """Extend labels through all downsets of a part.

    Before each size, the labels are those kept of all downsets of that size; each of them is
    extended by every step on every device, and the best that no other dominates are kept.

    Parameters
    ----------
    labels : ndarray
        A table of labels before the part.

    Returns
    -------
    labels : ndarray
        A table of labels of the whole part.
    history : ndarray, entries × 3
        For every label kept: the entry before (−1 − i for label i of the start), vertex, device.
    written : int
        The number of entries of the history.
    dropped : int
        The least bound of a label that was given up because there were too many, or more than
        ``most`` had been made.
    """
    devices, columns = len(tasks.capacity), labels.shape[1]
    history = np.empty((1024, 3), dtype=np.int64)
    written = made = 0
    dropped = np.int64(NEVER)
    steps = len(lattice.level) - 2
    for size in range(steps):
        final = size == steps - 1
        found = np.empty((max(64, 4 * len(labels)), columns), dtype=np.int64)
        count = 0
        for i in range(len(labels)):
            before = labels[i]
            if made >= limits.most:
                dropped = min(dropped, before[BOUND])
                continue
            node = before[NODE]
            for step in range(lattice.step_first[node], lattice.step_first[node + 1]):
                for d in range(devices):
                    if count == len(found):
                        found = grown(found, 2 * count)
                    row = found[count]
                    if not _place(lattice, tasks, limits, before, step, d, row):
                        continue
                    made += 1
                    to, ended = row[NODE], d if final and not limits.open_end else -1
                    row[BOUND] = _bound(lattice, tasks, prices, limits, row, to, ended)
                    if row[BOUND] >= limits.upper:
                        continue
                    if not final and _refuted(lattice, tasks, prices, limits, row, to, scratch):
                        continue
                    count += 1
        each = max(1, lattice.level[size + 2] - lattice.level[size + 1])
        keep = max(1, min(limits.beam, _MOST_KEPT // each))
        order = ordered(found, count, NODE, BOUND)
        total, lost = _select(found, order, keep, devices, limits, final)
        dropped = min(dropped, lost)
        if written + total > len(history):
            history = grown(history, 2 * (written + total))
        labels = np.empty((total, columns), dtype=np.int64)
        for y in range(total):
            row = found[order[y]]
            history[written, 0], history[written, 1] = row[ENTRY], row[VERTEX]
            history[written, 2] = row[DEVICE]
            for x in range(columns):
                labels[y, x] = row[x]
            labels[y, ENTRY] = written
            written += 1
    return labels, history, written, dropped


@inner
def _select(found: Any, order: Any, keep: int, devices: int, limits: Limits, final: bool) -> Any:
    """Keep the best labels of every downset that no other dominates.

    Returns
    -------
    total : int
        Their number; they become the first of the order.
    dropped : int
        The least bound of the others that nothing dominates.
    """
    dropped = np.int64(NEVER)
    total = first = 0
    current = np.int64(-1)
    for x in range(len(order)):
        row = found[order[x]]
        if row[NODE] != current:
            current = row[NODE]
            first = total
        if total - first >= keep:
            dropped = min(dropped, row[BOUND])
            continue
        dominated = False
        for y in range(first, min(total, first + _MOST_COMPARED)):
            other = found[order[y]]
            if final and limits.by_end and other[DEVICE] != row[DEVICE]:
                continue
            if _dominates(other, row, devices, limits.pareto):
                dominated = True
                break
        if not dominated:
            order[total] = order[x]
            total += 1
    return total, dropped


@inner
def _refuted(
    lattice: Lattice,
    tasks: Tasks,
    prices: Prices,
    limits: Limits,
    row: Any,
    node: int,
    scratch: Scratch,
) -> Any:
    """Return whether the rest of the part cannot end below ``upper`` on any choice of devices."""
    devices = len(tasks.capacity)
    if len(scratch.load) == 0:
        return False
    _raise_heads(lattice, tasks, row[MEMORY + devices :], node, scratch.head)
    for j in range(len(prices.price)):
        limit = limits.upper - row[COST] - prices.rest_cost[j, node]
        if limits.pareto:
            limit -= memory_cost(prices.price[j], prices.shift, tasks.capacity, row[MEMORY:])
        if not _distribute(lattice, tasks, prices.remain[j], node, limit, scratch):
            return True
        # From the work of each set to that of all its subsets.
        for d in range(devices):
            for chosen in range(1 << devices):
                if chosen >> d & 1:
                    scratch.load[chosen] += scratch.load[chosen ^ 1 << d]
        for chosen in range(1, 1 << devices):
            room = np.int64(0)
            for d in range(devices):
                if chosen >> d & 1 and scratch.begin[d] < NEVER:
                    room += max(0, limit - scratch.begin[d] - scratch.tail[d] - 1)
                    # Without a known schedule, the limits of nine devices exceed 64 bits.
                    room = min(room, np.int64(NEVER))
            if scratch.load[chosen] > room:
                return True
    return False


@inner
def _raise_heads(lattice: Lattice, tasks: Tasks, time: Any, node: int, head: Any) -> None:
    """Fill in the least start of each vertex of the part that is still to be placed."""
    count, devices = head.shape
    for x in range(count):
        for d in range(devices):
            head[x, d] = time[1 + d]
            if tasks.duration[lattice.vertices[x], d] < 0:
                head[x, d] = NEVER
    first = lattice.slot_first[node]
    for s in range(first, lattice.slot_first[node + 1]):
        x = tasks.place[lattice.slot_vertex[s]] - 1
        if x >= 0:
            for d in range(devices):
                head[x, d] = max(head[x, d], time[1 + devices + (s - first) * devices + d])
    for x in range(count):
        if not lattice.rest[node, x]:
            continue
        v = lattice.vertices[x]
        for a in range(lattice.arc_first[x], lattice.arc_first[x + 1]):
            y = lattice.arc_to[a]
            delay = tasks.delays[lattice.arc_delay[a]]
            for e in range(devices):
                least = np.int64(NEVER)
                for d in range(devices):
                    if head[x, d] < NEVER and delay[d, e] < NEVER:
                        least = min(least, head[x, d] + tasks.duration[v, d] + delay[d, e])
                head[y, e] = max(head[y, e], least)


@inner
def _distribute(
    lattice: Lattice, tasks: Tasks, remain: Any, node: int, limit: int, scratch: Scratch
) -> Any:
    """Add up the work that must go to each set of devices; return whether all can go to any."""
    head, load, begin, tail = scratch.head, scratch.load, scratch.begin, scratch.tail
    count, devices = head.shape
    for chosen in range(len(load)):
        load[chosen] = 0
    for d in range(devices):
        begin[d] = tail[d] = NEVER
    for x in range(count):
        if not lattice.rest[node, x]:
            continue
        v = lattice.vertices[x]
        mask = 0
        least = np.int64(NEVER)
        for d in range(devices):
            if head[x, d] < NEVER and head[x, d] + remain[v, d] < limit:
                mask |= 1 << d
                least = min(least, tasks.duration[v, d])
                begin[d] = min(begin[d], head[x, d])
                tail[d] = min(tail[d], remain[v, d] - tasks.duration[v, d])
        if mask == 0:
            return False
        load[mask] += least
    return True


@inner
def _lift(time: Any, devices: int, slots: int, begin: int) -> None:
    """Raise times that cannot matter to the least value that can, so that labels compare."""
    if slots == 0:
        for d in range(devices):
            time[1 + d] = time[0]
        return
    # Vertices are placed in the order of their starts.
    for x in range(1, 1 + devices + slots * devices):
        time[x] = max(time[x], begin)
    earliest = np.int64(NEVER)
    for s in range(slots):
        for d in range(devices):
            at = time[1 + devices + s * devices + d]
            if at < NEVER:
                earliest = min(earliest, max(at, time[1 + d]))
    for d in range(devices):
        low = earliest
        for s in range(slots):
            low = min(low, time[1 + devices + s * devices + d])
        time[1 + d] = max(time[1 + d], low)
        for s in range(slots):
            x = 1 + devices + s * devices + d
            time[x] = max(time[x], time[1 + d])


@inner
def _dominates(one: Any, other: Any, devices: int, pareto: bool) -> Any:
    """Return whether whatever can follow a label can follow one that is as good."""
    if pareto:
        for x in range(MEMORY, len(one)):  # noqa: SIM110 - generators do not compile
            if one[x] > other[x]:
                return False
        return True
    # What is late by some time can be made up by as much less cost.
    spare = other[COST] - one[COST]
    if spare < 0:
        return False
    for x in range(MEMORY + devices, len(one)):  # noqa: SIM110
        if one[x] - other[x] > spare:
            return False
    return True


@inner
def grown(rows: Any, room: int) -> Any:
    """Return a copy of a table with room for more rows."""
    more = np.empty((room, rows.shape[1]), dtype=np.int64)
    for i in range(len(rows)):
        for x in range(rows.shape[1]):
            more[i, x] = rows[i, x]
    return more


@inner
def cell_bits(capacity: Any, bits: int) -> Any:
    """Return so many bits, or as many as cells of all devices with a limit have room for."""
    limited = 0
    for d in range(len(capacity)):
        limited += 0 <= capacity[d] < NEVER
    return min(bits, _CELL_BITS // max(1, limited))


@inner
def cell(device: int, memory: Any, capacity: Any, bits: int) -> Any:
    """Return the cell of a device and of memory within limits, which are cut ``2**bits`` times."""
    found = device
    for d in range(len(capacity)):
        if 0 <= capacity[d] < NEVER:
            found = (found << bits) + memory[d] // ((capacity[d] >> bits) + 1)
    return found


@inner
def ordered(rows: Any, count: int, major: int, minor: int) -> Any:
    """Return the first rows of a table in the order of two columns; equal ones keep theirs."""
    order, spare = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    one, two = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    for i in range(count):
        order[i], one[i], two[i] = i, rows[i, major], rows[i, minor]
    width = 1
    while width < count:
        # Stretches of this width are sorted, and merged two by two.
        for begin in range(0, count, 2 * width):
            middle, end = min(begin + width, count), min(begin + 2 * width, count)
            i, j = begin, middle
            for x in range(begin, end):
                right = i == middle
                if i < middle and j < end:
                    a, b = order[i], order[j]
                    right = one[b] < one[a] or (one[b] == one[a] and two[b] < two[a])
                if right:
                    spare[x] = order[j]
                    j += 1
                else:
                    spare[x] = order[i]
                    i += 1
        order, spare = spare, order
        width *= 2
    return order
