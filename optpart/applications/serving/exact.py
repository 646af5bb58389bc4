"""The whole problem as a model of CP-SAT, links included, for a few machines."""

from __future__ import annotations

from fractions import Fraction

from optpart.applications.serving.plan import Interval
from optpart.applications.serving.problem import Serving
from optpart.base.clock import now

#: Most pairs of a machine and layers that it may hold, and most machines.
_MOST_INTERVALS, _MOST_MACHINES = 1500, 10
#: Largest sum of capacities; above, they are rounded up, so that the bound stays valid.
_LARGEST = 2**45


def is_small(serving: Serving) -> bool:
    """Return whether the model has a size that CP-SAT can solve."""
    n, intervals = len(serving.machines), sum(len(machine.rates) for machine in serving.machines)
    return n <= _MOST_MACHINES and intervals * serving.layers <= _MOST_INTERVALS


def solve(
    serving: Serving, value: Fraction, bound: Fraction, deadline: float
) -> tuple[list[Interval], Fraction] | None:
    """Return layers that pass at least a value, and a proven bound; ``None`` if time is up.

    Flows and capacities are whole numbers of the problem's unit, or of a coarser one in which
    capacities are rounded up.
    """
    from ortools.sat.python import cp_model

    from optpart.exact.cp_sat import solver_within

    n, layers = len(serving.machines), serving.layers
    sizes = [range(1, len(machine.rates) + 1) for machine in serving.machines]
    total = sum((max(machine.rates) for machine in serving.machines), Fraction(0))
    unit = min(serving.unit, int(_LARGEST / total) or 1)
    most = -int(-total * unit // 1)

    def whole(capacity: Fraction | None) -> int:
        return most if capacity is None else min(most, -int(-capacity * unit // 1))

    model = cp_model.CpModel()
    begin = [model.new_int_var(0, layers - 1, "") for _ in range(n)]
    end = [model.new_int_var(1, layers, "") for _ in range(n)]
    entering: list[list[cp_model.IntVar]] = [[] for _ in range(n + 2)]
    leaving: list[list[cp_model.IntVar]] = [[] for _ in range(n + 2)]
    for (u, v), capacity in serving.links.items():
        flow, used = model.new_int_var(0, whole(capacity), ""), model.new_bool_var("")
        model.add(flow == 0).only_enforce_if(~used)
        last = model.new_constant(0) if u == serving.source else end[u]
        first = model.new_constant(layers) if v == serving.sink else begin[v]
        model.add(last == first).only_enforce_if(used)
        leaving[u].append(flow)
        entering[v].append(flow)
    for i, machine in enumerate(serving.machines):
        held = [model.new_bool_var("") for _ in sizes[i]]
        model.add_exactly_one(held)
        model.add(end[i] == begin[i] + sum(k * x for k, x in zip(sizes[i], held, strict=True)))
        model.add(sum(entering[i]) == sum(leaving[i]))
        rates = [whole(rate) * x for rate, x in zip(machine.rates, held, strict=True)]
        model.add(sum(entering[i]) <= sum(rates))
    passed = model.new_int_var(int(value * unit), whole(bound), "")
    model.add(passed == sum(entering[serving.sink]))
    model.maximize(passed)
    solver = solver_within(max(0.0, deadline - now()), workers=2, model=model)
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    intervals: list[Interval] = [(solver.value(begin[i]), solver.value(end[i])) for i in range(n)]
    return intervals, Fraction(round(solver.best_objective_bound), unit)
