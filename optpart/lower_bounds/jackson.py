"""The one-machine bound: Jackson's preemptive schedule of jobs with heads and tails, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from optpart.kernels.compiled import inner, short_kernel
from optpart.kernels.struct import Ints, LongMatrix, Longs, Struct
from optpart.lower_bounds.windows import NEVER


@inner
def sort(item: Any, size: int, key: Any) -> None:
    """Heap sort: order ``item[:size]`` by ascending ``key[item]``."""
    for begin in range(size // 2 - 1, -1, -1):
        _sink(item, begin, size, key)
    for end in range(size - 1, 0, -1):
        item[0], item[end] = item[end], item[0]
        _sink(item, 0, end, key)


@inner
def _sink(item: Any, at: int, size: int, key: Any) -> None:
    """Restore the heap, largest key first, below position ``at``."""
    while True:
        child = 2 * at + 1
        if child >= size:
            return
        if child + 1 < size and key[item[child + 1]] > key[item[child]]:
            child += 1
        if key[item[at]] >= key[item[child]]:
            return
        item[at], item[child] = item[child], item[at]
        at = child


@inner
def _rise(item: Any, at: int, key: Any) -> None:
    """Restore the heap above position ``at``."""
    while at > 0 and key[item[(at - 1) // 2]] < key[item[at]]:
        item[at], item[(at - 1) // 2] = item[(at - 1) // 2], item[at]
        at = (at - 1) // 2


class Waiting(Struct):
    """Scratch of Jackson's preemptive schedule.

    Attributes
    ----------
    left : ndarray of int64, length n
        What is left of each job.
    heap : ndarray of int32, length n
        The jobs that wait.
    """

    left: Longs
    heap: Ints


@inner
def jackson(
    job: Any, size: int, head: Any, duration: Any, d: int, tail: Any, waiting: Waiting
) -> Any:
    """Latest end plus tail of Jackson's preemptive schedule (Jackson 1955; Carlier 1982).

    Of the jobs that are there the one with the largest tail runs. No schedule of the jobs one after
    the other is shorter. ``job`` is sorted by heads on ``d``; ``tail`` is by vertex.
    """
    left, heap = waiting.left, waiting.heap
    for i in range(size):
        left[job[i]] = duration[job[i], d]
    now, best, following, count = 0, 0, 0, 0
    while following < size or count > 0:
        if count == 0:
            now = max(now, head[job[following], d])
        while following < size and head[job[following], d] <= now:
            heap[count] = job[following]
            _rise(heap, count, tail)
            count += 1
            following += 1
        x = heap[0]
        run = left[x]
        if following < size:
            run = min(run, head[job[following], d] - now)
        now += run
        left[x] -= run
        if left[x] == 0:
            best = max(best, now + tail[x])
            count -= 1
            heap[0] = heap[count]
            _sink(heap, 0, count, tail)
    return best


def one_after_the_other(
    start: NDArray[np.int32],
    member: NDArray[np.int32],
    duration: NDArray[np.int64],
    head: NDArray[np.int64],
    tail: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the one-machine bound of each group on each device; ``NEVER`` where it cannot be.

    Parameters
    ----------
    start, member : ndarray
        The groups, as :func:`~optpart.problem.graph.grouped` returns them.
    """
    n, k = head.shape
    bound = np.zeros((len(start) - 1, k), np.int64)
    waiting = Waiting(np.empty(n, np.int64), np.empty(n, np.int32))
    _bound_groups(start, member, duration, head, tail, waiting, bound)
    return bound


@short_kernel
def _bound_groups(
    start: Ints,
    member: Ints,
    duration: LongMatrix,
    head: LongMatrix,
    tail: LongMatrix,
    waiting: Waiting,
    bound: LongMatrix,
) -> None:
    """Fill in the one-machine bound of each group on each device."""
    n, k = head.shape
    job, key, after = np.empty(n, np.int32), np.empty(n, np.int64), np.empty(n, np.int64)
    for g in range(bound.shape[0]):
        size = start[g + 1] - start[g]
        for d in range(k):
            for i in range(size):
                v = member[start[g] + i]
                job[i], key[v], after[v] = v, head[v, d], tail[v, d]
                if head[v, d] >= NEVER or tail[v, d] >= NEVER:
                    bound[g, d] = NEVER
            if bound[g, d] < NEVER:
                sort(job, size, key)
                bound[g, d] = jackson(job, size, head, duration, d, after, waiting)
