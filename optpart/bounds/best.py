"""All bounds by name, and the best of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from optpart.bounds.critical_path import critical_path_bound
from optpart.bounds.load import load_bound
from optpart.instance import Instance

#: Cheapest first. ``None`` from a bound proves the instance infeasible.
BOUNDS: dict[str, Callable[[Instance], Fraction | None]] = {
    "critical-path": critical_path_bound,
    "load": load_bound,
}


@dataclass(frozen=True)
class LowerBound:
    """A proven lower bound of the makespan; ``value`` is ``None`` if no schedule exists."""

    name: str
    value: Fraction | None
    seconds: float


def all_bounds(instance: Instance) -> list[LowerBound]:
    """Compute every bound."""
    found = []
    for name, bound in BOUNDS.items():
        begin = time.perf_counter()
        value = bound(instance)
        found.append(LowerBound(name, value, time.perf_counter() - begin))
    return found


def best_bound(instance: Instance) -> LowerBound:
    """Return the largest bound, or the first that proves the instance infeasible."""
    found = all_bounds(instance)
    for bound in found:
        if bound.value is None:
            return bound
    return max(found, key=lambda bound: bound.value or Fraction(0))
