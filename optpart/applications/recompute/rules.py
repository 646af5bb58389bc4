"""Published rules that choose what to recompute, under a given placement and order.

A rule says of which vertices the output is dropped after some of its readers; later ones read that
of a second execution, which begins when their other inputs are there, as checkpointing does it in
PyTorch. A second execution reads inputs that were dropped from second executions itself.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction

from ortools.algorithms.python import knapsack_solver

from optpart.applications.recompute.plan import (
    FIRST,
    SECOND,
    Plan,
    Problem,
    Run,
    held,
    makespan,
    profile,
    violations,
)

#: Budgets that the rule of the knapsack tries, in equal steps up to all memory.
_BUDGETS = 16

#: The place in the order of the last reader that reads the first output of a vertex.
_Dropped = Mapping[int, int]


class Order:
    """A placement, and the order of first executions; both from a plan."""

    def __init__(self, problem: Problem, plan: Plan) -> None:
        graph, topological = problem.instance.graph, problem.instance.graph.position
        self.problem, self.placement = problem, plan.placement
        self.order = sorted(
            range(len(plan.placement)),
            key=lambda v: (plan.of_vertex(v)[0].start, int(topological[v])),
        )
        self.place = {v: i for i, v in enumerate(self.order)}
        self.inputs: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.uses: dict[int, list[int]] = {v: [i] for v, i in self.place.items()}
        for u, v, tensor in graph.edges():
            self.inputs[v].append((u, tensor))
            self.uses[u].append(self.place[v])
        self.size: dict[int, Fraction] = defaultdict(Fraction)
        for tensor, u in enumerate(graph.tensor_vertex.tolist()):
            self.size[u] += graph.tensor_size[tensor]

    def cost(self, vertex: int) -> Fraction:
        """Return the time to compute a vertex again."""
        return self.problem.instance.duration(vertex, self.placement[vertex])

    def waiting(self) -> dict[int, int]:
        """Return what is held while it waits, in order, up to the reader before its longest wait.

        These are the activations of a training step.
        """
        found = {}
        for u in self.order:
            uses = sorted({*self.uses[u]})
            gaps = [after - before for before, after in zip(uses, uses[1:], strict=False)]
            if self.size[u] and max(gaps, default=0) > 1:
                found[u] = uses[gaps.index(max(gaps))]
        return found

    def plan(self, dropped: _Dropped) -> Plan:
        """Execute everything as early as possible, and drop outputs."""
        instance, free = self.problem.instance, [Fraction(0)] * self.problem.instance.devices
        runs: list[Run] = []
        ends: dict[tuple[int, int], Fraction] = {}

        def copy(u: int, at: int) -> int:
            return SECOND if u in dropped and at > dropped[u] else FIRST

        def arrival(u: int, tensor: int, j: int, v: int) -> Fraction:
            sender, receiver = self.placement[u], self.placement[v]
            return ends[u, j] + (instance.delay(tensor, sender, receiver) or 0)

        def execute(v: int, at: int, j: int, ready: Fraction) -> None:
            reads = {tensor: copy(u, at) for u, tensor in self.inputs[v]}
            made = [
                arrival(u, tensor, FIRST, v) for u, tensor in self.inputs[v] if not reads[tensor]
            ]
            ready = max([ready, *made])
            for u, tensor in self.inputs[v]:
                if reads[tensor] and (u, SECOND) not in ends:
                    execute(u, at, SECOND, ready)
            d = self.placement[v]
            again = [arrival(u, tensor, SECOND, v) for u, tensor in self.inputs[v] if reads[tensor]]
            start = max([ready, free[d], *again])
            runs.append(Run(v, start, reads))
            free[d] = ends[v, j] = start + self.cost(v)

        for at, v in enumerate(self.order):
            execute(v, at, FIRST, Fraction(0))
        return Plan(self.placement, tuple(runs))


def sqrt_checkpoints(order: Order) -> Iterator[_Dropped]:
    """Keep the last output of each of √n segments (Chen et al. 2016, §4.1)."""
    waiting = order.waiting()
    length = math.isqrt(max(0, len(waiting) - 1)) + 1
    last = len(waiting) - 1
    yield {u: at for i, (u, at) in enumerate(waiting.items()) if i % length < length - 1 and i < last}


def greedy(order: Order) -> Iterator[_Dropped]:
    """Where memory is full, drop what is large, idle for long, and cheap (Kirisame et al. 2021).

    The largest size × time since the last use / time to recompute goes first: the heuristic of
    dynamic tensor rematerialisation (DTR) with local costs.
    """
    dropped: dict[int, int] = {}
    while True:
        victims = _victims(order, order.plan(dropped), dropped)
        if not victims:
            yield dropped
            return
        u, place = max(victims, key=lambda key: victims[key])
        dropped[u] = place


def _victims(order: Order, plan: Plan, dropped: _Dropped) -> dict[tuple[int, int], float]:
    """Return who can be dropped when memory is first full, after whom, and how good that is."""
    problem, instance = order.problem, order.problem.instance
    over = [
        (at, d)
        for d, amounts in enumerate(profile(problem, plan))
        for at, amount in amounts.items()
        if (limit := instance.cluster.memory[d]) is not None and amount > limit
    ]
    at, d = min(over, default=(Fraction(0), -1))
    first = {run.vertex: run for run in reversed(plan.runs)}
    found = {}
    for u in {int(instance.graph.tensor_vertex[each.tensor]) for each in held(problem, plan)
              if (each.device, each.copy) == (d, FIRST) and each.since <= at < each.until}:
        starts = {i: first[order.order[i]].start for i in order.uses[u]}
        ends = {i: t + order.cost(order.order[i]) for i, t in starts.items() if t <= at}
        if u in dropped or order.placement[u] != d or len(ends) == len(starts):
            continue
        idle, cost = at - max(ends.values()), order.cost(u)
        if idle >= 0:
            found[u, max(ends)] = float(order.size[u] * idle / cost) if cost else math.inf
    return found


def knapsack(order: Order) -> Iterator[_Dropped]:
    """Keep what takes longest to recompute within a budget of memory, for several budgets.

    This is a 0–1 knapsack per device, as PyTorch solves it for its ``activation_memory_budget``.
    """
    waiting, cluster = order.waiting(), order.problem.instance.cluster
    sizes, costs = [order.size[u] for u in waiting], [order.cost(u) for u in waiting]
    unit, tick = (math.lcm(*(x.denominator for x in each)) for each in (sizes, costs))
    limited = [d for d, limit in enumerate(cluster.memory) if limit is not None]
    weights = [
        [int(size * unit) * (order.placement[u] == d) for u, size in zip(waiting, sizes, strict=True)]
        for d in limited
    ]
    for step in range(_BUDGETS, -1, -1):
        solver = knapsack_solver.KnapsackSolver(
            knapsack_solver.SolverType.KNAPSACK_MULTIDIMENSION_BRANCH_AND_BOUND_SOLVER, "budget"
        )
        budgets = [int((cluster.memory[d] or 0) * unit * step / _BUDGETS) for d in limited]
        solver.init([int(cost * tick) for cost in costs], weights, budgets)
        solver.solve()
        yield {
            u: at for i, (u, at) in enumerate(waiting.items())
            if not solver.best_solution_contains(i)
        }  # fmt: skip


RULES: dict[str, Callable[[Order], Iterator[_Dropped]]] = {
    "√n checkpoints": sqrt_checkpoints,
    "greedy (DTR)": greedy,
    "knapsack (PyTorch)": knapsack,
}


def apply(problem: Problem, plan: Plan) -> dict[str, Plan | None]:
    """Return the shortest plan of each rule that keeps all rules of plans, if there is one."""
    order = Order(problem, plan)
    found: dict[str, Plan | None] = {}
    for name, rule in RULES.items():
        plans = [order.plan(dropped) for dropped in rule(order)]
        kept = [each for each in plans if not [*violations(problem, each)]]
        found[name] = min(kept, key=lambda each: makespan(problem, each), default=None)
    return found
