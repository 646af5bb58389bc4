"""Attribution of the loss of a pair of strategies to its placement and to its order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from optpart.base.errors import InputError, OptpartError
from optpart.base.escaping import brief
from optpart.methods import registry
from optpart.methods.cpsat import cpsat
from optpart.problem.instance import Instance
from optpart.solution.audit import (
    Finding,
    audited,
    contradicted,
    contradiction,
    denied,
    described,
    findings,
    refusal,
)
from optpart.solution.goal import Goal
from optpart.solution.job import Job
from optpart.solution.result import Budget, Progress, Result, Status, with_bound, with_status
from optpart.solution.schedule import Schedule
from optpart.solution.termination import Termination
from optpart.strategies.base import NoPlacementError
from optpart.study import library

#: Called with the name of the current solve and, from the solver, its progress.
Watch = Callable[[str, Progress | None], None]


@dataclass(frozen=True)
class Bracket:
    """A proven interval of a number; ``high`` is ``None`` if it has no upper bound."""

    low: Fraction
    high: Fraction | None

    @property
    def exact(self) -> bool:
        """Return whether the number is known."""
        return self.low == self.high


@dataclass(frozen=True, eq=False)
class Split:
    """One pair on one instance, and how its loss divides.

    Let P be the makespan of the pair, O the least makespan with its placement, and F the least
    makespan of all. The pair loses ``(P − F) / F``: ``(P − O) / F`` by its order and
    ``(O − F) / F`` by its placement. If O or F is not proven, each loss is a bracket that contains
    the loss for every value that O and F may have.

    Attributes
    ----------
    pair : Result
        The pair itself.
    ordered : Result or None
        Its placement in the best order; ``None`` if it found no placement.
    free : Result
        The best of all placements and orders, possibly from the library.
    """

    pair: Result
    ordered: Result | None
    free: Result

    def __repr__(self) -> str:
        name = brief(self.pair.instance.name)
        return f"<Split of {brief(self.pair.method)} on {name}>"

    @property
    def best_order(self) -> Bracket | None:
        """Return O; ``None`` if there is no placement, or no schedule of it is known."""
        if self.ordered is None or self.ordered.makespan is None:
            return None
        return Bracket(max(_bound(self.ordered), _bound(self.free)), self.ordered.makespan)

    @property
    def best(self) -> Bracket:
        """Return F."""
        return Bracket(_bound(self.free), self.free.makespan)

    @property
    def by_order(self) -> Bracket | None:
        """Return ``(P − O) / F``."""
        if self.pair.makespan is None or self.best_order is None:
            return None
        made = Bracket(self.pair.makespan, self.pair.makespan)
        return _lost(made, self.best_order, self.best)

    @property
    def by_placement(self) -> Bracket | None:
        """Return ``(O − F) / F``."""
        return None if self.best_order is None else _lost(self.best_order, self.best, self.best)

    @property
    def in_all(self) -> Bracket | None:
        """Return ``(P − F) / F``."""
        if self.pair.makespan is None:
            return None
        return _lost(Bracket(self.pair.makespan, self.pair.makespan), self.best, self.best)


def _bound(result: Result) -> Fraction:
    return result.lower_bound or Fraction(0)


def _lost(above: Bracket, below: Bracket, base: Bracket) -> Bracket | None:
    """Return the bracket of ``(above − below) / base``; ``None`` if the base is unbounded."""
    assert above.high is not None
    if not base.high:
        return None
    low = Fraction(0) if below.high is None else max(Fraction(0), above.low - below.high)
    most = above.high - below.low
    if most == 0:
        return Bracket(most, most)
    return Bracket(low / base.high, most / base.low if base.low else None)


@dataclass(frozen=True, eq=False)
class Division:
    """All pairs on one instance.

    Attributes
    ----------
    findings : tuple of Finding
        False claims of a solve, a pair or the library. No split uses them.
    """

    instance: Instance
    free: Result
    splits: tuple[Split, ...]
    findings: tuple[Finding, ...] = ()

    def __repr__(self) -> str:
        return f"<Division on {brief(self.instance.name)}: {len(self.splits)} splits>"


def divide(
    instance: Instance,
    pairs: Iterable[str],
    *,
    budget: Budget,
    seeds: Sequence[int] = (0,),
    watch: Watch | None = None,
) -> Division:
    """Attribute the loss of pairs of strategies to placement and to order.

    Parameters
    ----------
    pairs : iterable of str
        Names of methods that combine a partitioning and a scheduling strategy, or of a strategy
        that does both.
    budget : Budget
        The budget of each solve. There is one solve per distinct placement, and one with none.

    Raises
    ------
    InputError
        If a method is not such a pair.
    KeyboardInterrupt
        If the user interrupts; there is no partial division.
    """
    names = list(dict.fromkeys(pairs))
    for name in names:
        if not isinstance(name, str) or registry.split(name) is None:
            registry.get(name)
            raise InputError(
                "method", f"{name!r} is not a pair of strategies", "give PARTITIONING+SCHEDULER"
            )
    solve = _Solve(instance, budget, seeds[0], watch)
    made = [
        _tried(partial(registry.run, name), Job(instance, budget=budget, seed=seed), name)
        for name in names
        for seed in seeds
    ]
    placed = [_placement(result) for result in made]
    starts = [result.schedule for result in made if result.schedule is not None]
    ordered: dict[bytes, Result] = {}
    for placement in placed:
        if placement is not None and (key := placement.tobytes()) not in ordered:
            kept = [start for start in starts if start.placement.tobytes() == key]
            ordered[key] = solve("the best order of a placement", kept, placement)
            starts += [found for found in [ordered[key].schedule] if found is not None]
    for key, found in ordered.items():
        ordered[key] = _held(found, [result for result in made if _places(result, key)])
    known = library.evidence(instance)
    kept_best = [] if known.best is None else [known.best]
    starts += [best.schedule for best in kept_best if best.schedule is not None]
    free = _held(solve("the best of all", starts), [*made, *ordered.values(), *kept_best])
    free, faults = _with_library(free, known)
    return Division(
        instance,
        free,
        tuple(
            Split(result, None if placement is None else ordered[placement.tobytes()], free)
            for result, placement in zip(made, placed, strict=True)
        ),
        (
            *findings(instance, made),
            *findings(instance, [*ordered.values(), free]),
            *(Finding(instance.name, "library", fault) for fault in faults),
        ),
    )


def _held(found: Result, others: Iterable[Result]) -> Result:
    """Return the part of a solve that is consistent with other verified schedules.

    It has the best of all the schedules, and no claim that any of them contradicts.
    """
    known = [result for result in [found, *others] if result.makespan is not None]
    best = min(known, key=lambda result: result.makespan or 0, default=None)
    if best is None or best.makespan is None:
        return found
    why = contradicted(found, best.makespan, best.method)
    held = denied(found, why) if why else found
    if best is found:
        return held
    return with_status(replace(held, values=best.values, schedule=best.schedule))


def _with_library(free: Result, known: library.Evidence) -> tuple[Result, tuple[str, ...]]:
    """Use the library's bound if it is better; also return the library's faults."""
    bound = known.bound
    if bound is None or bound <= _bound(free) or free.status is Status.INFEASIBLE:
        return free, known.faults
    if free.makespan is not None and bound > free.makespan:
        why = contradiction(f"bound {bound}", free.makespan, free.method)
        return free, (*known.faults, why)
    reason = free.reason if free.refused else "bound from the library"
    return replace(with_bound(free, bound), reason=reason), known.faults


def _places(result: Result, key: bytes) -> bool:
    return result.schedule is not None and result.schedule.placement.tobytes() == key


def _tried(run: Callable[[Job], Result], job: Job, method: str) -> Result:
    """Return the audited result of a method; a failure costs only its own result."""
    try:
        return audited(run(job), job.instance, method, job.seed)
    except OptpartError:
        raise
    except Exception as error:
        return refusal(job.instance, method, job.seed, f"failed: {described(error)}")


def _placement(result: Result) -> NDArray[np.int32] | None:
    """Return the placement of a pair, even if its schedule breaks the memory model."""
    if result.schedule is not None:
        return result.schedule.placement
    if result.refused:
        return None
    partition, _ = registry.split(result.method) or ("", "")
    try:
        found = registry.partitioner(partition)(result.instance, np.random.default_rng(result.seed))
    except NoPlacementError:
        return None
    placement: NDArray[np.int32] = found.placement
    return placement


@dataclass(frozen=True)
class _Solve:
    """Solves the instance with CP-SAT, under a placement or without one."""

    instance: Instance
    budget: Budget
    seed: int
    watch: Watch | None

    def __call__(
        self, what: str, starts: list[Schedule], placement: NDArray[np.int32] | None = None
    ) -> Result:
        watch = None if self.watch is None else partial(self.watch, what)
        goal = Goal(placement={} if placement is None else dict(enumerate(placement.tolist())))
        start = min(starts, key=lambda start: start.makespan(self.instance), default=None)
        job = Job(self.instance, goal, self.budget, self.seed, start)
        found = _tried(partial(cpsat, watch=watch), job, "cpsat")
        if found.termination is Termination.INTERRUPTED:
            raise KeyboardInterrupt
        return found
