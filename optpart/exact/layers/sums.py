"""All ways to share items among bins of limited size, by sums of subsets.

With three bins or more, the first one gets each subset that leaves no more than the others hold.
Where the bins hold hardly more than all items, there are few: those in a narrow window of sums,
found by meeting in the middle (Horowitz and Sahni 1974), as in sequential number partitioning
(Korf, Schreiber and Moffitt 2014).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from optpart.base.clock import check_time

#: Items of which all subsets of a half fit into memory.
MOST_ITEMS = 42


def shared(items: Sequence[int], size: Sequence[int], room: Sequence[int]) -> Iterator[list[int]]:
    """Yield every way to put all items into bins.

    Parameters
    ----------
    items : sequence of int
        At most :data:`MOST_ITEMS`.
    size : sequence of int
        Of each item, by number; whole and not negative.
    room : sequence of int
        Of each bin.

    Yields
    ------
    list of int
        The bin of each item.
    """
    check_time()
    total, (most, *others) = sum(size[i] for i in items), room
    if not others:
        if total <= most:
            yield [0] * len(items)
        return
    sizes = np.array([size[i] for i in items], dtype=np.int64)
    for inside in _subsets(sizes, total - sum(others), most):
        rest = [i for i, chosen in zip(items, inside, strict=True) if not chosen]
        for found in shared(rest, size, others):
            following = iter(found)
            yield [0 if chosen else 1 + next(following) for chosen in inside]


def _subsets(size: NDArray[np.int64], least: int, most: int) -> Iterator[list[bool]]:
    """Yield the subsets of which the sum is within limits."""
    half = len(size) // 2
    first, second = _sums(size[:half]), _sums(size[half:])
    order = np.argsort(second, kind="stable")
    low = np.searchsorted(second[order], least - first, "left")
    high = np.searchsorted(second[order], most - first, "right")
    for i in np.flatnonzero(high > low).tolist():
        for j in order[low[i] : high[i]].tolist():
            chosen = i | j << half
            yield [bool(chosen >> place & 1) for place in range(len(size))]


def _sums(size: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sums of all subsets, numbered in binary."""
    sums = np.zeros(1, dtype=np.int64)
    for one in size:
        sums = np.concatenate((sums, sums + one))
    return sums
