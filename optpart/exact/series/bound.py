"""The bound ``series``: the relaxation of memory along the parts of a graph."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction

from optpart.base import clock
from optpart.exact.series.dual import Pricing
from optpart.exact.series.lattice import NEVER
from optpart.exact.series.problem import Series
from optpart.kernels.horizon import horizon_without_queues
from optpart.lower_bounds.best import Bound
from optpart.problem.instance import Instance


def series_bound(
    instance: Instance, *, seconds: float, makespan: Fraction | None
) -> Fraction | None:
    """Return the bound of the Lagrangian relaxation of memory along the parts of a graph.

    It sees what crossings cost, and that memory is scarce. It is valid for all models: transfers
    that take turns and memory that depends on time are relaxed (:mod:`optpart.exact.series.dual`).

    Returns
    -------
    Fraction or None
        ``None`` if no choice of devices has links for all edges. 0 if the graph is a single part,
        of which this bound sees no more than the critical path, or in too little time.
    """
    try:
        with clock.limited(seconds):
            return _bound(instance, makespan, clock.now() + seconds)
    except clock.OutOfTimeError:
        return Fraction(0)


def _bound(instance: Instance, makespan: Fraction | None, deadline: float) -> Fraction | None:
    series = Series(instance, makespan)
    if len(series) < 2:
        return Fraction(0)
    upper = (
        horizon_without_queues(series.grid) + 1 if makespan is None else series.grid.floor(makespan)
    )
    best = 0
    with suppress(clock.OutOfTimeError):
        for dual in Pricing(series, upper).run(deadline):
            if dual.bound >= NEVER // 2:
                return None
            best = max(best, min(dual.bound, upper))
            if best >= upper or clock.now() > deadline:
                break
    found = series.grid.time(best)
    return found if makespan is None else min(found, makespan)


#: The row of the bound, for :func:`optpart.lower_bounds.best.each_bound`.
SERIES = Bound("series", "timed", series_bound)
