"""The best lower bound that a search can afford."""

from __future__ import annotations

from fractions import Fraction

from optpart.bounds.best import BOUNDS, BRIEF, best_bound
from optpart.problem.instance import Instance

#: The slower bounds respect their time limit up to this many vertices.
_BOUNDED = 6000

#: Bounds that the load of the devices includes.
_IMPLIED = ("critical-path",)

#: Upper estimate of the seconds that heads and tails take per vertex and pair of devices.
_PER_PAIR = 7e-8


def bounded(
    instance: Instance, seconds: float, makespan: Fraction | None, *, brief: bool = False
) -> Fraction | None:
    """Return a lower bound of the makespan; 0 if there is no time to compute one.

    On large instances only the cheap bounds are computed, which ignore the time limit.

    Parameters
    ----------
    brief : bool
        Whether to leave out the bound that would take all the time.

    Returns
    -------
    Fraction or None
        ``None`` proves the instance infeasible.
    """
    if instance.vertices <= _BOUNDED:
        return best_bound(instance, seconds, makespan, among=BRIEF if brief else None).value
    if _PER_PAIR * instance.vertices * instance.devices**2 > seconds:
        return Fraction(0)
    cheap = [x for x in BOUNDS.values() if x.cost == "cheap" and x.name not in _IMPLIED]
    return best_bound(instance, seconds, makespan, among=cheap).value
