"""Metrics of a schedule other than its makespan."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from optpart.problem.instance import Instance
from optpart.problem.model import Release, Resource
from optpart.solution.schedule import Schedule, crossing_arrays, crossings


def traffic(instance: Instance, placement: NDArray[np.int32]) -> Fraction:
    """Return the summed sizes of all crossings (tensor, destination) ([L] eq. 2.2, §2.4)."""
    tensors, _ = crossing_arrays(instance, placement)
    return instance.graph.tensor_size.sum(tensors)


def loads(instance: Instance, placement: NDArray[np.int32]) -> dict[Resource, Fraction]:
    """Return the load of every resource that a placement uses (design §2).

    The load of a device is the sum of the run times of its vertices and, under ``sendrecv``, of its
    sends. Under ``link``, every link carries the sum of its transfer times; under ``port``, so do
    send and receive ports, divided by their number of channels. Under ``delay``, transfers load
    nothing. Times are in the instance's unit.

    Parameters
    ----------
    placement : ndarray of int32, length n
        Tensors cross only between devices that are linked.
    """
    total: dict[Resource, Fraction] = defaultdict(Fraction)
    for v, d in enumerate(placement.tolist()):
        total["device", d, d] += instance.duration(v, d)
    model = instance.model
    if not model.queues:
        return dict(total)
    for tensor, target in crossings(instance, placement):
        sender = int(placement[instance.graph.tensor_vertex[tensor]])
        delay = instance.delay(tensor, sender, target)
        assert delay is not None
        held = instance.send_duration(sender) if model.sends else delay / model.parallel
        for resource in model.occupied(sender, target):
            total[resource] += held
    return dict(total)


def bottleneck(instance: Instance, placement: NDArray[np.int32]) -> Fraction:
    """Return the largest load of a device, link or port; 0 for an empty graph.

    A pipeline that runs the graph again and again under this placement can finish no more than one
    item per this time.
    """
    return max(loads(instance, placement).values(), default=Fraction(0))


def busy(instance: Instance, schedule: Schedule) -> list[Fraction]:
    """Return the time that each device spends on vertices."""
    total = [Fraction(0)] * instance.devices
    for v, d in enumerate(schedule.placement.tolist()):
        total[d] += instance.duration(v, d)
    return total


def utilisation(instance: Instance, schedule: Schedule) -> list[float]:
    """Return the share of the makespan that each device spends on vertices; 0 if that is 0."""
    makespan = schedule.makespan(instance)
    return [float(time / makespan) if makespan else 0.0 for time in busy(instance, schedule)]


def peak_memory(
    instance: Instance,
    schedule: Schedule,
    memory: Literal["edges", "refcount"],
    release: Release = "end",
) -> list[Fraction]:
    """Return the peak memory of each device, regardless of the instance's memory model.

    Parameters
    ----------
    memory : {"edges", "refcount"}
        Either sizes of active in-edges ([M] eq. 2), or resident memory and copies of tensors until
        their last use ([L] §3.1.6, design §2).
    release : {"end", "start"}
        Under ``refcount``: whether a tensor is freed at the end or the start of its last consumer.
    """
    times = _Times(instance, schedule)
    use = times.active_edges() if memory == "edges" else times.copies(release)
    peaks = _peaks(*use, instance.devices)
    size = instance.graph.tensor_size.denominator
    total = [Fraction(int(peak), size) for peak in peaks]
    if memory == "refcount":
        for d in range(instance.devices):
            total[d] += instance.graph.memory.sum(np.flatnonzero(schedule.placement == d))
    return total


Use = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[Any]]


def uses_over_time(
    instance: Instance, schedule: Schedule, memory: Literal["edges", "refcount"], release: Release
) -> tuple[list[Fraction], Use]:
    """Return everything that takes memory for a part of the run, as parallel arrays.

    Returns
    -------
    moments : list of Fraction
        Ascending.
    device, since, until, amount : ndarray
        What a device holds from one moment until another, as indices of ``moments``. An amount is
        in units of one over the denominator of the tensors' sizes.
    """
    times = _Times(instance, schedule)
    return times.moments, times.active_edges() if memory == "edges" else times.copies(release)


class _Times:
    """Starts, ends and arrivals of a schedule as ranks: equal times have equal ranks."""

    def __init__(self, instance: Instance, schedule: Schedule) -> None:
        self.instance, self.schedule = instance, schedule
        graph, moves = instance.graph, schedule.transfers
        run = [instance.duration(v, d) for v, d in enumerate(schedule.placement.tolist())]
        scale = math.lcm(
            schedule.start.denominator,
            moves.start.denominator,
            moves.end.denominator,
            *{time.denominator for time in run},
        )

        def whole(numerators: NDArray[Any], denominator: int) -> list[int]:
            return [value * (scale // denominator) for value in numerators.tolist()]

        start = whole(schedule.start.numerators, schedule.start.denominator)
        end = [s + int(p * scale) for s, p in zip(start, run, strict=True)]
        begin = whole(moves.start.numerators, moves.start.denominator)
        arrive = whole(moves.end.numerators, moves.end.denominator)
        distinct = sorted({*start, *end, *begin, *arrive})
        rank = {time: r for r, time in enumerate(distinct)}
        self.scale, self.distinct = scale, distinct
        self.start, self.end, self.begin, self.arrive = (
            np.array([rank[time] for time in times], dtype=np.int64)
            for times in (start, end, begin, arrive)
        )
        k = instance.devices
        self.device = schedule.placement.astype(np.int64)
        self.home = self.device[graph.tensor_vertex]
        # Crossings are ascending by (tensor, device), so a copy is found by bisection.
        self.copy_key = moves.tensor.astype(np.int64) * k + moves.target
        order = np.argsort(self.copy_key, kind="stable")
        self.copy_key, self.begin, self.arrive = (
            self.copy_key[order], self.begin[order], self.arrive[order]
        )  # fmt: skip
        self.copy_tensor, self.copy_device = np.divmod(self.copy_key, k)
        there = self.device[graph.edge_target]
        self.local = there == self.device[graph.edge_source]
        self.edge_copy = np.searchsorted(
            self.copy_key, graph.edge_tensor.astype(np.int64) * k + there
        )

    @property
    def moments(self) -> list[Fraction]:
        """The time of each rank."""
        return [Fraction(time, self.scale) for time in self.distinct]

    def active_edges(self) -> Use:
        """Return the use by in-edges, each active from its arrival until its target starts."""
        graph = self.instance.graph
        arrival = self.end[graph.edge_source].copy()
        arrival[~self.local] = self.arrive[self.edge_copy[~self.local]]
        there = self.device[graph.edge_target]
        sizes = graph.tensor_size.numerators[graph.edge_tensor]
        return there, arrival, self.start[graph.edge_target], sizes

    def copies(self, release: Release) -> Use:
        """Return the use by tensors, held from the start of their producer or transfer."""
        graph = self.instance.graph
        freed = (self.start if release == "start" else self.end)[graph.edge_target]
        at_home = self.end[graph.tensor_vertex].copy()
        np.maximum.at(at_home, graph.edge_tensor[self.local], freed[self.local])
        np.maximum.at(at_home, self.copy_tensor, self.arrive)
        away = np.zeros(len(self.copy_key), dtype=np.int64)
        np.maximum.at(away, self.edge_copy[~self.local], freed[~self.local])
        sizes = graph.tensor_size.numerators
        return (
            np.concatenate((self.home, self.copy_device)),
            np.concatenate((self.start[graph.tensor_vertex], self.begin)),
            np.concatenate((at_home, away)),
            np.concatenate((sizes, sizes[self.copy_tensor])),
        )


def _peaks(
    device: NDArray[np.int64],
    since: NDArray[np.int64],
    until: NDArray[np.int64],
    amount: NDArray[Any],
    devices: int,
) -> list[int]:
    """Return per device the largest sum of amounts held over half-open ``[since, until)``."""
    held = since < until
    device, since, until, amount = device[held], since[held], until[held], amount[held]
    when = np.concatenate((until, since))
    change = np.concatenate((-amount, amount))
    where = np.concatenate((device, device))
    # Among equal times, releases come first: they are listed first, and the sort is stable.
    order = np.lexsort((when, where))
    peaks = []
    for d in range(devices):
        mine = change[
            order[np.searchsorted(where[order], d) : np.searchsorted(where[order], d + 1)]
        ]
        peaks.append(int(np.cumsum(mine).max(initial=0)))
    return peaks
