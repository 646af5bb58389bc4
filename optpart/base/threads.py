"""The same work for several things at a time, by threads; machine code leaves Python to others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from optpart.base import clock

Given = TypeVar("Given")
Found = TypeVar("Found")


def each(
    function: Callable[[Given], Found], items: Sequence[Given], threads: int = 1
) -> list[Found]:
    """Return what a function returns for each item, within this thread's time limit."""
    if min(threads, len(items)) < 2:
        return [function(item) for item in items]
    limit = clock.current()

    def run(item: Given) -> Found:
        with clock.under(limit):
            return function(item)

    with ThreadPoolExecutor(min(threads, len(items))) as pool:
        return list(pool.map(run, items))
