"""Columns: ways to run one part, between two devices, with their time and memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.kernels.compiled import inner, kernel

#: Vertices in the order of their starts, each with its device.
Sequence = tuple[tuple[int, int], ...]


class Columns(NamedTuple):
    """Columns of all parts, those of one part after the other.

    ``first`` has the first column of every part; ``start`` and ``end`` are devices of the cut
    vertices, ``time`` ticks between their ends, ``memory`` (columns × k) what the part takes.
    """

    first: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    time: NDArray[np.int64]
    memory: NDArray[np.int64]


class Pool:
    """A growing set of columns."""

    def __init__(self, parts: int, devices: int) -> None:
        self.devices = devices
        self._rows: list[dict[tuple[int, ...], tuple[int, Sequence]]] = [{} for _ in range(parts)]

    def add(
        self, part: int, start: int, end: int, time: int, memory: Any, sequence: Sequence
    ) -> None:
        """Add a column, unless one with the same ends and memory is at least as fast."""
        key = (start, end, *(int(x) for x in memory))
        rows = self._rows[part]
        if key not in rows or rows[key][0] > time:
            rows[key] = time, sequence

    def __len__(self) -> int:
        return sum(map(len, self._rows))

    def columns(self) -> Columns:
        """Return all columns as arrays."""
        first = np.cumsum([0, *(len(rows) for rows in self._rows)])
        keys = [key for rows in self._rows for key in rows]
        table = np.array(keys, dtype=np.int64).reshape(-1, 2 + self.devices)
        times = np.array([t for rows in self._rows for t, _ in rows.values()], dtype=np.int64)
        return Columns(first, table[:, 0].copy(), table[:, 1].copy(), times, table[:, 2:].copy())

    def sequences(self, part: int) -> list[Sequence]:
        """Return how the columns of a part run, in the order of :meth:`columns`."""
        return [sequence for _, sequence in self._rows[part].values()]


@inner
def _cheapest(
    first: Any,
    start: Any,
    end: Any,
    time: Any,
    memory: Any,
    value: Any,
    worth: Any,
    choice: Any,
    used: Any,
) -> float:
    """Return the least time plus value of memory over all chains of columns; fill ``used``."""
    parts = len(first) - 1
    devices = memory.shape[1]
    worth[parts, :] = 0.0
    for i in range(parts - 1, -1, -1):
        for d in range(devices):
            worth[i, d] = np.inf
        for c in range(first[i], first[i + 1]):
            total = time[c] + worth[i + 1, end[c]]
            for d in range(devices):
                total += value[d] * memory[c, d]
            if total < worth[i, start[c]]:
                worth[i, start[c]] = total
                choice[i, start[c]] = c
    used[:] = 0.0
    if not np.isfinite(worth[0, 0]):
        return np.inf
    at = 0
    for i in range(parts):
        c = choice[i, at]
        for d in range(devices):
            used[d] += memory[c, d]
        at = end[c]
    return float(worth[0, 0])


@kernel
def multipliers(
    first: Any,
    start: Any,
    end: Any,
    time: Any,
    memory: Any,
    capacity: Any,
    value: Any,
    upper: float,
    rounds: int,
) -> Any:
    """Return prices of memory that make the relaxation over these columns large, by subgradients.

    Parameters
    ----------
    capacity : ndarray of float64
        Negative where a device has no limit.
    value : ndarray of float64, length k
        Prices to begin with, in ticks per unit of memory.
    upper : float
        Ticks of a schedule; the step length aims at it.

    Returns
    -------
    ndarray of float64, float
        The best prices, and their value.
    """
    devices = memory.shape[1]
    parts = len(first) - 1
    worth = np.empty((parts + 1, devices))
    choice = np.zeros((parts, devices), dtype=np.int64)
    used = np.empty(devices)
    value = value.copy()
    best_value = value.copy()
    best = -np.inf
    pace = 1.0
    idle = 0
    for _ in range(rounds):
        total = _cheapest(first, start, end, time, memory, value, worth, choice, used)
        if not np.isfinite(total):
            break
        for d in range(devices):
            if capacity[d] >= 0:
                total -= value[d] * capacity[d]
        if not np.isfinite(best) or total > best + 1e-9 * abs(best):
            best = total
            best_value[:] = value
            idle = 0
        else:
            idle += 1
            if idle >= 8:
                pace *= 0.7
                idle = 0
                value[:] = best_value
                if pace < 1e-4:
                    break
        # In units of time: each price times the capacity of its device.
        norm = 0.0
        for d in range(devices):
            if capacity[d] >= 0:
                slope = (used[d] - capacity[d]) / max(capacity[d], 1.0)
                if slope > 0 or value[d] > 0:
                    norm += slope * slope
        if norm <= 0.0:
            break
        step = pace * max(1.02 * upper - total, 1e-3 * upper) / norm
        for d in range(devices):
            if capacity[d] >= 0:
                slope = (used[d] - capacity[d]) / max(capacity[d], 1.0)
                value[d] = max(0.0, value[d] + step * slope / max(capacity[d], 1.0))
    return best_value, best
