"""The bound of an instance: with :mod:`cases`, all that a stored bound depends on."""

from __future__ import annotations

from bench.reproduce.records import Bound
from optpart.bounds.best import best_bound
from optpart.problem.instance import Instance
from optpart.study import library


def bound(instance: Instance, case: str, run: int) -> Bound:
    """Return the best bound of the makespan, and the best makespan that the library knows.

    The library's bound stands where it has one of this very instance.
    """
    known = library.known(instance)
    if known is not None and known.bound is not None and known.makespan is not None:
        return Bound(case, run, float(known.bound), "library", 0.0, float(known.makespan))
    best = best_bound(instance)
    assert best.value is not None
    return Bound(case, run, float(best.value), best.name, best.seconds, None)
