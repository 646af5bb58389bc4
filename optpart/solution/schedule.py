"""A solution: where every vertex runs, and when."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from optpart.base.arguments import checked
from optpart.base.errors import InputError
from optpart.base.showing import Shown
from optpart.problem.instance import Instance
from optpart.problem.rational import RationalArray, shown
from optpart.solution.names import NamedPlacement, placement_of, vertex, whole_order


@checked
@dataclass(frozen=True, eq=False)
class Transfers:
    """The crossings of a schedule, as parallel arrays.

    Attributes
    ----------
    tensor, target : ndarray of int32, length c
        Tensor and destination device.
    start, end : RationalArray, length c
        A transfer starts when its sender begins to send (under ``sendrecv``: with the send
        vertex) and ends when the tensor has arrived.
    """

    tensor: NDArray[np.int32]
    target: NDArray[np.int32]
    start: RationalArray
    end: RationalArray

    def __len__(self) -> int:
        return len(self.tensor)

    def __repr__(self) -> str:
        return f"<Transfers: {len(self):,}>"

    @classmethod
    def of(cls, rows: Iterable[tuple[int, int, Fraction, Fraction]]) -> Transfers:
        """Build from ``(tensor, target, start, end)``."""
        listed = list(rows)
        return cls(
            np.array([row[0] for row in listed], dtype=np.int32),
            np.array([row[1] for row in listed], dtype=np.int32),
            RationalArray.from_fractions(row[2] for row in listed),
            RationalArray.from_fractions(row[3] for row in listed),
        )


@checked
@dataclass(frozen=True, eq=False)
class Schedule(Shown):
    """A placement with exact start times.

    Attributes
    ----------
    placement : ndarray of int32, length n
        Device of each vertex.
    start : RationalArray, length n
    transfers : Transfers
    """

    placement: NDArray[np.int32]
    start: RationalArray
    transfers: Transfers

    def __repr__(self) -> str:
        used = len(np.unique(self.placement))
        return (
            f"<Schedule of {len(self.placement):,} vertices on {used:,} devices, "
            f"{len(self.transfers):,} transfers>"
        )

    def end(self, instance: Instance, vertex: int) -> Fraction:
        """Return the exact end of a vertex."""
        return self.start[vertex] + instance.duration(vertex, int(self.placement[vertex]))

    def makespan(self, instance: Instance) -> Fraction:
        """Return the latest end of a vertex; 0 for an empty graph."""
        # Of the vertices with the same run time, only the last to start can end last.
        given, where = instance.given_durations, self.placement.tolist()
        if given is None:
            lengths = instance.graph.ops
        else:
            lengths = given.times.take((np.arange(len(where)), self.placement))
        latest: dict[tuple[int, int], tuple[int, int]] = {}
        kinds = zip(lengths.numerators.tolist(), where, strict=True)
        starts = self.start.numerators.tolist()
        for v, (kind, start) in enumerate(zip(kinds, starts, strict=True)):
            known = latest.get(kind)
            if known is None or start > known[0]:
                latest[kind] = start, v
        return max((self.end(instance, v) for _, v in latest.values()), default=Fraction(0))

    def check_fits(self, instance: Instance) -> None:
        """Raise :class:`InputError` if it has other vertices or devices than an instance."""
        n, k = instance.vertices, instance.devices
        where = self.placement
        inside = not len(where) or bool(where.min() >= 0 and where.max() < k)
        if len(where) != n or len(self.start) != n or not inside:
            raise InputError(
                "schedule",
                f"not one of {n} vertices on {k} devices",
                "give a schedule of this instance",
            )

    def named_placement(self, instance: Instance) -> dict[str, str]:
        """Return the device of each vertex, by name."""
        devices = instance.cluster.names
        where = zip(instance.graph.names, self.placement.tolist(), strict=True)
        return {name: devices[d] for name, d in where}

    def named_order(self, instance: Instance) -> dict[str, list[str]]:
        """Return the vertices of each device in order of start, by name.

        Of vertices that start together, those without length come first, and of these the
        topologically first.
        """
        rank = {v: i for i, v in enumerate(instance.graph.topological_order.tolist())}
        ends = [self.end(instance, v) for v in range(instance.vertices)]
        starts = self.start.fractions()
        order: dict[str, list[str]] = {name: [] for name in instance.cluster.names}
        for v in sorted(range(instance.vertices), key=lambda v: (starts[v], ends[v], rank[v])):
            order[instance.cluster.names[self.placement[v]]].append(instance.graph.names[v])
        return order

    @cached_property
    def sequence(self) -> list[int]:
        """Vertices sorted by start, and those that start together by number."""
        order: list[int] = np.argsort(self.start.numerators, kind="stable").tolist()
        return order


def crossing_arrays(
    instance: Instance, placement: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the tensors and the destination devices of :func:`crossings`, in the same order."""
    graph = instance.graph
    target = placement[graph.edge_target].astype(np.int64)
    crossing = target != placement[graph.edge_source]
    keys = graph.edge_tensor[crossing] * np.int64(instance.devices) + target[crossing]
    keys.sort()  # np.unique would hash them, which takes five times as long
    repeated = keys[1:] == keys[:-1]
    tensors, targets = np.divmod(np.delete(keys, np.flatnonzero(repeated)), instance.devices)
    return tensors, targets


