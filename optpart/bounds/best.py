"""All bounds by name, and the best of them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol

from optpart import clock
from optpart.bounds.branching import branching_bound
from optpart.bounds.critical_path import critical_path_bound
from optpart.bounds.crossings import crossings_bound
from optpart.bounds.destructive import destructive_bound
from optpart.bounds.energy import energy_bound
from optpart.bounds.load import load_bound
from optpart.bounds.one_machine import one_machine_bound
from optpart.problem.instance import Instance

#: Cost of a bound. A ``cheap`` one is proven whatever the time limit, if need be a weaker one. A
#: ``timed`` one ends by itself, but respects a time limit. An ``anytime`` one uses all the time it
#: is given.
Cost = Literal["cheap", "timed", "anytime"]


class BoundFunction(Protocol):
    """A function that bounds the makespan of an instance; ``None`` proves it infeasible.

    It stops after about ``seconds``; a cheap one then proves something less. ``makespan`` is that
    of a schedule, if one is known; no bound need be higher.
    """

    def __call__(
        self, instance: Instance, /, *, seconds: float, makespan: Fraction | None
    ) -> Fraction | None:
        """Bound the makespan."""
        ...


@dataclass(frozen=True)
class Bound:
    """A row of the table of bounds."""

    name: str
    cost: Cost
    compute: BoundFunction


_ROWS = (
    Bound(
        "critical-path", "cheap", lambda x, *, seconds, makespan: critical_path_bound(x, seconds)
    ),
    Bound("load", "cheap", lambda x, *, seconds, makespan: load_bound(x, seconds)),
    Bound("one-machine", "timed", lambda x, *, seconds, makespan: one_machine_bound(x, seconds)),
    Bound("energy", "timed", energy_bound),
    Bound("crossings", "anytime", crossings_bound),
    Bound("destructive", "anytime", destructive_bound),
    Bound("branching", "anytime", branching_bound),
)

#: Every bound by name, in the order of computation. A row added above is used by ``optpart bound``,
#: by search and before CP-SAT, as far as its cost allows.
BOUNDS: dict[str, Bound] = {row.name: row for row in _ROWS}

#: Those that mostly end long before their limit; branching takes all the time it is given.
BRIEF = tuple(row for row in _ROWS if row.name != "branching")

#: Default time limit of :func:`best_bound`.
SECONDS = 5.0


@dataclass(frozen=True)
class LowerBound:
    """A proven lower bound of the makespan; ``value`` is ``None`` if no schedule exists.

    ``seconds`` is the time that it took, ``limit`` the time that it was given.
    """

    name: str
    value: Fraction | None
    seconds: float
    limit: float = float("inf")


def all_bounds(
    instance: Instance, seconds: float = SECONDS, *, besides: Sequence[Bound] = ()
) -> list[LowerBound]:
    """Compute every bound, cheap ones first.

    Parameters
    ----------
    seconds : float
        Time limit for all of them together. Cheap ones come first and are always computed. Each of
        the others gets an equal share of the remaining time, so that later, stronger ones profit
        from time saved; when none remains, they are left out.
    besides : sequence of Bound
        Bounds from a higher layer, computed last.
    """
    return list(each_bound(instance, seconds, besides=besides))


def each_bound(
    instance: Instance,
    seconds: float = SECONDS,
    *,
    besides: Sequence[Bound] = (),
    without: Container[str] = (),
    begins: Callable[[str], None] | None = None,
) -> Iterator[LowerBound]:
    """Compute bounds like :func:`all_bounds`, and yield each as soon as it is proven.

    Parameters
    ----------
    without : container of str
        Names of bounds to leave out.
    begins : callable, optional
        Called with the name of each bound before it is computed.
    """
    rows = [row for row in (*BOUNDS.values(), *besides) if row.name not in without]
    return _each(instance, seconds, None, rows, begins)


def largest(bounds: Iterable[LowerBound]) -> LowerBound:
    """Return the first of the largest bounds; infeasibility exceeds every value."""
    return max(bounds, key=lambda bound: (bound.value is None, bound.value or 0))


def best_bound(
    instance: Instance,
    seconds: float = SECONDS,
    makespan: Fraction | None = None,
    *,
    among: Sequence[Bound] | None = None,
) -> LowerBound:
    """Return the largest bound, or the first that proves the instance infeasible.

    Parameters
    ----------
    makespan : Fraction, optional
        Makespan of a schedule; the first bound that reaches it is the last computed.
    among : sequence of Bound, optional
        Bounds to compute, at least one; by default all.
    """
    best: LowerBound | None = None
    for bound in _each(instance, seconds, makespan, among or list(BOUNDS.values())):
        if best is None or bound.value is None or bound.value > (best.value or 0):
            best = bound
        if bound.value is None or bound.value == makespan:
            break
    assert best is not None
    return best


def _each(
    instance: Instance,
    seconds: float,
    makespan: Fraction | None,
    bounds: Sequence[Bound],
    begins: Callable[[str], None] | None = None,
) -> Iterator[LowerBound]:
    deadline = clock.now() + seconds
    sharing = sum(bound.cost != "cheap" for bound in bounds)
    done = False
    for bound in bounds:
        begin = clock.now()
        share = max(0.0, deadline - begin)
        if bound.cost != "cheap":
            if share == 0.0 and done:
                continue
            share /= sharing
            sharing -= 1
        if begins is not None:
            begins(bound.name)
        value, done = bound.compute(instance, seconds=share, makespan=makespan), True
        yield LowerBound(bound.name, value, clock.now() - begin, share)
