"""Initial layouts for the search, from schedules or from scratch."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optpart.base.clock import is_time_up
from optpart.base.errors import FaultsOf, InputError
from optpart.interop.formats.json import keys
from optpart.interop.formats.result import read_document, schedule_from_dict
from optpart.kernels.compiled import Arrays, arrays, assign, fits, kernel, nothing_placed
from optpart.problem.graph import inverse
from optpart.problem.instance import Instance
from optpart.problem.rational import RationalArray, rational
from optpart.search.balance import balanced, unlimited
from optpart.search.plan import Ints, Layout
from optpart.solution.schedule import Schedule, Transfers
from optpart.strategies.partition.common import unit_time
from optpart.strategies.partition.insertion import by_priority

#: Maximal number of attempts to place the units, each in another order.
_TRIES = 100


def layout_of(instance: Instance, schedule: Schedule, *, eager: bool = True) -> Layout:
    """Return a layout that reproduces a schedule, or an equally good one if transfers queue."""
    start = schedule.start.floats
    end = np.array([float(schedule.end(instance, v)) for v in range(instance.vertices)])
    order = np.lexsort((instance.graph.position, end, start)).astype(np.int32)
    if not _topological(instance, order):
        order = by_priority(instance, -start)
    return Layout(
        schedule.placement.astype(np.int32), order, np.full(instance.graph.tensors, eager)
    )


def _topological(instance: Instance, order: Ints) -> bool:
    position = inverse(order)
    graph = instance.graph
    return bool((position[graph.edge_source] < position[graph.edge_target]).all())


def repaired(
    instance: Instance, schedule: Schedule | None, rng: np.random.Generator
) -> Layout | None:
    """Return a layout that obeys every rule on placements, as close to a schedule as possible.

    Units stay on the device of the schedule if they are allowed there and fit; the others, or all
    units if there is no schedule, go to the least loaded feasible device. Memory that changes
    with time is not checked.

    Returns
    -------
    Layout or None
        ``None`` if no placement was found, perhaps because the time limit around the call is over;
        this proves nothing.
    """
    a = arrays(instance)
    units = len(instance.units)
    wanted = np.full(units, -1, dtype=np.int32)
    priority = np.zeros(instance.vertices)
    if schedule is not None:
        wanted[instance.unit_of] = schedule.placement
        priority = -schedule.start.floats
    # Units that are large or may go to few devices come first, while there is room.
    choices = instance.allowed.sum(axis=1)
    turn = np.lexsort((-a.need, choices)).astype(np.int32)
    for _ in range(_TRIES):
        device = _place(a, wanted, turn)
        if (device >= 0).all():
            return placed(instance, device, priority)
        if is_time_up():
            return None
        # Units that did not fit come first next time; some of the others are removed.
        stuck = device < 0
        wanted[rng.random(units) < 0.2] = -1
        wanted[stuck] = -1
        turn = np.lexsort((rng.random(units), ~stuck)).astype(np.int32)
    device = _place(unlimited(a), wanted, turn)
    if (device < 0).any() or (within := balanced(a, device, rng)) is None:
        return None
    return placed(instance, within, priority)


def placed(instance: Instance, device: Ints, priority: NDArray[np.float64] | None = None) -> Layout:
    """Return a layout with the device of each unit, ordered by the priority of each vertex."""
    if priority is None:
        priority = np.zeros(instance.vertices)
    order = by_priority(instance, priority)
    return Layout(device[instance.unit_of], order, np.ones(instance.graph.tensors, dtype=np.bool_))


@kernel
def _place(a: Arrays, wanted: Ints, turn: Ints) -> Any:
    units, k = a.need.shape[0], a.speed.shape[0]
    state = nothing_placed(a)
    load = np.zeros(k)
    for i in range(units):
        u = turn[i]
        d = wanted[u]
        if d >= 0 and fits(a, u, d, state):
            assign(a, u, d, state)
            load[d] += unit_time(a, u, d)
    for i in range(units):
        u = turn[i]
        if state.device[u] >= 0:
            continue
        best, least = -1, np.inf
        for d in range(k):
            if fits(a, u, d, state):
                after = load[d] + unit_time(a, u, d)
                if after < least:
                    best, least = d, after
        if best >= 0:
            assign(a, u, best, state)
            load[best] = least
    return state.device


def read_start(path: str | Path, instance: Instance) -> Schedule:
    """Read a result of this or another instance, matched by names of vertices and devices.

    A schedule that names every vertex and device as the instance does is returned as it is, with
    its transfers. Otherwise, missing data are left to :func:`repaired`: vertices and devices that
    no longer exist are ignored, and new vertices start together with the last. The schedule is then
    not valid in general; it is only a starting point.

    Raises
    ------
    InputError
        If the file has no schedule, or names no vertex of the instance.
    """
    document = read_document(path)
    with suppress(InputError):
        return schedule_from_dict(document.get("schedule"), instance)
    with FaultsOf(path):
        return _matched(document.get("schedule"), instance)


def _matched(document: Any, instance: Instance) -> Schedule:
    if document is None:
        raise InputError("schedule", "is missing", "give a result with a schedule")
    fields = keys(document, {"placement", "start", "transfers"}, "schedule")
    placement, start = fields.get("placement"), fields.get("start")
    if not isinstance(placement, dict) or not isinstance(start, dict):
        raise InputError("schedule", "lacks placement or start", "give one entry per vertex")
    graph, devices = instance.graph, instance.cluster.index
    if not graph.index.keys() & placement.keys():
        raise InputError(
            "schedule.placement", "names no vertex of the instance", "give a result for its graph"
        )
    where, when = [], []
    last = Fraction(0)
    times = {name: rational(time, f"schedule.start.{name}") for name, time in start.items()}
    last = max(times.values(), default=last)
    for name in graph.names:
        device = placement.get(name)
        where.append(devices.get(device, -1) if isinstance(device, str) else -1)
        when.append(times.get(name, last))
    return Schedule(
        np.array(where, dtype=np.int32), RationalArray.from_fractions(when), Transfers.of(())
    )
