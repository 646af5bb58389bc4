"""The whole problem as a model of CP-SAT: placement, both executions, offloads, and memory."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from itertools import product
from typing import NamedTuple

import numpy as np
from ortools.sat.python import cp_model

from optpart.applications.recompute.plan import BACK, FIRST, SECOND, Offload, Plan, Problem, Run
from optpart.base.clock import now
from optpart.base.errors import InputError
from optpart.exact.cp_sat import minimise
from optpart.kernels.ticks import Grid

#: What is held, times how long, stays below in the solver's integers.
_LARGEST = 2**61

_sum = cp_model.LinearExpr.sum


def solve(
    problem: Problem,
    deadline: float,
    *,
    extended: bool,
    least: Fraction,
    within: Fraction | None = None,
) -> tuple[Plan | None, Fraction | None]:
    """Return the shortest plan that was found, and a time that no plan is below.

    Without a bound, CP-SAT claims that there is no plan. Times and sizes too fine for whole numbers
    raise :class:`InputError`, a model that the solver refuses :class:`FailureError`.

    Parameters
    ----------
    extended : bool
        Whether executions may be repeated and tensors offloaded.
    least : Fraction
        A time that no plan is below.
    within : Fraction, optional
        The makespan of a plan that is known; only plans of at most this are looked for.
    """
    built = _Model(problem, extended, within)
    built.model.add(built.length >= min(built.horizon, math.ceil(least * built.grid.scale)))
    solver, bound = minimise(built.model, deadline - now())
    if bound is None:
        return None, None
    plan = None if solver is None else built.plan(solver)
    return plan, max(least, built.grid.time(bound))


class _Copy(NamedTuple):
    """A copy at its producer: when it begins, is ready and is freed, and if it exists, by device.

    ``exists`` is for all devices, and ``begin`` of the one from the host is when it comes back.
    """

    begin: cp_model.IntVar
    ready: cp_model.IntVar
    until: cp_model.IntVar
    exists: cp_model.IntVar
    here: dict[int, cp_model.IntVar]


class _Model:
    """Placement and executions first; then who reads which copy, and who holds it how long."""

    def __init__(self, problem: Problem, extended: bool, within: Fraction | None) -> None:
        self.problem, self.instance = problem, problem.instance
        self.model, graph = cp_model.CpModel(), problem.instance.graph
        limits = self.instance.cluster.memory
        self.extended = extended and any(limit is not None for limit in limits)
        self.edges, self.grid = graph.edges(), Grid.of(self.instance)
        self._whole(within)
        self.held: dict[int, list[tuple[cp_model.IntervalVar, int]]] = defaultdict(list)
        self.busy: dict[object, list[cp_model.IntervalVar]] = defaultdict(list)
        self.made: dict[int, set[int]] = defaultdict(set)
        for tensor, u in enumerate(graph.tensor_vertex.tolist()):
            self.made[u].add(tensor)
        self.length, self.one = self._time(), self.model.new_constant(1)
        self._place()
        self._execute()
        self.away: dict[tuple[int, int, int], tuple[cp_model.IntVar, cp_model.IntVar]] = {}
        self.copies: dict[tuple[int, int], _Copy] = {}
        self.out: dict[int, cp_model.IntVar] = {}
        self.reads: dict[tuple[int, int, int, int], cp_model.IntVar] = {}
        for tensor, u in enumerate(graph.tensor_vertex.tolist()):
            self._make(tensor, u)
        for u, v, tensor in self.edges:
            self._read(tensor, u, v)
        used: dict[int, list[cp_model.IntVar]] = defaultdict(list)
        for (_, _, tensor, copy), reads in self.reads.items():
            used[self.copies[tensor, copy].exists.index].append(reads)
        for made in self.copies.values():  # what nobody reads is of no use
            if made.exists is not self.one:
                self.model.add_bool_or(*used[made.exists.index], ~made.exists)
        for spans in self.busy.values():
            self.model.add_no_overlap(spans)
        for d, held in self.held.items():
            copies, sizes = zip(*held, strict=True)
            self.model.add_cumulative(copies, sizes, self.free[d])
        self.model.minimize(self.length)

    def _whole(self, within: Fraction | None) -> None:
        """Find whole numbers: sizes, limits, and ticks in which plans that never idle end."""
        grid, graph = self.grid, self.instance.graph
        ways = [*product(range(self.instance.devices), repeat=2)]
        times = [2 * max(row) for row in grid.duration.tolist()]
        times += [4 * max(grid.delay(t, *way) for way in ways) for t in range(graph.tensors)]
        amounts = [*graph.tensor_size.fractions(), *graph.memory.fractions()]
        common = math.lcm(*(amount.denominator for amount in amounts))
        unit = Fraction(math.gcd(*(int(amount * common) for amount in amounts)) or 1, common)
        whole = [int(amount / unit) for amount in amounts]
        self.size, self.weights = whole[: graph.tensors], whole[graph.tensors :]
        self.horizon, most = sum(times), 4 * sum(whole) + 1
        if self.horizon * most >= _LARGEST:
            raise InputError("", "its times and sizes are too fine together", "round them")
        if within is not None:
            self.horizon = self.grid.floor(within)
        limits = self.instance.cluster.memory
        self.room = [most if each is None else min(most, each // unit) for each in limits]

    def _time(self) -> cp_model.IntVar:
        return self.model.new_int_var(0, self.horizon, "")

    def _after(
        self, time: cp_model.IntVar, lengths: dict[int, int], here: dict[int, cp_model.IntVar]
    ) -> cp_model.IntVar:
        """Return a time, and the length that a device takes, after another one."""
        after = self._time()
        terms = [length * here[d] for d, length in lengths.items()]
        self.model.add(after == time + _sum(terms))
        return after

    def _both(self, one: cp_model.IntVar, other: cp_model.IntVar) -> cp_model.IntVar:
        """Return a literal for the conjunction of two."""
        if other is self.one:
            return one
        both = self.model.new_bool_var("")
        self.model.add_bool_and(one, other).only_enforce_if(both)
        self.model.add_bool_or(~one, ~other, both)
        return both

    def _no_later(
        self, one: cp_model.LinearExprT, other: cp_model.IntVar, *literals: cp_model.IntVar
    ) -> None:
        self.model.add(one <= other).only_enforce_if(literals)

    def _use(
        self, what: object, start: cp_model.IntVar, time: int, literal: cp_model.IntVar
    ) -> None:
        """Occupy a device, or a link to the host or back."""
        span = self.model.new_optional_fixed_size_interval_var(start, time, literal, "")
        self.busy[what].append(span)

    def _hold(self, d: int, tensor: int, *span: cp_model.IntVar) -> None:
        """Hold a tensor on a device: since when, until when, and whether."""
        if self.instance.cluster.memory[d] is not None and self.size[tensor]:
            since, until, literal = span
            held = self.model.new_optional_interval_var(since, self._time(), until, literal, "")
            self.held[d].append((held, self.size[tensor]))

    def _place(self) -> None:
        on = [
            {d: self.model.new_bool_var("") for d in np.flatnonzero(row).tolist()}
            for row in self.instance.allowed
        ]
        for literals in on:
            self.model.add_exactly_one(literals.values())
        for a, b in self.instance.separated_units:
            for d in on[a].keys() & on[b].keys():
                self.model.add_bool_or(~on[a][d], ~on[b][d])
        self.on = [on[unit] for unit in self.instance.unit_of.tolist()]
        self.free = [self.model.new_int_var(0, room, "") for room in self.room]
        for d, free in enumerate(self.free):
            weights = [self.weights[v] * each[d] for v, each in enumerate(self.on) if d in each]
            self.model.add(free == self.room[d] - _sum(weights))

    def _execute(self) -> None:
        """Every vertex is executed once, or twice if something that takes memory is read of it."""
        self.run: dict[tuple[int, int], _Copy] = {}
        makes = {u for u, _, tensor in self.edges if self.size[tensor] and self.extended}
        work: dict[int, list[cp_model.LinearExprT]] = defaultdict(list)
        for v, on in enumerate(self.on):
            for j in (FIRST, SECOND) if v in makes else (FIRST,):
                run, start = self.model.new_bool_var("") if j else self.one, self._time()
                times = {d: int(self.grid.duration[v, d]) for d in on}
                here = {d: self._both(literal, run) for d, literal in on.items()}
                end = self._after(start, times, on)
                self.run[v, j] = _Copy(start, end, end, run, here)
                self._no_later(end, self.length, run)
                for d, time in times.items():
                    self._use(d, start, time, here[d])
                    work[d].append(time * here[d])
            if v in makes:
                self._no_later(self.run[v, FIRST].ready, start, run)
            near = {tensor for u, w, tensor in self.edges if w == v} | self.made[v]
            for d, literal in on.items():  # while it runs, inputs and outputs are there
                self._no_later(sum(self.size[t] for t in near), self.free[d], literal)
        for terms in work.values():
            self.model.add(_sum(terms) <= self.length)

    def _make(self, tensor: int, u: int) -> None:
        """Hold the copies at the producer, and let the first go to the host and come back."""
        for j in (FIRST, SECOND) if (u, SECOND) in self.run and self.size[tensor] else (FIRST,):
            self.copies[tensor, j] = self.run[u, j]._replace(until=self._time())
        ways = {d: self.problem.ways(tensor, d) for d in self.on[u]}
        if (tensor, SECOND) in self.copies and any(ways.values()):
            moved, first = self.model.new_bool_var(""), self.copies[tensor, FIRST]
            here = {d: self._both(on, moved) for d, on in self.on[u].items()}
            begins, ends = (self._time(), self._time()), []
            for i, begin in enumerate(begins):
                times = {d: int(way[i] * self.grid.scale) for d, way in ways.items() if way}
                ends.append(self._after(begin, times, here))
                for d, time in times.items():
                    self._use((d, i), begin, time, here[d])
            for d in [d for d, way in ways.items() if way is None]:
                self.model.add(here[d] == 0)
            for one, other in ((first.ready, begins[0]), (ends[0], begins[1])):
                self._no_later(one, other, moved)
            self._no_later(ends[0], first.until, moved)
            self._hold(self.problem.host or 0, tensor, begins[0], ends[1], moved)
            self.copies[tensor, BACK] = _Copy(begins[1], ends[1], self._time(), moved, here)
            self.out[tensor] = begins[0]
        for copy in (FIRST, SECOND, BACK):
            if (tensor, copy) in self.copies:
                begin, ready, until, exists, here = self.copies[tensor, copy]
                self._no_later(ready, until, exists)
                for d, literal in here.items():
                    self._hold(d, tensor, begin, until, literal)

    def _read(self, tensor: int, u: int, v: int) -> None:
        """Let each execution of a vertex read one copy, which is held until then."""
        devices = product(self.on[u], self.on[v])
        pairs = [(d, e) for d, e in devices if d == e or self.on[u] is not self.on[v]]
        for j in (FIRST, SECOND) if (v, SECOND) in self.run else (FIRST,):
            copies = [k for k in (FIRST, SECOND, BACK) if (tensor, k) in self.copies]
            reading = [self.model.new_bool_var("") for _ in copies]
            reader = self.run[v, j]
            self.model.add(_sum(reading) == reader.exists)
            for copy, reads in zip(copies, reading, strict=True):
                self.reads[v, j, tensor, copy] = reads
                _, ready, until, exists, _ = self.copies[tensor, copy]
                self.model.add_implication(reads, exists)
                # The first copy is there before any other, so nobody can begin before that.
                when = [reads] if copy or j else []
                self._no_later(ready, reader.begin, *when)
                for d, e in pairs:
                    on, delay = (self.on[u][d], self.on[v][e]), self.grid.delay(tensor, d, e)
                    if delay < 0 or (copy == BACK and d != e):
                        self.model.add_bool_or(~on[0], ~on[1], ~reads)
                        continue
                    if delay:
                        self._no_later(ready + delay, reader.begin, *when, *on)
                    if d == e:
                        self._no_later(reader.ready, until, reads, *on)
                    else:
                        self._no_later(ready + delay, until, reads, *on)
                        self._no_later(
                            reader.ready, self._sent(tensor, copy, e, reads, *on), *on, reads
                        )

    def _sent(
        self, tensor: int, copy: int, device: int, *literals: cp_model.IntVar
    ) -> cp_model.IntVar:
        """Hold a copy on a device that it is sent to, if all literals hold; return until when."""
        key = tensor, copy, device
        if key not in self.away:
            self.away[key] = there, until = self.model.new_bool_var(""), self._time()
            self._hold(device, tensor, self.copies[tensor, copy].ready, until, there)
        there, until = self.away[key]
        self.model.add_bool_and(there).only_enforce_if(literals)
        return until

    def plan(self, solver: cp_model.CpSolver) -> Plan:
        """Read a solution."""

        def time(at: cp_model.IntVar) -> Fraction:
            return self.grid.time(solver.value(at))

        chosen: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
        for (v, j, tensor, copy), literal in self.reads.items():
            if solver.value(literal):
                chosen[v, j][tensor] = copy
        return Plan(
            tuple(next(d for d, on in each.items() if solver.value(on)) for each in self.on),
            tuple(
                Run(v, time(run.begin), chosen[v, j])
                for (v, j), run in self.run.items() if solver.value(run.exists)
            ),
            tuple(
                Offload(tensor, time(out), time(self.copies[tensor, BACK].begin))
                for tensor, out in self.out.items()
                if solver.value(self.copies[tensor, BACK].exists)
            ),
        )  # fmt: skip
