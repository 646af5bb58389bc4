"""Columns: ways to run one part, between two devices, with their time and memory."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.base.clock import seconds_left

#: Cost of as much memory in excess as a device has, in schedules.
_EXCESS = 8.0

#: Vertices in the order of their starts, each with its device.
Sequence = tuple[tuple[int, int], ...]


class Column(NamedTuple):
    """A way to run ``part`` from device ``start`` to ``end``; memory has an entry per device."""

    part: int
    start: int
    end: int
    time: int
    memory: NDArray[np.int64]
    sequence: Sequence


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

    def since(self, part: int) -> Columns:
        """Return those of a part and all that follow it."""
        at = int(self.first[part])
        return Columns(self.first[part:] - at, *(column[at:] for column in self[1:]))

    def exchanged(self, names: list[NDArray[np.int64]]) -> Columns:
        """Return every column once for each of some new names of the devices."""
        old = [np.argsort(name) for name in names]
        return Columns(
            self.first * len(names),
            np.stack([name[self.start] for name in names], axis=1).reshape(-1),
            np.stack([name[self.end] for name in names], axis=1).reshape(-1),
            np.repeat(self.time, len(names)),
            np.stack([self.memory[:, o] for o in old], axis=1).reshape(-1, len(old[0])),
        )


class Pool:
    """A growing set of columns."""

    def __init__(self, parts: int, devices: int) -> None:
        self.devices = devices
        self._rows: list[dict[tuple[int, ...], tuple[int, Sequence]]] = [{} for _ in range(parts)]

    def add(self, column: Column) -> None:
        """Add a column, unless one with the same ends and memory is at least as fast."""
        key = (column.start, column.end, *column.memory.tolist())
        rows = self._rows[column.part]
        if key not in rows or rows[key][0] > column.time:
            rows[key] = column.time, column.sequence

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


def prices(
    columns: Columns, capacity: NDArray[np.float64], upper: float, device: int = 0
) -> tuple[NDArray[np.float64], float] | None:
    """Return the prices of memory that are best for some columns, by a linear program.

    It chooses, fractionally, a chain of columns of least time within the capacities; memory beyond
    them costs far more than any schedule is worth. The multipliers of capacities are the prices.

    Parameters
    ----------
    capacity : ndarray of float, length k
        Negative where a device has no limit.
    upper : float
        Ticks of a schedule.
    device : int
        Where the chain begins.

    Returns
    -------
    (ndarray, float) or None
        Ticks per unit of memory, and the least time. ``None`` if no chain exists, or the solver
        fails or runs out of time; prices only make choices, so nothing else depends on it.
    """
    # Loaded here because it takes long, and not every run needs it.
    from scipy import sparse
    from scipy.optimize import linprog

    devices, parts, count = len(capacity), len(columns.first) - 1, len(columns.time)
    part = np.repeat(np.arange(parts), np.diff(columns.first))
    number = np.arange(count)
    leave = part * devices + columns.start
    enter = (part + 1) * devices + columns.end
    inner = enter < parts * devices
    flow = sparse.csr_array(
        (
            np.concatenate([np.ones(count), -np.ones(inner.sum())]),
            (
                np.concatenate([leave, enter[inner]]),
                np.concatenate([number, number[inner]]),
            ),
        ),
        shape=(parts * devices, count),
    )
    begin = np.zeros(parts * devices)
    begin[device] = 1.0
    limited = np.flatnonzero(capacity >= 0)
    scale = np.maximum(capacity[limited], 1.0)
    used = columns.memory[:, limited].T / scale[:, None]
    excess = np.eye(len(limited))
    found = linprog(  # type: ignore[call-overload]
        np.concatenate([columns.time / upper, np.full(len(limited), _EXCESS)]),
        A_ub=sparse.csr_array(np.hstack([used, -excess])),
        b_ub=capacity[limited] / scale,
        A_eq=sparse.hstack([flow, sparse.csr_array((parts * devices, len(limited)))]),
        b_eq=begin,
        method="highs",
        options={} if math.isinf(left := seconds_left()) else {"time_limit": left},
    )
    if found.status != 0:
        return None
    value = np.zeros(devices)
    value[limited] = np.maximum(0.0, -found.ineqlin.marginals) * upper / scale
    return value, float(found.fun * upper)
