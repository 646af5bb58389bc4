"""Linear deterministic greedy streaming ([B] §6.3.1; Stanton and Kliot 2012)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from optpart.base.errors import InputError
from optpart.kernels.compiled import (
    Arrays,
    State,
    arrays,
    assign,
    fits,
    inner,
    kernel,
    nothing_placed,
)
from optpart.kernels.struct import Floats, Ints
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition, partition_of
from optpart.strategies.partition.ranks import speed_share, work
from optpart.strategies.partition.unit_graph import by_first_vertex

#: The capacity of a device.
Capacity = Literal["speed", "equal"]


def linear_greedy(
    instance: Instance, rng: np.random.Generator, *, capacity: Capacity = "speed"
) -> Partition:
    """Place units in turn where most of their neighbours are, weighted by the remaining capacity.

    The score of a device is the number of the unit's neighbours placed there, in either direction,
    times ``1 − load / capacity``, or 0 if the device is full. Ties go to the device of least load
    relative to its capacity, then to the first. The stream has the units in topological order of
    their first vertex.

    Parameters
    ----------
    capacity : {"speed", "equal"}
        ``speed``: load is counted in operations, and the capacity of a device is its share of all
        operations in proportion to its speed. ``equal``, as in the paper: every device has the same
        capacity, in vertices.

    Raises
    ------
    InputError
        If ``capacity`` is anything else.
    """
    if capacity == "speed":
        weight, share = work(instance), speed_share(instance)
    elif capacity == "equal":
        weight = np.ones(instance.vertices)
        share = np.full(instance.devices, 1 / instance.devices)
    else:
        raise InputError("capacity", f"unknown {capacity!r}", "choose one of speed, equal")
    state = nothing_placed(arrays(instance))
    return partition_of(instance, stream(instance, by_first_vertex(instance), weight, share, state))


def stream(
    instance: Instance,
    units: NDArray[np.int32],
    weight: NDArray[np.float64],
    share: NDArray[np.float64],
    state: State,
) -> State:
    """Place units in turn by the score of :func:`linear_greedy`, after those already placed.

    Parameters
    ----------
    units : ndarray of int32
        Not placed yet.
    weight : ndarray of float64, length n
        Amount that each vertex adds to the load of its device.
    share : ndarray of float64, length k
        Share of each device in the total capacity, which is the total weight.
    state : State
        Changed in place and returned. If a unit fits nowhere, it and those after it are not placed.
    """
    # For empty input, numpy would count in integers.
    of_unit = np.bincount(instance.unit_of, weight, len(instance.units)).astype(np.float64)
    placed = state.device >= 0
    load = np.bincount(state.device[placed], of_unit[placed], len(share)).astype(np.float64)
    _stream(arrays(instance), units, of_unit, share * weight.sum(), load, state)
    return state


@kernel
def _stream(
    a: Arrays, units: Ints, weight: Floats, capacity: Floats, load: Floats, state: State
) -> None:
    k = capacity.shape[0]
    neighbours = np.empty(k)
    for unit in units:
        _count_neighbours(a, unit, state.device, neighbours)
        best, least, chosen = -1.0, np.inf, -1
        for d in range(k):
            filled = load[d] / capacity[d] if capacity[d] > 0.0 else 1.0
            score = neighbours[d] * max(0.0, 1.0 - filled)
            if (score > best or (score == best and filled < least)) and fits(a, unit, d, state):
                best, least, chosen = score, filled, d
        if chosen < 0:
            return
        assign(a, unit, chosen, state)
        load[chosen] += weight[unit]


@inner
def _count_neighbours(a: Arrays, unit: int, device: Any, neighbours: Any) -> None:
    """Count, per device, the vertices there that share an edge with a member, once per member."""
    neighbours[:] = 0.0
    for i in range(a.unit_start[unit], a.unit_start[unit + 1]):
        v = a.unit_vertex[i]
        for e in range(a.in_start[v], a.in_start[v + 1]):
            u = a.in_source[e]
            if device[a.unit[u]] >= 0 and (e == a.in_start[v] or u != a.in_source[e - 1]):
                neighbours[device[a.unit[u]]] += 1.0
        for e in range(a.out_start[v], a.out_start[v + 1]):
            w = a.out_target[e]
            if device[a.unit[w]] >= 0 and (e == a.out_start[v] or w != a.out_target[e - 1]):
                neighbours[device[a.unit[w]]] += 1.0
