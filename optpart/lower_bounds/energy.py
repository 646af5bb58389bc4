"""Energy: the work required within an interval of time, against the capacity of the devices in it.

Fernández & Bussell (1973) count, for every interval, the work that every schedule of a given length
must do in it: what remains if each vertex runs as early, or as late, as its head and tail permit.
More work than the devices can do in the interval refutes the length. Their devices are identical.
Here they are not, so the work of a unit in an interval depends on its device, and a linear program
distributes the units: over all devices and intervals at once, so that it must find one (fractional)
placement for all of them.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.base import clock
from optpart.kernels.compiled import whole_memory
from optpart.kernels.ticks import Grid
from optpart.lower_bounds.bisection import least_not_refuted
from optpart.lower_bounds.load import load_ticks
from optpart.lower_bounds.windows import Windows, windows
from optpart.problem.instance import Instance

#: Denominator to which multipliers are rounded; the proof is valid for any rounding.
_PARTS = 2**20

#: Maximal entries of the linear program; beyond, fewer intervals are used.
_MAX_ENTRIES = 400_000

#: Maximal columns of the linear program; beyond, solving takes too long.
_MAX_COLUMNS = 100_000

#: Maximal heads and tails per device at which intervals begin and end.
_THRESHOLDS = 12

#: Longer work is cut to this, to keep products within 64 bits.
_LONGEST = 2**41


def energy_bound(
    instance: Instance, seconds: float = np.inf, makespan: Fraction | None = None
) -> Fraction | None:
    """Bound the makespan by the least length that energy does not refute.

    Parameters
    ----------
    makespan : Fraction, optional
        Makespan of a schedule; the search goes no higher.

    Returns
    -------
    Fraction or None
        ``None`` if some unit has no device at all.
    """
    deadline = clock.now() + seconds

    def rest() -> float:
        return deadline - clock.now()

    grid = Grid.of(instance)
    window = windows(instance, grid, seconds=rest())
    if window.bound is None:
        return None

    def refuted(limit: int) -> bool:
        left = windows(instance, grid, limit, seconds=rest())
        return left.bound is None or overloaded(instance, grid, left, limit, seconds=rest())

    least = least_not_refuted(
        refuted,
        grid,
        load_ticks(instance, grid, window, seconds=rest()),
        deadline=deadline,
        makespan=makespan,
    )
    return None if least is None else grid.time(least)


class Intervals(NamedTuple):
    """Intervals of devices: the least work of every unit in each, and its length."""

    device: NDArray[np.int64]
    work: NDArray[np.int64]  # rows × units
    room: NDArray[np.int64]
    begin: NDArray[np.int64]


class Overload(NamedTuple):
    """A proof that no schedule takes at most a given length.

    Attributes
    ----------
    rows : Intervals
        Those that count.
    weight : ndarray of int64, length rows
        How much each of them counts; positive.
    memory : dict
        The devices of which the memory counts, too, and how much: per whole unit, see
        :func:`optpart.kernels.compiled.whole_memory`.
    required, room : int
        The weighted work (and memory) that every placement needs, and the smaller one there is.
    """

    rows: Intervals
    weight: NDArray[np.int64]
    memory: dict[int, int]
    required: int
    room: int


def overloaded(
    instance: Instance, grid: Grid, window: Windows, limit: int, *, seconds: float = np.inf
) -> bool:
    """Return whether energy proves that no schedule takes at most ``limit`` ticks."""
    return overload(instance, grid, window, limit, seconds=seconds) is not None


def overload(
    instance: Instance, grid: Grid, window: Windows, limit: int, *, seconds: float = np.inf
) -> Overload | None:
    """Return a proof that no schedule takes at most ``limit`` ticks; ``None`` without one.

    Parameters
    ----------
    window : Windows
        Heads, tails and devices for that limit.
    seconds : float
        Time limit; without an answer by then, nothing is proven.

    Notes
    -----
    With ``e[u,r]`` the least work of unit ``u`` on the device of row ``r`` within its interval of
    length ``b_r``, every schedule satisfies ``Σ_u e[u,r]·x[u,d(r)] ≤ b_r``, and likewise for static
    memory. The solver proposes multipliers ``y_r, μ_d ≥ 0``; what they prove is computed in exact
    integers. There is no schedule if
    ``Σ_u min_d (Σ_{r of d} y_r e[u,r] + μ_d need_u) > Σ_r y_r b_r + Σ_d μ_d M_d``.
    """
    if seconds <= 0 or window.possible.sum() > _MAX_COLUMNS:
        return None
    rows = intervals(instance, grid, window, limit)
    need, capacity = whole_memory(instance, relax=True)
    limited = np.flatnonzero(capacity < need.sum())
    if not len(rows.room) and not len(limited):
        return None
    y, mu = _multipliers(rows, window.possible, need, capacity, limited, limit, seconds)
    cost = np.zeros(window.possible.shape, dtype=object)
    for r in np.flatnonzero(y):
        cost[:, rows.device[r]] += rows.work[r] * y[r]
    cost[:, limited] += need.astype(object)[:, None] * mu
    least = np.where(window.possible, cost, cost.max(initial=0)).min(axis=1).sum()
    room = (y.astype(object) * rows.room).sum() + (mu * capacity[limited].astype(object)).sum()
    if least <= room:
        return None
    used = np.flatnonzero(y)
    memory = {d: price for d, price in zip(limited.tolist(), mu.tolist(), strict=True) if price}
    return Overload(Intervals(*(column[used] for column in rows)), y[used], memory, least, room)


def intervals(
    instance: Instance, grid: Grid, window: Windows, limit: int, thresholds: int = _THRESHOLDS
) -> Intervals:
    """List the intervals that would be overfull if all units were on the device.

    Parameters
    ----------
    thresholds : int
        Most heads, and most tails, at which they begin and end, per device.
    """
    units, k = window.possible.shape
    count = min(thresholds, max(1, int((_MAX_ENTRIES / max(1, units * k)) ** 0.5)))
    device, work, room, first_tick = [], [], [], []
    for d in range(k):
        here = np.flatnonzero(window.possible[instance.unit_of, d])
        unit = instance.unit_of[here]
        run = np.minimum(grid.duration[here, d], _LONGEST)
        first, last = window.head[here, d], limit - window.tail[here, d]
        ends = [limit - tail for tail in _thinned(window.tail[here, d], count)]
        for begin in _thinned(first, count):
            for end in ends:
                # As early or as late as possible, whichever leaves less work in the interval.
                inside = np.minimum(first + run - begin, end - last + run)
                inside = np.clip(inside, 0, np.minimum(run, max(0, end - begin)))
                if inside.sum() > end - begin > 0:
                    total = np.zeros(units, dtype=np.int64)
                    np.add.at(total, unit, inside)
                    device.append(d)
                    work.append(np.minimum(total, _LONGEST))
                    room.append(end - begin)
                    first_tick.append(begin)
    return Intervals(
        np.array(device, dtype=np.int64),
        np.array(work, dtype=np.int64).reshape(len(room), units),
        np.array(room, dtype=np.int64),
        np.array(first_tick, dtype=np.int64),
    )


def _thinned(values: NDArray[np.int64], count: int) -> list[int]:
    """Pick at most ``count`` of the distinct values, ascending."""
    distinct = np.unique(values)
    if len(distinct) > count:
        distinct = distinct[np.linspace(0, len(distinct) - 1, count).round().astype(np.int64)]
    return [int(value) for value in distinct]


def _multipliers(
    rows: Intervals,
    possible: NDArray[np.bool_],
    need: NDArray[np.int64],
    capacity: NDArray[np.int64],
    limited: NDArray[np.int64],
    limit: int,
    seconds: float,
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Propose whole multipliers, from the least common excess over intervals and memory."""
    # Loaded here because it takes long, and not every run needs it.
    from scipy.optimize import linprog
    from scipy.sparse import coo_array, csr_array, hstack, vstack

    u, d = np.nonzero(possible)
    column = np.full(possible.shape, -1, dtype=np.int64)
    column[u, d] = np.arange(len(u))
    r, w = np.nonzero((rows.work > 0) & possible[:, rows.device].T)
    unit, scale = max(1.0, float(limit)), max(1.0, float(need.max(initial=1)))
    crowded = coo_array(
        (rows.work[r, w] / unit, (r, column[w, rows.device[r]])), shape=(len(rows.room), len(u))
    )
    inside = np.isin(d, limited)
    memory = coo_array(
        (need[u[inside]] / scale, (np.searchsorted(limited, d[inside]), np.flatnonzero(inside))),
        shape=(len(limited), len(u)),
    )
    above = vstack([crowded, memory]).tocsr()
    excess = csr_array(-np.ones((above.shape[0], 1)))
    once = coo_array((np.ones(len(u)), (u, np.arange(len(u)))), shape=(len(possible), len(u) + 1))
    objective = np.zeros(len(u) + 1)
    objective[-1] = 1.0
    # The type stubs of linprog lack sparse matrices.
    options: Any = {"time_limit": seconds} if np.isfinite(seconds) else {}
    left: Any = hstack([above, excess]).tocsr()
    equal: Any = once.tocsr()
    solved = linprog(
        objective,
        A_ub=left,
        b_ub=np.concatenate((rows.room / unit, capacity[limited] / scale)),
        A_eq=equal,
        b_eq=np.ones(len(possible)),
        method="highs",
        options=options,
    )
    if solved.status != 0:
        return np.zeros(len(rows.room), dtype=np.int64), np.zeros(len(limited), dtype=object)
    dual = np.maximum(0.0, -np.asarray(solved.ineqlin.marginals))
    y = np.round(dual[: len(rows.room)] * _PARTS).astype(np.int64)
    mu = [round(value * _PARTS * unit / scale) for value in dual[len(rows.room) :].tolist()]
    return y, np.array(mu, dtype=object)
