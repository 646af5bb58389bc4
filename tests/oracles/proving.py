"""How the optimum that an oracle knows is compared with what the package says."""

from __future__ import annotations

from fractions import Fraction

from optpart import Budget, Instance, Result, Status
from optpart.lower_bounds.best import all_bounds
from optpart.methods import registry
from optpart.solution import verifier as verify

#: One worker: for small models starting threads takes longer than solving.
ONE = Budget(seconds=60, workers=1)

#: Up to so many vertices a method closes within a fraction of a second.
SMALL = {"enumerate": 7, "milp": 7}


def prove(instance: Instance, optimum: Fraction | int, *others: str) -> None:
    """Assert that CP-SAT proves the optimum, and so do others where the instance is small."""
    for name in ("cpsat", *others):
        if instance.vertices <= SMALL.get(name, instance.vertices):
            result = registry.get(name)(instance, budget=ONE)
            agree(result, optimum)
            assert result.status is Status.OPTIMAL, f"{name} on {instance.name}: {result.reason}"


def agree(result: Result, optimum: Fraction | int) -> None:
    """Assert that nothing in a result contradicts the optimum, proven or not."""
    place = f"{result.method} on {result.instance.name}: {result.reason}"
    assert result.status is not Status.INFEASIBLE, place
    assert result.lower_bound is None or result.lower_bound <= optimum, place
    assert result.makespan is None or result.makespan >= optimum, place
    if result.schedule is not None:
        assert verify.verify(result.instance, result.schedule) == [], place


def bound(instance: Instance, seconds: float = 1.0) -> Fraction:
    """Return the best of all bounds; assert that none says that there is no schedule."""
    values = {entry.name: entry.value for entry in all_bounds(instance, seconds)}
    assert None not in values.values(), f"{instance.name}: {values}"
    return max(value for value in values.values() if value is not None)
