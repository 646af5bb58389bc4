"""Event-driven execution of a placed graph under a scheduling strategy ([L] §3.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from optpart.kernels.compiled import inner, short_kernel
from optpart.kernels.heap import heap_pop, heap_push
from optpart.kernels.struct import Floats, Longs, Struct
from optpart.kernels.tasks import Tasks, tasks
from optpart.problem.graph import inverse
from optpart.problem.instance import Instance
from optpart.solution.schedule import Schedule, crossings, retime
from optpart.strategies.base import Partition


class Priority(NamedTuple):
    """The priorities by which a scheduling strategy decides.

    Attributes
    ----------
    value : ndarray of float64, one per task, or None
        A device runs the executable task of largest value; if ``None``, the one that has been
        executable longest.
    tie : ndarray of int64, one per task
        Of equal tasks, the one with the smallest tie runs first; all ties are distinct.
    weights : ndarray of float64, 4, or None
        If given, tasks are compared by their successor rank with these weights first
        ([L] eq. 5.2), by ``value`` only where that is equal.
    """

    value: NDArray[np.float64] | None
    tie: NDArray[np.int64]
    weights: NDArray[np.float64] | None = None


#: A scheduling strategy: the priorities of the tasks of a partition, drawn with a generator.
Scheduler: TypeAlias = Callable[[Tasks, Partition, np.random.Generator], Priority]


class Execution(NamedTuple):
    """The outcome of a simulation.

    Attributes
    ----------
    start : ndarray of float64, one per task
    choices : ndarray of int32, one per task
        Number of executable tasks its device chose among, itself included ([L] figure 7.10).
    """

    start: NDArray[np.float64]
    choices: NDArray[np.int32]


class Simulation(NamedTuple):
    """A schedule, and the number of choices at each decision.

    Attributes
    ----------
    schedule : Schedule
    choices : ndarray of int32, one per vertex
        Number of executable tasks when its device chose it, itself included ([L] figure 7.10).
    """

    schedule: Schedule
    choices: NDArray[np.int32]


def simulate(
    instance: Instance, partition: Partition, scheduler: Scheduler, seed: int = 0
) -> Schedule:
    """Return the schedule of :func:`simulation`."""
    return simulation(instance, partition, scheduler, seed).schedule


def simulation(
    instance: Instance, partition: Partition, scheduler: Scheduler, seed: int = 0
) -> Simulation:
    """Execute a placement and time the schedule exactly.

    Parameters
    ----------
    partition : Partition
    scheduler : Scheduler
        Chooses among the executable tasks of a device whenever it is free.

    Notes
    -----
    The device with the lowest local time decides next, once everything that can reach it by then is
    known; ties go to the first device. Under ``link`` and ``port``, links execute transfers under
    the same strategy; under ``port``, transfers then take the ports in the order of their starts.
    """
    placement = partition.placement
    work = tasks(instance, placement)
    start, choices = execute(work, scheduler(work, partition, np.random.default_rng(seed)))
    n = instance.vertices
    moves = crossings(instance, placement) if len(start) > n else []
    order = execution_order(start, work)
    schedule = retime(instance, placement, [t if t < n else moves[t - n] for t in order])
    return Simulation(schedule, choices[:n])


def execution_order(start: NDArray[np.float64], work: Tasks) -> list[int]:
    """Sort tasks by start so that no task comes before one that it depends on.

    Tasks that start together are sorted by duration, since others may depend on those of length
    zero, and then topologically.
    """
    rank = inverse(work.order)
    order: list[int] = np.lexsort((rank, start + work.duration, start)).tolist()
    return order


def execute(work: Tasks, priority: Priority) -> Execution:
    """Run the event loop."""
    return Execution(*_execute(work, _Ranking.of(priority)))


class _Ranking(Struct):
    """A :class:`Priority` as compiled code takes it.

    Attributes
    ----------
    by_arrival : bool
        Whether ``value`` is written during the simulation: minus the time at which a task becomes
        executable.
    weights : ndarray of float64
        None if tasks are not compared by their successor rank.
    """

    value: Floats
    by_arrival: bool
    tie: Longs
    weights: Floats

    @classmethod
    def of(cls, priority: Priority) -> _Ranking:
        """Convert priorities, which may have other types of numbers."""
        value, tie, weights = priority
        return cls(
            np.zeros(len(tie)) if value is None else np.require(value, np.float64, ["C", "W"]),
            value is None,
            np.require(tie, np.int64, ["C", "W"]),
            np.zeros(0) if weights is None else np.require(weights, np.float64, ["C", "W"]),
        )


@short_kernel
def _execute(work: Tasks, ranking: _Ranking) -> Any:
    """Return when each task starts, and among how many its device chose it.

    Loop invariant: ``heap`` holds the tasks of each resource that have become executable and have
    not started, and a resource that is not idle has exactly one event at which it looks for work.
    """
    resource, resources, duration = work.resource, work.resources, work.duration
    out_start, out_target, out_delay = work.out_start, work.out_target, work.out_delay
    n = resource.shape[0]
    start = np.full(n, -1.0)
    choices = np.zeros(n, np.int32)
    ready = np.zeros(n)
    waiting = work.missing.copy()
    # Executable tasks: one binary heap per resource, side by side in one array.
    heap = np.empty(n, np.int32)
    base = np.zeros(resources + 1, np.int32)
    for v in range(n):
        base[resource[v] + 1] += 1
    for d in range(resources):
        base[d + 1] += base[d]
    filled = np.zeros(resources, np.int32)
    by_successors = ranking.weights.shape[0] > 0
    unfinished = _predecessors(out_start, out_target) if by_successors else waiting
    # Events: task v has ended (code −1 − v, only for successor ranks), becomes executable (v), or
    # resource d looks for work (n + d). At equal times, smaller codes come first.
    time = np.empty(2 * (n + resources) + 1)
    code = np.empty(2 * (n + resources) + 1, np.int64)
    events = 0
    idle = np.ones(resources, np.bool_)
    for v in range(n):
        if waiting[v] == 0:
            events = heap_push(time, code, events, 0.0, v)
    while events:
        now, what = time[0], code[0]
        events = heap_pop(time, code, events)
        if what < 0:
            v = -1 - what
            for e in range(out_start[v], out_start[v + 1]):
                if e == out_start[v] or out_target[e] != out_target[e - 1]:
                    unfinished[out_target[e]] -= 1
            continue
        if what < n:
            v = what
            d = resource[v]
            if ranking.by_arrival:
                ranking.value[v] = -now
            if by_successors:
                heap[base[d] + filled[d]] = v
            else:
                _push_task(heap, base[d], filled[d], v, ranking)
            filled[d] += 1
            if idle[d]:
                idle[d] = False
                events = heap_push(time, code, events, now, n + d)
            continue
        d = what - n
        if filled[d] == 0:
            idle[d] = True
            continue
        if by_successors:
            best = _best_by_successors(work, ranking, heap, base[d], filled[d], unfinished, idle)
            v = heap[best]
            heap[best] = heap[base[d] + filled[d] - 1]
        else:
            v = heap[base[d]]
            _drop_first(heap, base[d], filled[d] - 1, ranking)
        choices[v] = filled[d]
        filled[d] -= 1
        start[v] = now
        end = now + duration[v]
        if by_successors:
            events = heap_push(time, code, events, end, -1 - v)
        events = heap_push(time, code, events, end, n + d)
        for e in range(out_start[v], out_start[v + 1]):
            w = out_target[e]
            at = end + out_delay[e]
            if at > ready[w]:
                ready[w] = at
            waiting[w] -= 1
            if waiting[w] == 0:
                events = heap_push(time, code, events, ready[w], w)
    return start, choices


@inner
def _predecessors(out_start: Any, out_target: Any) -> Any:
    """Return the number of distinct predecessors of every task."""
    n = out_start.shape[0] - 1
    count = np.zeros(n, np.int32)
    for v in range(n):
        for e in range(out_start[v], out_start[v + 1]):
            if e == out_start[v] or out_target[e] != out_target[e - 1]:
                count[out_target[e]] += 1
    return count


@inner
def _best_by_successors(
    work: Tasks, ranking: _Ranking, heap: Any, base: int, size: int, unfinished: Any, idle: Any
) -> Any:
    """Return the position of the task of largest successor rank ([L] eq. 5.2, [M] eq. 13)."""
    resource, out_start, out_target = work.resource, work.out_start, work.out_target
    weights = ranking.weights
    best, best_rank = -1, -1.0
    for i in range(base, base + size):
        v = heap[i]
        rank = 0.0
        for e in range(out_start[v], out_start[v + 1]):
            w = out_target[e]
            if e > out_start[v] and w == out_target[e - 1]:
                continue
            rank += weights[0]
            if resource[w] != resource[v]:
                rank += weights[1]
            if unfinished[w] == 1:
                rank += weights[2]
                if idle[resource[w]]:
                    rank += weights[3]
        if rank > best_rank or (rank == best_rank and _before(v, heap[best], ranking)):
            best, best_rank = i, rank
    return best


@inner
def _before(v: int, w: int, ranking: _Ranking) -> Any:
    key, tie = ranking.value, ranking.tie
    return key[v] > key[w] or (key[v] == key[w] and tie[v] < tie[w])


@inner
def _push_task(heap: Any, base: int, size: int, v: int, ranking: _Ranking) -> None:
    i = size
    while i > 0:
        parent = (i - 1) >> 1
        if _before(heap[base + parent], v, ranking):
            break
        heap[base + i] = heap[base + parent]
        i = parent
    heap[base + i] = v


@inner
def _drop_first(heap: Any, base: int, size: int, ranking: _Ranking) -> None:
    if size == 0:
        return
    v = heap[base + size]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and _before(heap[base + child + 1], heap[base + child], ranking):
            child += 1
        if _before(v, heap[base + child], ranking):
            break
        heap[base + i] = heap[base + child]
        i = child
    heap[base + i] = v
