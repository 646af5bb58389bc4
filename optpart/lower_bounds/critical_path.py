"""Device-aware critical path: the longest chain, with each vertex where the chain is shortest."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from optpart.kernels.ticks import Grid
from optpart.lower_bounds.windows import windows
from optpart.problem.instance import Instance


def critical_path_bound(instance: Instance, seconds: float = np.inf) -> Fraction | None:
    """Bound the makespan by heads, run times and tails (design §7).

    On whatever device a schedule places a unit, it takes at least head + run time + tail of each
    member there; so the makespan is at least the minimum of this over the devices.

    Parameters
    ----------
    seconds : float
        Time limit; if it is too short, the longest path of least run times remains.

    Returns
    -------
    Fraction or None
        ``None`` if some unit has no device at all, which proves the instance infeasible.
    """
    grid = Grid.of(instance)
    ticks = windows(instance, grid, seconds=seconds).bound
    return None if ticks is None else grid.time(ticks)
