"""The linear program over the actions of all groups, with rows added where they are violated.

Peaks of resident memory (``VmHWM``) of ``optpart strategy bound`` above the 200 MiB of the process,
with Python 3.11 and OR-Tools 9.15 on Linux: 29 MiB for 2,134 columns and 8 devices (VGG-19, 20
groups, 8 s), 262 and 347 MiB for 13,900 columns and 8 devices (ResNet-200, 100 groups, 15 and
55 s), 222 MiB for 65,028 and 8 (400 groups; the time ended the rounds), 161 MiB for 4,044 and 12
(20 groups). These are up to 3.7 KiB per column and device.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from ortools.linear_solver import pywraplp
from scipy.optimize import linprog
from scipy.sparse import csr_array

from optpart.applications.training.bounds.costs import Costs, Ints
from optpart.applications.training.bounds.rows import NCCL, Resource, Row, Rows
from optpart.applications.training.bounds.separation import Separator
from optpart.applications.training.problem import Choices
from optpart.problem import footprint

Floats = NDArray[np.float64]

#: Denominator to which multipliers are rounded; the bound is valid for any rounding.
PARTS = 2**40

#: Rows per resource at the beginning: each counts another reader of tensors with several.
_CONSUMERS = 3

#: Seconds for a program of few columns.
_START = 1.0

#: How much longer the last proof takes than the first, at most.
_PROOF = 5

#: The rounds end when several of them together gain less than this share of the bound.
_GAIN = 2e-4
_PATIENCE = 4

#: Bytes of this process, and of the program per column and device.
_PROCESS, _CELL = 340 * 2**20, 6 * 1024

_OPTIMAL, _INFEASIBLE = 0, 2


@dataclass(frozen=True)
class Multipliers:
    """The multipliers that prove a bound.

    Attributes
    ----------
    rows : tuple of (Row, int)
        Rows and their multipliers, all positive.
    messages : dict
        By pair of adjacent groups, what is added to the cost of each layout of the first and of
        the second group, and subtracted from the pair.
    """

    rows: tuple[tuple[Row, int], ...]
    messages: dict[tuple[int, int], tuple[tuple[int, ...], tuple[int, ...]]]

    @property
    def cuts(self) -> list[Row]:
        """The rows that bound the makespan."""
        return [row for row, _ in self.rows if row.kind != "memory"]


class StrategyBound(NamedTuple):
    """A proven lower bound on the time of one iteration.

    Attributes
    ----------
    value : Fraction or None
        Nanoseconds; ``None`` if all actions of some group lack links or memory.
    ticks : int or None
        The same on the grid of :class:`~optpart.applications.training.bounds.costs.Costs`.
    point : tuple of ndarray of float
        The share of each action in the linear program's solution, by group.
    """

    value: Fraction | None
    ticks: int | None
    multipliers: Multipliers
    point: tuple[Floats, ...]
    rounds: int


def strategy_bound(choices: Choices, seconds: float = np.inf) -> StrategyBound:
    """Bound the time of every strategy of some choices, in any order of execution.

    With ``y[g,a]`` how much group ``g`` takes action ``a``, ``w`` how much adjacent groups take two
    layouts together (its marginals are ``y``), and ``C`` the makespan, every strategy satisfies
    the rows of :mod:`~optpart.applications.training.bounds.rows`. The program minimises ``C``. Rows
    of paths and queues are added where a solution violates them, until none does.

    Parameters
    ----------
    seconds : float
        The bound is valid whenever the rounds end. The loads without transfers are bounded in any
        case, once all costs are known.

    Notes
    -----
    The solver's multipliers are only a proposal: :func:`proven` evaluates them in exact integers.
    """
    deadline = time.perf_counter() + seconds
    program = Program(Rows(Costs(choices)))
    return program.solve(deadline - time.perf_counter())


class _Solution(NamedTuple):
    """An optimal solution of the program with the rows so far."""

    point: Floats  # of all columns
    makespan: float  # in ticks
    multipliers: Multipliers


class _NoSolutionError(Exception):
    """The program is infeasible."""


class Program:
    """The linear program of some rows, which grows.

    Attributes
    ----------
    known : list of Row
        Rows of the program.
    coefficients : list of (ndarray of int, ndarray of float, float)
        Columns and scaled coefficients of each, and what they were divided by.
    unit : float
        Ticks that the solver counts as one.
    """

    def __init__(self, rows: Rows, *, memory: bool = True) -> None:
        self.rows = rows
        self.costs = rows.costs
        self.memory = memory
        self.known: list[Row] = []
        self._seen: set[Row] = set()
        self._digests: set[tuple[bool, bytes]] = set()
        self.coefficients: list[tuple[Ints, Floats, float]] = []
        self.unit = self._magnitude()
        resources: list[Resource] = [("device", d, d) for d in range(self.costs.k)]
        if memory:
            for resource in resources:
                if rows.capacity(resource[1]) is not None:
                    self.add(Row("memory", resource))
        ways = [len(each) for tensors in rows.readers for each in tensors]
        for consumer in range(min(_CONSUMERS, max(ways, default=1))):
            for resource in (*resources, NCCL):
                self.add(Row("load", resource, consumer=consumer))

    @cached_property
    def separator(self) -> Separator:
        """The search for violated rows."""
        return Separator(self.rows)

    def _magnitude(self) -> float:
        run = self.costs.duration.astype(np.float64)
        present = self.costs.present[None]
        least = np.where(present & (run > 0), run, np.inf).min(axis=(1, 2))
        return max(1.0, float(least[np.isfinite(least)].sum()))

    def add(self, row: Row) -> bool:
        """Add a row; return whether its coefficients are new."""
        if row in self._seen:
            return False
        self._seen.add(row)
        coefficients = self.rows.coefficients(row)
        # Samples that pass the same devices, and readers of tensors with one, make equal rows.
        digest = row.kind == "memory", blake2b(coefficients.tobytes()).digest()
        if digest in self._digests:
            return False
        self._digests.add(digest)
        used = np.flatnonzero(coefficients * self.rows.possible)
        scale = self.unit
        if row.kind == "memory":
            assert row.resource is not None
            scale = float(max(1, self.rows.capacity(row.resource[1]) or 0))
        self.known.append(row)
        self.coefficients.append((used, coefficients[used] / scale, scale))
        return True

    def solve(self, seconds: float = np.inf) -> StrategyBound:
        """Solve the program and add violated rows, until there are none or the time is over.

        No certificate covers that parameters fit nowhere together: memory is then left out.
        """
        deadline = time.perf_counter() + seconds
        try:
            best, rounds = self._start(), 0
        except _NoSolutionError:
            return Program(self.rows, memory=False).solve(deadline - time.perf_counter())
        begin = time.perf_counter()
        ticks = proven(self.rows, best.multipliers)
        # Leave time to prove the last round: its multipliers are more.
        rest = deadline - _PROOF * (time.perf_counter() - begin)
        values: list[float] = []
        solver = None
        while time.perf_counter() < rest:
            violated = self.separator.violated(best.point, best.makespan)
            if not sum([self.add(row) for row in violated]) and rounds:
                break
            solver = solver or _Solver(self)
            left = rest - time.perf_counter()
            if left <= 0:
                break
            try:
                found = solver.solve(left)
            except _NoSolutionError:
                if self.memory:
                    return Program(self.rows, memory=False).solve(deadline - time.perf_counter())
                break
            if found is None:
                break
            best, rounds = found, rounds + 1
            values.append(best.makespan)
            if len(values) > _PATIENCE and values[-1] <= (1 + _GAIN) * values[-1 - _PATIENCE]:
                break
        if rounds:
            ticks = proven(self.rows, best.multipliers)
        shares = tuple(
            best.point[first : first + size]
            for first, size in zip(self.rows.y, self.rows.sizes, strict=True)
        )
        value = None if ticks is None else self.costs.time(ticks)
        return StrategyBound(value, ticks, best.multipliers, shares, rounds)

    def _start(self) -> _Solution:
        """Solve the program of groups without pairs, which has few columns."""
        groups, sizes = len(self.rows.sizes), self.rows.sizes
        actions = sum(sizes)
        above = np.zeros((len(self.known), actions + 1))
        limits = np.zeros(len(self.known))
        for r, (used, values, _) in enumerate(self.coefficients):
            inside = used < actions
            above[r, used[inside]] = values[inside]
            memory = self.known[r].kind == "memory"
            above[r, -1], limits[r] = (0.0, 1.0) if memory else (-1.0, 0.0)
        where = np.repeat(np.arange(groups), sizes), np.arange(actions)
        one: Any = csr_array((np.ones(actions), where), shape=(groups, actions + 1))
        most = np.append(np.where(self.rows.possible[:actions], 1.0, 0.0), np.inf)
        bounds: Any = np.stack([np.zeros(actions + 1), most], axis=1)
        solved = linprog(
            np.append(np.zeros(actions), 1.0),
            above,
            limits,
            one,
            np.ones(groups),
            bounds,
            method="highs-ds",
            options={"time_limit": _START},
        )
        if solved.status == _INFEASIBLE and self.memory:
            raise _NoSolutionError
        if solved.status != _OPTIMAL or solved.x is None:
            load = Multipliers(((Row("load", ("device", 0, 0)), PARTS),), {})
            return _Solution(np.zeros(self.rows.columns), 0.0, load)
        point = self._independent(solved.x[:-1])
        multipliers = self.whole((-solved.ineqlin.marginals).tolist(), {})
        return _Solution(point, float(solved.x[-1]) * self.unit, multipliers)

    def _independent(self, shares: Floats) -> Floats:
        """Return all columns, as if adjacent groups chose their actions independently."""
        rows = self.rows
        point = np.zeros(rows.columns)
        point[: len(shares)] = shares
        layouts = [
            np.bincount(own, shares[first : first + len(own)], len(rows.own[g]))
            for g, (first, own) in enumerate(zip(rows.y, rows.own_of, strict=True))
        ]
        for first, (g, h) in zip(rows.w, rows.pairs, strict=True):
            both = layouts[g][:, None] * layouts[h][None, :]
            point[first : first + both.size] = both.reshape(-1)
        return point

    def whole(
        self, duals: list[float], messages: dict[tuple[int, int], tuple[list[float], list[float]]]
    ) -> Multipliers:
        """Return whole multipliers of the known rows, and whole messages."""
        rows: list[tuple[Row, int]] = []
        for row, (_, _, scale), dual in zip(self.known, self.coefficients, duals, strict=True):
            whole = round(max(0.0, dual) * self.unit / scale * PARTS)
            if whole > 0:
                rows.append((row, whole))
        whole_messages = {}
        for pair, sides in messages.items():
            one, two = (tuple(round(x * self.unit * PARTS) for x in side) for side in sides)
            whole_messages[pair] = one, two
        return Multipliers(tuple(rows), whole_messages)


class _Solver:
    """The program in a solver that continues where it ended, as rows are added."""

    def __init__(self, program: Program) -> None:
        self.program = program
        rows = program.rows
        # The LP solver of OR-Tools: HiGHS does not continue, and highspy cannot be loaded in the
        # same process as CP-SAT.
        self.solver = solver = pywraplp.Solver.CreateSolver("GLOP")
        self._columns: list[Any] = [
            solver.NumVar(0.0, solver.infinity() if possible else 0.0, "")
            for possible in rows.possible.tolist()
        ]
        self._makespan = solver.NumVar(0.0, solver.infinity(), "")
        solver.Minimize(self._makespan)
        self._constraints: list[Any] = []
        self._first = True
        for first, size in zip(rows.y, rows.sizes, strict=True):
            group = solver.Constraint(1.0, 1.0)
            for column in self._columns[first : first + size]:
                group.SetCoefficient(column, 1.0)
        self._equations: list[tuple[list[Any], list[Any]]] = []
        for first, (g, h) in zip(rows.w, rows.pairs, strict=True):
            sizes = len(rows.own[g]), len(rows.own[h])
            cells = first + np.arange(sizes[0] * sizes[1]).reshape(sizes)
            self._equations.append((self._agreeing(g, cells), self._agreeing(h, cells.T)))

    def _agreeing(self, g: int, cells: Ints) -> list[Any]:
        """Add the equations that pairs, by layouts of a group, sum to its actions."""
        rows, found = self.program.rows, []
        for layout, line in enumerate(cells.tolist()):
            equation = self.solver.Constraint(0.0, 0.0)
            for c in line:
                equation.SetCoefficient(self._columns[c], 1.0)
            for a in np.flatnonzero(rows.own_of[g] == layout).tolist():
                equation.SetCoefficient(self._columns[rows.y[g] + a], -1.0)
            found.append(equation)
        return found

    def solve(self, seconds: float) -> _Solution | None:
        """Solve the program with all rows that it knows; ``None`` if it takes too long."""
        program, solver = self.program, self.solver
        begin = time.perf_counter()
        new = range(len(self._constraints), len(program.known))
        for r in new:
            self._add(program.known[r], *program.coefficients[r][:2])
        # Rows leave the last solution's multipliers feasible, from which the dual method goes on.
        dual = "false" if self._first else "true"
        solver.SetSolverSpecificParametersAsString(f"use_dual_simplex: {dual}")
        self._first = False
        if np.isfinite(seconds):
            left = seconds - (time.perf_counter() - begin)
            solver.SetTimeLimit(max(1, int(1000 * left)))
        status = solver.Solve()
        if status == solver.INFEASIBLE:
            raise _NoSolutionError
        if status != solver.OPTIMAL:
            return None
        point = np.array([column.solution_value() for column in self._columns])
        makespan = self._makespan.solution_value() * program.unit
        messages = {}
        for pair, (one, two) in zip(program.rows.pairs, self._equations, strict=True):
            messages[pair] = [x.dual_value() for x in one], [x.dual_value() for x in two]
        # The solver's rows are at most something, so that their dual values are negative.
        duals = [-constraint.dual_value() for constraint in self._constraints]
        return _Solution(point, makespan, program.whole(duals, messages))

    def _add(self, row: Row, used: Ints, values: Floats) -> None:
        memory = row.kind == "memory"
        constraint = self.solver.Constraint(-self.solver.infinity(), 1.0 if memory else 0.0)
        if not memory:
            constraint.SetCoefficient(self._makespan, -1.0)
        for c, value in zip(used.tolist(), values.tolist(), strict=True):
            constraint.SetCoefficient(self._columns[c], value)
        self._constraints.append(constraint)


def proven(rows: Rows, multipliers: Multipliers) -> int | None:
    """Return the ticks that multipliers prove, in exact integers; ``None`` if no strategy exists.

    Every strategy satisfies ``C ≥ r·z`` for every row, and ``0 ≥ r·z − M`` for memory. So
    ``C·Σλ ≥ Σ λ r·z − Σ μ M``, a sum of functions of one group's action and of two groups'
    layouts. Adding a message to the former and subtracting it from the latter changes nothing.
    The sum is at least the sum of the least values of its terms. Its quotient is rounded up: ``C``
    is whole in the ticks of :class:`~optpart.applications.training.bounds.costs.Costs`.
    """
    total = np.zeros(rows.columns, dtype=object)
    parts = constant = 0
    for row, multiplier in multipliers.rows:
        if multiplier < 0:
            raise ValueError("a negative multiplier")
        total += rows.coefficients(row).astype(object) * multiplier
        if row.kind == "memory":
            assert row.resource is not None
            constant -= multiplier * (rows.capacity(row.resource[1]) or 0)
        else:
            parts += multiplier
    if parts == 0:
        return 0
    for p, (g, h) in enumerate(rows.pairs):
        if (g, h) not in multipliers.messages:
            continue
        one, two = (np.array(side, dtype=object) for side in multipliers.messages[g, h])
        area = slice(rows.w[p], rows.w[p] + len(one) * len(two))
        total[area] -= (one[:, None] + two[None, :]).reshape(-1)
        for group, side in ((g, one), (h, two)):
            first = rows.y[group]
            total[first : first + len(rows.own_of[group])] += side[rows.own_of[group]]
    for first, size in zip((*rows.y, *rows.w), (*rows.sizes, *rows.areas), strict=True):
        block = slice(first, first + size)
        fine = rows.possible[block]
        if not fine.any():
            return None
        constant += int(total[block][fine].min())
    return max(0, -(-constant // parts))


def columns_of(choices: Choices) -> int:
    """Count actions and pairs of layouts: ``Rows(Costs(choices)).columns``."""
    home, edges = choices.problem.group_of, choices.problem.graph.edges
    layouts = [len({action.shares for action in row}) for row in choices.actions]
    ends = ((home[edge.producer], home[edge.consumer]) for edge in edges)
    pairs = {(min(g, h), max(g, h)) for g, h in ends if g != h}
    return sum(map(len, choices.actions)) + sum(layouts[g] * layouts[h] for g, h in pairs)


def program_excess(choices: Choices, allowed: int | None) -> str:
    """Return in words that the program would take more memory than allowed; empty if it fits.

    ``allowed`` are bytes; ``None`` stands for what is available.
    """
    cells = columns_of(choices) * len(choices.problem.cluster)
    return footprint.excess(_PROCESS + _CELL * cells, allowed)
