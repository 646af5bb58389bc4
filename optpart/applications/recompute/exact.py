"""The whole problem as a model of CP-SAT: placement, both executions, offloads, and memory."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from ortools.sat.python import cp_model

from optpart.applications.recompute.plan import BACK, FIRST, SECOND, Offload, Plan, Problem, Run
from optpart.base.clock import now
from optpart.base.errors import FailureError, InputError
from optpart.exact.cp_sat import solver_within
from optpart.kernels.ticks import Grid

#: What is held, times how long, stays below in the solver's integers.
_LARGEST = 2**61

_Time: TypeAlias = cp_model.LinearExprT
_sum = cp_model.LinearExpr.sum


def solve(
    problem: Problem, deadline: float, *, extended: bool, known: Plan | None = None
) -> tuple[Plan | None, Fraction | None]:
    """Return the shortest plan that was found, and a time that no plan is below.

    Without a bound, CP-SAT claims that there is no plan. Times and sizes too fine for whole numbers
    raise :class:`InputError`, a model that the solver refuses :class:`FailureError`.

    Parameters
    ----------
    extended : bool
        Whether executions may be repeated and tensors offloaded.
    known : Plan, optional
        One to begin with.
    """
    built = _Model(problem, extended)
    if known is not None:
        built.hint(known)
    solver = solver_within(max(0.0, deadline - now()), workers=2)
    status = solver.solve(built.model)
    if status == cp_model.MODEL_INVALID:
        raise FailureError(f"CP-SAT refuses the model: {built.model.validate()}")
    if status == cp_model.INFEASIBLE:
        return None, None
    bound = built.grid.time(max(0, round(solver.best_objective_bound)))
    return None if status == cp_model.UNKNOWN else built.plan(solver), bound


class _Model:
    """Placement and executions first; then who reads which copy, and who holds it how long."""

    def __init__(self, problem: Problem, extended: bool) -> None:
        self.problem, self.instance = problem, problem.instance
        self.graph, self.model = problem.instance.graph, cp_model.CpModel()
        limits = problem.instance.cluster.memory
        self.extended = extended and any(limit is not None for limit in limits)
        self.edges = self.graph.edges()
        self.grid, self.horizon = self._ticks()
        self.size, self.weights, self.room = self._sizes()
        self.held: dict[int, list[tuple[cp_model.IntervalVar, int]]] = defaultdict(list)
        self.length = self._time()
        self._place()
        self._execute()
        self.reads: dict[tuple[int, int, int, int], cp_model.IntVar] = {}
        self.until: dict[tuple[int, int], cp_model.IntVar] = {}
        self.off: dict[int, tuple[cp_model.IntVar, cp_model.IntVar, cp_model.IntVar]] = {}
        self.links: dict[tuple[int, int], list[cp_model.IntervalVar]] = defaultdict(list)
        for tensor, u in enumerate(self.graph.tensor_vertex.tolist()):
            readers = [v for _, v, t in self.edges if t == tensor]
            if self.size[tensor]:
                self._hold(tensor, u)
            for v in readers:
                self._read(tensor, u, v)
            if self.size[tensor]:
                self._away(tensor, u, readers)
        for u, j in self.run:  # a second execution and an offload without readers are of no use
            if j == SECOND:
                of = [x for (_, _, t, k), x in self.reads.items()
                      if k == SECOND and self.graph.tensor_vertex[t] == u]  # fmt: skip
                self.model.add_bool_or(*of, ~self.run[u, j])
        for tensor, (literal, _, _) in self.off.items():
            of = [x for (_, _, t, k), x in self.reads.items() if (t, k) == (tensor, BACK)]
            self.model.add_bool_or(*of, ~literal)
        for spans in self.links.values():
            self.model.add_no_overlap(spans)
        for d, room in enumerate(self.room):
            if room is not None:
                free, taken = self.model.new_int_var(0, room, ""), self._on(d)
                self.model.add(free == room - _sum([self.weights[v] * x for v, x in taken]))
                spans, sizes = zip(*self.held[d], strict=True) if self.held[d] else ((), ())
                self.model.add_cumulative(spans, sizes, free)
        self.model.minimize(self.length)

    # --- whole numbers ---------------------------------------------------------------------

    def _ticks(self) -> tuple[Grid, int]:
        """Return an exact grid, and ticks in which all plans that never idle end."""
        grid, k = Grid.of(self.instance), range(self.instance.devices)
        if not grid.exact:
            raise InputError("", "its times have no common tick", "round times and bandwidths")
        moves = [max(grid.delay(t, d, e) for d in k for e in k) for t in range(self.graph.tensors)]
        return grid, 2 * sum(max(row) for row in grid.duration.tolist()) + 4 * sum(moves)

    def _sizes(self) -> tuple[list[int], list[int], list[int | None]]:
        """Return sizes of tensors, weights and limits in whole units."""
        limits, graph = self.instance.cluster.memory, self.graph
        amounts = [*graph.tensor_size.fractions(), *graph.memory.fractions()]
        common = math.lcm(*(amount.denominator for amount in amounts))
        whole = [int(amount * common) for amount in amounts]
        unit = math.gcd(*whole) or 1
        whole = [amount // unit for amount in whole]
        room = [None if limit is None else math.floor(limit * common / unit) for limit in limits]
        if max(1, 4 * sum(whole)) * self.horizon >= _LARGEST:
            raise InputError("", "its times and sizes are too fine together", "round them")
        most = 4 * sum(whole)
        room = [None if limit is None or limit >= most else limit for limit in room]
        return whole[: graph.tensors], whole[graph.tensors :], room

    def _time(self) -> cp_model.IntVar:
        return self.model.new_int_var(0, self.horizon, "")

    # --- placement and executions ----------------------------------------------------------

    def _place(self) -> None:
        instance = self.instance
        on = [
            {d: self.model.new_bool_var("") for d in np.flatnonzero(row).tolist()}
            for row in instance.allowed
        ]
        for literals in on:
            self.model.add_exactly_one(literals.values())
        for a, b in instance.separated_units:
            for d in on[a].keys() & on[b].keys():
                self.model.add_bool_or(~on[a][d], ~on[b][d])
        self.on = [on[unit] for unit in instance.unit_of.tolist()]

    def _on(self, d: int) -> list[tuple[int, cp_model.IntVar]]:
        return [(v, self.on[v][d]) for v in range(len(self.on)) if d in self.on[v]]

    def _both(self, one: cp_model.IntVar, other: cp_model.IntVar) -> cp_model.IntVar:
        """Return a literal for the conjunction of two."""
        both = self.model.new_bool_var("")
        self.model.add_bool_and(one, other).only_enforce_if(both)
        self.model.add_bool_or(~one, ~other, both)
        return both

    def _no_later(self, one: _Time, other: _Time, *literals: cp_model.LiteralT) -> None:
        self.model.add(one <= other).only_enforce_if(literals)

    def _execute(self) -> None:
        """Every vertex is executed once, or twice if it makes something that takes memory."""
        self.run: dict[tuple[int, int], cp_model.IntVar] = {}
        self.start: dict[tuple[int, int], cp_model.IntVar] = {}
        self.end: dict[tuple[int, int], cp_model.IntVar] = {}
        self.here: dict[tuple[int, int, int], cp_model.IntVar] = {}
        one = self.model.new_constant(1)
        makes = {u for u, _, tensor in self.edges if self.size[tensor]}
        spans: dict[int, list[cp_model.IntervalVar]] = defaultdict(list)
        work: dict[int, list[_Time]] = defaultdict(list)
        for v, on in enumerate(self.on):
            for j in (FIRST, SECOND) if self.extended and v in makes else (FIRST,):
                run = self.model.new_bool_var("") if j else one
                times = {d: int(self.grid.duration[v, d]) for d in on}
                start, end = self._time(), self._time()
                self.model.add(end == start + _sum([time * on[d] for d, time in times.items()]))
                self.run[v, j], self.start[v, j], self.end[v, j] = run, start, end
                self._no_later(end, self.length, run)
                for d, time in times.items():
                    here = self._both(on[d], run) if j else on[d]
                    self.here[v, j, d] = here
                    spans[d].append(
                        self.model.new_optional_fixed_size_interval_var(start, time, here, "")
                    )
                    work[d].append(time * here)
            if (v, SECOND) in self.run:
                self._no_later(self.end[v, FIRST], self.start[v, SECOND], self.run[v, SECOND])
        for d, intervals in spans.items():
            self.model.add_no_overlap(intervals)
            self.model.add(_sum(work[d]) <= self.length)

    # --- copies ----------------------------------------------------------------------------

    def _span(
        self, d: int, tensor: int, since: _Time, until: _Time, literal: cp_model.IntVar
    ) -> None:
        """Hold a tensor on a device."""
        if self.room[d] is not None:
            span = self.model.new_optional_interval_var(since, self._time(), until, literal, "")
            self.held[d].append((span, self.size[tensor]))

    def _hold(self, tensor: int, u: int) -> None:
        """Hold the copies at the producer, and let the first go to the host and come back."""
        for j in (FIRST, SECOND):
            if (u, j) in self.run:
                self.until[tensor, j] = until = self._time()
                self._no_later(self.end[u, j], until, self.run[u, j])
                for d in self.on[u]:
                    self._span(d, tensor, self.start[u, j], until, self.here[u, j, d])
        ways = {d: self.problem.ways(tensor, d) for d in self.on[u]}
        if self.extended and (u, SECOND) in self.run and any(ways.values()):
            self._offload(tensor, u, ways)

    def _offload(
        self, tensor: int, u: int, ways: dict[int, tuple[Fraction, Fraction] | None]
    ) -> None:
        literal, out, back, kept = self.model.new_bool_var(""), *(self._time() for _ in "obk")
        self.off[tensor] = literal, out, back
        self.until[tensor, BACK] = until = self._time()
        self._no_later(self.end[u, FIRST], out, literal)
        for d, way in ways.items():
            if way is None:
                self.model.add_implication(literal, ~self.on[u][d])
                continue
            here = self._both(self.on[u][d], literal)
            there, again = (int(time * self.grid.scale) for time in way)
            self._no_later(out + there, back, here)
            self._no_later(out + there, self.until[tensor, FIRST], here)
            self._no_later(back + again, until, here)
            self._no_later(back + again, kept, here)
            self._span(d, tensor, back, until, here)
            for at, time, link in ((out, there, 0), (back, again, 1)):
                span = self.model.new_optional_fixed_size_interval_var(at, time, here, "")
                self.links[d, link].append(span)
        self._span(self.problem.host or 0, tensor, out, kept, literal)

    def _read(self, tensor: int, u: int, v: int) -> None:
        """Let each execution of a vertex read one copy, which is held until then."""
        pairs = [
            (d, e, self.grid.delay(tensor, d, e))
            for d in self.on[u]
            for e in self.on[v]
            if d == e or self.on[u] is not self.on[v]
        ]
        self._no_later(self.end[u, FIRST], self.start[v, FIRST])
        for d, e, delay in pairs:
            if delay < 0:
                self.model.add_bool_or(~self.on[u][d], ~self.on[v][e])
            elif delay:
                arrives = self.end[u, FIRST] + delay
                self._no_later(arrives, self.start[v, FIRST], self.on[u][d], self.on[v][e])
        copies = [k for k in (FIRST, SECOND, BACK) if k == FIRST or (tensor, k) in self.until]
        for j in (FIRST, SECOND):
            if (v, j) in self.run:
                whole = len(copies) == 1
                mine = [self.run[v, j] if whole else self.model.new_bool_var("") for _ in copies]
                self.model.add(_sum(mine) == self.run[v, j])
                for copy, reads in zip(copies, mine, strict=True):
                    self.reads[v, j, tensor, copy] = reads
                    self._use(tensor, u, v, j, copy, pairs)

    def _use(
        self, tensor: int, u: int, v: int, j: int, copy: int, pairs: list[tuple[int, int, int]]
    ) -> None:
        """Let a copy be there when it is read, and until then; the first always is in time."""
        reads, start = self.reads[v, j, tensor, copy], self.start[v, j]
        free = start if self.instance.model.release == "start" else self.end[v, j]
        if copy == BACK:
            self.model.add_implication(reads, self.off[tensor][0])
        elif copy == SECOND:
            self.model.add_implication(reads, self.run[u, SECOND])
            self._no_later(self.end[u, SECOND], start, reads)
        until = self.until.get((tensor, copy))
        for d, e, delay in pairs if until is not None else []:
            on = reads, self.on[u][d], self.on[v][e]
            if d == e:
                self._no_later(free, until, *on)
                if copy == BACK:
                    again = (self.problem.ways(tensor, d) or (0, 0))[1]
                    back = self.off[tensor][2] + int(again * self.grid.scale)
                    self._no_later(back, start, *on)
            elif copy == BACK:
                self.model.add_bool_or(*(~literal for literal in on))
            elif delay >= 0:
                self._no_later(self.end[u, copy] + delay, until, *on)
                if copy == SECOND:
                    self._no_later(self.end[u, copy] + delay, start, *on)

    def _away(self, tensor: int, u: int, readers: list[int]) -> None:
        """Hold the copies of both executions on other devices, from when they are sent."""
        for e in range(self.instance.devices):
            for copy in (FIRST, SECOND):
                used = [
                    (self.reads[v, j, tensor, copy], v, j)
                    for v in readers
                    for j in (FIRST, SECOND)
                    if e in self.on[v] and (v, j, tensor, copy) in self.reads
                    and self.on[v] is not self.on[u]
                ]  # fmt: skip
                if not used or self.room[e] is None:
                    continue
                there, until = self.model.new_bool_var(""), self._time()
                at_home = [self.on[u][e]] if e in self.on[u] else []
                for reads, v, j in used:
                    self.model.add_bool_or(~reads, ~self.on[v][e], *at_home, there)
                    free = self.start if self.instance.model.release == "start" else self.end
                    self._no_later(free[v, j], until, reads, self.on[v][e])
                self._span(e, tensor, self.end[u, copy], until, there)

    # --- solutions -------------------------------------------------------------------------

    def hint(self, plan: Plan) -> None:
        """Begin with a plan."""
        for v, *_ in self.instance.units:
            for d, literal in self.on[v].items():
                self.model.add_hint(literal, plan.placement[v] == d)
        for run in plan.runs:
            if run == plan.of_vertex(run.vertex)[0]:
                self.model.add_hint(
                    self.start[run.vertex, FIRST], int(run.start * self.grid.scale)
                )

    def plan(self, solver: cp_model.CpSolver) -> Plan:
        """Read a solution."""
        placement = tuple(next(d for d, x in on.items() if solver.value(x)) for on in self.on)
        chosen: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
        for (v, j, tensor, copy), literal in self.reads.items():
            if solver.value(literal):
                chosen[v, j][tensor] = copy
        runs = (
            Run(v, self.grid.time(solver.value(self.start[v, j])), chosen[v, j])
            for (v, j), literal in self.run.items()
            if solver.value(literal)
        )
        offloads = (
            Offload(tensor, *(self.grid.time(solver.value(at)) for at in (out, back)))
            for tensor, (literal, out, back) in self.off.items()
            if solver.value(literal)
        )
        return Plan(placement, tuple(runs), tuple(offloads))
