"""The integer program over the actions of all groups, with rows added where they are violated."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from ortools.sat.python import cp_model

from optpart.applications.training.bounds.costs import Costs
from optpart.applications.training.bounds.program import StrategyBound
from optpart.applications.training.bounds.rows import NCCL, Resource, Row, Rows
from optpart.applications.training.bounds.separation import Separator
from optpart.applications.training.problem import Choices
from optpart.applications.training.strategy import Interval
from optpart.base.errors import OptpartError
from optpart.exact import cp_sat
from optpart.exact.messages import Done, Limits

#: A task on a device or a link: kind, operation, output, two devices, and samples if they matter.
Key = tuple[str, int, int, int, int, Interval | None]


class ChoiceModel:
    """CP-SAT model of actions and of pairs of layouts; every solution is a strategy.

    Attributes
    ----------
    y : list of list of literal
        A group takes an action.
    w : list of dict
        Two adjacent groups have two layouts, by pair of groups and by layouts.
    makespan : IntVar
        In ticks; it is minimised.
    """

    def __init__(self, rows: Rows, least: int, most: int, cuts: Iterable[Row] = ()) -> None:
        self.rows, self.costs, self.most = rows, rows.costs, most
        self.model = cp_model.CpModel()
        self.makespan = self.model.new_int_var(least, most, "C")
        self._choose()
        #: Literals in the order of the columns; 0 for pairs that are impossible.
        self._columns: list[Any] = [literal for row in self.y for literal in row]
        for p, (g, h) in enumerate(rows.pairs):
            one, two = rows.own[g].tolist(), rows.own[h].tolist()
            self._columns += [self.w[p].get((a, b), 0) for a in one for b in two]
        for d in range(self.costs.k):
            if rows.capacity(d) is not None:
                self.add(Row("memory", ("device", d, d)))
        for cut in cuts:
            self.add(cut)
        self.model.minimize(self.makespan)

    def forbid(self, chosen: Sequence[int]) -> None:
        """Exclude one strategy."""
        self.model.add_bool_or(~self.y[g][a] for g, a in enumerate(chosen))

    def _choose(self) -> None:
        model, rows, costs = self.model, self.rows, self.costs
        self.y = [
            [model.new_bool_var(f"y{g},{a}") for a in range(size)]
            for g, size in enumerate(rows.sizes)
        ]
        self.layout: list[dict[int, Any]] = []
        self.there: list[list[Any]] = []
        for g, literals in enumerate(self.y):
            model.add_exactly_one(literals)
            layouts: dict[int, Any] = {}
            for layout in rows.own[g].tolist():
                same = [literals[a] for a in np.flatnonzero(costs.layout_of[g] == layout)]
                layouts[layout] = self._any(same)
            self.layout.append(layouts)
            self.there.append(
                [
                    self._any([x for layout, x in layouts.items() if costs.present[layout, d]])
                    for d in range(costs.k)
                ]
            )
        self.w: list[dict[tuple[int, int], Any]] = []
        for p, (g, h) in enumerate(rows.pairs):
            pair, at = {}, rows.w[p]
            for a in rows.own[g].tolist():
                for b in rows.own[h].tolist():
                    if rows.possible[at]:
                        pair[a, b] = model.new_bool_var(f"w{p},{a},{b}")
                    else:
                        model.add_bool_or(~self.layout[g][a], ~self.layout[h][b])
                    at += 1
            self.w.append(pair)
            for side, group in enumerate((g, h)):
                for a in rows.own[group].tolist():
                    both = [x for key, x in pair.items() if key[side] == a]
                    model.add(sum(both) == self.layout[group][a])
        for g, literals in enumerate(self.y):
            for a, literal in enumerate(literals):
                if not rows.possible[rows.y[g] + a]:
                    model.add(literal == 0)

    def _any(self, literals: Sequence[Any]) -> Any:
        """Return whether one of some literals holds, of which at most one does."""
        if not literals:
            return self.model.new_constant(0)
        if len(literals) == 1:
            return literals[0]
        result = self.model.new_bool_var("")
        self.model.add(sum(literals) == result)
        return result

    def add(self, row: Row) -> None:
        """Add a row."""
        coefficients = self.rows.coefficients(row)
        used = np.flatnonzero((coefficients != 0) & self.rows.possible).tolist()
        total = sum(int(coefficients[c]) * self._columns[c] for c in used)
        if row.kind == "memory":
            assert row.resource is not None
            self.model.add(total <= (self.rows.capacity(row.resource[1]) or 0))
        else:
            self.model.add(total <= self.makespan)

    def found(self, value: cp_sat.Value) -> Assignment:
        """Read a solution from the values of the variables."""
        chosen = (next(a for a, literal in enumerate(row) if value(literal)) for row in self.y)
        return Assignment(tuple(chosen))

    def solve(self, seconds: float, workers: int = 1, seed: int = 1) -> Solution:
        """Solve the model in this process."""
        messages: list[object] = []
        limits = Limits(seconds, workers, seed, None)
        cp_sat.solve(lambda: self, limits, messages.append, steps=False)
        *found, done = messages
        assert isinstance(done, Done)
        if done.status == "MODEL_INVALID":
            raise OptpartError("the model of strategies is invalid; please report this")
        best = next((one for one in found if isinstance(one, Assignment)), None)
        return Solution(best, done.value or 0, done.status)


class Assignment(NamedTuple):
    """A solution: the action of each group, and start and end of what may run, in ticks."""

    chosen: tuple[int, ...]
    times: Mapping[Key, tuple[int, int]] = {}


class Solution(NamedTuple):
    """The best solution of the solver, its bound (ticks), and its status."""

    best: Assignment | None
    bound: int
    status: str


class IntegerBound(NamedTuple):
    """A lower bound on the time of one iteration, for which there is no certificate.

    Attributes
    ----------
    value : Fraction or None
        Nanoseconds; ``None`` if no strategy satisfies links and memory.
    chosen : tuple of int or None
        The action of each group in the last solution.
    closed : bool
        Whether it is the optimum: the last solution violates no row.
    """

    value: Fraction | None
    chosen: tuple[int, ...] | None
    closed: bool
    rounds: int


def integer_bound(choices: Choices, known: StrategyBound, *, seconds: float = 60.0) -> IntegerBound:
    """Raise the bound of the linear program: every group takes exactly one action.

    All coefficients are integers, and so is the bound of CP-SAT. It begins with the bound and the
    rows of the linear program. Rows that the best strategy violates are added until there are
    none; the strategy is then one of least time according to all rows.

    Parameters
    ----------
    known : StrategyBound
        Of the same choices.
    """
    deadline = time.perf_counter() + seconds
    if known.ticks is None:
        return IntegerBound(None, None, True, 0)
    rows = Rows(Costs(choices))
    devices: list[Resource] = [("device", d, d) for d in range(rows.costs.k)]
    loads = [Row("load", resource) for resource in (*devices, NCCL)]
    seen = dict.fromkeys((*loads, *known.multipliers.cuts))
    model = ChoiceModel(rows, known.ticks, max(known.ticks, horizon(rows)), seen)
    separator = Separator(rows)
    bound, chosen, closed, rounds = known.ticks, None, False, 0
    while not closed and (left := deadline - time.perf_counter()) > 0:
        # One worker gives the same answer every time, unless the time ends it.
        solution = model.solve(left)
        rounds += 1
        if solution.status == "INFEASIBLE":
            return IntegerBound(None, None, True, rounds)
        bound = max(bound, solution.bound)
        chosen = chosen if solution.best is None else solution.best.chosen
        if chosen is None or solution.status != "OPTIMAL":
            break
        violated = separator.violated(rows.point(chosen).astype(float), float(bound))
        new = [row for row in violated if row not in seen]
        for row in new:
            seen[row] = None
            model.add(row)
        closed = not new
    return IntegerBound(rows.costs.time(bound), chosen, closed, rounds)


def horizon(rows: Rows) -> int:
    """Return an upper bound of the ticks of any strategy: everything in sequence."""
    total = int(rows.costs.duration.sum(axis=2).max(axis=1).sum())
    for moves in rows.moves:
        each = moves.transfer.sum(axis=(-1, -2)) + moves.copying.sum(axis=-1)
        total += int(each.max())
        total += int(getattr(moves, "collective", np.zeros(1)).max())
    return total
