"""The cause of each wait in a schedule: critical path and idle times."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

from optpart.problem.instance import Instance
from optpart.solution.schedule import Schedule

#: A vertex or a transfer, by number.
Step = tuple[Literal["vertex", "transfer"], int]

#: Why a device is idle: its next vertex waits for a transfer; it starts later than its inputs
#: require; nothing is left to run; or nothing runs there at all.
Cause = Literal["transfer", "held", "end", "unused"]


@dataclass(frozen=True)
class Idle:
    """A time in which a device runs nothing.

    Attributes
    ----------
    next : int
        The vertex that runs next; -1 if there is none.
    transfer : int
        The transfer that it waits for; -1 if it waits for none.
    """

    device: int
    start: Fraction
    end: Fraction
    cause: Cause
    next: int
    transfer: int


class Waits:
    """The schedule, read backwards: what every start waited for, in exact arithmetic.

    Parameters
    ----------
    schedule : Schedule
        A valid schedule of ``instance``.
    """

    def __init__(self, instance: Instance, schedule: Schedule) -> None:
        self.instance = instance
        self.device: list[int] = schedule.placement.tolist()
        self.start = schedule.start.fractions()
        self.duration = [instance.duration(v, d) for v, d in enumerate(self.device)]
        self.end = [s + p for s, p in zip(self.start, self.duration, strict=True)]
        moves = schedule.transfers
        self.tensor: list[int] = moves.tensor.tolist()
        self.target: list[int] = moves.target.tolist()
        self.begin, self.arrival = moves.start.fractions(), moves.end.fractions()
        self.producer: list[int] = instance.graph.tensor_vertex.tolist()

    @property
    def makespan(self) -> Fraction:
        """The latest end of a vertex."""
        return max(self.end, default=Fraction(0))

    @cached_property
    def _transfer(self) -> dict[tuple[int, int], int]:
        return {key: c for c, key in enumerate(zip(self.tensor, self.target, strict=True))}

    @cached_property
    def _inputs(self) -> list[list[int]]:
        graph = self.instance.graph
        tensors: list[list[int]] = [[] for _ in self.start]
        targets = graph.edge_target.tolist()
        for tensor, v in zip(graph.edge_tensor.tolist(), targets, strict=True):
            tensors[v].append(tensor)
        return tensors

    @cached_property
    def _sends(self) -> list[Fraction]:
        """The time for which each transfer keeps its sender busy."""
        if self.instance.model.communication != "sendrecv":
            return [Fraction(0)] * len(self.tensor)
        times = [self.instance.send_duration(d) for d in range(self.instance.devices)]
        return [times[self.device[self.producer[tensor]]] for tensor in self.tensor]

    @cached_property
    def runs(self) -> list[list[tuple[Fraction, Fraction, Step]]]:
        """The vertices and sends of each device, in the order of time."""
        rows: list[list[tuple[Fraction, Fraction, Step]]] = [
            [] for _ in self.instance.cluster.names
        ]
        for v, d in enumerate(self.device):
            rows[d].append((self.start[v], self.end[v], ("vertex", v)))
        for c, send in enumerate(self._sends):
            if send:
                sender = self.device[self.producer[self.tensor[c]]]
                rows[sender].append((self.begin[c], self.begin[c] + send, ("transfer", c)))
        for row in rows:
            row.sort(key=lambda run: run[:2])
        return rows

    @cached_property
    def _ending(self) -> dict[tuple[object, Fraction], Step]:
        """Items that end at a time on a device, a link or a port, if they took time."""
        found: dict[tuple[object, Fraction], Step] = {}
        for d, row in enumerate(self.runs):
            for start, end, step in row:
                if end > start:
                    found[d, end] = step
        for c, target in enumerate(self.target):
            if self.arrival[c] > self.begin[c]:
                for resource in self._queues(c, target):
                    found[resource, self.arrival[c]] = ("transfer", c)
        return found

    def _queues(self, c: int, target: int) -> list[object]:
        sender = self.device[self.producer[self.tensor[c]]]
        rules = self.instance.model
        return [] if rules.sends else list(rules.occupied(sender, target))

    def input_of(self, v: int) -> tuple[Fraction, Step] | None:
        """Return when the last input of a vertex is there, and what brings it."""
        last: tuple[Fraction, Step] | None = None
        for tensor in self._inputs[v]:
            u = self.producer[tensor]
            here: tuple[Fraction, Step]
            if self.device[u] == self.device[v]:
                here = self.end[u], ("vertex", u)
            else:
                c = self._transfer[tensor, self.device[v]]
                here = self.arrival[c], ("transfer", c)
            if last is None or here[0] > last[0]:
                last = here
        return last

    def before(self, step: Step) -> Step | None:
        """Return what ends just when a step starts and had to; ``None`` if there is nothing."""
        kind, number = step
        if kind == "vertex":
            start, given = self.start[number], self.input_of(number)
            if given is not None and given[0] == start:
                return given[1]
            return self._ending.get((self.device[number], start))
        start, u = self.begin[number], self.producer[self.tensor[number]]
        if self.end[u] == start:
            return "vertex", u
        queues: list[object] = self._queues(number, self.target[number])
        if self._sends[number]:
            queues = [self.device[u]]
        return next((self._ending[q, start] for q in queues if (q, start) in self._ending), None)

    def critical_path(self) -> list[Step]:
        """Return a chain of steps without a gap between them, the last of which ends last.

        Returns
        -------
        list of Step
            In the order of time. The first one starts at 0, unless a vertex or a transfer in the
            schedule starts later than it could; then the chain begins there.
        """
        makespan = self.makespan
        last = next((v for v, end in enumerate(self.end) if end == makespan), None)
        chain: list[Step] = []
        step: Step | None = None if last is None else ("vertex", last)
        seen: set[Step] = set()
        while step is not None and step not in seen:
            seen.add(step)
            chain.append(step)
            step = self.before(step)
        return chain[::-1]

    def idle(self) -> list[Idle]:
        """Return the idle times of every device, with their causes."""
        found: list[Idle] = []
        makespan = self.makespan
        for d, row in enumerate(self.runs):
            free = Fraction(0)
            for start, end, (kind, number) in row:
                if start > free:
                    found.append(self._gap(d, free, start, kind, number))
                free = max(free, end)
            if makespan > free:
                cause: Cause = "end" if row else "unused"
                found.append(Idle(d, free, makespan, cause, -1, -1))
        return found

    def _gap(self, d: int, free: Fraction, start: Fraction, kind: str, number: int) -> Idle:
        if kind == "transfer":
            return Idle(d, free, start, "held", self.producer[self.tensor[number]], -1)
        given = self.input_of(number)
        if given is not None and given[0] == start and given[1][0] == "transfer":
            return Idle(d, free, start, "transfer", number, given[1][1])
        return Idle(d, free, start, "held", number, -1)
