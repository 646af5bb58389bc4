"""The linear program over the actions of all groups, with rows added where they are violated."""

from __future__ import annotations

import time
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from ortools.linear_solver import pywraplp
from scipy.sparse import csr_array

from optpart.training.bounds.choices import Choices
from optpart.training.bounds.costs import Costs, Ints
from optpart.training.bounds.rows import NCCL, Row, Rows

Floats = NDArray[np.float64]

#: Denominator to which multipliers are rounded; the bound is valid for any rounding.
PARTS = 2**40

#: Rows per resource at the beginning: each counts another reader of tensors with several.
_CONSUMERS = 3

#: Least violation, as a share of the makespan, that is worth a row.
_VIOLATED = 1e-5

#: Rows added in one round at most.
_ADDED = 60

#: The rounds end when several of them together gain less than this share of the bound.
_GAIN = 1e-5
_PATIENCE = 5


@dataclass(frozen=True)
class Multipliers:
    """What a bound is proven with.

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


class StrategyBound(NamedTuple):
    """A proven lower bound on the time of one iteration.

    Attributes
    ----------
    value : Fraction or None
        Nanoseconds; ``None`` if all actions of some group lack links or memory.
    ticks : int or None
        The same on the grid of :class:`~optpart.training.bounds.costs.Costs`.
    multipliers : Multipliers
    point : tuple of ndarray of float
        The share of each action in the linear program's solution, by group.
    rounds : int
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
    the rows of :mod:`~optpart.training.bounds.rows`. The program minimises ``C``. Rows of paths
    and queues are added where a solution violates them, until none does.

    Parameters
    ----------
    seconds : float
        The bound is valid whenever the rounds end.

    Notes
    -----
    The solver's multipliers are only a proposal: :func:`proven` evaluates them in exact integers.
    """
    costs = Costs(choices)
    program = Program(Rows(costs))
    return program.solve(seconds)


class Program:
    """The linear program of some rows, which grows."""

    def __init__(self, rows: Rows, *, memory: bool = True) -> None:
        self.rows = rows
        self.memory = memory
        self.costs = rows.costs
        self.known: list[Row] = []
        self._seen: set[Row] = set()
        self.separator = Separator(rows)
        self.unit = self._magnitude()
        self._build()

    def _magnitude(self) -> float:
        run = self.costs.duration.astype(np.float64)
        present = self.costs.present[None]
        least = np.where(present & (run > 0), run, np.inf).min(axis=(1, 2))
        return max(1.0, float(least[np.isfinite(least)].sum()))

    def _build(self) -> None:
        rows, n = self.rows, self.rows.columns
        # The LP solver of OR-Tools: highspy cannot be loaded in the same process as CP-SAT.
        self.solver = solver = pywraplp.Solver.CreateSolver("GLOP")
        solver.SetSolverSpecificParametersAsString("use_dual_simplex: true")
        self._column = [
            solver.NumVar(0.0, solver.infinity() if rows.possible[c] else 0.0, "") for c in range(n)
        ]
        self._makespan = solver.NumVar(0.0, solver.infinity(), "")
        solver.Minimize(self._makespan)
        self._constraints: list[Any] = []
        row, column, value, right = self._marginals()
        equations = [solver.Constraint(x, x) for x in right]
        for r, c, x in zip(row, column, value, strict=True):
            equations[r].SetCoefficient(self._column[c], x)
        self._equation = equations
        for d in range(self.costs.k):
            if self.memory and rows.capacity(d) is not None:
                self.add(Row("memory", ("device", d, d)))
        most = (
            max(len(ways) for tensors in rows.readers for ways in tensors)
            if any(rows.readers)
            else 1
        )
        for consumer in range(min(_CONSUMERS, most)):
            for resource in (*(("device", d, d) for d in range(self.costs.k)), NCCL):
                self.add(Row("load", resource, consumer=consumer))

    def _marginals(self) -> tuple[list[int], list[int], list[float], Floats]:
        """Return the equations: one action per group, and pairs that agree with both groups."""
        rows = self.rows
        row: list[int] = []
        column: list[int] = []
        value: list[float] = []
        right: list[float] = []
        for g, actions in enumerate(self.costs.choices.actions):
            for a in range(len(actions)):
                row.append(len(right))
                column.append(rows.y[g] + a)
                value.append(1.0)
            right.append(1.0)
        self._first_message = len(right)
        for p, pair in enumerate(rows.pairs):
            cells = np.arange(
                rows.w[p], rows.w[p] + len(rows.own[pair[0]]) * len(rows.own[pair[1]])
            )
            matrix = cells.reshape(len(rows.own[pair[0]]), -1)
            for g, lines in zip(pair, (matrix, matrix.T), strict=True):
                for layout, line in enumerate(lines.tolist()):
                    row += [len(right)] * len(line)
                    column += line
                    value += [1.0] * len(line)
                    for a in np.flatnonzero(rows.own_of[g] == layout).tolist():
                        row.append(len(right))
                        column.append(rows.y[g] + a)
                        value.append(-1.0)
                    right.append(0.0)
        return row, column, value, np.array(right)

    def add(self, row: Row) -> bool:
        """Add a row; return whether it is new."""
        if row in self._seen:
            return False
        self._seen.add(row)
        self.known.append(row)
        coefficients = self.rows.coefficients(row)
        used = np.flatnonzero((coefficients != 0) & np.append(self.rows.possible, False)[:-1])
        values = coefficients[used].astype(np.float64)
        if row.kind == "memory":
            assert row.resource is not None
            capacity = float(self.rows.capacity(row.resource[1]) or 0)
            scale = max(1.0, capacity)
            constraint = self.solver.Constraint(-capacity / scale, self.solver.infinity())
        else:
            scale = self.unit
            constraint = self.solver.Constraint(0.0, self.solver.infinity())
            constraint.SetCoefficient(self._makespan, 1.0)
        for c, value in zip(used.tolist(), (-values / scale).tolist(), strict=True):
            constraint.SetCoefficient(self._column[c], value)
        self._constraints.append((constraint, scale))
        return True

    def solve(self, seconds: float = np.inf) -> StrategyBound:
        """Solve the program and add violated rows, until there are none or the time is over."""
        deadline = time.perf_counter() + seconds
        best: Multipliers | None = None
        point = np.zeros(self.rows.columns + 1)
        values: list[float] = []
        rounds = 0
        while True:
            left = deadline - time.perf_counter()
            if np.isfinite(left):
                self.solver.SetTimeLimit(max(50, int(1000 * left)))
            status = self.solver.Solve()
            if status == self.solver.INFEASIBLE and self.memory:
                # No certificate covers that parameters fit nowhere together: leave memory out.
                return Program(self.rows, memory=False).solve(deadline - time.perf_counter())
            if status != self.solver.OPTIMAL:
                break
            point = np.array([c.solution_value() for c in (*self._column, self._makespan)])
            best = self._multipliers()
            rounds += 1
            values.append(float(point[-1]))
            if (
                len(values) > _PATIENCE
                and values[-1] - values[-1 - _PATIENCE] <= _GAIN * values[-1]
            ) or time.perf_counter() >= deadline:
                break
            found = self.separator.violated(point[:-1], float(point[-1]) * self.unit)
            if not sum([self.add(row) for row in found]):
                break
        if best is None:
            best = Multipliers(((Row("load", ("device", 0, 0)), PARTS),), {})
        ticks = proven(self.rows, best)
        shares = tuple(
            point[first : first + len(actions)]
            for first, actions in zip(self.rows.y, self.costs.choices.actions, strict=True)
        )
        value = None if ticks is None else self.costs.time(ticks)
        return StrategyBound(value, ticks, best, shares, rounds)

    def _multipliers(self) -> Multipliers:
        rows: list[tuple[Row, int]] = []
        for row, (constraint, scale) in zip(self.known, self._constraints, strict=True):
            whole = round(max(0.0, constraint.dual_value()) * self.unit / scale * PARTS)
            if whole > 0:
                rows.append((row, whole))
        messages = {}
        at = self._first_message
        for g, h in self.rows.pairs:
            sides = []
            for group in (g, h):
                equations = self._equation[at : at + len(self.rows.own[group])]
                sides.append(tuple(round(x.dual_value() * self.unit * PARTS) for x in equations))
                at += len(equations)
            messages[g, h] = sides[0], sides[1]
        return Multipliers(tuple(rows), messages)


def proven(rows: Rows, multipliers: Multipliers) -> int | None:
    """Return the ticks that multipliers prove, in exact integers; ``None`` if no strategy exists.

    Every strategy satisfies ``C ≥ r·z`` for every row, and ``0 ≥ r·z − M`` for memory. So
    ``C·Σλ ≥ Σ λ r·z − Σ μ M``, a sum of functions of one group's action and of two groups'
    layouts. Adding a message to the former and subtracting it from the latter changes nothing.
    The sum is at least the sum of the least values of its terms.
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
    sizes = [len(actions) for actions in rows.choices.actions]
    areas = [len(rows.own[g]) * len(rows.own[h]) for g, h in rows.pairs]
    for first, size in zip((*rows.y, *rows.w), (*sizes, *areas), strict=True):
        block = slice(first, first + size)
        fine = rows.possible[block]
        if not fine.any():
            return None
        constant += int(total[block][fine].min())
    return max(0, -(-constant // parts))


class Separator:
    """Finds the rows that a fractional solution violates."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        graph, costs = rows.graph, rows.costs
        self.samples: list[Fraction | None] = [*costs.samples, None]
        self.order = list(graph.topological_order)
        self._first = [[rows.first(o, s) for s in self.samples] for o in range(len(graph))]
        self._forward: list[tuple[int, Ints]] = []
        self._backward: list[tuple[int, Ints]] = []
        self._usable = np.zeros((len(graph.edges), len(self.samples)), dtype=np.bool_)
        self._returns = [rows.returns(e) for e in range(len(graph.edges))]
        for e in range(len(graph.edges)):
            terms = []
            for i, s in enumerate(self.samples):
                self._usable[e, i] = rows.usable(e, s)
                terms.append(rows.step(e, s if self._usable[e, i] else None))
            self._forward.append((terms[0].first, np.stack([t.values for t in terms])))
            back = rows.step(e, None, True) if self._returns[e] else terms[-1]
            self._backward.append((back.first, back.values))
        self._reach()
        self._count()

    def _reach(self) -> None:
        graph, n = self.rows.graph, len(self.rows.graph)
        self.later = np.zeros((2, n, n), dtype=np.bool_)  # of samples, and of the least replica
        self.earlier = np.zeros((n, n), dtype=np.bool_)
        for o in reversed(self.order):
            self.later[:, o, o] = True
            for e in self.rows.out_edges[o]:
                consumer = graph.edges[e].consumer
                for i in (0, 1):
                    if self._usable[e, -i]:
                        self.later[i, o] |= self.later[i, consumer]
        for o in self.order:
            self.earlier[o, o] = True
            for e in self.rows.in_edges[o]:
                if self._returns[e]:
                    self.earlier[o] |= self.earlier[graph.edges[e].producer]

    def _count(self) -> None:
        """Gather what each operation, and its outputs, take on each resource."""
        rows, n = self.rows, len(self.rows.graph)
        self.resources = rows.resources
        parts: dict[str, list[tuple[Ints, Ints, Ints]]] = {"run": [], "out": [], "in": []}

        number = {resource: r for r, resource in enumerate(self.resources)}
        k = rows.costs.k
        links = np.array([[number.get(("link", d, e), 0) for e in range(k)] for d in range(k)])

        def note(what: str, o: int, where: Ints, columns: Ints, values: Ints) -> None:
            """Add values at rows and columns, both of the shape of the values."""
            used = values != 0
            at = o * len(self.resources) + where
            parts[what].append((at[used], columns[used], values[used]))

        for o in range(n):
            g = rows.choices.group_of[o]
            run = rows.costs.duration[o][rows.costs.layout_of[g]]
            actions = rows.y[g] + np.arange(len(run))[:, None]
            devices = np.arange(k)[None, :]
            note("run", o, *np.broadcast_arrays(devices, actions, run))
            for ways in rows.readers[o]:
                consumer = rows.graph.edges[ways[0]].consumer
                columns = rows.cells(ways[0])
                transfer, copying, collective = rows.within(ways[0])
                for where, values in (
                    (links, transfer),
                    (np.arange(k), copying),
                    (np.array([number[NCCL]]), collective),
                ):
                    shaped = columns.reshape(columns.shape + (1,) * (values.ndim - columns.ndim))
                    one, two, three = np.broadcast_arrays(where, shaped, values)
                    note("out", o, one, two, three)
                    note("in", consumer, one, two, three)
        shape = (n * len(self.resources), rows.columns)
        self._on: dict[str, csr_array] = {}
        for what, found in parts.items():
            if found:
                row, column, value = (np.concatenate(x) for x in zip(*found, strict=True))
                self._on[what] = csr_array((value, (row, column)), shape=shape)
            else:
                self._on[what] = csr_array(shape)

    def violated(self, x: Floats, makespan: float) -> list[Row]:
        """Return the rows that a solution violates most, at most ``_ADDED``."""
        found: list[tuple[float, Row]] = []
        rows, graph = self.rows, self.rows.graph
        n, s = len(graph), len(self.samples)
        least = _VIOLATED * makespan
        end = np.zeros((n, s))
        via = np.full((n, s), -1, dtype=np.int64)
        for o in range(n):
            for i, term in enumerate(self._first[o]):
                end[o, i] = term.values @ x[term.first : term.first + len(term.values)]
        alone = end.copy()
        for o in self.order:
            for e in rows.in_edges[o]:
                first, values = self._forward[e]
                step = values @ x[first : first + values.shape[1]]
                cost = np.where(self._usable[e], end[graph.edges[e].producer] + step, -1.0)
                better = cost > end[o]
                end[o][better] = cost[better]
                via[o][better] = e
        rest = np.zeros(n)
        then = np.full(n, -1, dtype=np.int64)
        for o in reversed(self.order):
            for e in rows.out_edges[o]:
                if self._returns[e]:
                    first, values = self._backward[e]
                    cost = rest[graph.edges[e].consumer] + float(
                        values @ x[first : first + len(values)]
                    )
                    if cost > rest[o]:
                        rest[o], then[o] = cost, e
        for i, sample in enumerate(self.samples):
            o = int(end[:, i].argmax())
            start, edges = self._path(via, o, i)
            found.append((end[o, i], Row("path", None, start, edges, sample)))
        o = int((alone[:, -1] + rest).argmax())
        shape = (n, len(self.resources))
        run, out, into = ((self._on[w] @ x).reshape(shape) for w in ("run", "out", "in"))
        nccl = self.resources.index(NCCL)
        loads = (run + out).sum(axis=0).tolist()
        found += [(loads[r], Row("load", resource)) for r, resource in enumerate(self.resources)]
        # Heads: the end of an operation, then all that waits for it.
        queue = self.later[0].astype(np.float64) @ out[:, nccl]
        for i, sample in enumerate(self.samples[:-1]):
            o = int((end[:, i] + queue).argmax())
            start, edges = self._path(via, o, i)
            found.append((end[o, i] + queue[o], Row("head", NCCL, start, edges, sample)))
        after = self.later[1].astype(np.float64) @ (run + out) - run + end[:, -1:]
        before = (
            self.earlier.astype(np.float64) @ (run + into) - run + (alone[:, -1] + rest)[:, None]
        )
        for r, resource in enumerate(self.resources):
            o = int(after[:, r].argmax())
            start, edges = self._path(via, o, s - 1)
            found.append((after[o, r], Row("head", resource, start, edges)))
            o = int(before[:, r].argmax())
            forward = []
            at = o
            while then[at] >= 0:
                forward.append(int(then[at]))
                at = graph.edges[forward[-1]].consumer
            found.append((before[o, r], Row("tail", resource, o, tuple(forward))))
        found = [(value, row) for value, row in found if value > makespan + least]
        found.sort(key=lambda pair: -pair[0])
        return [row for _, row in found[:_ADDED]]

    def _path(self, via: Ints, o: int, i: int) -> tuple[int, tuple[int, ...]]:
        edges: list[int] = []
        while via[o, i] >= 0:
            edges.append(int(via[o, i]))
            o = self.rows.graph.edges[edges[-1]].producer
        return o, tuple(reversed(edges))
