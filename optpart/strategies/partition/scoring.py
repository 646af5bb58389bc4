"""Scoring: every operation goes to the device of best load-communication score ([B] §4.3)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optpart.base.errors import InputError
from optpart.kernels.compiled import Arrays, arrays, assign, fits, kernel, nothing_placed
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition, partition_of
from optpart.strategies.partition.unit_graph import (
    UnitGraph,
    first_ready,
    release,
    take_ready,
    unit_graph,
)

#: [B] §4.3: "twice the number of possible GPUs has proved a good size of the fringe".
FRINGE = 2


def scoring(
    instance: Instance,
    rng: np.random.Generator,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    fringe: int = FRINGE,
) -> Partition:
    """Place ready units by falling up-rank, each on the feasible device of highest score.

    [B] Alg. 4.3: ``score = α · LoadScore + β · CommScore``. The load score of a device is 1 minus
    its number of units relative to the largest on any device. The communication score is the number
    of the unit's inputs on the device, relative to the largest number of inputs of a unit in the
    fringe. Ties go to the device of lower number.

    Parameters
    ----------
    alpha, beta : float
        Weights of load and communication, ``≥ 0``. Only their ratio counts; [B] §5.4 finds the best
        near 1 for both of its networks.
    fringe : int
        Number of units taken from the ready queue at a time, as a multiple of the number of
        devices. Units that become ready meanwhile wait for the next fringe.

    Raises
    ------
    InputError
        If a weight is negative or not finite, or the fringe is empty.

    Notes
    -----
    The load score of [B] divides by ``min(1, largest load)``, "to prevent a division by 0", and is
    said to be 0 for the device of largest load: this requires ``max(1, …)``, which is used here. If
    no unit of a fringe has inputs, all communication scores are 0.
    """
    for name, weight in (("alpha", alpha), ("beta", beta)):
        if not 0 <= weight < math.inf:
            raise InputError(name, f"must be finite and ≥ 0, not {weight}", "give a number ≥ 0")
    if fringe < 1:
        raise InputError("fringe", f"{fringe} is too few", "give a whole number ≥ 1")
    return scored(instance, unit_graph(instance), alpha, beta, fringe)


def scored(
    instance: Instance, graph: UnitGraph, alpha: float, beta: float, fringe: int
) -> Partition:
    """Run :func:`scoring` on a given unit graph, with checked options."""
    state = _place(
        arrays(instance), graph, float(alpha), float(beta), int(fringe) * instance.devices
    )
    return partition_of(instance, state)


@kernel
def _place(a: Arrays, graph: UnitGraph, alpha: float, beta: float, most_ready: int) -> Any:
    k = a.speed.shape[0]
    state = nothing_placed(a)
    queue, size, waiting = first_ready(graph)
    fringe = np.empty(most_ready, np.int32)
    count = np.zeros(k, np.int64)
    largest = 1
    inputs = np.zeros(k, np.int64)
    while size:
        width = take_ready(graph, queue, size, fringe)
        size -= width
        most_inputs = 1
        for unit in fringe[:width]:
            most_inputs = max(most_inputs, graph.in_start[unit + 1] - graph.in_start[unit])
        for unit in fringe[:width]:
            inputs[:] = 0
            for e in range(graph.in_start[unit], graph.in_start[unit + 1]):
                inputs[state.device[graph.in_source[e]]] += 1
            best, chosen = -1.0, -1
            for d in range(k):
                score = alpha * (1 - count[d] / largest) + beta * inputs[d] / most_inputs
                if score > best and fits(a, unit, d, state):
                    best, chosen = score, d
            if chosen < 0:
                return state
            assign(a, unit, chosen, state)
            count[chosen] += 1
            largest = max(largest, count[chosen])
            size = release(graph, unit, queue, size, waiting)
    return state
