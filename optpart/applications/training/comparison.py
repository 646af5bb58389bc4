"""Strategies side by side, and what is proven about all of them."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

from optpart.applications.training.actions import actions
from optpart.applications.training.bounds.certificate import write_certificate
from optpart.applications.training.bounds.milp import integer_bound
from optpart.applications.training.bounds.program import (
    StrategyBound,
    program_excess,
    strategy_bound,
)
from optpart.applications.training.bounds.shares import average_path, load
from optpart.applications.training.compiler import check_parameters_fit
from optpart.applications.training.groups import contiguous_groups, nearest_groups
from optpart.applications.training.makers import MAKERS
from optpart.applications.training.makers.base import DEFAULT, Made
from optpart.applications.training.problem import Choices, StrategyProblem
from optpart.applications.training.strategy import Strategy
from optpart.base.choices import choice
from optpart.base.errors import ArgumentError, ContradictionError, InputError
from optpart.base.escaping import brief
from optpart.base.showing import Shown
from optpart.kernels.all import expect
from optpart.solution.gap import gap
from optpart.solution.result import Budget

#: Functions that group operations, by name.
GROUPINGS = {"contiguous": contiguous_groups, "nearest": nearest_groups}

#: Actions of all groups with which the integer program often ends within seconds; with many more,
#: it has not improved on the linear program in a minute.
_FEW = 128

#: The reason given where it is proven that there is no strategy.
NO_STRATEGY = "no strategy of these actions fits memory and links"


@dataclass(frozen=True)
class Bounded:
    """A lower bound on the time of one iteration.

    Attributes
    ----------
    value : Fraction or None
        Nanoseconds, of every strategy of the choices; ``None`` if there is none. The largest of
        the bounds of the linear program, of the integer program, and of every strategy at all.
    whatever : Fraction or None
        Nanoseconds, of every strategy at all: any groups and any shares of the batch.
    reason : str
        Why nothing more is proven of the choices than of every strategy.
    infeasible : bool
        True if it is proven that no strategy of the choices fits memory and links.
    actions : int
        Actions of all groups together, over which it is a bound.
    proof : (Choices, StrategyBound), optional
        Input of a certificate.
    """

    value: Fraction | None
    whatever: Fraction | None = None
    reason: str = ""
    infeasible: bool = False
    actions: int = 0
    seconds: float = 0.0
    proof: tuple[Choices, StrategyBound] | None = field(default=None, repr=False, compare=False)

    def gap(self, makespan: Fraction | None) -> float | None:
        """Return by how much of the makespan a strategy may be too long."""
        return gap(makespan, self.value)

    def widest_gap(self, makespan: Fraction | None) -> float | None:
        """Return the same against every strategy at all."""
        return gap(makespan, self.whatever)

    @property
    def certified(self) -> Fraction | None:
        """The part of :attr:`value` that a certificate proves: that of the linear program."""
        return None if self.proof is None else self.proof[1].value

    def certify(self, folder: str | Path) -> Path:
        """Write a certificate, which ``optpart check`` verifies; return its path.

        It is an :class:`InputError` if there is no proof that can be written.
        """
        if self.proof is None:
            raise InputError(
                "bound", self.reason or "has no certificate", "there is nothing to write"
            )
        return write_certificate(*self.proof, folder)


@dataclass(frozen=True, eq=False)
class Comparison(Shown):
    """The strategies that makers found for one problem.

    Attributes
    ----------
    rows : tuple of (str, Made)
        Makers by name, and what they made.
    bound : Bounded
        On every strategy that gives each group an action of [G], or one that a row gives it.
    """

    problem: StrategyProblem
    rows: tuple[tuple[str, Made], ...]
    bound: Bounded

    def __repr__(self) -> str:
        return f"<Comparison on {brief(self.problem.graph.name)}: {len(self.rows)} methods>"

    @property
    def best(self) -> tuple[str, Made] | None:
        """The feasible strategy of least makespan; the first if there are several."""
        found = [row for row in self.rows if row[1].makespan is not None]
        return min(found, key=lambda row: row[1].makespan or 0, default=None)


def grouped(problem: StrategyProblem, most: int, grouping: str = "contiguous") -> StrategyProblem:
    """Return a problem with at most ``most`` groups.

    ``grouping`` is one of :data:`GROUPINGS`.
    """
    if grouping not in GROUPINGS:
        raise ArgumentError("grouping", f"unknown {grouping!r}", choice(grouping, GROUPINGS))
    return replace(problem, groups=GROUPINGS[grouping](problem.graph, problem.batch, most))


def check_problem(problem: StrategyProblem) -> None:
    """Refuse a problem without any strategy that memory could hold; see the check's errors."""
    if problem.options.memory == "refcount":
        check_parameters_fit(problem.graph, problem.cluster, problem.options.slots)