def crossings(instance: Instance, placement: NDArray[np.int32]) -> list[tuple[int, int]]:
    """List the pairs (tensor, destination device) that must cross, ascending ([L] §2.4)."""
    tensors, targets = crossing_arrays(instance, placement)
    return list(zip(tensors.tolist(), targets.tolist(), strict=True))


def retime(
    instance: Instance,
    placement: NDArray[np.int32] | Sequence[int] | NamedPlacement,
    order: Sequence[int | str | tuple[int, int]] | Mapping[str, Sequence[str]],
) -> Schedule:
    """Return the schedule of earliest exact starts for a placement and an order.

    Parameters
    ----------
    placement : array of int, length n, or mapping from names of vertices to names of devices
    order : sequence of int, str or (int, int), or mapping from names of devices to such names
        All vertices, as numbers or names, and any transfers, as pairs (tensor, destination device),
        read per device and per link. A transfer that is not named queues when its tensor is
        produced. Under ``delay`` nothing queues and transfers need not be named.

    Returns
    -------
    Schedule
        Start times are the earliest of all schedules that keep the order on every device and, for
        queueing transfers, on the sender (``sendrecv``), link or ports; with several channels a
        transfer starts as soon as those before it in the order leave a channel. Memory limits,
        allowed devices and colocation are left to the verifier.

    Raises
    ------
    InputError
        If the order is incomplete or contradicts the edges, a tensor must cross between devices
        that are not linked, or a name is unknown.

    Notes
    -----
    All times are whole multiples of one unit, so the computation uses Python integers of any size.
    """
    where = _devices(instance, placement)
    if isinstance(order, Mapping):
        numbers: list[int | tuple[int, int]] = [*whole_order(instance, order, where.tolist())]
    else:
        numbers = [vertex(instance, v, "order") if isinstance(v, str) else v for v in order]
    return _Retiming(instance, where).run(numbers)


def retime_after(
    instance: Instance,
    placement: NDArray[np.int32],
    order: Sequence[int | tuple[int, int]],
    waits: Mapping[int | tuple[int, int], int | tuple[int, int]],
) -> Schedule:
    """Return the schedule of :func:`retime` in which some vertices and transfers wait longer.

    Parameters
    ----------
    waits : mapping from vertex or transfer to another
        What must have ended before one starts; it precedes it in the order.
    """
    return _Retiming(instance, placement, waits).run(order)


