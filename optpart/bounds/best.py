"""All bounds by name, and the best of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

from optpart.bounds.critical_path import critical_path_bound
from optpart.bounds.destructive import destructive_bound
from optpart.bounds.energy import energy_bound
from optpart.bounds.load import load_bound
from optpart.bounds.one_machine import one_machine_bound
from optpart.problem.instance import Instance

#: What bounds an instance within so many seconds, given the makespan of a schedule if one is known.
Bound = Callable[[Instance, float, Fraction | None], Fraction | None]

#: Cheapest first. ``None`` from a bound proves the instance infeasible.
BOUNDS: dict[str, Bound] = {
    "critical-path": lambda instance, seconds, makespan: critical_path_bound(instance),
    "load": lambda instance, seconds, makespan: load_bound(instance),
    "one-machine": lambda instance, seconds, makespan: one_machine_bound(instance, seconds),
    "energy": energy_bound,
    "destructive": destructive_bound,
}

_NOTHING: Mapping[str, Bound] = MappingProxyType({})

#: What :func:`best_bound` spends unless told otherwise.
SECONDS = 5.0


@dataclass(frozen=True)
class LowerBound:
    """A proven lower bound of the makespan; ``value`` is ``None`` if no schedule exists."""

    name: str
    value: Fraction | None
    seconds: float


def all_bounds(
    instance: Instance, seconds: float = SECONDS, *, besides: Mapping[str, Bound] = _NOTHING
) -> list[LowerBound]:
    """Compute every bound, cheap ones first.

    Parameters
    ----------
    seconds : float
        For all of them together, though the first two take what they take. Each of the others gets
        an equal part of what is left, so that what one saves the later and stronger ones have.
    besides : mapping from name to bound
        Bounds of a higher layer, computed last.
    """
    return list(each_bound(instance, seconds, besides=besides))


def each_bound(
    instance: Instance, seconds: float = SECONDS, *, besides: Mapping[str, Bound] = _NOTHING
) -> Iterator[LowerBound]:
    """Compute every bound as :func:`all_bounds` does, and yield each as soon as it is proven."""
    return _each(instance, seconds, None, {**BOUNDS, **besides})


def largest(bounds: Iterable[LowerBound]) -> LowerBound:
    """Return the first of the largest bounds; infeasibility is above every value."""
    return max(bounds, key=lambda bound: (bound.value is None, bound.value or 0))


def best_bound(
    instance: Instance, seconds: float = SECONDS, makespan: Fraction | None = None
) -> LowerBound:
    """Return the largest bound, or the first that proves the instance infeasible.

    Parameters
    ----------
    makespan : Fraction, optional
        Of a schedule: a bound that reaches it is the last.
    """
    best: LowerBound | None = None
    for bound in _each(instance, seconds, makespan, BOUNDS):
        if best is None or bound.value is None or bound.value > (best.value or 0):
            best = bound
        if bound.value is None or bound.value == makespan:
            break
    assert best is not None
    return best


def _each(
    instance: Instance, seconds: float, makespan: Fraction | None, bounds: Mapping[str, Bound]
) -> Iterator[LowerBound]:
    deadline = time.perf_counter() + seconds
    for done, (name, bound) in enumerate(bounds.items()):
        begin = time.perf_counter()
        value = bound(instance, max(0.0, deadline - begin) / (len(bounds) - done), makespan)
        yield LowerBound(name, value, time.perf_counter() - begin)
