"""Subsets of which the sum is within narrow limits, by meeting in the middle.

All sums of one half of the items are sorted, and each sum of the other half looks up its complement
there (Horowitz and Sahni 1974).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from optpart.base.clock import check_time

#: Items of which the sums of all subsets of a half fit into memory.
MOST_ITEMS = 40


def subsets(size: tuple[int, ...], least: int, most: int) -> Iterator[list[int]]:
    """Yield the positions of each subset whose sizes add up to what is within limits.

    Parameters
    ----------
    size : tuple of int
        At most :data:`MOST_ITEMS`, not negative.
    """
    check_time()
    half = len(size) // 2
    (first, of_first), (second, of_second) = _sums(size[:half]), _sums(size[half:])
    low = np.searchsorted(second, least - first, "left")
    high = np.searchsorted(second, most - first, "right")
    for i in np.flatnonzero(high > low).tolist():
        for j in of_second[low[i] : high[i]].tolist():
            chosen = int(of_first[i]) | j << half
            yield [place for place in range(len(size)) if chosen >> place & 1]


@lru_cache(maxsize=4)
def _sums(size: tuple[int, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the sums of all subsets, sorted, and the subsets as binary numbers."""
    sums = np.zeros(1, dtype=np.int64)
    for one in size:
        sums = np.concatenate((sums, sums + one))
    order = np.argsort(sums, kind="stable")
    return sums[order], order
