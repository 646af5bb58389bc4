"""Published rules that choose what to recompute, under the placement and order of a plan.

A rule names vertices whose output is dropped before it waits longest for a reader. Later readers
read that of a second execution, which begins when their other inputs are there, as in PyTorch's
checkpointing, and itself reads second executions of inputs that were dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from fractions import Fraction
from itertools import pairwise

import numpy as np
from ortools.algorithms.python import knapsack_solver

from optpart.applications.recompute.plan import (
    FIRST,
    SECOND,
    Plan,
    Problem,
    Run,
    makespan,
    violations,
)
from optpart.strategies.base import NoPlacementError
from optpart.strategies.partition.contiguous_split import contiguous_split

#: Steps of the budget of the knapsack, from nothing to everything.
_STEPS = 16


class Order:
    """A placement, and the order of first executions.

    Attributes
    ----------
    waiting : dict from vertex to int
        Vertices whose outputs wait for a reader while others run, in order, such as those of a
        forward pass, with the place of the last reader before the longest wait.
    size, cost : dict from vertex to Fraction
        Of all outputs, and the time to compute them again.
    """

    def __init__(self, problem: Problem, plan: Plan) -> None:
        instance, self.placement = problem.instance, plan.placement
        graph, self.instance = instance.graph, instance
        first = {run.vertex: run.start for run in sorted(plan.runs, key=lambda run: -run.start)}
        position = graph.position.tolist()
        self.order = sorted(first, key=lambda v: (first[v], position[v]))
        place = {v: i for i, v in enumerate(self.order)}
        self.inputs = [[(u, t) for u, w, t in graph.edges() if w == v] for v in range(len(graph))]
        made = [*enumerate(graph.tensor_vertex.tolist())]
        self.cost = {v: instance.duration(v, d) for v, d in enumerate(self.placement)}
        self.size = {v: sum(graph.tensor_size[t] for t, u in made if u == v) for v in self.order}
        self.waiting: dict[int, int] = {}
        for v in self.order:
            uses = sorted({place[v], *(place[w] for u, w, _ in graph.edges() if u == v)})
            wait, last = max(((b - a, a) for a, b in pairwise(uses)), default=(0, 0))
            if wait > 1 and self.size[v]:
                self.waiting[v] = last

    def plan(self, dropped: Collection[int]) -> Plan:
        """Execute everything as early as possible, and drop outputs."""
        free, runs = [Fraction(0)] * self.instance.devices, list[Run]()
        ends: dict[tuple[int, int], Fraction] = {}

        def execute(v: int, at: int, j: int, ready: Fraction) -> None:
            d = self.placement[v]
            reads = {t: SECOND if u in dropped and at > self.waiting[u] else FIRST
                     for u, t in self.inputs[v]}  # fmt: skip
            for copy in (FIRST, SECOND):
                known = ready
                for u, t in [each for each in self.inputs[v] if reads[each[1]] == copy]:
                    if (u, copy) not in ends:
                        execute(u, at, copy, known)
                    delay = self.instance.delay(t, self.placement[u], d) or 0
                    ready = max(ready, ends[u, copy] + delay)
            start = max(ready, free[d])
            runs.append(Run(v, start, reads))
            free[d] = ends[v, j] = start + self.cost[v]

        for at, v in enumerate(self.order):
            execute(v, at, FIRST, Fraction(0))
        return Plan(self.placement, tuple(runs))


def sqrt_checkpoints(order: Order) -> Iterator[Collection[int]]:
    """Keep the last output of each of √n segments (Chen et al. 2016, §4.1)."""
    length = math.isqrt(max(0, len(order.waiting) - 1)) + 1
    yield [u for i, u in enumerate(order.waiting, 1) if i % length and i < len(order.waiting)]


def greedy(order: Order) -> Iterator[Collection[int]]:
    """Drop what is largest for its time first, and no more than needed (Kirisame et al. 2021).

    Dynamic tensor rematerialisation (DTR) scores by time since the last use as well.
    """
    score = {u: order.cost[u] / order.size[u] for u in order.waiting}
    for count in range(len(score) + 1):
        yield sorted(score, key=lambda u: score[u])[:count]


def knapsack(order: Order) -> Iterator[Collection[int]]:
    """Keep what takes longest to recompute within a budget, a share of what is held at most.

    PyTorch solves this 0–1 knapsack for its ``activation_memory_budget``; all budgets are tried.
    """
    sizes, costs = ([each[u] for u in order.waiting] for each in (order.size, order.cost))
    whole, values = ([int(x * math.lcm(*(y.denominator for y in each))) for x in each]
                     for each in (sizes, costs))  # fmt: skip
    kind = knapsack_solver.SolverType.KNAPSACK_MULTIDIMENSION_CP_SAT_SOLVER
    for step in range(_STEPS + 1):
        solver = knapsack_solver.KnapsackSolver(kind, "")
        solver.init(values, [whole], [sum(whole) * step // _STEPS])
        solver.solve()
        yield [u for i, u in enumerate(order.waiting) if not solver.best_solution_contains(i)]


RULES: dict[str, Callable[[Order], Iterator[Collection[int]]]] = {
    "√n checkpoints": sqrt_checkpoints,
    "greedy, as DTR": greedy,
    "knapsack, as PyTorch": knapsack,
}


def contiguous(problem: Problem) -> Plan | None:
    """Return the shortest plan of a rule on the contiguous split of least latency, if one fits."""
    try:
        placement = contiguous_split(problem.instance, np.random.default_rng(0)).placement
    except NoPlacementError:
        return None
    order = enumerate(problem.instance.graph.topological_order.tolist())
    serial = tuple(Run(v, Fraction(at), {}) for at, v in order)
    plans = [
        each for each in apply(problem, Plan(tuple(placement.tolist()), serial)).values() if each
    ]
    return min(plans, key=lambda each: makespan(problem, each), default=None)


def apply(problem: Problem, plan: Plan) -> dict[str, Plan | None]:
    """Return the shortest plan of each rule that keeps the rules of plans, if there is one."""
    order, found = Order(problem, plan), dict[str, Plan | None]()
    for name, rule in RULES.items():
        plans = [order.plan(dropped) for dropped in rule(order)]
        kept = [each for each in plans if not violations(problem, each)]
        found[name] = min(kept, key=lambda each: makespan(problem, each), default=None)
    return found
