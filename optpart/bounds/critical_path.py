"""Device-aware critical path: the longest chain, with each vertex where the chain is shortest."""

from __future__ import annotations

from fractions import Fraction

from optpart.bounds.windows import windows
from optpart.kernels.ticks import Grid
from optpart.problem.instance import Instance


def critical_path_bound(instance: Instance) -> Fraction | None:
    """Bound the makespan by heads, run times and tails (design §7).

    On whatever device a schedule places a unit, it takes at least head + run time + tail of each
    member there; so the makespan is at least the minimum of this over the devices.

    Returns
    -------
    Fraction or None
        ``None`` if some unit has no device at all, which proves the instance infeasible.
    """
    grid = Grid.of(instance)
    ticks = windows(instance, grid).bound
    return None if ticks is None else grid.time(ticks)
