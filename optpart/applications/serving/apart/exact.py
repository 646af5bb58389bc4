"""The whole problem as a model of CP-SAT: both placements, memory, and the time to first token.

A *state* is a pair of devices, for prefilling and for decoding. Of like vertices that follow each
other, a run, only their walk through states counts: how many have each state, and how often one
state follows another. There is such a walk if what enters a state leaves it, no state has more
visits than vertices, and all that have any are reached from the first.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import groupby, product
from typing import TypeAlias

from ortools.sat.python import cp_model

from optpart.applications.serving.apart.plan import Plan
from optpart.applications.serving.apart.request import Request
from optpart.base.clock import now
from optpart.base.errors import FailureError, InputError
from optpart.exact.cp_sat import solver_within
from optpart.problem.instance import Instance

#: Runs have steps between all pairs of pairs of devices.
_MOST_DEVICES = 12
#: Bounds are doubles, and exact below.
_LARGEST = 2**53

_State: TypeAlias = tuple[int, int]
_Literals: TypeAlias = Mapping[_State, cp_model.IntVar]
_sum = cp_model.LinearExpr.sum


def solve(request: Request, deadline: float, *, together: bool) -> tuple[Plan | None, int | None]:
    """Return the plan of least time per token that was found, and nanoseconds that none is below.

    Without a bound, CP-SAT claims that there is no plan.

    Parameters
    ----------
    together : bool
        Whether each vertex has the same device in both phases.

    Raises
    ------
    InputError
        If there are too many devices, or times are too long for exact bounds.
    FailureError
        If the solver refuses the model.
    """
    if len(request.room) > _MOST_DEVICES:
        raise InputError("devices", f"{len(request.room)}", f"give at most {_MOST_DEVICES}")
    built = _Model(request, together)
    solver = solver_within(max(0.0, deadline - now()), workers=2)
    status = solver.solve(built.model)
    if status == cp_model.MODEL_INVALID:
        raise FailureError(f"CP-SAT refuses the model: {built.model.validate()}")
    if status == cp_model.INFEASIBLE:
        return None, None
    least = solver.best_objective_bound
    plan = None if status == cp_model.UNKNOWN else built.plan(solver)
    return plan, max(0, round(least)) if math.isfinite(least) else 0


class _Model:
    """All runs, the transfers between them, and the memory and the time that they share."""

    def __init__(self, request: Request, together: bool) -> None:
        self.request, self.model, self.most = request, cp_model.CpModel(), 0
        self.costs: tuple[list[cp_model.LinearExprT], ...] = ([], [])
        n, moves = len(request.weights), request.moves
        self.runs = [_Run(self, [*alike], together) for _, alike in groupby(range(n), self._kind)]
        for one, other in zip(self.runs, self.runs[1:], strict=False):
            for phase, instance in enumerate((request.prefill, request.decode)):
                self._cross(phase, instance, one.vertices[-1], one.leave, other.enter, phase)
        for phase in (0, 1):
            self._cross(phase, moves, n, self.runs[-1].leave, self.runs[0].enter, 1)
        if self.most >= _LARGEST:
            problem = f"a token may take {self.most:,} ns"
            raise InputError(request.decode.name, problem, "give faster devices and links")
        self.model.add(_sum(self.costs[0]) <= request.limit)
        self.model.minimize(_sum(self.costs[1]))
        for d, room in enumerate(request.room):
            if room is not None:
                self._limit(d, room)

    def _kind(self, v: int) -> object:
        """Return what is the same for like vertices; both ends are like no other."""
        request = self.request
        of_phase = []
        for each in (request.prefill, request.decode):
            delay = each.graph.tensor_delay.get(v), each.graph.tensor_size[v]
            of_phase += [delay, *(each.duration(v, d) for d in range(each.devices))]
        end = v in (0, len(request.weights) - 1) and v
        return end, request.weights[v], request.cached[v], of_phase

    def add(self, phase: int, time: int, times: cp_model.IntVar, most: int = 1) -> None:
        """Let a phase take some time, at most so many times."""
        self.costs[phase].append(time * times)
        self.most += time * most * phase

    def _cross(
        self, phase: int, instance: Instance, tensor: int, one: _Literals, other: _Literals, to: int
    ) -> None:
        """Let a tensor cross from the device of a phase in one state to that in another."""
        ends = ((one, phase, 0), (other, to, 1))
        devices = [{state[which] for state in states} for states, which, _ in ends]
        pairs = {}
        for d, e in product(*devices):
            time = instance.delay(tensor, d, e)
            if time is not None:
                pairs[d, e] = self.model.new_bool_var("")
                self.add(phase, int(time), pairs[d, e])
        for states, which, end in ends:
            for d in devices[end]:
                there = [x for state, x in states.items() if state[which] == d]
                crossing = [x for pair, x in pairs.items() if pair[end] == d]
                self.model.add(_sum(crossing) == _sum(there))

    def _limit(self, d: int, room: int) -> None:
        """Keep to the memory of a device."""
        request, terms = self.request, list[cp_model.LinearExprT]()
        for run in self.runs:
            v = run.vertices[0]
            for (a, b), x in run.count.items():
                caches = [c for c, at in zip(request.cached[v], (a, b), strict=True) if at == d]
                terms += [(request.weights[v] + max(caches)) * x] if caches else []
        once = self.model.new_bool_var("")  # it has embedding and head
        for run in (self.runs[0], self.runs[-1]):
            self.model.add(once <= _sum([x for state, x in run.count.items() if d in state]))
        self.model.add(_sum([*terms, -request.tied * once]) <= room)

    def plan(self, solver: cp_model.CpSolver) -> Plan:
        """Read the plan of a solution."""
        return Plan(*zip(*(s for run in self.runs for s in run.walk(solver)), strict=True))


class _Run:
    """Like vertices that follow each other: whether the first and the last have each state, and
    how many have it.
    """

    def __init__(self, outer: _Model, vertices: list[int], together: bool) -> None:
        request, self.model, self.vertices = outer.request, outer.model, vertices
        v, n = vertices[0], len(vertices)
        moved = {
            (a, b): request.moves.delay(v, a, b) if request.cached[v][0] else 0
            for a, b in product(request.able(v, 0), request.able(v, 1))
            if a == b or not together
        }
        states = [state for state, time in moved.items() if time is not None]
        self.enter = {s: self.model.new_bool_var("") for s in states}
        self.leave: _Literals = self.enter
        self.count: _Literals = self.enter
        self.steps: dict[tuple[_State, _State], cp_model.IntVar] = {}
        self.model.add_exactly_one(self.enter.values())
        both = (request.prefill, request.decode)
        if n > 1:
            self.leave = {s: self.model.new_bool_var("") for s in states}
            self.model.add_exactly_one(self.leave.values())
            self.count = {s: self.model.new_int_var(0, n, "") for s in states}
            self.model.add(_sum([*self.count.values()]) == n)
            for s, t in product(states, states):
                over = [each.delay(v, *pair) for each, pair in zip(both, zip(s, t), strict=True)]
                if s != t and None not in over:
                    self.steps[s, t] = step = self.model.new_int_var(0, n - 1, "")
                    for phase, time in enumerate(over):
                        outer.add(phase, int(time or 0), step, n)
            self._reach(n)
        for (a, b), x in self.count.items():
            outer.add(0, int(request.prefill.duration(v, a) + (moved[a, b] or 0)), x, n)
            outer.add(1, int(request.decode.duration(v, b)), x, n)

    def _reach(self, n: int) -> None:
        """Let steps and counts be those of a walk: something flows to every state that is used."""
        most, model = len(self.enter), self.model
        flow = {arc: model.new_int_var(0, most, "") for arc in self.steps}
        ends: list[dict[_State, list[tuple[_State, _State]]]] = [defaultdict(list) for _ in "so"]
        for arc, step in self.steps.items():
            model.add(flow[arc] <= most * step)
            for end in (0, 1):
                ends[end][arc[end]].append(arc)
        for s, count in self.count.items():
            out, into = (ends[end][s] for end in (0, 1))
            source, used = model.new_int_var(0, most, ""), model.new_bool_var("")
            visits = self.enter[s] + _sum([self.steps[arc] for arc in into])
            model.add(visits == self.leave[s] + _sum([self.steps[arc] for arc in out]))
            model.add(visits <= count)
            model.add(count <= n * used)
            model.add(used <= visits)
            model.add(source <= most * self.enter[s])
            arrives = source + _sum([flow[arc] for arc in into])
            model.add(arrives == used + _sum([flow[arc] for arc in out]))

    def walk(self, solver: cp_model.CpSolver) -> Iterator[_State]:
        """Yield the states of the vertices, in a solution: a trail over all steps (Hierholzer)."""
        ahead: dict[_State, list[_State]] = defaultdict(list)
        for (s, t), step in self.steps.items():
            ahead[s] += [t] * solver.value(step)
        path, trail = [next(s for s, x in self.enter.items() if solver.value(x))], []
        while path:
            if ahead[path[-1]]:
                path.append(ahead[path[-1]].pop())
            else:
                trail.insert(0, path.pop())
        for i, s in enumerate(trail):
            more = solver.value(self.count[s]) - trail.count(s) if trail.index(s) == i else 0
            yield from [s] * (1 + more)
