"""Load: a linear program distributes the assignment units over their allowed devices."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.base import clock
from optpart.kernels.compiled import whole_memory
from optpart.kernels.ticks import Grid
from optpart.lower_bounds.windows import Windows, windows
from optpart.problem.instance import Instance

#: Denominator to which multipliers are rounded; the bound is valid for any rounding.
_PARTS = 2**20

_LONGEST = 2**41

#: Beyond this many columns, units with the same devices are merged and memory is ignored.
_MAX_COLUMNS = 100_000


def load_bound(instance: Instance, seconds: float = np.inf) -> Fraction | None:
    """Bound the makespan by the load of the devices, with memory and allowed devices.

    The linear program: minimise C over shares ``x[u,d] ≥ 0`` of units, ``Σ_d x[u,d] = 1``,
    ``a_d + Σ_u p[u,d]·x[u,d] + z_d ≤ C`` and ``Σ_u need_u·x[u,d] ≤ M_d``, where ``a_d`` and
    ``z_d`` are the least head and tail of a vertex on ``d``.

    Parameters
    ----------
    seconds : float
        Time limit; without the solver's multipliers, devices count by their total run time.

    Notes
    -----
    The solver's multipliers ``y_d ≥ 0`` (``Σ y = 1``) and ``μ_d ≥ 0`` are only a proposal. They
    are rounded to fractions and the bound is what they prove by weak duality,
    ``Σ_u min_d (y_d p[u,d] + μ_d need_u) + Σ_d (y_d (a_d + z_d) − μ_d M_d)``, in exact integers.
    The term ``a_d + z_d`` is used only where it is below a bound already proven, since a device
    may stay empty.

    Returns
    -------
    Fraction or None
        ``None`` if some unit has no device at all.
    """
    deadline = clock.now() + seconds
    grid = Grid.of(instance)
    window = windows(instance, grid, seconds=seconds)
    if window.bound is None:
        return None
    left = deadline - clock.now()
    return grid.time(load_ticks(instance, grid, window, seconds=left))


def unit_durations(instance: Instance, grid: Grid) -> NDArray[np.int64]:
    """Return the total run time of the members of each unit on each device, units × k."""
    total = np.zeros((len(instance.units), instance.devices), dtype=np.int64)
    np.add.at(total, instance.unit_of, grid.duration)
    return total


class Load(NamedTuple):
    """A load bound and the multipliers that prove it.

    Attributes
    ----------
    ticks : int
        At least the bound of the windows.
    weight : ndarray of int64, length k
        How much the load of each device counts; only their ratios matter.
    memory : ndarray of int64, length k
        Positive where the memory of a device counts, too.
    """

    ticks: int
    weight: NDArray[np.int64]
    memory: NDArray[np.int64]


def load_ticks(instance: Instance, grid: Grid, window: Windows, *, seconds: float = np.inf) -> int:
    """Return the load bound in ticks, at least the bound of the windows.

    The weighted mean of loads is rounded up, since run times, heads and tails are whole on the
    grid, and so is the largest load.
    """
    return load_proof(instance, grid, window, seconds=seconds).ticks


def load_proof(instance: Instance, grid: Grid, window: Windows, *, seconds: float = np.inf) -> Load:
    """Return the load bound, and by which devices it is proven."""
    if not instance.vertices:
        nothing = np.zeros(instance.devices, dtype=np.int64)
        return Load(0, nothing, nothing)
    need, capacity = whole_memory(instance, relax=True)
    least = window.bound or 0
    # Shorter run times only weaken the bound, and keep the products below within 64 bits.
    work = np.minimum(unit_durations(instance, grid), _LONGEST)
    rim = np.minimum(window.head.min(axis=0) + window.tail.min(axis=0), least)
    # A limit is left out if all units together respect it, or the program would be too large.
    limited = (capacity < need.sum()) & bool(window.possible.sum() <= _MAX_COLUMNS)
    y, mu = _multipliers(work, window.possible, rim, need, np.where(limited, capacity, -1), seconds)
    cost = np.where(window.possible, work * y, np.iinfo(np.int64).max // 4)
    if limited.any() and mu.any():
        exact = cost.astype(object) + need.astype(object)[:, None] * mu.astype(object)
        total = int(np.where(window.possible, exact, 2**200).min(axis=1).sum())
        total -= int((capacity.astype(object) * mu)[limited].sum())
    else:
        total = int(cost.min(axis=1).astype(object).sum())
    total += int((rim.astype(object) * y).sum())
    parts = int(y.sum())
    return Load(max(least, -(-total // parts)), y, mu)


def _multipliers(
    work: NDArray[np.int64],
    possible: NDArray[np.bool_],
    rim: NDArray[np.int64],
    need: NDArray[np.int64],
    capacity: NDArray[np.int64],
    seconds: float,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Propose whole multipliers of load rows (with a positive sum) and memory rows."""
    units, k = work.shape
    limited = np.flatnonzero(capacity >= 0)
    if seconds <= 0:
        return _by_total(work, possible), np.zeros(k, dtype=np.int64)
    if possible.sum() > _MAX_COLUMNS:
        work, possible = _merged(work, possible)
        units = len(work)
    # Loaded here because it takes long, and not every run needs it.
    from scipy.optimize import linprog
    from scipy.sparse import coo_array, vstack

    u, d = np.nonzero(possible)
    columns = np.arange(len(u))
    size = len(u) + 1
    # Scaled so that the makespan is near one: solvers expect moderate numbers.
    unit = max(1.0, float(work[u, d].max(initial=1)))
    load = coo_array((work[u, d] / unit, (d, columns)), shape=(k, size))
    makespan = coo_array((-np.ones(k), (np.arange(k), np.full(k, size - 1))), shape=(k, size))
    rows, right = [load + makespan], [-rim / unit]
    if len(limited):
        scale = max(1.0, float(need.max(initial=1)))
        inside = np.isin(d, limited)
        memory = coo_array(
            (need[u[inside]] / scale, (np.searchsorted(limited, d[inside]), columns[inside])),
            shape=(len(limited), size),
        )
        rows.append(memory)
        right.append(capacity[limited] / scale)
    once = coo_array((np.ones(len(u)), (u, columns)), shape=(units, size))
    objective = np.zeros(size)
    objective[-1] = 1.0
    # The type stubs of linprog lack sparse matrices.
    options: Any = {"time_limit": seconds} if np.isfinite(seconds) else {}
    above: Any = vstack(rows).tocsr()
    equal: Any = once.tocsr()
    solved = linprog(
        objective,
        A_ub=above,
        b_ub=np.concatenate(right),
        A_eq=equal,
        b_eq=np.ones(units),
        method="highs",
        options=options,
    )
    if solved.status != 0:  # no multipliers; others are valid, too
        return _by_total(work, possible), np.zeros(k, dtype=np.int64)
    dual = np.maximum(0.0, -np.asarray(solved.ineqlin.marginals))
    y = np.round(dual[:k] * _PARTS).astype(np.int64)
    mu = np.zeros(k, dtype=np.int64)
    if len(limited):
        mu[limited] = np.round(dual[k:] * _PARTS * unit / scale).astype(np.int64)
    if not y.any():
        y[:] = 1
    return y, mu


def _by_total(work: NDArray[np.int64], possible: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return a multiplier of each device, larger where everything together takes less time."""
    total = np.where(possible, work, 0).sum(axis=0, dtype=np.float64)
    least = float(total[total > 0].min(initial=np.inf))
    share = np.where(total > 0, least / np.maximum(total, 1.0), 1.0)
    return np.maximum(1, np.round(share * _PARTS)).astype(np.int64)


def _merged(
    work: NDArray[np.int64], possible: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Add up units with the same devices; this affects only the proposal of multipliers."""
    kinds, kind = np.unique(possible, axis=0, return_inverse=True)
    total = np.zeros((len(kinds), work.shape[1]), dtype=np.int64)
    np.add.at(total, kind.reshape(-1), np.where(possible, work, 0))
    return total, np.asarray(kinds, dtype=np.bool_)
