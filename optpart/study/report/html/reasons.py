"""Which lower bound of the makespan is as large as proven, and what it is made of."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from optpart.base import clock
from optpart.exact.series.bound import series_bound
from optpart.kernels.ticks import Grid
from optpart.lower_bounds.crossings import crossings_bound
from optpart.lower_bounds.energy import energy_bound, overload
from optpart.lower_bounds.load import Load, load_proof
from optpart.lower_bounds.one_machine import Queue, Sharpening
from optpart.lower_bounds.windows import NEVER, Windows, windows
from optpart.problem.instance import Instance

#: Seconds for the bounds that take longer on large graphs.
SECONDS = 2.0

#: Most vertices for which those are tried.
MOST = 2_000


@dataclass(frozen=True)
class Interval:
    """A time of a device in which vertices have to run there.

    Attributes
    ----------
    vertices : list of (int, Fraction)
        What runs in it at least, if it is on the device, and for how long; the longest first.
    weight : Fraction
        How much it counts, among several; the most is 1.
    side : {"", "before", "after", "together"}
        For ``one-machine``: whether the vertices run before ``of``, after it, or make up its unit.
    of : int
        A vertex on the same device; -1 if there is none.
    rest : Fraction
        The least time between the interval and the vertex, or the end (the start, for ``after``).
    elsewhere : Fraction or None
        What follows starts no earlier (what comes before ends no later, counted from the end) if
        one of them is on another device.
    """

    device: int
    start: Fraction
    end: Fraction
    vertices: list[tuple[int, Fraction]]
    weight: Fraction = Fraction(1)
    side: Literal["", "before", "after", "together"] = ""
    of: int = -1
    rest: Fraction = Fraction(0)
    elsewhere: Fraction | None = None


@dataclass(frozen=True)
class Reason:
    """A lower bound with its evidence.

    Attributes
    ----------
    exact : bool
        Whether no time was rounded down for it.
    path : list of (int, int)
        A vertex and the device on which it counts, in the order of time; for ``critical-path`` and
        ``one-machine``.
    vertex : int
        The vertex of the path on whose device all of it is least; -1 without a path.
    intervals : list of Interval
        For ``one-machine`` and ``energy``.
    devices : list of (int, Fraction)
        For ``load``: the devices whose load counts, and how much; the most is 1.
    memory : list of int
        The devices whose memory counts.
    length : Fraction or None
        For ``energy``: the length of a schedule that is refuted.
    required, room : Fraction or None
        For ``energy``: the weighted work that such a schedule needs, and the time there is.
    """

    name: str
    value: Fraction
    exact: bool
    path: list[tuple[int, int]]
    vertex: int = -1
    intervals: tuple[Interval, ...] = ()
    devices: tuple[tuple[int, Fraction], ...] = ()
    memory: tuple[int, ...] = ()
    length: Fraction | None = None
    required: Fraction | None = None
    room: Fraction | None = None


def reasons_of(
    instance: Instance, makespan: Fraction | None = None, seconds: float = SECONDS
) -> list[Reason]:
    """Return bounds with their evidence, the cheapest first.

    Parameters
    ----------
    makespan : Fraction, optional
        The least that is known; no bound need be higher.
    seconds : float
        Limit for each of the bounds that take longer; ``critical-path`` and ``load`` are always
        computed. Bounds that reach no further than those before them are left out, and all that
        take longer are if the graph has more than :data:`MOST` vertices.

    Returns
    -------
    list of Reason
        Empty if a vertex can run nowhere.
    """
    if not instance.vertices:
        return []
    grid = Grid.of(instance)
    window = windows(instance, grid)
    if window.bound is None:
        return []
    path, peak = _path(instance, grid, window)
    load = load_proof(instance, grid, window)
    found = [
        Reason("critical-path", grid.time(window.bound), grid.exact, path, peak),
        _load(grid, load),
    ]
    if instance.vertices > MOST or seconds <= 0:
        return found
    for explain in (_one_machine, _energy, _crossings, _series):
        best = max(each.value for each in found)
        if makespan is not None and best >= makespan:
            break
        reason = explain(instance, grid, seconds, makespan)
        if reason is not None and reason.value > best:
            found.append(reason)
    return found


def _load(grid: Grid, load: Load) -> Reason:
    most = int(load.weight.max(initial=1)) or 1
    devices = [(int(d), Fraction(int(load.weight[d]), most)) for d in np.flatnonzero(load.weight)]
    devices.sort(key=lambda pair: -pair[1])
    memory = tuple(np.flatnonzero(load.memory).tolist())
    value = grid.time(load.ticks)
    return Reason("load", value, grid.exact, [], devices=tuple(devices), memory=memory)


def _one_machine(
    instance: Instance, grid: Grid, seconds: float, makespan: Fraction | None
) -> Reason | None:
    work = Sharpening(instance, grid, windows(instance, grid))
    work.run(clock.now() + seconds)
    window = work.windows()
    if window.bound is None:
        return None
    unit = int(np.argmax(window.through.min(axis=1)))
    d = int(np.argmin(window.through[unit]))
    value = grid.time(window.bound)
    members = instance.units[unit]
    if len(members) > 1:
        queue = work.queue_of_unit(int(work.unit[members[0]]), d)
        if queue.value == window.bound and len(queue.vertices) > 1:
            interval = _interval(grid, queue, d, "together", -1, Fraction(0))
            return Reason("one-machine", value, grid.exact, [], intervals=(interval,))
    path, peak = _path(instance, grid, window)
    found = []
    for (v, e), back in ((path[0], True), (path[-1], False)):
        if (window.head if back else window.tail)[v, e] > 0:
            queue_of = work.queue(v, e, backwards=not back)
            if queue_of is not None:
                side: Literal["before", "after"] = "before" if back else "after"
                found.append(_interval(grid, queue_of, e, side, v, value))
    return Reason("one-machine", value, grid.exact, path, peak, tuple(found))


def _interval(
    grid: Grid,
    queue: Queue,
    d: int,
    side: Literal["before", "after", "together"],
    v: int,
    value: Fraction,
) -> Interval:
    begin, end = grid.time(queue.begin), grid.time(queue.begin + queue.work)
    if side == "after":  # its times count from the end of the schedule
        begin, end = value - end, value - begin
    runs = [(int(u), grid.time(int(grid.duration[u, d]))) for u in queue.vertices]
    runs.sort(key=lambda pair: (-pair[1], pair[0]))
    elsewhere = None if queue.elsewhere >= NEVER else grid.time(queue.elsewhere)
    return Interval(d, begin, end, runs, Fraction(1), side, v, grid.time(queue.after), elsewhere)


def _energy(
    instance: Instance, grid: Grid, seconds: float, makespan: Fraction | None
) -> Reason | None:
    value = energy_bound(instance, seconds, makespan)
    if value is None:
        return None
    limit = grid.floor(value) - 1
    window = windows(instance, grid, limit)
    if window.bound is None:
        return Reason("energy", value, grid.exact, [])
    proof = overload(instance, grid, window, limit, seconds=seconds)
    if proof is None:
        return Reason("energy", value, grid.exact, [])
    most = int(proof.weight.max(initial=1))
    rows = proof.rows
    found = []
    for r in np.argsort(-proof.weight, kind="stable").tolist():
        units = np.flatnonzero((rows.work[r] > 0) & window.possible[:, rows.device[r]])
        work = [
            (int(instance.units[u][0]), grid.time(int(rows.work[r, u]))) for u in units.tolist()
        ]
        work.sort(key=lambda pair: (-pair[1], pair[0]))
        begin = int(rows.begin[r])
        start, end = grid.time(begin), grid.time(begin + int(rows.room[r]))
        weight = Fraction(int(proof.weight[r]), most)
        found.append(Interval(int(rows.device[r]), start, end, work, weight))
    return Reason(
        "energy",
        value,
        grid.exact,
        [],
        intervals=tuple(found),
        memory=tuple(proof.memory),
        length=grid.time(limit),
        required=grid.time(proof.required) / most,
        room=grid.time(proof.room) / most,
    )


def _crossings(
    instance: Instance, grid: Grid, seconds: float, makespan: Fraction | None
) -> Reason | None:
    value = crossings_bound(instance, seconds, makespan)
    return None if value is None else Reason("crossings", value, grid.exact, [])


def _series(
    instance: Instance, grid: Grid, seconds: float, makespan: Fraction | None
) -> Reason | None:
    value = series_bound(instance, seconds=seconds, makespan=makespan)
    return None if value is None else Reason("series", value, grid.exact, [])


def _path(instance: Instance, grid: Grid, window: Windows) -> tuple[list[tuple[int, int]], int]:
    """Return a chain through the vertex whose head, run time and tail are largest.

    Each vertex of the chain is on the device where its head or tail counts.
    """
    unit = int(np.argmax(window.through.min(axis=1)))
    d = int(np.argmin(window.through[unit]))
    members = instance.units[unit]
    total = window.head[members, d] + grid.duration[members, d] + window.tail[members, d]
    peak = int(members[int(np.argmax(total))])
    graph = instance.graph
    before = _walk(instance, grid, window.head, peak, d, graph.in_edges, graph.edge_source, True)
    after = _walk(instance, grid, window.tail, peak, d, graph.out_edges, graph.edge_target, False)
    return [*before[::-1], (peak, d), *after], peak


def _walk(
    instance: Instance,
    grid: Grid,
    times: NDArray[np.int64],
    v: int,
    d: int,
    edges: tuple[NDArray[np.int32], NDArray[np.int32]],
    other: NDArray[np.int32],
    back: bool,
) -> list[tuple[int, int]]:
    """Follow the neighbours that a head (``back``) or a tail is made of."""
    graph, chain = instance.graph, []
    start, numbers = edges
    while times[v, d] > 0:
        best: tuple[int, int, int] | None = None
        for edge in numbers[start[v] : start[v + 1]].tolist():
            u, tensor = int(other[edge]), int(graph.edge_tensor[edge])
            least: tuple[int, int, int] | None = None
            for e in range(instance.devices):
                if times[u, e] >= NEVER or grid.duration[u, e] < 0:
                    continue
                if e != d and instance.unit_of[u] == instance.unit_of[v]:
                    continue
                sender, receiver = (e, d) if back else (d, e)
                delay = 0 if e == d else grid.delay(tensor, sender, receiver)
                if delay < 0:
                    continue
                if e != d and instance.model.communication == "sendrecv":
                    delay += int(grid.send[sender])
                found = int(times[u, e] + grid.duration[u, e]) + delay
                if least is None or found < least[0]:
                    least = found, u, e
            if least is not None and (best is None or least[0] > best[0]):
                best = least
        if best is None:
            break
        if best[0] < times[v, d]:  # what sharpened it is no neighbour
            break
        _, v, d = best
        chain.append((v, d))
    return chain
