"""Acceptance of valid schedules in whole numbers: many times faster than in fractions.

All times are multiples of one unit and all amounts of memory of another, so that every rule becomes
a comparison of arrays of integers, of 64 bits where these suffice and of any size where they do
not. Nothing is rounded. This module only ever says that a schedule keeps all rules; whatever it
does not accept goes to the reference in :mod:`optpart.solution.verifier`, which finds the violation
and words it. Like the reference, it shares no code with what builds schedules (design §3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optpart.problem.instance import Instance
from optpart.problem.rational import RationalArray
from optpart.solution.schedule import Schedule

#: Sums of two numbers below this fit into 64 bits.
_SMALL = 2**61


def accepts(instance: Instance, schedule: Schedule) -> bool:
    """Return whether a schedule keeps every rule of design §2.

    Returns
    -------
    bool
        ``True`` only if it does. ``False`` leaves the judgement to the reference.
    """
    return _shaped(instance, schedule) and _Acceptance(instance, schedule).holds()


def _shaped(instance: Instance, schedule: Schedule) -> bool:
    n, k, t = instance.vertices, instance.devices, instance.graph.tensors
    moves = schedule.transfers
    return (
        len(schedule.placement) == len(schedule.start) == n
        and len(moves.tensor) == len(moves.target) == len(moves.start) == len(moves.end)
        and _inside(schedule.placement, k)
        and _inside(moves.tensor, t)
        and _inside(moves.target, k)
    )


def _inside(values: NDArray[Any], most: int) -> bool:
    return not len(values) or bool(values.min() >= 0 and values.max() < most)


class _Acceptance:
    def __init__(self, instance: Instance, schedule: Schedule) -> None:
        self.instance = instance
        self.schedule = schedule
        self.device = schedule.placement.astype(np.int64)
        self.tensor = schedule.transfers.tensor.astype(np.int64)
        self.target = schedule.transfers.target.astype(np.int64)
        graph = instance.graph
        self.source = graph.edge_source.astype(np.int64)
        self.consumer = graph.edge_target.astype(np.int64)
        self.edge_tensor = graph.edge_tensor.astype(np.int64)
        self.producer = graph.tensor_vertex.astype(np.int64)
        self.sender = self.device[self.producer[self.tensor]]
        #: One number for each pair of a tensor and a device.
        self.copy = self.tensor * instance.devices + self.target

    def holds(self) -> bool:
        return self._placed() and self._crosses() and self._in_time() and self._static_memory()

    # --- placement -------------------------------------------------------------------------

    def _placed(self) -> bool:
        graph, cluster, device = self.instance.graph, self.instance.cluster, self.device
        here = device.tolist()
        for v, kind in enumerate(graph.device_types):
            if kind is not None and cluster.types[here[v]] != kind:
                return False
        for v, names in graph.allowed_devices.items():
            if cluster.names[here[v]] not in names:
                return False
        given = self.instance.given_durations
        if given is not None and not given.possible[np.arange(len(device)), device].all():
            return False
        for group in graph.colocation:
            if any(here[v] != here[group[0]] for v in group):
                return False
        return all(here[a] != here[b] for a, b in graph.separation)

    def _crosses(self) -> bool:
        """Return whether exactly those tensors cross that must, each over a link."""
        k = self.instance.devices
        apart = self.device[self.source] != self.device[self.consumer]
        needed = self.edge_tensor[apart] * k + self.device[self.consumer[apart]]
        needed = np.sort(needed)
        # Sorted with repetitions, so that a tensor that crosses twice is not accepted.
        if not np.array_equal(needed[_changes(needed)], np.sort(self.copy)):
            return False
        return not bool((self.sender == self.target).any())

    # --- times -----------------------------------------------------------------------------

    def _in_time(self) -> bool:
        instance, schedule, moves = self.instance, self.schedule, self.schedule.transfers
        lengths, crossing = self._lengths(), self._crossing_times()
        if crossing is None:
            return False
        sends = [Fraction(0)] * instance.devices
        if instance.model.communication == "sendrecv":
            sends = [instance.model.send_ops / s for s in instance.cluster.speed.fractions()]
        tables = [lengths, crossing, (sends, self.sender)]
        unit = math.lcm(
            schedule.start.denominator,
            moves.start.denominator,
            moves.end.denominator,
            *{value.denominator for values, _ in tables for value in values},
        )
        start, begin, arrival = (
            _whole(array.numerators, unit // array.denominator)
            for array in (schedule.start, moves.start, moves.end)
        )
        length, delay, send = (_looked_up(values, index, unit) for values, index in tables)
        end = start + length
        made = end[self.producer[self.tensor]]
        if not (
            bool((start >= 0).all())
            and bool((begin >= made).all())
            and bool((arrival == begin + send + delay).all())
        ):
            return False
        if instance.model.communication == "delay" and not bool((begin == made).all()):
            return False
        available = self._available(end, arrival)
        return bool((start[self.consumer] >= available).all()) and self._one_at_a_time(
            start, end, available, begin, begin + send, arrival
        )

    def _lengths(self) -> tuple[list[Fraction], NDArray[np.int64]]:
        """Return the distinct run times, and which of them each vertex takes."""
        instance, given = self.instance, self.instance.given_durations
        if given is not None:
            chosen = given.times.numerators[np.arange(instance.vertices), self.device]
            distinct, index = np.unique(chosen, return_inverse=True)
            return [Fraction(value, given.times.denominator) for value in distinct.tolist()], index
        ops, speed = instance.graph.ops, instance.cluster.speed
        _, kind = np.unique(ops.numerators, return_inverse=True)
        _, some, index = np.unique(
            kind * instance.devices + self.device, return_index=True, return_inverse=True
        )
        return [ops[v] / speed[int(self.device[v])] for v in some.tolist()], index

    def _crossing_times(self) -> tuple[list[Fraction], NDArray[np.int64]] | None:
        """Return the distinct transfer times, and which one each takes; none without a link."""
        graph, cluster, k = self.instance.graph, self.instance.cluster, self.instance.devices
        sizes, kind = np.unique(graph.tensor_size.numerators[self.tensor], return_inverse=True)
        # A tensor with measured times shares them with no other.
        measured = np.isin(self.tensor, list(graph.tensor_delay))
        kind[measured] = len(sizes) + self.tensor[measured]
        _, some, index = np.unique(
            (kind * k + self.sender) * k + self.target, return_index=True, return_inverse=True
        )
        times: list[Fraction] = []
        for tensor, d, e in zip(
            *(array[some].tolist() for array in (self.tensor, self.sender, self.target)),
            strict=True,
        ):
            free, rate = bool(cluster.infinite[d, e]), cluster.bandwidth[d, e]
            time: Fraction | None = None
            if free or rate:
                time = cluster.latency[d, e]
                if tensor in graph.tensor_delay:
                    time = graph.tensor_delay[tensor][d][e]
                elif not free:
                    time += graph.tensor_size[tensor] / rate
            if time is None:
                return None
            times.append(time)
        return times, index

    def _available(self, end: NDArray[Any], arrival: NDArray[Any]) -> NDArray[Any]:
        """Return when the tensor of each edge is available where it is consumed."""
        # Arrivals may need integers of any size where ends do not.
        available = end[self.source].astype(np.result_type(end, arrival))
        apart = self.device[self.source] != self.device[self.consumer]
        order = np.argsort(self.copy)
        wanted = self.edge_tensor[apart] * self.instance.devices + self.device[self.consumer[apart]]
        available[apart] = arrival[order[np.searchsorted(self.copy[order], wanted)]]
        return available

    def _one_at_a_time(
        self,
        start: NDArray[Any],
        end: NDArray[Any],
        available: NDArray[Any],
        begin: NDArray[Any],
        sent: NDArray[Any],
        arrival: NDArray[Any],
    ) -> bool:
        """Return whether devices, links and ports are never overbooked, nor memory over time."""
        model, k = self.instance.model, self.instance.devices
        dynamic = model.memory in ("edges", "refcount")
        if model.communication == "delay" and not dynamic:
            start, end = _ranks(start, end)
            return _alone(self.device, start, end)
        zero = np.zeros(1, dtype=np.int64)
        zero, start, end, available, begin, sent, arrival = _ranks(
            zero, start, end, available, begin, sent, arrival
        )
        device, one, another = self.device, start, end
        if model.communication == "sendrecv":
            device = np.concatenate((device, self.sender))
            one, another = np.concatenate((start, begin)), np.concatenate((end, sent))
        if not _alone(device, one, another):
            return False
        match model.communication:
            case "delay" | "sendrecv":
                pass
            case "link":
                if not _alone(self.sender * k + self.target, begin, arrival):
                    return False
            case "port":
                each = np.ones(len(begin), dtype=np.int64)
                channels = [min(model.channels, len(begin))] * k
                for port in (self.sender, self.target):
                    if not _never_above(port, begin, arrival, each, channels, lasting=False):
                        return False
        match model.memory:
            case "edges":
                size, limits = self._amounts(self.instance.graph.tensor_size)
                return _never_above(
                    self.device[self.consumer],
                    available,
                    start[self.consumer],
                    size[self.edge_tensor],
                    limits,
                )
            case "refcount":
                return self._copies_fit(start, end, begin, arrival, int(zero[0]))
            case _:
                return True

    # --- memory ----------------------------------------------------------------------------

    def _amounts(self, *arrays: RationalArray) -> Any:
        """Return amounts as whole numbers, followed by the capacity of each device or ``None``."""
        capacities = self.instance.cluster.memory
        unit = math.lcm(
            *(array.denominator for array in arrays),
            *(capacity.denominator for capacity in capacities if capacity is not None),
        )
        whole = [_whole(array.numerators, unit // array.denominator) for array in arrays]
        return (*whole, [None if c is None else int(c * unit) for c in capacities])

    def _static_memory(self) -> bool:
        if self.instance.model.memory != "estimate":
            return True
        graph = self.instance.graph
        memory, size, limits = self._amounts(graph.memory, graph.tensor_size)
        inputs = np.unique(self.consumer * graph.tensors + self.edge_tensor)
        consumer, tensor = np.divmod(inputs, max(1, graph.tensors))
        where = np.concatenate((self.device, self.device[self.producer], self.device[consumer]))
        amount = np.concatenate((memory, size, size[tensor]))
        return all(
            limit is None or int(_summable(amount[where == d]).sum()) <= limit
            for d, limit in enumerate(limits)
        )

    def _copies_fit(
        self,
        start: NDArray[np.int64],
        end: NDArray[np.int64],
        begin: NDArray[np.int64],
        arrival: NDArray[np.int64],
        zero: int,
    ) -> bool:
        """Return whether reference-counted copies fit; times are ranks."""
        graph, k = self.instance.graph, self.instance.devices
        memory, size, limits = self._amounts(graph.memory, graph.tensor_size)
        free = start if self.instance.model.release == "start" else end
        home = np.arange(graph.tensors) * k + self.device[self.producer]
        copy = np.concatenate((home, self.copy))
        since = np.concatenate((start[self.producer], begin))
        until = np.concatenate((end[self.producer], np.full(len(begin), zero)))
        order = np.argsort(copy)
        used = self.edge_tensor * k + self.device[self.consumer]
        np.maximum.at(until, order[np.searchsorted(copy[order], used)], free[self.consumer])
        np.maximum.at(until, self.tensor, arrival)
        last = int(end.max(initial=zero)) + 1
        n = len(self.device)
        return _never_above(
            np.concatenate((self.device, copy % k)),
            np.concatenate((np.full(n, zero), since)),
            np.concatenate((np.full(n, last), until)),
            np.concatenate((memory, size, size[self.tensor])),
            limits,
        )


# --- arrays of whole numbers -------------------------------------------------------------------


def _whole(numerators: NDArray[Any], factor: int) -> NDArray[Any]:
    """Multiply, with integers of any size unless 64 bits suffice."""
    if numerators.dtype != object:
        largest = (
            max(abs(int(x)) for x in (numerators.min(), numerators.max())) if len(numerators) else 0
        )
        if largest * factor < _SMALL and factor < _SMALL:
            return np.asarray(numerators.astype(np.int64) * factor)
    return np.asarray(numerators.astype(object) * factor)


def _looked_up(values: Sequence[Fraction], index: NDArray[np.int64], unit: int) -> NDArray[Any]:
    """Return the value of each index as a whole number of units."""
    whole = [value.numerator * (unit // value.denominator) for value in values]
    kind: Any = np.int64 if max(map(abs, whole), default=0) < _SMALL // 2 else object
    return np.array(whole, dtype=kind)[index]


def _changes(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where a value differs from the one before it; the first does."""
    changed = np.ones(len(values), dtype=np.bool_)
    changed[1:] = values[1:] != values[:-1]
    return changed


