"""The bound that a search has time for."""

from __future__ import annotations

from fractions import Fraction

from optpart.bounds.best import BOUNDS, best_bound
from optpart.problem.instance import Instance

#: Up to so many vertices the slower bounds keep near their time.
_BOUNDED = 6000

#: The load of the devices counts it in.
_IMPLIED = ("critical-path",)

#: Seconds that heads and tails take per vertex and pair of devices, or a little less.
_PER_PAIR = 7e-8


def bounded(instance: Instance, seconds: float, makespan: Fraction | None) -> Fraction | None:
    """Return a lower bound of the makespan; 0 where there is no time for any.

    Of large instances only cheap bounds are computed, which take what they take.

    Returns
    -------
    Fraction or None
        ``None`` proves the instance infeasible.
    """
    if instance.vertices <= _BOUNDED:
        return best_bound(instance, seconds, makespan).value
    if _PER_PAIR * instance.vertices * instance.devices**2 > seconds:
        return Fraction(0)
    cheap = [x for x in BOUNDS.values() if x.cost == "cheap" and x.name not in _IMPLIED]
    return best_bound(instance, seconds, makespan, among=cheap).value
