"""Shared parts of the strategies of [L] and [M]: variants, ranks, and assignment units."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from optpart.base.errors import InputError
from optpart.kernels.compiled import (
    Arrays,
    State,
    assign,
    fits,
    inner,
    nothing_placed,
    run_time,
    short_kernel,
)
from optpart.kernels.struct import Ints, Longs
from optpart.problem.instance import Instance
from optpart.strategies.partition.ranks import operations_rank, work

#: The source of a strategy that both describe: [L] (``thesis``) or [M] (``paper``).
Variant = Literal["thesis", "paper"]

#: No device, in compiled code: a number of 64 bits, like the numbers of devices there.
NOWHERE: Any = np.int64(-1)


def is_paper(variant: Variant) -> bool:
    """Return whether [M], not [L], defines the strategy; raise :class:`InputError` if neither."""
    if variant not in ("thesis", "paper"):
        raise InputError("variant", f"unknown {variant!r}", "choose one of thesis, paper")
    return variant == "paper"


def total_rank(instance: Instance) -> NDArray[np.float64]:
    """Return the total rank of every vertex: upward plus downward rank ([M] §3.2, eq. 5, 6).

    Both equations add the vertex's own operations inside the maximum, so both count them; if a
    vertex has no successors or predecessors, and the maximum is empty, they are the rank.
    """
    source, sink = operations_rank(instance)
    return sink + (source + work(instance))


def groups_first(instance: Instance) -> NDArray[np.int32]:
    """Return units in the order of [L] §4.2 and §4.7: colocation groups, then single vertices."""
    size = np.bincount(instance.unit_of, minlength=len(instance.units))
    return np.argsort(size == 1, kind="stable").astype(np.int32)


@inner
def place_from(a: Arrays, unit: int, first: int, devices: Any, state: State) -> Any:
    """Place a unit on the first of ``devices``, from position ``first`` on, that can take it.

    The first follows the last. Return the position, or −1 if there is none.
    """
    for step in range(devices.shape[0]):
        position = (first + step) % devices.shape[0]
        if fits(a, unit, devices[position], state):
            assign(a, unit, devices[position], state)
            return position
    return NOWHERE


@short_kernel
def first_fit(a: Arrays, units: Ints, preferred: Longs, devices: Ints) -> Any:
    """Place units in turn, each on the device that it prefers or on the next that can take it.

    Parameters
    ----------
    preferred : ndarray of int64, one per unit
        Position in ``devices``, of which the first follows the last.

    Returns
    -------
    State
        If a unit fits nowhere, it and those after it are not placed.
    """
    state = nothing_placed(a)
    for unit in units:
        if place_from(a, unit, preferred[unit], devices, state) < 0:
            break
    return state


@inner
def find_feasible(a: Arrays, unit: int, state: State, feasible: Any) -> None:
    """Write into ``feasible`` whether a unit may go to each device.

    If only types and memory matter, this is tens of times as fast as calls of
    :func:`~optpart.kernels.compiled.fits`, each of which acquires the arrays that it reads.
    """
    allowed, need, capacity, used = a.allowed, a.need[unit], a.capacity, state.used
    more = a.may_block or a.apart_start[unit] < a.apart_start[unit + 1]
    for d in range(feasible.shape[0]):
        feasible[d] = allowed[unit, d] and used[d] + need <= capacity[d]
        if more and feasible[d]:
            feasible[d] = fits(a, unit, d, state)


@inner
def unit_time(a: Arrays, unit: int, d: int) -> Any:
    """Return the total run time of the members of a unit on ``d``."""
    total = 0.0
    for i in range(a.unit_start[unit], a.unit_start[unit + 1]):
        total += run_time(a, a.unit_vertex[i], d)
    return total


@inner
def take(a: Arrays, unit: int, d: int, state: State, load: Any) -> None:
    """Place a unit and add its run time to the load of its device."""
    load[d] += unit_time(a, unit, d)
    assign(a, unit, d, state)


@inner
def fit_together(a: Arrays, units: Any, d: int, state: State) -> Any:
    """Return whether all of these units may go to ``d``, given where the others are."""
    count = 0
    while count < units.shape[0] and fits(a, units[count], d, state):
        assign(a, units[count], d, state)
        count += 1
    for unit in units[:count]:
        state.device[unit], state.placed[unit] = -1, 0
        state.used[d] -= a.need[unit]
        state.placed[-1] -= 1
    return count == units.shape[0]