def check_makers(names: Iterable[str], *others: str) -> None:
    """Refuse names of makers that there are not; ``others`` could be chosen as well."""
    for name in names:
        if name not in MAKERS:
            remedy = choice(name, (*MAKERS, *others))
            raise ArgumentError("method", f"unknown {name!r}", remedy)


def compare(
    problem: StrategyProblem, names: Sequence[str] = (), *, budget: Budget = DEFAULT, seed: int = 0
) -> Comparison:
    """Run makers, and bound all strategies that they could have found.

    Parameters
    ----------
    names : sequence of str
        Makers; all if empty.
    budget : Budget
        For each maker, and for the bound.

    Raises
    ------
    InputError
        If there is no such maker, or no strategy fits at all.
    ContradictionError
        If the bound is above the time of a verified strategy.
    """
    names = names or tuple(MAKERS)
    check_makers(names)
    check_problem(problem)
    expect()
    rows = tuple((name, MAKERS[name](problem, budget=budget, seed=seed)) for name in names)
    made = [found.strategy for _, found in rows if found.feasible and found.strategy is not None]
    bound = bounded(problem, budget.seconds, made, budget.memory)
    for name, found in rows:
        check_bound(bound, found.makespan, name)
    return Comparison(problem, rows, bound)


def bounded(
    problem: StrategyProblem,
    seconds: float = math.inf,
    besides: Iterable[Strategy] = (),
    memory: int | None = None,
) -> Bounded:
    """Bound the time of all strategies that give every group one of the actions of [G].

    Parameters
    ----------
    seconds : float
        If few actions and time are left after the linear program, the integer program follows; it
        has no certificate. Without a limit, it is left out.
    besides : iterable of Strategy
        Strategies of the same groups whose actions count, too, so that it bounds them as well.
    memory : int, optional
        Bytes that this process may take; by default, what is available. If the linear program is
        estimated to take more, the bound on every strategy is left, with the reason.
    """
    allowed = [{action.decision: None for action in row} for row in actions(problem)]
    for strategy in besides:
        if strategy.groups != problem.groups:
            raise InputError("groups", "not those of the problem", "give strategies of its groups")
        for row, decision in zip(allowed, strategy.decisions, strict=True):
            row[decision] = None
    begin, count = time.perf_counter(), sum(map(len, allowed))
    whatever = bound_of_all(problem)

    def said(
        value: Fraction | None, reason: str = "", found: StrategyBound | None = None
    ) -> Bounded:
        proof = None if found is None else (choices, found)
        taken = time.perf_counter() - begin
        return Bounded(value, whatever, reason, value is None, count, taken, proof)

    if whatever is None:
        return said(None, NO_STRATEGY)
    try:
        choices = Choices(problem, [tuple(row) for row in allowed])
    except InputError as error:
        return said(whatever, f"{error.place} is {error.problem}")
    excess = program_excess(choices, memory)
    if excess:
        return said(whatever, f"the linear program {excess}")
    left = seconds - (time.perf_counter() - begin)
    if left <= 0:
        return said(whatever, "the time limit leaves none for the linear program")
    found = strategy_bound(choices, left)
    value = found.value
    left = seconds - (time.perf_counter() - begin)
    if value is not None and count <= _FEW and 0 < left < math.inf:
        value = integer_bound(choices, found, seconds=left).value
    if value is None:
        return said(None, NO_STRATEGY)
    return said(max(value, whatever), found=found)


def bound_of_all(problem: StrategyProblem) -> Fraction | None:
    """Bound every strategy at all; ``None`` if there is none that fits the memory."""
    least = load(problem)
    try:
        return None if least is None else max(least, average_path(problem))
    except InputError:  # it holds for some options only; the load, for all
        return least


def check_bound(bound: Bounded, makespan: Fraction | None, name: str) -> None:
    """Refuse a bound and a verified strategy in its range that cannot both be right."""
    if makespan is None:
        return
    if bound.infeasible or (bound.value is not None and bound.value > makespan):
        said = "no strategy" if bound.value is None else f"a bound of {bound.value}"
        raise ContradictionError(
            f"{said}, but {name} has a verified one of {makespan} ns; neither may be trusted, "
            "please report this"
        )
