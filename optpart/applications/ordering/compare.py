"""Compare orders of one assigned graph against the attainable optimum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from optpart.applications.ordering.cut_vertex import middle_cut_vertex, split
from optpart.applications.ordering.efficiency import Attainable, assigned, attainable
from optpart.base import clock
from optpart.base.choices import choice
from optpart.base.errors import InputError
from optpart.base.rounding import double
from optpart.kernels.all import expect
from optpart.lower_bounds.best import best_bound
from optpart.methods.cpsat import cpsat
from optpart.methods.fitting import require_memory
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

#: The order that takes least, which is always computed.
_FIRST = "as-received"

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
    omitted : tuple of str
        Orders for which there was no time.
    """

    best: Attainable
    results: dict[str, Result]
    omitted: tuple[str, ...] = ()

    def rows(self) -> list[dict[str, Any]]:
        """Return makespan, ``E``, and the range of ``E / E*`` of each order; ``None`` without.

        Makespans are exact; ``E`` is rounded down, and ranges outwards.
        """
        table: list[dict[str, Any]] = []
        for name, result in self.results.items():
            makespan, efficiency, share = result.makespan, None, None
            if makespan is not None:
                efficiency = double(self.best.bounds.efficiency(makespan), up=False)
                least, most = self.best.share(makespan)
                share = [double(least, up=False), double(most, up=True)]
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


def _in_time(
    instance: Instance, names: Sequence[str], budget: Budget, seed: int
) -> dict[str, Result]:
    """Return the results of the orders for which there is time, the first of them in any case.

    A limit of 0 is that of a strategy (:data:`optpart.base.clock.GRACE`). An order on a large graph
    takes about as long as another, so none begins that would be late.
    """
    found: dict[str, Result] = {}
    timed = budget.deterministic is None
    deadline, longest = clock.now() + budget.seconds, 0.0
    for name in sorted(names, key=lambda name: name != _FIRST):
        begin = clock.now()
        left = deadline - begin
        if found and timed and longest > left + clock.GRACE:
            continue
        try:
            with clock.limited(left if found and timed else math.inf):
                found[name] = order(instance, name, seed)
        except clock.OutOfTimeError:
            continue
        longest = max(longest, clock.now() - begin)
    return {name: found[name] for name in names if name in found}


def best_order(
    known: Sequence[Result], budget: Budget, *, seed: int = 0, watch: Watch | None = None
) -> Result:
    """Solve for the optimal order, starting from the best of some schedules of one instance.

    A graph is first split at a cut vertex, if it has any, for half of the time. If the solver does
    not prove the order optimal, the combinatorial bounds are used as well.
    """
    begin = clock.now()
    best = min(known, key=lambda result: (result.makespan is None, result.makespan or 0))
    instance = best.instance
    bounds: list[Fraction] = []
    v = middle_cut_vertex(instance)
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
            return replace(best, seconds=clock.now() - begin)
    left = replace(budget, seconds=max(0.0, budget.seconds - (clock.now() - begin)))
    if left.seconds == 0 and budget.deterministic is None and best.schedule is not None:
        late = Termination.TIME_LIMIT
        found = replace(best, method="cpsat", termination=late, reason=str(late), seed=seed)
    else:
        found = cpsat(instance, budget=left, seed=seed, start=best.schedule, watch=watch)
    if found.status is not Status.OPTIMAL:
        seconds = max(0.0, budget.seconds - (clock.now() - begin))
        combinatorial = best_bound(instance, seconds, found.makespan).value
        bounds += [] if combinatorial is None else [combinatorial]
    for bound in bounds:
        found = with_bound(found, bound)
    return replace(found, seconds=clock.now() - begin)


def compare_orders(
    instance: Instance,
    budget: Budget,
    *,
    names: Sequence[str] = tuple(ORDERS),
    seed: int = 0,
    watch: Watch | None = None,
) -> Orders:
    """Order a graph in several ways, and solve for the optimal order.

    Parameters
    ----------
    budget : Budget
        Limits of the orders and of the solver, which starts from the best of them.
    """
    expect()
    require_memory(instance, "cpsat", Goal(), budget)
    begin = clock.now()
    results = _in_time(instance, names, budget, seed)
    left = replace(budget, seconds=max(0.0, budget.seconds - (clock.now() - begin)))
    solved = best_order(list(results.values()), left, seed=seed, watch=watch)
    omitted = tuple(name for name in names if name not in results)
    return Orders(attainable(solved), {**results, "cpsat": solved}, omitted)
