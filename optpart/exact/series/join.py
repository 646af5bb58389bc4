"""The compiled loop that extends labels by whole columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from optpart.exact.series.kernel import cell, cell_bits, grown, memory_cost, ordered
from optpart.exact.series.lattice import NEVER
from optpart.kernels.compiled import inner, long_kernel
from optpart.kernels.struct import LongMatrix, Longs, Struct

#: Kept labels with which a label is compared.
_MOST_COMPARED = 1500

#: Labels made at one cut, for each that may be kept per device, and at least.
_MADE_PER_LABEL, _LEAST_MADE = 50, 20_000

#: The same where too many are merged, the share that merging leaves of those made, and bits of the
#: finest grid of memory.
_MERGED_PER_LABEL, _LEFT, _FINEST = 8, 1 / 4, 14

#: Columns of the table of new labels: device and end of the cut vertex, bound, label before, column
#: of the part, cell of the grid. Then comes the memory taken per device, and then the new name of
#: each device.
_DEVICE, _TIME, _BOUND, _FROM, _COLUMN, _CELL, _MEMORY = range(7)


class Ends(Struct):
    """Labels before a part.

    Device and end of the cut vertex, memory (labels × k) taken so far, and a lower bound of the
    makespan of every schedule that a label stands for.
    """

    device: Longs
    time: Longs
    memory: LongMatrix
    bound: Longs


class Extensions(Struct):
    """The columns of a part.

    Attributes
    ----------
    first : ndarray, length k + 1
        First column of each device of the cut vertex before the part.
    end, span, taken : ndarray
        Device of the cut vertex after it, ticks between the ends of both, memory taken.
    """

    first: Longs
    end: Longs
    span: Longs
    taken: LongMatrix


class Cut(Struct):
    """The state at the cut after the part.

    Attributes
    ----------
    after, price : ndarray, duals × k
        Of every dual.
    shift : int
        Prices are multiplied by ``2**shift``.
    capacity : ndarray, length k
    rest_need : int
        Memory of the units that follow the part.
    ahead : ndarray, k × k
        A label on ``d`` is as good as one on ``e`` if it ends at least ``ahead[d, e]`` earlier.
    kind : ndarray, length k
        Class of each device; those of one class are identical.
    upper : int
        Labels whose bound reaches this are left out.
    beam : int
        Labels to keep per device.
    merging : bool
        Whether too many labels are merged rather than given up.
    """

    after: LongMatrix
    price: LongMatrix
    shift: int
    capacity: Longs
    rest_need: int
    ahead: LongMatrix
    kind: Longs
    upper: int
    beam: int
    merging: bool


class Ranking(Struct):
    """For each label, the columns after it in the order of a bound, by the best relaxation for it.

    Attributes
    ----------
    column, value : ndarray
        Columns in such orders, one order after the other, and what each adds to the bound.
    first, last : ndarray, length labels
        The order of each label.
    base : ndarray, length labels
        What the label adds to the bound.
    """

    column: Longs
    value: Longs
    first: Longs
    last: Longs
    base: Longs


def joined(
    labels: Ends, columns: Extensions, cut: Cut
) -> tuple[
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int64],
    int,
]:
    """Extend labels before a part by its columns.

    Returns
    -------
    device, time, memory, bound, from label, column, renamed : ndarray
        The labels after the part, best bounds first. Identical devices are renamed, so that labels
        that differ in their names alone are equal: ``renamed[l, d]`` is the new name of ``d``.
        Of merged labels, the last three are those of one with the least bound.
    dropped : int
        The least bound of a label given up because there were too many.
    """
    found, dropped = join(labels, columns, cut, _ranked(labels, columns, cut))
    k = len(cut.capacity)
    return (
        found[:, _DEVICE].copy(),
        found[:, _TIME].copy(),
        np.ascontiguousarray(found[:, _MEMORY : _MEMORY + k]),
        found[:, _BOUND].copy(),
        found[:, _FROM].copy(),
        found[:, _COLUMN].copy(),
        np.ascontiguousarray(found[:, _MEMORY + k :]),
        int(dropped),
    )


def _ranked(labels: Ends, columns: Extensions, cut: Cut) -> Ranking:
    """Order the columns for every label, so that few of those that cannot follow it are tried.

    Time and cost of a label and of a column add up to at most the bound of both: costs are rounded
    down, and a label may count as using more memory than both take.
    """
    price = np.where(cut.capacity < 0, 0, cut.price)
    base = labels.time[:, None] + (((labels.memory - cut.capacity) @ price.T) >> cut.shift)
    used = np.zeros(len(labels.device), dtype=np.int64)
    first, last, at = used.copy(), used.copy(), 0
    orders, values = [], []
    for d in np.unique(labels.device).tolist():
        own = slice(columns.first[d], columns.first[d + 1])
        if own.start == own.stop:
            continue
        here = np.flatnonzero(labels.device == d)
        adds = columns.span[own] + (columns.taken[own] @ price.T >> cut.shift).T
        adds += cut.after[:, columns.end[own]]
        used[here] = (base[here] + adds.min(axis=1)).argmax(axis=1)
        for j in np.unique(used[here]).tolist():
            order = np.argsort(adds[j], kind="stable")
            orders.append(own.start + order)
            values.append(adds[j][order])
            rows = here[used[here] == j]
            first[rows], last[rows] = at, at + len(order)
            at += len(order)
    empty = np.zeros(0, dtype=np.int64)
    return Ranking(
        column=np.concatenate([empty, *orders]),
        value=np.concatenate([empty, *values]),
        first=first,
        last=last,
        base=base[np.arange(len(used)), used],
    )


@long_kernel
def join(labels: Ends, columns: Extensions, cut: Cut, ranking: Ranking) -> Any:
    """Return the table of :func:`joined`, and the least bound given up."""
    devices = len(cut.capacity)
    found = np.empty((1024, _MEMORY + 2 * devices), dtype=np.int64)
    taken, name = np.empty(devices, dtype=np.int64), np.empty(devices, dtype=np.int64)
    dropped, upper = np.int64(NEVER), cut.upper
    most = max(_LEAST_MADE, (_MERGED_PER_LABEL if cut.merging else _MADE_PER_LABEL) * cut.beam)
    count = 0
    for i in range(len(labels.device)):
        for y in range(ranking.first[i], ranking.last[i]):
            if ranking.base[i] + ranking.value[y] >= upper:
                break
            c = ranking.column[y]
            if not _take(labels.memory[i], columns.taken[c], cut, taken):
                continue
            e, ends = columns.end[c], labels.time[i] + columns.span[c]
            bound = labels.bound[i]
            for j in range(len(cut.price)):
                cost = memory_cost(cut.price[j], cut.shift, cut.capacity, taken)
                bound = max(bound, ends + cut.after[j, e] + cost)
                if bound >= upper:
                    break
            if bound >= upper:
                continue
            if count == most and cut.merging:
                found, count = _merged(found, count, int(_LEFT * most), cut.capacity)
            elif count == most:
                found, count, upper = _halved(found, count)
                dropped = upper
            if count == len(found):
                found = grown(found, 2 * count)
            _rename(taken, e, cut.kind, name)
            row = found[count]
            row[_DEVICE], row[_TIME], row[_BOUND] = name[e], ends, bound
            row[_FROM], row[_COLUMN] = i, c
            for d in range(devices):
                row[_MEMORY + name[d]] = taken[d]
                row[_MEMORY + devices + d] = name[d]
            count += 1
    if cut.merging:
        found, count = _merged(found, count, cut.beam, cut.capacity)
    order = ordered(found, count, _BOUND, _BOUND)
    total, lost = _select(found, order, cut)
    kept = np.empty((total, found.shape[1]), dtype=np.int64)
    for y in range(total):
        for x in range(found.shape[1]):
            kept[y, x] = found[order[y], x]
    return kept, min(dropped, lost)


@inner
def _merged(found: Any, count: int, most: int, capacity: Any) -> Any:
    """Merge labels of one device that have taken much the same memory, if there are too many.

    One that stands for several ends as early, has taken as little memory of each device, and has as
    low a bound, as any of them. So no schedule is lost, but there may be none for it. The grid of
    memory gets coarser until few enough are left.

    Source: H. Andersen, T. Hadzic, J. Hooker and P. Tiedemann, A constraint store based on
    multivalued decision diagrams, CP 2007.
    """
    devices, bits = len(capacity), cell_bits(capacity, _FINEST)
    while count > most and bits >= 0:
        for y in range(count):
            memory = found[y, _MEMORY : _MEMORY + devices]
            found[y, _CELL] = cell(found[y, _DEVICE], memory, capacity, bits)
        order = ordered(found, count, _CELL, _BOUND)
        merged = np.empty_like(found)
        last = -1
        for y in range(count):
            row = found[order[y]]
            if last < 0 or merged[last, _CELL] != row[_CELL]:
                last += 1
                for x in range(found.shape[1]):
                    merged[last, x] = row[x]
                continue
            into = merged[last]
            into[_TIME] = min(into[_TIME], row[_TIME])
            for d in range(_MEMORY, _MEMORY + devices):
                into[d] = min(into[d], row[d])
        found, count = merged, last + 1
        bits -= 1
    return found, count


@inner
def _halved(found: Any, count: int) -> Any:
    """Return a table with the better half of the labels, their number, and the bound of others."""
    order = ordered(found, count, _BOUND, _BOUND)
    kept = np.empty_like(found)
    for y in range(count // 2):
        for x in range(found.shape[1]):
            kept[y, x] = found[order[y], x]
    return kept, count // 2, found[order[count // 2], _BOUND]


@inner
def _take(memory: Any, taken: Any, cut: Cut, row: Any) -> Any:
    """Fill in the memory taken after a column; return whether that and all that is left fits."""
    unlimited = False
    free = np.int64(0)
    for d in range(len(row)):
        used = memory[d] + taken[d]
        if cut.capacity[d] < 0:
            used = np.int64(0)
            unlimited = True
        else:
            if used > cut.capacity[d]:
                return False
            free += cut.capacity[d] - used
            # More room than all that is left to place is no advantage.
            used = max(used, cut.capacity[d] - cut.rest_need)
        row[d] = used
    return unlimited or free >= cut.rest_need


@inner
def _select(found: Any, order: Any, cut: Cut) -> Any:
    """Keep the best labels of each device that no other dominates.

    Returns
    -------
    total : int
        Their number; they become the first of the order.
    dropped : int
        The least bound of those for which there was no room.
    """
    devices = len(cut.capacity)
    full = np.zeros(devices, dtype=np.int64)
    dropped = np.int64(NEVER)
    total = 0
    for x in range(len(order)):
        row = found[order[x]]
        if full[row[_DEVICE]] >= cut.beam:
            dropped = min(dropped, row[_BOUND])
            continue
        dominated = False
        for y in range(min(total, _MOST_COMPARED)):
            other = found[order[y]]
            if other[_TIME] + cut.ahead[other[_DEVICE], row[_DEVICE]] > row[_TIME]:
                continue
            worse = False
            for d in range(_MEMORY, _MEMORY + devices):
                if other[d] > row[d]:
                    worse = True
                    break
            if not worse:
                dominated = True
                break
        if not dominated:
            order[total] = order[x]
            total += 1
            full[row[_DEVICE]] += 1
    return total, dropped


@inner
def _rename(memory: Any, device: int, kind: Any, name: Any) -> None:
    """Name the devices of each class anew: first ``device``, then by memory, most first."""
    devices = len(kind)
    for d in range(devices):
        place = 0
        for e in range(devices):
            if e == d or kind[e] != kind[d] or d == device:
                continue
            if e == device or memory[e] > memory[d] or (memory[e] == memory[d] and e < d):
                place += 1
        # The place-th device of its class.
        for e in range(devices):
            if kind[e] == kind[d]:
                if place == 0:
                    name[d] = e
                    break
                place -= 1
