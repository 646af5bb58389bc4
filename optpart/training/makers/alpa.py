"""Alpa's integer linear program: the least sum of computation and communication."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from optpart.training.actions import ActionRules, actions
from optpart.training.bounds.choices import Choices
from optpart.training.bounds.costs import Costs
from optpart.training.compiler import Options
from optpart.training.makers.base import DEFAULT, Budget, Made, judge
from optpart.training.problem import StrategyProblem
from optpart.training.strategy import Decision

Floats = NDArray[np.float64]

#: What HiGHS returns when a limit ended it.
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

    What differs: actions are those of :func:`~optpart.training.actions.actions`, while Alpa's
    partition any axis of a tensor over equal devices. On unlike devices an operation takes as long
    as its slowest replica; Alpa leaves computation out, since its actions divide it evenly. A
    tensor that several operations of a group read is charged once. That each device holds its
    parameters and the optimiser's tensors is a constraint, as in Alpa's program but not its paper.
    Alpa cuts the model into stages for a pipeline beforehand; without microbatches there is
    nothing that would gain by it.

    Parameters
    ----------
    budget : Budget
        ``moves`` limits the nodes of branch and bound.
    rules : ActionRules, optional
        Which actions the groups have.
    """
    clock = budget.clock()
    seconds = budget.seconds if budget.moves is None else None
    decisions, proven = least_sum(problem, seconds, budget.moves, rules)
    clock.moves = 1
    if decisions is None:
        reason = (
            "no actions fit memory and links" if proven else "the program found none in its limit"
        )
        return judge(problem, None, clock, reason)
    return judge(problem, decisions, clock, "" if proven else "its sum is not proven the least")


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
    clock = DEFAULT.clock()
    choices = tuple(tuple(a.decision for a in each) for each in actions(problem, rules))
    program = Program.of(problem, choices)
    if seconds is not None:
        seconds = max(0.0, seconds - clock.seconds)
    chosen, proven = program.solve(seconds, nodes)
    return None if chosen is None else [choices[g][a] for g, a in enumerate(chosen)], proven


