"""All bounds by name, and the best of them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol

from optpart.base import clock
from optpart.base.children.failures import Failures
from optpart.base.registry import Registry
from optpart.lower_bounds.branching import branching_bound
from optpart.lower_bounds.cases import cases_bound
from optpart.lower_bounds.colocation import colocation_bound
from optpart.lower_bounds.critical_path import critical_path_bound
from optpart.lower_bounds.crossings import crossings_bound
from optpart.lower_bounds.destructive import destructive_bound
from optpart.lower_bounds.energy import energy_bound
from optpart.lower_bounds.load import load_bound
from optpart.lower_bounds.one_machine import one_machine_bound
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


class RisingFunction(Protocol):
    """The same, from a bound on that is known."""

    def __call__(
        self,
        instance: Instance,
        seconds: float,
        makespan: Fraction | None,
        *,
        known: Fraction,
    ) -> Fraction | None:
        """Raise the known bound."""
        ...


@dataclass(frozen=True)
class Bound:
    """A row of the table of bounds.

    Attributes
    ----------
    name : str
    cost : Cost
    compute : BoundFunction
    rise : RisingFunction, optional
        What goes on from a bound that is known, when there is time for it; by default ``compute``
        begins anew.
    """

    name: str
    cost: Cost
    compute: BoundFunction
    rise: RisingFunction | None = None


_ROWS = (
    Bound(
        "critical-path", "cheap", lambda x, *, seconds, makespan: critical_path_bound(x, seconds)
    ),
    Bound("load", "cheap", lambda x, *, seconds, makespan: load_bound(x, seconds)),
    Bound("colocation", "cheap", lambda x, *, seconds, makespan: colocation_bound(x, seconds)),
    Bound("cases", "anytime", cases_bound),
    Bound("one-machine", "timed", lambda x, *, seconds, makespan: one_machine_bound(x, seconds)),
    Bound("energy", "timed", energy_bound),
    Bound("crossings", "anytime", crossings_bound),
    Bound("destructive", "anytime", destructive_bound, destructive_bound),
    Bound("branching", "anytime", branching_bound),
)

#: Every bound by name, in the order of computation. A row added above is used by ``optpart bound``,
#: by search and before CP-SAT, as far as its cost allows.
BOUNDS = Registry("bound", {row.name: row for row in _ROWS}, Bound)

#: Those that mostly end long before their limit; branching takes all the time it is given.
BRIEF = tuple(row for row in _ROWS if row.name != "branching")

#: Default time limit of :func:`best_bound`.
SECONDS = 5.0

#: A bound that needs less than this share of its limit has ended by itself: more time is no use.
_ENDED = 0.5


@dataclass(frozen=True)
class LowerBound:
    """A proven lower bound of the makespan; ``value`` is ``None`` if no schedule exists.

    ``seconds`` is the time that it took, ``limit`` the time that it was given. ``failure`` says
    what failed meanwhile, so that the bound may be smaller than it could be.
    """

    name: str
    value: Fraction | None
    seconds: float
    limit: float = float("inf")
    failure: str = ""

    @property
    def ended(self) -> bool:
        """True if more time is no use."""
        early = self.seconds < _ENDED * self.limit and not self.failure
        return self.value is None or early

    def after(self, earlier: LowerBound | None) -> LowerBound:
        """Return the larger of this bound and an earlier one of the same name, with both times."""
        if earlier is None:
            return self
        value = largest([earlier, self]).value
        seconds = earlier.seconds + self.seconds
        limit = max(earlier.limit, self.limit)
        return LowerBound(self.name, value, seconds, limit, self.failure)


def all_bounds(
    instance: Instance,
    seconds: float = SECONDS,
    *,
    besides: Sequence[Bound] = (),
    without: Container[str] = (),
) -> list[LowerBound]:
    """Compute every bound, cheap ones first, and return the best value of each.

    Parameters
    ----------
    seconds : float
        Time limit for all of them together. Cheap ones come first and are always computed. The
        others take turns: each gets an equal share of half the remaining time, and profits from
        time that those before it save; when none remains, they are left out. The rest goes to the
        largest of those that were not ended by then. It begins anew.
    besides : sequence of Bound
        Bounds from a higher layer, computed last.
    without : container of str
        Names of bounds to leave out.
    """
    found: dict[str, LowerBound] = {}
    for bound in each_bound(instance, seconds, besides=besides, without=without):
        found[bound.name] = bound.after(found.get(bound.name))
    return list(found.values())


def each_bound(
    instance: Instance,
    seconds: float = SECONDS,
    *,
    makespan: Fraction | None = None,
    besides: Sequence[Bound] = (),
    without: Container[str] = (),
    begins: Callable[[str], None] | None = None,
) -> Iterator[LowerBound]:
    """Compute bounds like :func:`all_bounds`, and yield each as soon as it is proven.

    The one that gets the rest of the time comes twice; the second value may be smaller.

    Parameters
    ----------
    makespan : Fraction, optional
        Makespan of a schedule; no bound is raised beyond it.
    begins : callable, optional
        Called with the name of each bound before it is computed.
    """
    rows = [row for row in (*BOUNDS.values(), *besides) if row.name not in without]
    return _each(instance, seconds, makespan, rows, begins)


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

    def computed(bound: Bound, limit: float, known: Fraction | None = None) -> LowerBound:
        if begins is not None:
            begins(bound.name)
        begin, failures = clock.now(), Failures()
        if known is None or bound.rise is None:
            value = bound.compute(instance, seconds=limit, makespan=makespan)
        else:
            value = bound.rise(instance, limit, makespan, known=known)
        took = clock.now() - begin
        return LowerBound(bound.name, value, took, limit, "; ".join(failures.described()))

    sharing = reserved = sum(bound.cost != "cheap" for bound in bounds)
    done = False
    unended: list[tuple[Bound, LowerBound]] = []
    for bound in bounds:
        left = max(0.0, deadline - clock.now())
        if bound.cost == "cheap":
            yield computed(bound, left)
        elif left > 0.0 or not done:
            # The last one need not leave anything if nothing else could use it.
            found = computed(bound, left / (sharing + reserved) if unended or sharing > 1 else left)
            sharing -= 1
            if not found.ended:
                unended.append((bound, found))
            yield found
        done = True
    if unended:
        bound, before = max(unended, key=lambda pair: pair[1].value or 0)
        left = deadline - clock.now()
        if left > before.limit:
            yield computed(bound, left, before.value)
