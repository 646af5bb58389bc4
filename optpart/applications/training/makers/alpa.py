"""Alpa's integer linear program: the least sum of computation and communication."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from optpart.applications.training.actions import ActionRules, actions
from optpart.applications.training.bounds.costs import Costs
from optpart.applications.training.compiled import Options
from optpart.applications.training.makers.base import DEFAULT, Clock, Made, evaluate_exactly
from optpart.applications.training.problem import Choices, StrategyProblem
from optpart.applications.training.strategy import Decision
from optpart.solution.result import Budget

Floats = NDArray[np.float64]

#: Status of HiGHS after a limit.
_LIMIT = 1


def alpa(
    problem: StrategyProblem,
    *,
    budget: Budget = DEFAULT,
    seed: int = 0,
    rules: ActionRules | None = None,
) -> Made:
    """Choose the actions with the least sum of computation and communication (Alpa's intra-op ILP).

    From Zheng et al., *Alpa: Automating Inter- and Intra-Operator Parallelism for Distributed Deep
    Learning* (OSDI 2022) §4.2: one action per group, each with a cost of its own; for groups that
    exchange tensors, a cost of resharding by the actions of both, linearised; the sum is minimised,
    so that nothing overlaps.

    What differs: actions are those of :func:`~optpart.applications.training.actions.actions`, while
    Alpa's partition any axis of a tensor over equal devices. On unlike devices an operation takes
    as long as its slowest replica; Alpa leaves computation out, since its actions divide it evenly.
    A tensor that several operations of a group read is charged once. That each device holds its
    parameters and the optimiser's tensors is a constraint, as in Alpa's program but not its paper.
    Alpa cuts the model into stages for a pipeline beforehand; without microbatches there is nothing
    that would gain by it.

    Parameters
    ----------
    budget : Budget
        A deterministic limit is one on the nodes of branch and bound, 1,000 per unit.
    rules : ActionRules, optional
        Which actions the groups have.
    """
    clock = Clock(budget)
    seconds = budget.seconds if clock.limit is None else None
    decisions, proven = least_sum(problem, seconds, clock.limit, rules)
    clock.moves = 1
    reason = "" if proven else "its sum is not proven the least"
    if decisions is None:
        found = "no actions fit memory and links"
        reason = found if proven else "the program found none in its limit"
    return evaluate_exactly(problem, decisions, clock, reason)


def least_sum(
    problem: StrategyProblem,
    seconds: float | None = None,
    nodes: int | None = None,
    rules: ActionRules | None = None,
) -> tuple[list[Decision] | None, bool]:
    """Return the decisions of :func:`alpa`, if any, and whether that answer is proven.

    Parameters
    ----------
    seconds, nodes : optional
        Limits; the seconds include those for collecting the costs.
    """
    clock = Clock()
    choices = [[action.decision for action in row] for row in actions(problem, rules)]
    program = LeastSum.of(problem, choices)
    if seconds is not None:
        seconds = max(0.0, seconds - clock.seconds)
    chosen, proven = program.solve(seconds, nodes)
    return None if chosen is None else [choices[g][a] for g, a in enumerate(chosen)], proven


@dataclass(frozen=True)
class LeastSum:
    """Costs in ticks, by group."""

    own: list[Floats]  # computation and synchronisation by action; ∞ where links are missing
    pairs: dict[tuple[int, int], Floats]  # of resharding between two groups, layouts × layouts
    layout_of: list[NDArray[np.int64]]  # by action
    resident: list[Floats]  # bytes that each action holds on each device, actions × k
    capacity: list[float | None]  # bytes by device

    @classmethod
    def of(cls, problem: StrategyProblem, choices: Sequence[Sequence[Decision]]) -> LeastSum:
        """Collect the costs of a problem, as if nothing but tick, copying and slots were chosen."""
        options = problem.options
        known = Options(tick=options.tick, auxiliary=options.auxiliary, slots=options.slots)
        costs = Costs(Choices(replace(problem, options=known), choices))
        home, layout_of = problem.group_of, costs.layout_of
        slowest = costs.duration.max(axis=2).astype(np.float64)
        own = [
            slowest[list(group)].sum(axis=0)[layout_of[g]] for g, group in enumerate(problem.groups)
        ]
        # The dearest of the edges that read one tensor in one group.
        read: dict[tuple[int, int, int], Floats] = {}
        summed: dict[tuple[int, int], Floats] = {}
        for edge in problem.graph.edges:
            if problem.graph.sums(edge):
                sync = costs.synchronisation(edge)
                time = np.where(sync.missing, np.inf, sync.delay.max(axis=(1, 2)))
                summed[edge.producer, edge.output] = time
                continue
            conversion = costs.conversion(edge)
            time = np.where(conversion.missing, np.inf, conversion.delay.max(axis=(2, 3)))
            key = edge.producer, edge.output, home[edge.consumer]
            read[key] = np.maximum(read.get(key, 0.0), np.maximum(time, 0.0))
        for (o, _), time in summed.items():
            own[home[o]] = own[home[o]] + time
        pairs: dict[tuple[int, int], Floats] = {}
        for (o, _, h), time in read.items():
            g = home[o]
            if g == h:
                own[g] = own[g] + time.diagonal()[layout_of[g]]
            else:
                pairs[g, h] = pairs.get((g, h), 0.0) + time
        resident = [
            costs.present[layout_of[g]] * float(sum(costs.resident[o] for o in group))
            for g, group in enumerate(problem.groups)
        ]
        limits = problem.cluster.cluster.memory if options.memory == "refcount" else ()
        capacity = [None if limit is None else float(limit) for limit in limits]
        return cls(own, pairs, layout_of, resident, capacity)

    def cost(self, chosen: Sequence[int]) -> float:
        """Return the sum of computation and communication of one action per group."""
        layout = [self.layout_of[g][a] for g, a in enumerate(chosen)]
        own = sum(float(self.own[g][a]) for g, a in enumerate(chosen))
        return own + sum(float(time[layout[g], layout[h]]) for (g, h), time in self.pairs.items())

    def fits(self, chosen: Sequence[int]) -> bool:
        """Return whether every device holds its parameters and the optimiser's tensors."""
        held = sum(self.resident[g][a] for g, a in enumerate(chosen))
        return all(limit is None or held[d] <= limit for d, limit in enumerate(self.capacity))

    def solve(
        self, seconds: float | None = None, nodes: int | None = None
    ) -> tuple[list[int] | None, bool]:
        """Return the actions of least cost that fit, and whether that is proven.

        Limits are seconds, and nodes of branch and bound. Columns are the actions of all groups,
        then the pairs of layouts, whose marginals are the layouts of the actions.
        """
        first = np.cumsum([0, *map(len, self.own)]).tolist()
        cost, whole = [*self.own], first[-1]
        rows: list[tuple[Any, Any, float, float]] = []  # columns, coefficients, and their limits
        for g, own in enumerate(self.own):
            rows.append((np.arange(first[g], first[g + 1]), np.ones(len(own)), 1.0, 1.0))
        at = whole
        for (g, h), time in self.pairs.items():
            if not time.any():
                continue
            one, two = np.unique(self.layout_of[g]), np.unique(self.layout_of[h])
            w = at + np.arange(len(one) * len(two)).reshape(len(one), len(two))
            at += w.size
            cost.append(time[np.ix_(one, two)].ravel())
            for group, layouts, cells in ((g, one, w), (h, two, w.T)):
                for layout, line in zip(layouts, cells, strict=True):
                    same = first[group] + np.flatnonzero(self.layout_of[group] == layout)
                    values = np.repeat([1.0, -1.0], [len(line), len(same)])
                    rows.append((np.concatenate((line, same)), values, 0.0, 0.0))
        for d, limit in enumerate(self.capacity):
            if limit is not None:
                scale = 1 / limit if limit else 1.0
                held = np.concatenate([each[:, d] for each in self.resident]) * scale
                rows.append((np.arange(whole), held, -np.inf, limit * scale))
        column, value, low, high = zip(*rows, strict=True)
        row = np.repeat(np.arange(len(rows)), [len(each) for each in column])
        shape = len(rows), at
        matrix: Any = csr_array((np.concatenate(value), (row, np.concatenate(column))), shape=shape)
        costs = np.concatenate(cost)
        possible = np.isfinite(costs)
        costs[~possible] = 0.0
        limits = {"mip_rel_gap": 0.0, "time_limit": seconds, "node_limit": nodes}
        options: Any = {name: value for name, value in limits.items() if value is not None}
        result = milp(
            costs / (costs.max() or 1.0),
            integrality=np.arange(at) < whole,
            bounds=Bounds(0.0, possible.astype(np.float64)),
            constraints=LinearConstraint(matrix, low, high),
            options=options,
        )
        proven = result.status != _LIMIT
        if result.x is None:
            return None, proven
        ends = pairwise(first)
        return [int(result.x[begin:end].argmax()) for begin, end in ends], proven