def _ranks(*arrays: NDArray[Any]) -> list[NDArray[np.int64]]:
    """Replace numbers by their ranks among all of them, which compare alike and are small."""
    values = np.concatenate(arrays)
    order = _order(values)
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.cumsum(_changes(values[order])) - 1
    return np.split(rank, np.cumsum([len(array) for array in arrays])[:-1])


def _order(values: NDArray[Any]) -> NDArray[np.int64]:
    """Return the positions of numbers from the smallest to the largest."""
    if values.dtype != object:
        return np.argsort(values)
    try:
        # Nearly sorted by doubles, they need few of the slow comparisons of large integers.
        near = np.argsort(values.astype(np.float64))
    except OverflowError:
        near = np.arange(len(values))
    return near[np.argsort(values[near], kind="stable")]


def _summable(amounts: NDArray[Any]) -> NDArray[Any]:
    """Return amounts whose sums do not overflow."""
    if amounts.dtype == object or not len(amounts):
        return amounts
    return amounts if int(amounts.max()) < _SMALL // len(amounts) else amounts.astype(object)


def _alone(group: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64]) -> bool:
    """Return whether no two intervals of a group overlap; one without length may touch others."""
    order = np.lexsort((end, start, group))
    same = group[order][1:] == group[order][:-1]
    # Ends are no earlier than starts, so it is enough to compare neighbours.
    return not bool((same & (start[order][1:] < end[order][:-1])).any())


