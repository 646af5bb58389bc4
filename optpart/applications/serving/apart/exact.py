"""The whole problem as a model of CP-SAT: both placements, memory, and the time to first token.

A *state* is a pair of devices, for prefilling and for decoding. Of like vertices that follow each
other, a run, only their walk through states counts: how many have each state, and how often one
state follows another. There is such a walk if what enters a state leaves it, no state has more
visits than vertices, and all that have any are reached from the first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby, pairwise, permutations, product
from typing import TypeAlias

from ortools.sat.python import cp_model

from optpart.applications.serving.apart.plan import Plan
from optpart.applications.serving.apart.request import Request
from optpart.base.clock import now
from optpart.base.errors import InputError
from optpart.exact.cp_sat import minimise
from optpart.problem.instance import Instance

#: Runs have steps between all pairs of pairs of devices.
_MOST_DEVICES = 12
#: Bounds are doubles, and exact below.
_LARGEST = 2**53

_State: TypeAlias = tuple[int, int]
_Literals: TypeAlias = dict[_State, cp_model.IntVar]
_sum = cp_model.LinearExpr.sum


def solve(request: Request, deadline: float, *, together: bool) -> tuple[Plan | None, int | None]:
    """Return the plan of least time per token that was found, and nanoseconds that none is below.

    If ``together``, each vertex has the same device in both phases. Without a bound, CP-SAT claims
    that there is no plan. Too many devices and times beyond exact bounds raise :class:`InputError`,
    a model that the solver refuses :class:`FailureError`.
    """
    if len(request.room) > _MOST_DEVICES:
        raise InputError("devices", f"{len(request.room)}", f"give at most {_MOST_DEVICES}")
    built = _Model(request, together)
    solver, least = minimise(built.model, deadline - now())
    if least is not None and least >= _LARGEST:
        raise InputError("", f"a token takes {least} ns or more", "give faster devices and links")
    return None if solver is None else built.plan(solver), least


class _Model:
    """All runs, the transfers between them, and the memory and the time that they share."""

    def __init__(self, request: Request, together: bool) -> None:
        self.request, self.model = request, cp_model.CpModel()
        self.costs: tuple[list[cp_model.LinearExprT], ...] = ([], [])
        n = len(request.weights)
        self.runs = [_Run(self, [*alike], together) for _, alike in groupby(range(n), self._kind)]
        for one, other in pairwise(self.runs):
            for phase, instance in enumerate(request.phases):
                self._cross(phase, instance, one.vertices[-1], one.leave, other.enter, phase)
        for phase in (0, 1):
            self._cross(phase, request.moves, n, self.runs[-1].leave, self.runs[0].enter, 1)
        self.model.add(_sum(self.costs[0]) <= request.limit)
        self.model.minimize(_sum(self.costs[1]))
        for d, room in enumerate(request.room):
            if room is not None:
                self._limit(d, room)

    def _kind(self, v: int) -> object:
        """Return what is the same for like vertices; both ends are like no other."""
        request = self.request
        costs = [
            (each.graph.tensor_delay.get(v), each.graph.tensor_size[v], each.duration(v, d))
            for each in request.phases
            for d in range(each.devices)
        ]
        return (
            v in (0, len(request.weights) - 1) and v,
            request.weights[v],
            request.cached[v],
            costs,
        )

    def _cross(
        self, phase: int, instance: Instance, tensor: int, one: _Literals, other: _Literals, to: int
    ) -> None:
        """Let a tensor cross from the device of a phase in one state to that in another."""
        ends = ((one, phase), (other, to))
        devices = [{state[which] for state in states} for states, which in ends]
        pairs = {}
        for d, e in product(*devices):
            time = instance.delay(tensor, d, e)
            if time is not None:
                pairs[d, e] = self.model.new_bool_var("")
                self.costs[phase].append(int(time) * pairs[d, e])
        for end, (states, which) in enumerate(ends):
            for d in devices[end]:
                there = [x for state, x in states.items() if state[which] == d]
                crossing = [x for pair, x in pairs.items() if pair[end] == d]
                self.model.add(_sum(crossing) == _sum(there))

    def _limit(self, d: int, room: int) -> None:
        """Keep to the memory of a device."""
        request, terms = self.request, list[cp_model.LinearExprT]()
        for run in self.runs:
            v = run.vertices[0]
            for state, x in run.count.items():
                caches = [c for c, at in zip(request.cached[v], state, strict=True) if at == d]
                terms += [(request.weights[v] + max(caches)) * x] if caches else []
        once = self.model.new_bool_var("")  # it has embedding and head
        for run in (self.runs[0], self.runs[-1]):
            self.model.add(once <= _sum([x for state, x in run.count.items() if d in state]))
        self.model.add(_sum([*terms, -request.tied * once]) <= room)

    def plan(self, solver: cp_model.CpSolver) -> Plan:
        """Read a solution."""
        return Plan(*zip(*(s for run in self.runs for s in run.walk(solver)), strict=True))


class _Run:
    """Like vertices: which state the first and the last have, how many have each, and steps."""

    def __init__(self, outer: _Model, vertices: list[int], together: bool) -> None:
        request, model = outer.request, outer.model
        self.model, self.vertices, v, n = model, vertices, vertices[0], len(vertices)
        moved = {
            (a, b): request.moves.delay(v, a, b) if request.cached[v][0] else 0
            for a, b in product(request.able(v, 0), request.able(v, 1))
            if a == b or not together
        }
        states = [state for state, time in moved.items() if time is not None]
        self.enter, self.leave = ({s: model.new_bool_var("") for s in states} for _ in "el")
        self.count = {s: model.new_int_var(0, n, "") for s in states}
        self.steps: dict[tuple[_State, _State], cp_model.IntVar] = {}
        model.add_exactly_one(self.enter.values())
        model.add_exactly_one(self.leave.values())
        model.add(_sum([*self.count.values()]) == n)
        for s, t in permutations(states, 2) if n > 1 else ():
            ways = zip(request.phases, s, t, strict=True)
            over = [each.delay(v, d, e) for each, d, e in ways]
            if None not in over:
                self.steps[s, t] = model.new_int_var(0, n - 1, "")
                for terms, time in zip(outer.costs, over, strict=True):
                    terms.append(int(time or 0) * self.steps[s, t])
        for (a, b), x in self.count.items():
            outer.costs[0].append(int(request.phases[0].duration(v, a) + (moved[a, b] or 0)) * x)
            outer.costs[1].append(int(request.phases[1].duration(v, b)) * x)
        self._reach(n)

    def _reach(self, n: int) -> None:
        """Let steps and counts be those of a walk: something flows to every state that is used."""
        most, model = len(self.enter), self.model
        flow = {arc: model.new_int_var(0, most, "") for arc in self.steps}
        for arc, step in self.steps.items():
            model.add(flow[arc] <= most * step)
        for s, count in self.count.items():
            out, into = ([arc for arc in flow if arc[end] == s] for end in (0, 1))
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
        path = [next(s for s, x in self.enter.items() if solver.value(x))]
        trail: list[_State] = []
        while path:
            if ahead[path[-1]]:
                path.append(ahead[path[-1]].pop())
            else:
                trail.insert(0, path.pop())
        for i, s in enumerate(trail):
            more = solver.value(self.count[s]) - trail.count(s) if trail.index(s) == i else 0
            yield from [s] * (1 + more)
