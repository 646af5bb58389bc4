"""Evaluation of plans for all searchers: value and schedule."""

from __future__ import annotations

from typing import Any

import numpy as np

from optpart.kernels.compiled import Arrays, arrays, kernel
from optpart.problem.instance import Instance
from optpart.search.annealer import Work, latest
from optpart.search.execute import EDGES, Execution, Rules, excess, execute, execution, rules
from optpart.search.incremental import notes
from optpart.search.plan import Layout, Links, Plan, empty_plan, links, load, rebuild
from optpart.search.traffic import Crossed, count_all, crossed
from optpart.solution.goal import Objective
from optpart.solution.schedule import Schedule, retime

#: Excess memory, primary objective, secondary objective: smaller is better.
Value = tuple[float, float, float]

NOTHING: Value = (np.inf, np.inf, np.inf)

#: Weight of the secondary objective relative to the primary one.
_SECOND = 1e-5

#: Weight of memory in excess of a capacity, relative to the makespan.
_EXCESS = 4.0


class Evaluator:
    """One plan, and everything needed to change and evaluate it.

    Values are in the unit of :class:`~optpart.kernels.compiled.Arrays`.
    """

    def __init__(self, instance: Instance, objective: Objective) -> None:
        self.instance = instance
        self.objective = objective
        self.arrays = arrays(instance)
        self.links = links(instance)
        self.rules = rules(instance)
        self.plan = empty_plan(instance)
        edges = len(self.arrays.in_source)
        self.notes = notes(instance.vertices, edges)
        self.execution = execution(instance, self.rules)
        sizes = instance.graph.tensor_size.floats
        self.crossed = crossed(sizes, instance.devices, edges, objective)
        self.work = Work(
            self.arrays, self.links, self.rules, self.plan, self.notes, self.execution, self.crossed
        )

    def enter(self, layout: Layout) -> None:
        """Set the plan to that of a layout."""
        load(self.plan, layout)
        self.refresh()

    def refresh(self) -> None:
        """Recompute everything, which also removes accumulated rounding errors."""
        rebuild(self.arrays, self.links, self.plan)
        if self.crossed.counts:
            _count(self.arrays, self.links, self.plan, self.crossed)

    def value(self) -> Value:
        """Return the value of the plan."""
        over, makespan = _carry_out(self.arrays, self.links, self.rules, self.plan, self.execution)
        traffic = float(self.crossed.total[0])
        if self.objective == "makespan":
            return over, makespan, 0.0
        first = (makespan, traffic) if self.objective == "lexicographic" else (traffic, makespan)
        return (over, *first)

    def weights(self, value: Value) -> tuple[float, float, float]:
        """Return weights of makespan, traffic and excess memory, relative to a value."""
        _, first, second = value
        if self.objective == "makespan":
            return 1.0, 0.0, _EXCESS * first
        other = _SECOND * max(first, 1e-9) / max(second, 1e-9)
        if self.objective == "lexicographic":
            return 1.0, other, _EXCESS * first
        return other, 1.0, _EXCESS * max(first, 1e-9)

    def cost(self, value: Value, weights: tuple[float, float, float]) -> float:
        """Return the cost of a value: its weighted sum of makespan, traffic and excess memory."""
        makespan, traffic, excess = weights
        over, first, second = value
        if self.objective == "traffic":
            first, second = second, first
        return makespan * first + traffic * second + excess * over

    def schedule(self, layout: Layout) -> Schedule:
        """Return the schedule of a layout in exact time."""
        order: list[int | tuple[int, int]] = layout.order.tolist()
        if self.rules.whole:
            plan = empty_plan(self.instance)
            load(plan, layout)
            rebuild(self.arrays, self.links, plan)
            _carry_out(self.arrays, self.links, self.rules, plan, self.execution)
            n, k = self.instance.vertices, self.instance.devices
            items = self.execution.items[: self.execution.run[1]].tolist()
            order = [item if item < n else divmod(item - n, k) for item in items]
        return retime(self.instance, layout.device, order)


@kernel
def _carry_out(a: Arrays, g: Links, r: Rules, p: Plan, x: Execution) -> Any:
    """Return the excess memory and the makespan of a plan."""
    if not r.whole:
        return 0.0, latest(p)
    makespan = execute(a, g, r, p, x, np.zeros(p.last.shape[0]))
    return (excess(a, g, r, p, x) if r.memory >= EDGES else 0.0), makespan


@kernel
def _count(a: Arrays, g: Links, p: Plan, c: Crossed) -> None:
    count_all(a, g, p, c)
