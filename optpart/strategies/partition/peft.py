"""Predict earliest finish time with an optimistic cost table (Arabnejad and Barbosa 2014)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from optpart.kernels.compiled import Arrays, arrays, kernel, run_time
from optpart.kernels.struct import Floats
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition
from optpart.strategies.partition.insertion import by_priority, insert
from optpart.strategies.partition.ranks import mean_transfer


def peft(instance: Instance, rng: np.random.Generator) -> Partition:
    """Place vertices by earliest finish plus optimistic remaining cost, with insertion.

    The vertex of largest mean optimistic cost goes first among those whose predecessors are placed.
    It goes to the device where its finish time plus its optimistic cost is smallest.

    The paper has no constraints. Here, optimistic costs and their mean count only devices that may
    run a vertex, by itself and with its colocation group. See
    :func:`~optpart.strategies.partition.insertion.insert` for the placement of groups and for
    finish times.
    """
    table = optimistic_costs(instance)
    allowed = instance.allowed[instance.unit_of]
    mean = np.where(allowed, table, 0.0).sum(axis=1) / np.maximum(allowed.sum(axis=1), 1)
    return insert(instance, by_priority(instance, mean), ahead=table)


def optimistic_costs(instance: Instance) -> NDArray[np.float64]:
    """Return the optimistic cost table, n × k, in units of ``Arrays``.

    Equation 8 of the paper: the least time that must follow a vertex if it runs on a device. That
    is the maximum over its successors of the minimum over their devices of mean transfer time (if
    the device is another one), run time and optimistic cost there.
    """
    table: NDArray[np.float64] = _optimistic_costs(arrays(instance), mean_transfer(instance))
    return table


@kernel
def _optimistic_costs(a: Arrays, transfer: Floats) -> Any:
    n, k = a.order.shape[0], a.speed.shape[0]
    table = np.zeros((n, k))
    cost = np.empty(k)
    for i in range(n - 1, -1, -1):
        v = a.order[i]
        least = np.inf
        for d in range(k):
            cost[d] = table[v, d] + run_time(a, v, d) if a.allowed[a.unit[v], d] else np.inf
            least = min(least, cost[d])
        if least == np.inf:
            continue
        for e in range(a.in_start[v], a.in_start[v + 1]):
            u, elsewhere = a.in_source[e], least + transfer[a.in_tensor[e]]
            for d in range(k):
                table[u, d] = max(table[u, d], min(cost[d], elsewhere))
    return table
