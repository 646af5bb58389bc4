"""The best split of a row of items into segments, by dynamic programming over prefixes, compiled.

Items are in a row, and each segment of it goes to a device, or to one of a class of devices.
``value[state, i]`` is the least value of the first ``i`` items, where a state says which devices
are taken and which has the last segment. It follows from the values of the states that have one
segment fewer, the *crossing* from the last device of these at the cut, and the segment itself: as
their sum, or as the largest of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from optpart.kernels.compiled import inner
from optpart.kernels.struct import FloatMatrix, IntMatrix, LongMatrix, Longs, Struct

#: The value of what is impossible, in whole numbers; other values are at most half as large.
NONE = 2**62


class Segment(NamedTuple):
    """The first item, the item after the last, and the device or class of a segment."""

    begin: int
    end: int
    device: int


class States(Struct):
    """Which devices are taken, and which of them has the last segment.

    State 0 has taken none. States are entered from states of lower number.

    Attributes
    ----------
    device : ndarray of int64, one per state
        That of the last segment; 0 for state 0.
    entry_start : ndarray of int64, states + 1
    entry : ndarray of int64
        The states from which each state is entered, ascending.
    """

    device: Longs
    entry_start: Longs
    entry: Longs


def states_of(device: Sequence[int], entries: Sequence[Sequence[int]]) -> States:
    """Return states from the device of each, and from where each is entered."""
    start = np.cumsum([0, *map(len, entries)])
    entry = [state for row in entries for state in row]
    return States(*(np.array(each, dtype=np.int64) for each in (device, start, entry)))


def in_order(devices: Sequence[int], skipped: int | None = None) -> States:
    """Return the states for devices in one order.

    Parameters
    ----------
    skipped : int, optional
        Most devices in a row to leave out between two segments; by default, any number.
    """
    window = len(devices) if skipped is None else skipped + 1
    entries = [[0, *range(max(1, i - window), i)] for i in range(1, len(devices) + 1)]
    return states_of([0, *devices], [[], *entries])


def in_any_order(devices: Sequence[int]) -> States:
    """Return the states for every set of devices and last device: any order, each at most once."""
    number = {(0, 0): 0}
    device, entries = [0], list[list[int]]([[]])
    for taken in range(1, 1 << len(devices)):
        inside = [i for i in range(len(devices)) if taken >> i & 1]
        for last in inside:
            before = taken ^ 1 << last
            number[taken, last] = len(device)
            device.append(devices[last])
            entries.append([number[before, i] for i in inside if i != last] if before else [0])
    return states_of(device, entries)


class Tables(Struct):
    """The best splits of the first items; each is states × (items + 1).

    Attributes
    ----------
    value
        Least values, in whole numbers.
    begin
        Where the last segment begins.
    source
        The state from which a segment that begins there is entered.
    """

    value: LongMatrix
    begin: IntMatrix
    source: IntMatrix


class FloatTables(Struct):
    """The same in floating point."""

    value: FloatMatrix
    begin: IntMatrix
    source: IntMatrix


def no_segments(states: States, items: int, *, whole: bool) -> Any:
    """Return tables, in whole numbers or in floating point, in which there is no segment yet."""
    shape = len(states.device), items + 1
    value = np.full(shape, NONE) if whole else np.full(shape, np.inf)
    value[0, 0] = 0
    make = Tables if whole else FloatTables
    return make(value, np.zeros(shape, np.int32), np.zeros(shape, np.int32))


@inner
def append_segments(
    states: States,
    row: Any,
    crossing: Callable[..., Any],
    add: bool,
    shortest: bool,
    tables: Any,
    low: int,
    high: int,
) -> None:
    """Enter the best splits into the rows of some states; those of lower states are there.

    Parameters
    ----------
    row : struct
        By device and number of items: ``first``, where the longest segment begins that ends there,
        ascending; ``run`` and ``until``, so that the segment from ``i`` to ``j`` takes
        ``until[d, j] - run[d, i]``, no less than a shorter one that ends there.
    crossing : callable
        ``crossing(row, i, s, d)`` is the cost of a cut after ``i`` items between two devices, at
        least 0.
    add : bool
        Whether values add up; otherwise the largest counts.
    shortest : bool
        Of equally long ones, whether the shortest last segment is taken, and not the longest. Sums
        are always those of the longest.
    tables : Tables or FloatTables
    low, high : int
        The first of these states, and the one after the last.
    """
    value, begin, source = tables.value, tables.begin, tables.source
    n = value.shape[1] - 1
    nothing = value[0, n]
    enter = np.empty(n + 1, value.dtype)
    for state in range(max(1, low), high):
        d = states.device[state]
        enter[:] = nothing
        for e in range(states.entry_start[state], states.entry_start[state + 1]):
            other = states.entry[e]
            for i in range(n):
                if value[other, i] >= enter[i]:
                    continue
                time = value[other, i]
                if other > 0:
                    passing = crossing(row, i, states.device[other], d)
                    time = time + passing if add else max(time, passing)
                if time < enter[i]:
                    enter[i], source[state, i] = time, other
        first, run, until = row.first[d], row.run[d], row.until[d]
        if add:
            _append_sum(enter, nothing, first, run, until, value[state], begin[state])
        else:
            _append_longest(enter, shortest, first, run, until, value[state], begin[state])


@inner
def _append_sum(
    enter: Any, nothing: Any, first: Any, run: Any, until: Any, value: Any, begin: Any
) -> None:
    """Let one more segment follow each split, which has the value ``enter``, where values add up.

    From ``i`` to ``j``, that is ``until[j] + (enter[i] - run[i])``, so the best ``i`` of a sliding
    window is at the head of a queue.
    """
    queue, head, tail = np.empty(enter.shape[0], np.int32), 0, 0
    for j in range(1, enter.shape[0]):
        i = j - 1
        if enter[i] < nothing:
            while head < tail and enter[queue[tail - 1]] - run[queue[tail - 1]] > enter[i] - run[i]:
                tail -= 1
            queue[tail] = i
            tail += 1
        while head < tail and queue[head] < first[j]:
            head += 1
        if head < tail:
            i = queue[head]
            value[j], begin[j] = enter[i] + (until[j] - run[i]), i


@inner
def _append_longest(
    enter: Any, shortest: bool, first: Any, run: Any, until: Any, value: Any, begin: Any
) -> None:
    """Do the same where the largest value counts, from the shortest segment to the longest."""
    for j in range(1, enter.shape[0]):
        for i in range(j - 1, first[j] - 1, -1):
            segment = until[j] - run[i]
            if segment > value[j]:
                break
            time = max(enter[i], segment)
            if time < value[j] or (time == value[j] and not shortest):
                value[j], begin[j] = time, i


def segments(states: States, tables: Tables | FloatTables, state: int) -> list[Segment]:
    """Return the segments of the best split of all items that ends in a state."""
    found, end = [], tables.begin.shape[1] - 1
    while state:
        start = int(tables.begin[state, end])
        found.append(Segment(start, end, int(states.device[state])))
        state, end = int(tables.source[state, start]), start
    return found[::-1]