def _devices(
    instance: Instance, placement: NDArray[np.int32] | Sequence[int] | NamedPlacement
) -> NDArray[np.int32]:
    """Return a placement as an array of the right length, with devices that exist."""
    if isinstance(placement, Mapping):
        return placement_of(instance, placement)
    n, k = instance.vertices, instance.devices
    remedy = f"give {n} numbers of devices, or a dict of names"
    where = np.asarray(placement) if n else np.zeros(0, np.int32)
    if len(placement) != n or where.shape != (n,):
        raise InputError("placement", f"{len(placement)} entries for {n} vertices", remedy)
    if n and where.dtype.kind not in "iu":
        raise InputError("placement", f"{shown(placement[0])} is no number of a device", remedy)
    if n and not 0 <= where.min() <= where.max() < k:
        outside = next(d for d in where.tolist() if not 0 <= d < k)
        raise InputError("placement", f"no device {outside}", f"give numbers from 0 to {k - 1}")
    return where.astype(np.int32, copy=False)


class _Retiming:
    """The times of one placement as integers, and the state while an order is executed."""

    def __init__(
        self,
        instance: Instance,
        placement: NDArray[np.int32],
        waits: Mapping[int | tuple[int, int], int | tuple[int, int]] | None = None,
    ) -> None:
        self.instance = instance
        self.placement = placement
        self.waits = waits or {}
        self.device: list[int] = placement.tolist()
        self.producer: list[int] = instance.graph.tensor_vertex.tolist()
        self.crossings = crossings(instance, placement)
        self.number = {crossing: c for c, crossing in enumerate(self.crossings)}
        durations = self._durations()
        delays = self._delays()
        sends = [instance.send_duration(d) for d in range(instance.devices)]
        self.scale = math.lcm(1, *{f.denominator for f in (*durations, *delays, *sends)})
        self.duration = [self._ticks(f) for f in durations]
        self.delay = [self._ticks(f) for f in delays]
        self.send = [self._ticks(f) for f in sends]
        self.start, self.end = [-1] * len(durations), [-1] * len(durations)
        self.begin, self.arrival = [-1] * len(delays), [-1] * len(delays)
        k = instance.devices
        # More channels than transfers would make no difference.
        channels = min(instance.model.channels, max(1, len(delays)))
        self.device_free = [0] * k
        self.link_free: dict[tuple[int, int], int] = {}
        self.out_free = [[0] * channels for _ in range(k)]
        self.in_free = [[0] * channels for _ in range(k)]

    def _ticks(self, time: Fraction) -> int:
        return time.numerator * (self.scale // time.denominator)

    def _durations(self) -> list[Fraction]:
        instance = self.instance
        if instance.given_durations is not None:
            return [instance.duration(v, d) for v, d in enumerate(self.device)]
        cache: dict[tuple[int, int], Fraction] = {}
        durations: list[Fraction] = []
        kinds = zip(instance.graph.ops.numerators.tolist(), self.device, strict=True)
        for v, kind in enumerate(kinds):
            if kind not in cache:
                cache[kind] = instance.duration(v, kind[1])
            durations.append(cache[kind])
        return durations

    def _delays(self) -> list[Fraction]:
        instance, graph = self.instance, self.instance.graph
        sizes = graph.tensor_size.numerators.tolist()
        cache: dict[tuple[int, int, int, int], Fraction | None] = {}
        delays: list[Fraction] = []
        for tensor, target in self.crossings:
            sender = self.device[self.producer[tensor]]
            # Tensors of the same size share their delays, unless these were measured.
            own = tensor if tensor in graph.tensor_delay else -1
            key = (own, sizes[tensor], sender, target)
            if key not in cache:
                cache[key] = instance.delay(tensor, sender, target)
            delay = cache[key]
            if delay is None:
                names = instance.cluster.names
                raise InputError(
                    "placement",
                    f"{graph.tensor_name(tensor)} has to cross from {names[sender]} to "
                    f"{names[target]}, which are not linked",
                    "place producer and consumer together or on linked devices",
                )
            delays.append(delay)
        return delays

    def run(self, order: Sequence[int | tuple[int, int]]) -> Schedule:
        graph = self.instance.graph
        transfers = [item for item in order if isinstance(item, tuple)]
        named = set(transfers)
        vertices = [item for item in order if not isinstance(item, tuple)]
        numbers = all(isinstance(v, int | np.integer) for v in vertices)
        whole = numbers and sorted(vertices) == list(range(len(self.duration)))
        if not whole or len(named) < len(transfers) or not named <= self.number.keys():
            raise InputError(
                "order",
                "does not fit the placement",
                "name every vertex once, and only transfers that cross, once each",
            )
        at_once: dict[int, list[int]] = {}
        for c, crossing in enumerate(self.crossings):
            if crossing not in named:
                at_once.setdefault(self.producer[crossing[0]], []).append(c)
        in_start, in_edges = (array.tolist() for array in graph.in_edges)
        edge_tensor = graph.edge_tensor.tolist()
        for item in order:
            if isinstance(item, tuple):
                self._transfer(self.number[item])
                continue
            v = item
            tensors = [edge_tensor[e] for e in in_edges[in_start[v] : in_start[v + 1]]]
            self._vertex(v, tensors)
            for c in at_once.get(v, ()):
                self._transfer(c)
        return Schedule(
            self.placement,
            RationalArray.from_integers(self.start, self.scale),
            Transfers(
                np.array([tensor for tensor, _ in self.crossings], dtype=np.int32),
                np.array([target for _, target in self.crossings], dtype=np.int32),
                RationalArray.from_integers(self.begin, self.scale),
                RationalArray.from_integers(self.arrival, self.scale),
            ),
        )

    def _vertex(self, v: int, tensors: list[int]) -> None:
        here = self.device[v]
        ready = max(self.device_free[here], self._waited(v))
        for tensor in tensors:
            u = self.producer[tensor]
            local = self.device[u] == here
            at = self.end[u] if local else self.arrival[self.number[tensor, here]]
            if at < 0:
                raise self._contradiction(self.instance.graph.names[v], tensor)
            ready = max(ready, at)
        self.start[v] = ready
        self.end[v] = self.device_free[here] = ready + self.duration[v]

    def _transfer(self, c: int) -> None:
        tensor, target = self.crossings[c]
        u = self.producer[tensor]
        made, sender, delay = self.end[u], self.device[u], self.delay[c]
        if made < 0:
            raise self._contradiction("a transfer", tensor)
        made = max(made, self._waited(self.crossings[c]))
        match self.instance.model.communication:
            case "delay":
                begin, arrival = made, made + delay
            case "sendrecv":
                begin = max(made, self.device_free[sender])
                self.device_free[sender] = begin + self.send[sender]
                arrival = begin + self.send[sender] + delay
            case "link":
                begin = max(made, self.link_free.get((sender, target), 0))
                arrival = self.link_free[sender, target] = begin + delay
            case "port":
                outgoing, incoming = self.out_free[sender], self.in_free[target]
                begin = max(made, min(outgoing), min(incoming))
                arrival = begin + delay
                for port in (outgoing, incoming):
                    # Best fit: channels that have been free longer are kept for earlier transfers.
                    last = max(free for free in port if free <= begin)
                    port[port.index(last)] = arrival
        self.begin[c], self.arrival[c] = begin, arrival

    def _waited(self, task: int | tuple[int, int]) -> int:
        """Return when that has ended which a vertex or transfer waits for; 0 if it waits not."""
        other = self.waits.get(task)
        if other is None:
            return 0
        return self.arrival[self.number[other]] if isinstance(other, tuple) else self.end[other]

    def _contradiction(self, what: str, tensor: int) -> InputError:
        return InputError(
            "order",
            f"{what} comes before {self.instance.graph.tensor_name(tensor)} is available",
            "order every vertex after the vertices that it depends on",
        )
