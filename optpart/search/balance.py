"""A placement under memory limits, by exchanging units until no device holds too much.

It begins with a placement that may exceed capacities and keeps all other rules. Units that move, or
are exchanged, reduce the excess or leave it as it is. Where there are many units, this succeeds
even if all devices must be full in the end, where both greedy methods and solvers fail.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optpart.kernels.compiled import UNLIMITED, Arrays, assign, fits, kernel, nothing_placed
from optpart.kernels.rng import below, source, uniform
from optpart.kernels.struct import Words
from optpart.search.plan import Ints
from optpart.strategies.partition.common import NOWHERE

#: Tries: a number, and more per unit.
_TRIES, _PER_UNIT = 2_000_000, 1000


def balanced(a: Arrays, device: Ints, rng: np.random.Generator) -> Ints | None:
    """Return a device for every unit, within all capacities; ``None`` if none is found.

    Parameters
    ----------
    device : ndarray of int32, one per unit
        A placement that keeps every rule except capacities.
    """
    tries = min(_TRIES, _PER_UNIT * len(device))
    found, fitting = _balance(a, unlimited(a), device, source(rng), tries)
    return np.asarray(found, dtype=np.int32) if fitting else None


def unlimited(a: Arrays) -> Arrays:
    """Return an instance without memory limits."""
    return a.replaced(capacity=np.full_like(a.capacity, UNLIMITED))


@kernel
def _balance(a: Arrays, free: Arrays, start: Ints, draws: Words, tries: int) -> Any:
    """Return the placement, and whether it fits; ``free`` is the instance without capacities."""
    units, k = a.need.shape[0], a.speed.shape[0]
    state = nothing_placed(a)
    for u in range(units):
        assign(a, u, start[u], state)
    device, used = state.device, state.used
    for _ in range(tries):
        if not (used > a.capacity).any():
            return device, True
        u, w = below(draws, units), NOWHERE
        home: Any = np.int64(device[u])
        e = below(draws, k)
        if uniform(draws) < 0.5:
            w = below(draws, units)
            e = np.int64(device[w])
        if home == e:
            continue
        more = a.need[u] - (a.need[w] if w >= 0 else 0)
        before = max(0, used[home] - a.capacity[home]) + max(0, used[e] - a.capacity[e])
        after = max(0, used[home] - more - a.capacity[home]) + max(
            0, used[e] + more - a.capacity[e]
        )
        if after > before:
            continue
        # What moves must not stand in its own way.
        device[u] = -1
        if w >= 0:
            device[w] = -1
        fine = fits(free, u, e, state)
        if fine and w >= 0:
            device[u] = e
            fine = fits(free, w, home, state)
        device[u] = e if fine else home
        if w >= 0:
            device[w] = home if fine else e
        if fine:
            used[home] -= more
            used[e] += more
    return device, False
