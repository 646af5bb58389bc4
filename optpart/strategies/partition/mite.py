"""MITE: memory, importance, traffic and execution time in one score ([L] §4.7)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optpart.kernels.compiled import (
    UNLIMITED,
    Arrays,
    State,
    arrays,
    assign,
    crossing_time,
    inner,
    kernel,
    nothing_placed,
)
from optpart.kernels.struct import Floats, Ints
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition, partition_of
from optpart.strategies.partition.common import (
    Variant,
    find_feasible,
    groups_first,
    is_paper,
    total_rank,
    unit_time,
)
from optpart.strategies.partition.ranks import operations_rank

#: Traffic of a device without any, if others have some, so that the other factors still count.
NO_TRAFFIC = 0.000001

#: Lower limit of run times when devices are compared by their inverse.
_SHORTEST = 1e-300


def mite(instance: Instance, rng: np.random.Generator, *, variant: Variant = "thesis") -> Partition:
    """Assign every unit to the feasible device of least memory × importance × traffic × time.

    Colocation groups come first, then single vertices, by the number of their first vertex.

    Parameters
    ----------
    variant : {"thesis", "paper"}
        ``thesis`` is [L] §4.7, eq. 4.6 to 4.16; ``paper`` is [M] §3.3.1, eq. 8 to 10. They differ
        in every factor: :func:`traffic`, normalised, or :func:`incoming_traffic`;
        :func:`execution_time` with or without the previous load of a device; :func:`memory` with or
        without a boost of empty devices; :func:`importance_speed_boost` by operations rank and
        relative to the fastest feasible device, or by total rank and to the fastest of all.

    Notes
    -----
    Ties, which factors of zero make frequent above all in ``paper``, go to the least traffic ×
    execution time, then to the least execution time with the unit included ([M] eq. 7), then to the
    smallest number. So the vertices of a critical path stay together on identical devices.

    The execution time of a device is the sum of run times, which is the sum of operations over
    speed unless run times are given; then the inverse of the unit's own run time counts as speed.
    Traffic is transfer time, latency included; [L] and [M] have no latency. Used memory is static
    memory; a device without limit counts as one that can hold all units.
    """
    return by_score(instance, groups_first(instance), is_paper(variant), all_factors=True)


def by_score(
    instance: Instance, turn: NDArray[np.int32], paper: bool, *, all_factors: bool
) -> Partition:
    """Assign units in turn to the device of least score.

    Parameters
    ----------
    turn : ndarray of int32
        Units; repeated ones are skipped.
    paper : bool
        Whether scores are those of [M].
    all_factors : bool
        If false, only traffic × execution time counts, as in [L] §4.8.
    """
    a = arrays(instance)
    room = np.where(a.capacity == UNLIMITED, a.need.sum(), a.capacity).astype(np.float64)
    state = _assign(a, turn, importance(instance, paper), room, paper, all_factors)
    return partition_of(instance, state)


def importance(instance: Instance, paper: bool) -> NDArray[np.float64]:
    """Return the importance of every unit, from 0 to 1 ([L] eq. 4.16).

    Mean operations rank, or total rank ([M] eq. 9), of its members, relative to the largest of all
    vertices; 0 if there are no operations, or more than fit in a double.
    """
    rank = total_rank(instance) if paper else np.add(*operations_rank(instance))
    total = np.bincount(instance.unit_of, rank, minlength=len(instance.units))
    largest = float(rank.max(initial=0.0))
    if not 0.0 < largest < math.inf:
        return np.zeros(len(total))
    # Sums are rounded: at most 1, lest a boost be negative.
    return np.minimum(total / (largest * np.bincount(instance.unit_of)), 1.0)


@inner
def traffic(a: Arrays, unit: int, state: State, held: Any, feasible: Any) -> Any:
    """Return traffic per device before normalisation ([L] eq. 4.7 to 4.10).

    Transfer time to and from placed neighbours. A tensor crosses once per device: an input costs
    nothing where it has a consumer already (eq. 4.8), and an output counts once for all its
    consumers on one device (eq. 4.9). In the sum over the members of a group, an input counts once
    for each member that consumes it (eq. 4.10).

    Parameters
    ----------
    held : ndarray of bool, t × k
        Whether a tensor has a placed consumer on a device; restored on return.
    feasible : ndarray of bool, length k
        Other devices get no traffic.
    """
    k = feasible.shape[0]
    total = np.zeros(k)
    for i in range(a.unit_start[unit], a.unit_start[unit + 1]):
        v = a.unit_vertex[i]
        for e in range(a.in_start[v], a.in_start[v + 1]):
            tensor, sender = a.in_tensor[e], state.device[a.unit[a.in_source[e]]]
            if sender >= 0:
                for d in range(k):
                    if feasible[d] and not held[tensor, d]:
                        total[d] += crossing_time(a, tensor, sender, d)
        for e in range(a.out_start[v], a.out_start[v + 1]):
            tensor, receiver = a.out_tensor[e], state.device[a.unit[a.out_target[e]]]
            if receiver >= 0 and held[tensor, receiver]:
                held[tensor, receiver] = False  # further consumers there add nothing
                for d in range(k):
                    if feasible[d]:
                        total[d] += crossing_time(a, tensor, d, receiver)
        for e in range(a.out_start[v], a.out_start[v + 1]):
            receiver = state.device[a.unit[a.out_target[e]]]
            if receiver >= 0:
                held[a.out_tensor[e], receiver] = True
    return total


@inner
def incoming_traffic(a: Arrays, unit: int, state: State, feasible: Any) -> Any:
    """Return the traffic score per device ([M] eq. 10): transfer times of placed inputs."""
    k = feasible.shape[0]
    total = np.zeros(k)
    for i in range(a.unit_start[unit], a.unit_start[unit + 1]):
        v = a.unit_vertex[i]
        for e in range(a.in_start[v], a.in_start[v + 1]):
            sender = state.device[a.unit[a.in_source[e]]]
            if sender >= 0:
                for d in range(k):
                    if feasible[d]:
                        total[d] += crossing_time(a, a.in_tensor[e], sender, d)
    return total


@inner
def relative_traffic(total: Any) -> Any:
    """Return the traffic factor per device ([L] eq. 4.11): relative to the most, 1 without any."""
    most = 0.0
    for value in total:
        most = max(most, value)
    factor = np.full(total.shape[0], 1.0)
    for d in range(total.shape[0]):
        if most > 0.0:
            factor[d] = total[d] / most if total[d] > 0.0 else NO_TRAFFIC
    return factor


@inner
def execution_time(load: Any, time: Any) -> Any:
    """Return the execution time factor per device ([L] eq. 4.12, 4.13).

    Parameters
    ----------
    load : ndarray of float64, length k
        Execution time so far of all devices, feasible or not; zeros for the execution time score
        of [M] §3.3.1.
    time : ndarray of float64, length k
        Run time of the unit.
    """
    most = 0.0
    for d in range(load.shape[0]):
        most = max(most, load[d] + time[d])
    factor = np.full(load.shape[0], 1.0)
    for d in range(load.shape[0]):
        if most > 0.0:
            factor[d] = (load[d] + time[d]) / most
    return factor


@inner
def memory(used: Any, room: Any, boosted: bool) -> Any:
    """Return the share of used memory per device ([M] §3.3.1).

    Parameters
    ----------
    used, room : ndarray, length k
        Used and total memory.
    boosted : bool
        Whether a share of 0 counts as a tenth of the least other one, or of 1 ([L] eq. 4.14).
    """
    factor = np.zeros(room.shape[0])
    least = 1.0
    for d in range(room.shape[0]):
        if used[d] > 0:
            factor[d] = used[d] / room[d]
            least = min(least, factor[d])
    for d in range(room.shape[0]):
        if boosted and factor[d] == 0.0:
            factor[d] = least / 10.0
    return factor


@inner
def importance_speed_boost(importance: float, speed: Any, among: Any) -> Any:
    """Return the importance speed boost per device ([L] eq. 4.15, [M] eq. 9).

    Parameters
    ----------
    importance : float
        Importance of the unit, from 0 to 1.
    speed : ndarray of float64, length k
    among : ndarray of bool, length k
        Speeds are relative to the fastest of these devices.
    """
    fastest = 0.0
    for d in range(speed.shape[0]):
        if among[d]:
            fastest = max(fastest, speed[d])
    factor = np.empty(speed.shape[0])
    for d in range(speed.shape[0]):
        factor[d] = 1.0 - importance * (speed[d] / fastest)
    return factor


@kernel
def _assign(
    a: Arrays, turn: Ints, importance: Floats, room: Floats, paper: bool, all_factors: bool
) -> Any:
    k = room.shape[0]
    state = nothing_placed(a)
    load, nothing, time, speed = np.zeros(k), np.zeros(k), np.zeros(k), np.zeros(k)
    feasible, everywhere = np.zeros(k, np.bool_), np.full(k, True)
    held = np.zeros((0 if paper else a.size.shape[0], k), np.bool_)
    for unit in turn:
        if state.device[unit] >= 0:
            continue
        find_feasible(a, unit, state, feasible)
        for d in range(k):
            time[d] = unit_time(a, unit, d)
            if a.durations.shape[0] == 0:
                speed[d] = a.speed[d]
            else:
                speed[d] = 1.0 / max(time[d], _SHORTEST) if a.allowed[unit, d] else 0.0
        if paper:
            moving = incoming_traffic(a, unit, state, feasible)
        else:
            moving = relative_traffic(traffic(a, unit, state, held, feasible))
        running = execution_time(nothing if paper else load, time)
        filled = memory(state.used, room, not paper)
        boost = importance_speed_boost(importance[unit], speed, everywhere if paper else feasible)
        least, least_both, least_time = np.inf, np.inf, np.inf
        chosen = -1
        for d in range(k):
            both = moving[d] * running[d]
            score = both * filled[d] * boost[d] if all_factors else both
            if feasible[d] and (
                chosen < 0
                or score < least
                or (score == least and both < least_both)
                or (score == least and both == least_both and load[d] + time[d] < least_time)
            ):
                least, least_both, least_time, chosen = score, both, load[d] + time[d], d
        if chosen < 0:
            return state
        load[chosen] += time[chosen]
        assign(a, unit, chosen, state)
        for i in range(a.unit_start[unit], a.unit_start[unit + 1]):
            v = a.unit_vertex[i]
            for e in range(a.in_start[v], a.in_start[v + 1]):
                if not paper:
                    held[a.in_tensor[e], chosen] = True
    return state
