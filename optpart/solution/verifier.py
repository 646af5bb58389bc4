"""The exact checker of schedules against every rule of an instance.

It computes from the numbers of the instance only and shares no code with what builds schedules
(design §3). The reference, which finds and words every violation, computes in
:class:`fractions.Fraction`. A second checker, in whole numbers, is much faster and just as exact
(:mod:`optpart.solution.whole_numbers`). A schedule is accepted only if both accept it; of a large
one, the reference judges a sample.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from optpart.problem.instance import Instance
from optpart.solution.schedule import Schedule
from optpart.solution.whole_numbers import accepts

_ZERO = Fraction(0)

#: Up to this many vertices and edges together, the reference judges the whole schedule.
_WHOLE = 4000

#: A sample of a larger one: stretches of vertices that start one after another, and their length.
_STRETCHES, _LENGTH = 8, 100


@dataclass(frozen=True)
class Violation:
    """One broken rule: its name and, in words, where it is broken."""

    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.message}"


def verify(instance: Instance, schedule: Schedule, most: int = 20) -> list[Violation]:
    """Check a schedule against every constraint of design §2.

    Parameters
    ----------
    most : int
        Maximal number of violations reported.

    Returns
    -------
    list of Violation
        Empty if and only if the schedule is valid.
    """
    if not accepts(instance, schedule):
        return reference(instance, schedule, most)
    if instance.vertices + len(instance.graph.edge_source) <= _WHOLE:
        return reference(instance, schedule, most)
    return reference(instance, schedule, most, sample(instance, schedule))


def reference(
    instance: Instance,
    schedule: Schedule,
    most: int = 20,
    among: NDArray[np.int64] | None = None,
) -> list[Violation]:
    """Check as :func:`verify` does, in fractions alone: slowly, and one rule after another.

    Parameters
    ----------
    among : ndarray of int64, optional
        Check only these vertices, the edges between them, and the transfers that these need. Every
        rule of design §2 that holds for a schedule also holds for this part of it.
    """
    return list(_first(_Checker(instance, schedule, among).violations(), most))


def sample(instance: Instance, schedule: Schedule) -> NDArray[np.int64]:
    """Return the vertices of random stretches of a schedule, and all their predecessors."""
    n, graph = instance.vertices, instance.graph
    rng = np.random.default_rng(n)
    first = rng.integers(max(1, n - _LENGTH), size=_STRETCHES)
    order = np.argsort(schedule.start.numerators, kind="stable")
    inside = np.zeros(n, dtype=np.bool_)
    inside[order[np.concatenate([np.arange(i, min(n, i + _LENGTH)) for i in first])]] = True
    inside[graph.edge_source[inside[graph.edge_target]]] = True
    return np.flatnonzero(inside)


def _first(violations: Iterator[Violation], most: int) -> Iterator[Violation]:
    for _, violation in zip(range(most), violations, strict=False):
        yield violation


class _Checker:
    def __init__(
        self, instance: Instance, schedule: Schedule, among: NDArray[np.int64] | None
    ) -> None:
        self.instance = instance
        self.schedule = schedule
        self.inside = np.full(instance.vertices, among is None)
        self.inside[[] if among is None else among] = True
        self.vertices = np.flatnonzero(self.inside).tolist()
        self.names = instance.graph.names
        self.device_names = instance.cluster.names

    def violations(self) -> Iterator[Violation]:
        shape = list(self._shape())
        yield from shape
        if shape:  # nothing below makes sense on arrays of the wrong size
            return
        self._read()
        yield from self._placement()
        transfers = list(self._transfers())
        yield from transfers
        yield from self._precedence()
        yield from self._devices()
        match self.instance.model.communication:
            case "link":
                yield from self._links()
            case "port":
                yield from self._ports()
            case "delay" | "sendrecv":
                pass
        if not transfers:  # memory is counted from the transfers
            yield from self._memory()

    def _shape(self) -> Iterator[Violation]:
        n, k, t = self.instance.vertices, self.instance.devices, self.instance.graph.tensors
        schedule = self.schedule
        if len(schedule.placement) != n or len(schedule.start) != n:
            yield Violation("complete", f"{n} vertices need {n} devices and {n} starts")
        elif any(not 0 <= d < k for d in schedule.placement.tolist()):
            yield Violation("complete", "a vertex is on a device that does not exist")
        moves = schedule.transfers
        if not len(moves.tensor) == len(moves.target) == len(moves.start) == len(moves.end):
            yield Violation("complete", "the arrays of the transfers differ in length")
        elif any(not 0 <= x < t for x in moves.tensor.tolist()) or any(
            not 0 <= d < k for d in moves.target.tolist()
        ):
            yield Violation("complete", "a transfer of a tensor or to a device that does not exist")

    def _read(self) -> None:
        instance, schedule, graph = self.instance, self.schedule, self.instance.graph
        inside = self.inside
        self.device = schedule.placement.tolist()
        self.start = dict(zip(self.vertices, schedule.start.take(inside).fractions(), strict=True))
        self.end = {v: at + self._run_time(v, self.device[v]) for v, at in self.start.items()}
        self.producer = graph.tensor_vertex.tolist()
        self.tensors = np.flatnonzero(inside[graph.tensor_vertex]).tolist()
        between = inside[graph.edge_source] & inside[graph.edge_target]
        self.edges = list(
            zip(
                graph.edge_source[between].tolist(),
                graph.edge_target[between].tolist(),
                graph.edge_tensor[between].tolist(),
                strict=True,
            )
        )
        self.needed = {
            (tensor, self.device[v])
            for u, v, tensor in self.edges
            if self.device[u] != self.device[v]
        }
        moves = schedule.transfers
        made, whole = inside[graph.tensor_vertex[moves.tensor]], inside.all()
        self.moves = [
            move
            for move in zip(
                moves.tensor[made].tolist(),
                moves.target[made].tolist(),
                moves.start.take(made).fractions(),
                moves.end.take(made).fractions(),
                strict=True,
            )
            # The part of a schedule has fewer consumers, so fewer transfers are needed.
            if whole or move[:2] in self.needed
        ]
        self.arrival = {(tensor, target): end for tensor, target, _, end in self.moves}
        self.sending = (
            [instance.model.send_ops / instance.cluster.speed[d] for d in range(instance.devices)]
            if instance.model.communication == "sendrecv"
            else [_ZERO] * instance.devices
        )

    def _run_time(self, vertex: int, device: int) -> Fraction:
        given = self.instance.given_durations
        if given is not None:
            return given.times[vertex, device]
        return self.instance.graph.ops[vertex] / self.instance.cluster.speed[device]

    def _crossing_time(self, tensor: int, sender: int, receiver: int) -> Fraction | None:
        """Return δ of design §2, computed independently here; ``None`` where there is no link."""
        graph, cluster = self.instance.graph, self.instance.cluster
        free = bool(cluster.infinite[sender, receiver])
        rate = cluster.bandwidth[sender, receiver]
        if not free and rate == 0:
            return None
        if tensor in graph.tensor_delay:
            return graph.tensor_delay[tensor][sender][receiver]
        time = cluster.latency[sender, receiver]
        return time if free else time + graph.tensor_size[tensor] / rate

    # --- placement -------------------------------------------------------------------------

    def _placement(self) -> Iterator[Violation]:
        graph, cluster = self.instance.graph, self.instance.cluster
        for v in self.vertices:
            d = self.device[v]
            kind, names = graph.device_types[v], graph.allowed_devices.get(v)
            if kind is not None and cluster.types[d] != kind:
                yield Violation(
                    "device type", f"{self.names[v]} needs {kind} and is on {cluster.names[d]}"
                )
            if names is not None and cluster.names[d] not in names:
                yield Violation(
                    "allowed devices", f"{self.names[v]} must not be on {cluster.names[d]}"
                )
            given = self.instance.given_durations
            if given is not None and not given.possible[v, d]:
                yield Violation("durations", f"{self.names[v]} cannot run on {cluster.names[d]}")
        for group in graph.colocation:
            for v in group[1:]:
                if self.device[v] != self.device[group[0]]:
                    yield Violation(
                        "colocation", f"{self.names[group[0]]} and {self.names[v]} are apart"
                    )
        for a, b in graph.separation:
            if self.device[a] == self.device[b]:
                yield Violation(
                    "separation",
                    f"{self.names[a]} and {self.names[b]} are both on "
                    f"{cluster.names[self.device[a]]}",
                )

    # --- times -----------------------------------------------------------------------------

    def _transfers(self) -> Iterator[Violation]:
        graph, needed = self.instance.graph, self.needed
        present: set[tuple[int, int]] = set()
        for tensor, target, start, end in self.moves:
            what = f"{graph.tensor_name(tensor)} to {self.device_names[target]}"
            if (tensor, target) in present:
                yield Violation("transfers", f"{what} crosses twice")
            elif (tensor, target) not in needed:
                yield Violation("transfers", f"{what} crosses but is not needed there")
            present.add((tensor, target))
            u = self.producer[tensor]
            sender = self.device[u]
            if sender == target:
                continue
            time = self._crossing_time(tensor, sender, target)
            if time is None:
                yield Violation("link", f"{what}: {self.device_names[sender]} has no link to it")
                continue
            if start < self.end[u]:
                yield Violation(
                    "transfers",
                    f"{what} starts at {start}, before its tensor is made at {self.end[u]}",
                )
            if end != start + self.sending[sender] + time:
                yield Violation(
                    "transfers",
                    f"{what} runs from {start} to {end} but takes {self.sending[sender] + time}",
                )
            if self.instance.model.communication == "delay" and start != self.end[u]:
                yield Violation("transfers", f"{what} does not start when its tensor is made")
        for tensor, target in sorted(needed - present):
            yield Violation(
                "transfers",
                f"{graph.tensor_name(tensor)} is needed on {self.device_names[target]} "
                "but never crosses",
            )

    def _precedence(self) -> Iterator[Violation]:
        for v, start in self.start.items():
            if start < 0:
                yield Violation("start", f"{self.names[v]} starts at {start}, before 0")
        for u, v, tensor in self.edges:
            here = self.device[v]
            at = self.end[u] if self.device[u] == here else self.arrival.get((tensor, here))
            if at is not None and self.start[v] < at:
                yield Violation(
                    "precedence",
                    f"{self.names[v]} starts at {self.start[v]}, before "
                    f"{self.instance.graph.tensor_name(tensor)} is available at {at}",
                )

    def _devices(self) -> Iterator[Violation]:
        busy: dict[int, list[tuple[Fraction, Fraction, str]]] = defaultdict(list)
        for v in self.vertices:
            busy[self.device[v]].append((self.start[v], self.end[v], self.names[v]))
        if self.instance.model.communication == "sendrecv":
            for tensor, target, start, _ in self.moves:
                sender = self.device[self.producer[tensor]]
                what = (
                    f"sending {self.instance.graph.tensor_name(tensor)} to "
                    + (self.device_names[target])
                )
                busy[sender].append((start, start + self.sending[sender], what))
        for d, intervals in busy.items():
            for first, second in _overlaps(intervals):
                yield Violation("device", f"{first} and {second} overlap on {self.device_names[d]}")

    def _links(self) -> Iterator[Violation]:
        busy: dict[tuple[int, int], list[tuple[Fraction, Fraction, str]]] = defaultdict(list)
        for tensor, target, start, end in self.moves:
            sender = self.device[self.producer[tensor]]
            busy[sender, target].append((start, end, self.instance.graph.tensor_name(tensor)))
        for (d, e), intervals in busy.items():
            for first, second in _overlaps(intervals):
                yield Violation(
                    "link",
                    f"{first} and {second} overlap from {self.device_names[d]} to "
                    f"{self.device_names[e]}",
                )

    def _ports(self) -> Iterator[Violation]:
        """Limit the simultaneous transfers; one of length zero still needs a channel."""
        channels = Fraction(self.instance.model.channels)
        use: dict[tuple[str, int], list[tuple[Fraction, Fraction, Fraction]]] = defaultdict(list)
        for tensor, target, start, end in self.moves:
            sender = self.device[self.producer[tensor]]
            use["send", sender].append((start, end, Fraction(1)))
            use["receive", target].append((start, end, Fraction(1)))
        for (port, d), intervals in use.items():
            time, peak = _peak(intervals)
            for at in (start for start, end, _ in intervals if start == end):
                around = sum((one for start, end, one in intervals if start < at < end), _ZERO)
                if around + 1 > peak:
                    time, peak = at, around + 1
            if peak > channels:
                yield Violation(
                    "port",
                    f"the {port} port of {self.device_names[d]} carries {peak} transfers "
                    f"at {time}, but at most {channels} are allowed",
                )

    # --- memory ----------------------------------------------------------------------------

    def _memory(self) -> Iterator[Violation]:
        instance, cluster = self.instance, self.instance.cluster
        match instance.model.memory:
            case "none":
                return
            case "estimate":
                use = self._estimate()
            case "edges":
                use = self._active_edges()
            case "refcount":
                use = self._reference_counts()
        for d, intervals in use.items():
            capacity = cluster.memory[d]
            if capacity is None:
                continue
            time, peak = _peak(intervals)
            if peak > capacity:
                yield Violation(
                    "memory",
                    f"{cluster.names[d]} holds {peak} at {time}, but its capacity is {capacity}",
                )

    def _estimate(self) -> dict[int, list[tuple[Fraction, Fraction, Fraction]]]:
        graph = self.instance.graph
        total: dict[int, Fraction] = defaultdict(Fraction)
        for v in self.vertices:
            total[self.device[v]] += graph.memory[v]
        for tensor in self.tensors:
            total[self.device[self.producer[tensor]]] += graph.tensor_size[tensor]
        for v, tensor in {(v, tensor) for _, v, tensor in self.edges}:
            total[self.device[v]] += graph.tensor_size[tensor]
        return {d: [(_ZERO, Fraction(1), amount)] for d, amount in total.items()}

    def _active_edges(self) -> dict[int, list[tuple[Fraction, Fraction, Fraction]]]:
        use: dict[int, list[tuple[Fraction, Fraction, Fraction]]] = defaultdict(list)
        for u, v, tensor in self.edges:
            here = self.device[v]
            at = self.end[u] if self.device[u] == here else self.arrival[tensor, here]
            use[here].append((at, self.start[v], self.instance.graph.tensor_size[tensor]))
        return use

    def _reference_counts(self) -> dict[int, list[tuple[Fraction, Fraction, Fraction]]]:
        graph = self.instance.graph
        finish = max(self.end.values(), default=_ZERO) + 1
        use: dict[int, list[tuple[Fraction, Fraction, Fraction]]] = defaultdict(list)
        for v in self.vertices:
            use[self.device[v]].append((_ZERO, finish, graph.memory[v]))
        free_at = self.start if self.instance.model.release == "start" else self.end
        begin: dict[tuple[int, int], Fraction] = {}
        last: dict[tuple[int, int], Fraction] = {}
        for tensor in self.tensors:
            u = self.producer[tensor]
            home = tensor, self.device[u]
            begin[home], last[home] = self.start[u], self.end[u]
        for _, v, tensor in self.edges:
            key = tensor, self.device[v]
            last[key] = max(last.get(key, _ZERO), free_at[v])
        for tensor, target, start, end in self.moves:
            begin[tensor, target] = start
            home = tensor, self.device[self.producer[tensor]]
            last[home] = max(last[home], end)
        for (tensor, d), since in begin.items():
            use[d].append((since, last[tensor, d], graph.tensor_size[tensor]))
        return use


def _overlaps(
    intervals: list[tuple[Fraction, Fraction, str]],
) -> Iterator[tuple[str, str]]:
    """Yield pairs that overlap; a zero-length interval may touch but not lie inside another."""
    intervals.sort(key=lambda interval: interval[:2])
    until, holder = None, ""
    for start, end, name in intervals:
        if until is not None and start < until:
            yield holder, name
        if until is None or end > until:
            until, holder = end, name


def _peak(
    intervals: Iterable[tuple[Fraction, Fraction, Fraction]],
) -> tuple[Fraction, Fraction]:
    """Return when half-open intervals ``[start, end)`` add up to the most, and that amount."""
    change: dict[Fraction, Fraction] = defaultdict(Fraction)
    for start, end, amount in intervals:
        if start < end:
            change[start] += amount
            change[end] -= amount
    now, peak, when = _ZERO, _ZERO, _ZERO
    for time in sorted(change):
        now += change[time]
        if now > peak:
            now, peak, when = now, now, time
    return when, peak
