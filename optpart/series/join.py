"""The compiled loop that extends labels by whole columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from optpart.kernels.compiled import inner, kernel
from optpart.series.kernel import grown, longer, paid
from optpart.series.lattice import NEVER

#: Kept labels with which a label is compared.
_MOST_COMPARED = 1500

#: Labels made at one cut, which limits the memory taken.
_MOST_MADE = 5_000_000


@kernel
def join(
    device: Any,
    time: Any,
    memory: Any,
    first: Any,
    end: Any,
    span: Any,
    taken: Any,
    after: Any,
    price: Any,
    shift: int,
    capacity: Any,
    rest_need: int,
    ahead: Any,
    upper: int,
    beam: int,
    kind: Any,
) -> Any:
    """Extend labels before a part by its columns.

    Parameters
    ----------
    device, time, memory : ndarray
        The labels: device and end of the cut vertex, memory taken so far per device.
    first : ndarray, length k + 1
        First column of each device of the cut vertex before the part.
    end, span, taken : ndarray
        Device of the cut vertex after it, ticks between the ends of both, memory taken.
    after, price : ndarray
        Of every dual, for the cut after the part.
    rest_need : int
        Memory of the units that follow the part.
    kind : ndarray, length k
        Class of each device; those of one class are identical.
    beam : int
        Labels to keep per device.
    ahead : ndarray, k × k
        A label on ``d`` is as good as one on ``e`` if it ends at least ``ahead[d, e]`` earlier.

    Returns
    -------
    device, time, memory, from label, column, renamed : ndarray
        The labels after the part, best bounds first. Identical devices are renamed, so that labels
        that differ in their names alone are equal: ``renamed[l, d]`` is the new name of ``d``.
    dropped : int
        The least bound of a label given up because there were too many.
    """
    devices = len(capacity)
    room = 1024
    n_device = np.empty(room, dtype=np.int64)
    n_time = np.empty(room, dtype=np.int64)
    n_memory = np.empty((room, devices), dtype=np.int64)
    n_from = np.empty(room, dtype=np.int64)
    n_column = np.empty(room, dtype=np.int64)
    n_bound = np.empty(room, dtype=np.int64)
    n_name = np.empty((room, devices), dtype=np.int64)
    name = np.empty(devices, dtype=np.int64)
    dropped = np.int64(NEVER)
    count = 0
    row = np.empty(devices, dtype=np.int64)
    for i in range(len(device)):
        for c in range(first[device[i]], first[device[i] + 1]):
            e = end[c]
            fits = True
            unlimited = False
            free = np.int64(0)
            for d in range(devices):
                used = memory[i, d] + taken[c, d]
                if capacity[d] < 0:
                    used = np.int64(0)
                    unlimited = True
                else:
                    if used > capacity[d]:
                        fits = False
                        break
                    free += capacity[d] - used
                    used = max(used, capacity[d] - rest_need)
                row[d] = used
            if not fits or (not unlimited and free < rest_need):
                continue
            ends = time[i] + span[c]
            bound = np.int64(-NEVER)
            for j in range(len(price)):
                bound = max(bound, ends + after[j, e] + paid(price, j, row, capacity, shift))
            if bound >= upper:
                continue
            if count == _MOST_MADE:
                dropped = min(dropped, bound)
                continue
            if count == room:
                room *= 2
                n_device = longer(n_device, room)
                n_time = longer(n_time, room)
                n_from = longer(n_from, room)
                n_column = longer(n_column, room)
                n_bound = longer(n_bound, room)
                n_memory = grown(n_memory, room)
                n_name = grown(n_name, room)
            _rename(row, e, kind, name)
            n_name[count] = name
            n_device[count] = name[e]
            n_time[count] = ends
            for d in range(devices):
                n_memory[count, name[d]] = row[d]
            n_from[count] = i
            n_column[count] = c
            n_bound[count] = bound
            count += 1
    order = np.argsort(n_bound[:count], kind="mergesort")
    kept = np.empty(count, dtype=np.int64)
    total = 0
    full = np.zeros(devices, dtype=np.int64)
    for x in range(count):
        c = order[x]
        if full[n_device[c]] >= beam:
            dropped = min(dropped, n_bound[c])
            continue
        dominated = False
        for y in range(min(total, _MOST_COMPARED)):
            k = kept[y]
            if n_time[k] + ahead[n_device[k], n_device[c]] > n_time[c]:
                continue
            worse = False
            for d in range(devices):
                if n_memory[k, d] > n_memory[c, d]:
                    worse = True
                    break
            if not worse:
                dominated = True
                break
        if not dominated:
            kept[total] = c
            total += 1
            full[n_device[c]] += 1
    kept = kept[:total]
    return (
        n_device[kept],
        n_time[kept],
        n_memory[kept],
        n_from[kept],
        n_column[kept],
        n_name[kept],
        dropped,
    )


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
