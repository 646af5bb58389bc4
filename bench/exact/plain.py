"""The baseline: the textbook CP-SAT model, without cuts, heads, hints or symmetry.

Start and end of every vertex between 0 and the sum of all times, one optional interval per allowed
device (not optional if there is only one), no overlap, arrivals, capacities.
"""

from __future__ import annotations

import time

import numpy as np
from ortools.sat.python import cp_model

from optpart.kernels.compiled import UNLIMITED, whole_memory
from optpart.kernels.ticks import Grid
from optpart.problem.instance import Instance
from optpart.solution.result import Budget, Result, conclude
from optpart.solution.schedule import Schedule, retime


def plain(instance: Instance, budget: Budget) -> Result:
    """Solve ``delay`` with memory ``none`` or ``estimate`` on an exact grid."""
    begin = time.perf_counter()
    grid = Grid.of(instance, None, 2**26)
    assert grid.exact, f"{instance.name}: no exact grid"
    model = cp_model.CpModel()
    graph, unit = instance.graph, instance.unit_of.tolist()
    horizon = int(grid.duration.max(axis=1, initial=0).sum())
    horizon += sum(
        max(grid.delay(t, d, e) for d in range(instance.devices) for e in range(instance.devices))
        for t in np.unique(graph.edge_tensor).tolist()
    )
    makespan = model.new_int_var(0, horizon, "")
    on = {
        (u, d): model.new_bool_var("")
        for u, row in enumerate(instance.allowed)
        for d in row.nonzero()[0].tolist()
    }
    places = [row.nonzero()[0].tolist() for row in instance.allowed]
    for u, devices in enumerate(places):
        model.add_exactly_one(on[u, d] for d in devices)
    start = [model.new_int_var(0, horizon, "") for _ in unit]
    end = [model.new_int_var(0, horizon, "") for _ in unit]
    running: list[list[cp_model.IntervalVar]] = [[] for _ in range(instance.devices)]
    for v, u in enumerate(unit):
        model.add(end[v] <= makespan)
        for d in places[u]:
            length = int(grid.duration[v, d])
            if len(places[u]) == 1:
                running[d].append(model.new_interval_var(start[v], length, end[v], ""))
            else:
                running[d].append(
                    model.new_optional_interval_var(start[v], length, end[v], on[u, d], "")
                )
    for intervals in running:
        model.add_no_overlap(intervals)
    for a, b, tensor in zip(
        graph.edge_source.tolist(), graph.edge_target.tolist(), graph.edge_tensor.tolist(),
        strict=True,
    ):  # fmt: skip
        model.add(start[b] >= end[a])
        for d in places[unit[a]]:
            for e in places[unit[b]]:
                delay = 0 if unit[a] == unit[b] else grid.delay(tensor, d, e)
                both = [on[unit[a], d], on[unit[b], e]]
                if delay < 0:
                    model.add_bool_or(~both[0], ~both[1])
                elif delay:
                    model.add(start[b] >= end[a] + delay).only_enforce_if(both)
    for a, b in instance.separated_units:
        for d in set(places[a]) & set(places[b]):
            model.add_bool_or(~on[a, d], ~on[b, d])
    need, capacity = whole_memory(instance, relax=True)
    for d, limit in enumerate(capacity.tolist()):
        if limit < UNLIMITED:
            model.add(sum(int(need[u]) * x for (u, e), x in on.items() if e == d) <= limit)
    model.minimize(makespan)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = budget.workers
    solver.parameters.max_time_in_seconds = budget.seconds
    status = solver.solve(model)
    schedule: Schedule | None = None
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        begun = np.array([solver.value(variable) for variable in start])
        placement = np.array(
            [next(d for d in places[u] if solver.value(on[u, d])) for u in unit], dtype=np.int32
        )
        rank = np.empty(len(unit), dtype=np.int64)
        rank[graph.topological_order] = np.arange(len(unit))
        ended = begun + grid.duration[np.arange(len(unit)), placement]
        schedule = retime(instance, placement, np.lexsort((rank, ended, begun)).tolist())
    return conclude(
        instance,
        "plain",
        schedule,
        bound=grid.time(round(solver.best_objective_bound)),
        infeasible="proven by search" if status == cp_model.INFEASIBLE else "",
        seconds=time.perf_counter() - begin,
    )
