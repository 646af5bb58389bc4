"""Compare orders of one assigned graph against the attainable optimum."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from optpart.bounds.best import best_bound
from optpart.choices import choice
from optpart.errors import InputError
from optpart.methods.cpsat import cpsat
from optpart.methods.fitting import require_memory
from optpart.methods.solve import prepare
from optpart.ordering.efficiency import Attainable, assigned, attainable
from optpart.ordering.waist import split, waist
from optpart.problem.instance import Instance
from optpart.solution.goal import Goal
from optpart.solution.result import Budget, Result, Status, Watch, conclude, with_bound
from optpart.solution.termination import Termination
from optpart.strategies.base import Partition
from optpart.strategies.scheduling.as_received import as_received
from optpart.strategies.scheduling.pct import pct
from optpart.strategies.scheduling.random_order import random_order
from optpart.strategies.scheduling.tao import tao
from optpart.strategies.scheduling.tio import tio
from optpart.strategies.simulator import Scheduler, simulate

#: Orders of an assigned graph, by name.
ORDERS: dict[str, Scheduler] = {
    "tao": tao,
    "tio": tio,
    "as-received": as_received,
    "random-order": random_order,
    "pct": pct,
}


@dataclass(frozen=True)
class Orders:
    """The results of several orders, and of the solver.

    Attributes
    ----------
    best : Attainable
        The best makespan of the solver and the orders, and the solver's bounds.
    results : dict of str to Result
        Verified results by the name of the order; that of the solver is ``cpsat``.
    """

    best: Attainable
    results: dict[str, Result]

    def rows(self) -> list[dict[str, Any]]:
        """Return makespan, ``E``, and the range of ``E / E*`` of each order; ``None`` without."""
        table: list[dict[str, Any]] = []
        for name, result in self.results.items():
            makespan, efficiency, share = result.makespan, None, None
            if makespan is not None:
                efficiency = self.best.bounds.efficiency(makespan)
                share = [*self.best.share(makespan)]
            table.append(
                {
                    "order": name,
                    "makespan": None if makespan is None else str(makespan),
                    "efficiency": efficiency,
                    "share_of_attainable": share,
                    "reason": result.reason,
                }
            )
        return table


def order(instance: Instance, name: str, seed: int = 0) -> Result:
    """Return the schedule of one of :data:`ORDERS` of an assigned graph."""
    if name not in ORDERS:
        raise InputError("order", f"no order {name!r}", choice(name, ORDERS))
    schedule = simulate(instance, Partition(assigned(instance)), ORDERS[name], seed)
    return conclude(instance, name, schedule, seed=seed)


def best_order(
    known: Sequence[Result], budget: Budget, *, seed: int = 0, watch: Watch | None = None
) -> Result:
    """Solve for the optimal order, starting from the best of some schedules of one instance.

    A graph with a waist is first split there (:mod:`optpart.ordering.waist`), for half of the time.
    If the solver does not prove the order optimal, the combinatorial bounds are used as well.
    """
    begin = time.perf_counter()
    best = min(known, key=lambda result: (result.makespan is None, result.makespan or 0))
    instance = best.instance
    bounds: list[Fraction] = []
    v = waist(instance)
    if v is not None:
        quarter = replace(budget, seconds=budget.seconds / 4)
        parts = split(instance, v, lambda part: cpsat(part, budget=quarter, seed=seed))
        bounds.append(parts.bound)
        joined = conclude(instance, "cpsat", parts.schedule, bound=parts.bound, seed=seed)
        if joined.makespan is not None and joined.makespan <= (best.makespan or joined.makespan):
            best = joined
        elif best.makespan is not None:
            best = with_bound(best, parts.bound)
        if best.status is Status.OPTIMAL:
            return replace(best, seconds=time.perf_counter() - begin)
    left = replace(budget, seconds=max(0.0, budget.seconds - (time.perf_counter() - begin)))
    if left.seconds == 0 and budget.deterministic is None and best.schedule is not None:
        late = Termination.TIME_LIMIT
        found = conclude(
            instance, "cpsat", best.schedule, termination=late, reason=str(late), seed=seed
        )
    else:
        found = cpsat(instance, budget=left, seed=seed, start=best.schedule, watch=watch)
    if found.status is not Status.OPTIMAL:
        seconds = max(0.0, budget.seconds - (time.perf_counter() - begin))
        combinatorial = best_bound(instance, seconds, found.makespan).value
        bounds += [] if combinatorial is None else [combinatorial]
    for bound in bounds:
        found = with_bound(found, bound)
    return replace(found, seconds=time.perf_counter() - begin)


def compare_orders(
    instance: Instance,
    budget: Budget,
    *,
    names: Iterable[str] = tuple(ORDERS),
    seed: int = 0,
    watch: Watch | None = None,
) -> Orders:
    """Order a graph in several ways, and solve for the optimal order.

    Parameters
    ----------
    budget : Budget
        Limits of the orders and of the solver, which starts from the best of them.
    """
    prepare([instance])
    require_memory(instance, "cpsat", Goal(), budget)
    begin = time.perf_counter()
    results = {name: order(instance, name, seed) for name in names}
    left = replace(budget, seconds=max(0.0, budget.seconds - (time.perf_counter() - begin)))
    solved = best_order(list(results.values()), left, seed=seed, watch=watch)
    return Orders(attainable(solved), {**results, "cpsat": solved})