def _never_above(
    group: NDArray[np.int64],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    amount: NDArray[Any],
    limits: Sequence[int | None],
    *,
    lasting: bool = True,
) -> bool:
    """Return whether half-open intervals of each group never add up to more than its limit.

    Times are ranks. Intervals without length count only if not ``lasting``: alone, within those
    that begin before and end after them.
    """
    limited = np.array([limit is not None for limit in limits], dtype=np.bool_)
    kept = limited[group]
    group, start, end, amount = group[kept], start[kept], end[kept], _summable(amount[kept])
    if not len(group):
        return True
    most = np.array([0 if limit is None else limit for limit in limits], dtype=object)[group]
    width = int(max(start.max(), end.max())) + 1
    begins, ends = group * width + start, group * width + end
    long = start < end

    def total(moments: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[Any]]:
        order = np.argsort(moments, kind="stable")
        sums = np.concatenate((np.zeros(1, dtype=amount.dtype), np.cumsum(amount[long][order])))
        return moments[order], sums

    (first, started), (last, ended) = total(begins[long]), total(ends[long])

    def held(at: NDArray[np.int64], side: Any) -> Any:
        """Return the amounts of intervals that have begun, less those that have ended."""
        over = np.searchsorted(last, at, side="right")
        return started[np.searchsorted(first, at, side=side)] - ended[over]

    # The sum only rises when an interval begins.
    if bool((held(begins[long], "right") > most[long]).any()):
        return False
    short = ~long
    return lasting or not bool((held(begins[short], "left") + amount[short] > most[short]).any())
