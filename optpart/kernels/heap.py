"""A binary heap of integers with keys, for compiled code: ``key`` and ``item`` are its arrays.

The least key comes first, and of equal keys the least integer.
"""

from __future__ import annotations

from typing import Any

from optpart.kernels.compiled import inner


@inner
def heap_push(key: Any, item: Any, size: int, at: float, what: int) -> Any:
    """Add an item and return the new size."""
    i = size
    while i > 0:
        parent = (i - 1) >> 1
        if key[parent] < at or (key[parent] == at and item[parent] < what):
            break
        key[i] = key[parent]
        item[i] = item[parent]
        i = parent
    key[i] = at
    item[i] = what
    return size + 1


@inner
def heap_pop(key: Any, item: Any, size: int) -> Any:
    """Remove the first item and return the new size."""
    size -= 1
    at, what = key[size], item[size]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        right = child + 1
        if right < size and (
            key[right] < key[child] or (key[right] == key[child] and item[right] < item[child])
        ):
            child = right
        if at < key[child] or (at == key[child] and what < item[child]):
            break
        key[i] = key[child]
        item[i] = item[child]
        i = child
    key[i] = at
    item[i] = what
    return size


@inner
def push(heap: Any, size: int, key: int) -> None:
    """Add a key to a heap of ``size`` keys without items."""
    heap_push(heap, heap, size, key, key)


@inner
def pop(heap: Any, size: int) -> Any:
    """Remove the smallest of ``size`` keys, and return it."""
    smallest = heap[0]
    heap_pop(heap, heap, size)
    return smallest