@dataclass(frozen=True)
class Program:
    """Costs in ticks.

    Attributes
    ----------
    own : list of ndarray
        Computation and synchronisation by action, for each group; ∞ where links are missing.
    pairs : dict
        By pair of groups that exchange tensors, the cost of resharding, layouts × layouts.
    layout_of : list of ndarray
        The layout of each action, by group.
    resident : list of ndarray
        Bytes that each action holds on each device, actions × k, by group.
    capacity : list of (float or None)
        Bytes by device.
    """

    own: list[Floats]
    pairs: dict[tuple[int, int], Floats]
    layout_of: list[NDArray[np.int64]]
    resident: list[Floats]
    capacity: list[float | None]

    @classmethod
    def of(cls, problem: StrategyProblem, choices: Sequence[Sequence[Decision]]) -> Program:
        """Collect the costs of a problem, as if nothing but tick, copying and slots were chosen."""
        options = problem.options
        known = Options(tick=options.tick, auxiliary=options.auxiliary, slots=options.slots)
        costs = Costs(Choices.of(replace(problem, options=known), choices))
        home, layout_of = problem.group_of, costs.layout_of
        slowest = costs.duration.max(axis=2).astype(np.float64)
        by_layout = [slowest[list(group)].sum(axis=0) for group in problem.groups]
        own = [by_layout[g][layout_of[g]] for g in range(len(problem.groups))]
        # The dearest of the edges that read one tensor in one group.
        read: dict[tuple[int, int, int], Floats] = {}
        summed: dict[tuple[int, int], Floats] = {}
        for edge in problem.graph.edges:
            g, h = home[edge.producer], home[edge.consumer]
            if problem.graph.sums(edge):
                sync = costs.synchronisation(edge)
                time = np.where(sync.missing, np.inf, sync.delay.max(axis=(1, 2)))
                summed[edge.producer, edge.output] = time
                continue
            conversion = costs.conversion(edge)
            time = np.where(conversion.missing, np.inf, conversion.delay.max(axis=(2, 3)))
            key = edge.producer, edge.output, h
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

        Parameters
        ----------
        seconds : float, optional
        nodes : int, optional
            Of branch and bound.
        """
        rows = _Rows()
        first = [rows.columns(cost) for cost in self.own]
        for g, cost in enumerate(self.own):
            rows.equal([(first[g] + a, 1.0) for a in range(len(cost))], 1.0)
        for (g, h), time in self.pairs.items():
            if not time.any():
                continue
            one, two = np.unique(self.layout_of[g]), np.unique(self.layout_of[h])
            w = rows.columns(time[np.ix_(one, two)].ravel(), whole=False)
            wide = len(two)
            for i, layout in enumerate(one.tolist()):
                rows.equal(
                    [(w + i * wide + j, 1.0) for j in range(wide)]
                    + [(first[g] + a, -1.0) for a in _places(self.layout_of[g], layout)]
                )
            for j, layout in enumerate(two.tolist()):
                rows.equal(
                    [(w + i * wide + j, 1.0) for i in range(len(one))]
                    + [(first[h] + a, -1.0) for a in _places(self.layout_of[h], layout)]
                )
        for d, limit in enumerate(self.capacity):
            if limit is not None:
                scale = 1 / limit if limit else 1.0
                rows.most(
                    [
                        (first[g] + a, float(held) * scale)
                        for g, each in enumerate(self.resident)
                        for a, held in enumerate(each[:, d])
                    ],
                    limit * scale,
                )
        values, proven = rows.solved(seconds, nodes)
        if values is None:
            return None, proven
        chosen = [
            int(values[first[g] : first[g] + len(c)].argmax()) for g, c in enumerate(self.own)
        ]
        return chosen, proven


def _places(values: NDArray[np.int64], value: int) -> list[int]:
    found: list[int] = np.flatnonzero(values == value).tolist()
    return found


class _Rows:
    """A mixed-integer program that grows."""

    def __init__(self) -> None:
        self._cost: list[float] = []
        self._whole: list[int] = []
        self._most: list[float] = []
        self._entries: list[tuple[int, int, float]] = []
        self._low: list[float] = []
        self._high: list[float] = []

    def columns(self, costs: Floats, *, whole: bool = True) -> int:
        """Add variables from 0 to 1, or 0 if the cost is infinite; return the first's number."""
        first = len(self._cost)
        for cost in costs.tolist():
            self._cost.append(cost if np.isfinite(cost) else 0.0)
            self._most.append(1.0 if np.isfinite(cost) else 0.0)
            self._whole.append(int(whole))
        return first

    def equal(self, entries: Sequence[tuple[int, float]], value: float = 0.0) -> None:
        """Add a row that equals a value."""
        self._row(entries, value, value)

    def most(self, entries: Sequence[tuple[int, float]], value: float) -> None:
        """Add a row that is at most a value."""
        self._row(entries, -np.inf, value)

    def _row(self, entries: Sequence[tuple[int, float]], low: float, high: float) -> None:
        row = len(self._low)
        self._entries += [(row, int(column), value) for column, value in entries]
        self._low.append(low)
        self._high.append(high)

    def solved(self, seconds: float | None, nodes: int | None) -> tuple[Floats | None, bool]:
        """Return the values of the variables, if any, and whether the answer is proven."""
        row, column, value = zip(*self._entries, strict=True)
        shape = len(self._low), len(self._cost)
        matrix = coo_array((value, (row, column)), shape=shape).tocsr()
        unit = max(self._cost) or 1.0
        options: Any = {"mip_rel_gap": 0.0, "time_limit": seconds, "node_limit": nodes}
        options = {name: value for name, value in options.items() if value is not None}
        result = milp(
            np.array(self._cost) / unit,
            integrality=np.array(self._whole),
            bounds=Bounds(0.0, np.array(self._most)),
            constraints=LinearConstraint(matrix, self._low, self._high),
            options=options,
        )
        found = None if result.x is None else np.asarray(result.x, dtype=np.float64)
        return found, result.status != _LIMIT
