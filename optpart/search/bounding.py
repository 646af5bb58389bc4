"""The best lower bound that a search can afford."""

from __future__ import annotations

from fractions import Fraction

from optpart.base import clock
from optpart.lower_bounds.best import BOUNDS, BRIEF, Bound, best_bound, largest
from optpart.problem.instance import Instance

#: The slowest bounds respect their time limit up to this many vertices.
BOUNDED = 6000

#: Above this many vertices, long paths leave to intervals what few bounds see in the time of a
#: search; up to it, destructive bounds and branching need the time.
LONG = 1000

#: Share of the time for cases on these; with less, they prove next to nothing.
_CASES = 0.8

#: Bounds that the load of the devices includes.
_IMPLIED = ("critical-path",)

#: Bounds that a search computes before it calls this.
_KNOWN = ("critical-path", "load")


def intervals(workers: int, seed: int = 0) -> Bound:
    """Return the bound of intervals as a row; it needs a solver, so no table has it."""

    def compute(
        instance: Instance, /, *, seconds: float, makespan: Fraction | None
    ) -> Fraction | None:
        from optpart.exact.intervals import interval_bound

        return interval_bound(instance, seconds, makespan, workers=workers, seed=seed)

    return Bound("intervals", "anytime", compute)


def bounded(
    instance: Instance, seconds: float, makespan: Fraction | None, *, brief: bool = False
) -> Fraction | None:
    """Return a lower bound of the makespan, on large instances by the quicker bounds alone.

    On others, those that a search has computed before are not computed again.

    Parameters
    ----------
    brief : bool
        Whether to leave out bounds that would take all the time.

    Returns
    -------
    Fraction or None
        ``None`` proves the instance infeasible.
    """
    if instance.vertices <= BOUNDED:
        if brief:
            rows = [row for row in BRIEF if row.name not in _KNOWN]
            return best_bound(instance, seconds, makespan, among=rows).value
        # Destructive bounds begin with cases, too.
        others = [row for row in BOUNDS.values() if row.name not in (*_KNOWN, "cases")]
        if instance.vertices <= LONG:
            return best_bound(instance, seconds, makespan, among=others).value
        deadline = clock.now() + seconds
        cases = best_bound(instance, _CASES * seconds, makespan, among=[BOUNDS["cases"]])
        if cases.value in (None, makespan):
            return cases.value
        others.append(intervals(workers=1))
        left = max(0.0, deadline - clock.now())
        return largest([cases, best_bound(instance, left, makespan, among=others)]).value
    quick = [x for x in BOUNDS.values() if x.cost == "cheap" and x.name not in _IMPLIED]
    if not brief:
        quick.append(BOUNDS["one-machine"])
    return best_bound(instance, seconds, makespan, among=quick).value
