"""Transfers in the CP-SAT model: their literals, starts and queues."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ortools.sat.python import cp_model

from optpart.exact.core import Core, Expression
from optpart.problem.model import Resource

#: A tensor and its destination.
Crossing = tuple[int, int]


class Crossings:
    """One literal per (tensor, destination device), regardless of the number of consumers there.

    If transfers queue, each also has a start. If they queue or load links, each has one literal
    per sender, which selects the link.

    Attributes
    ----------
    happens : dict from (tensor, destination) to literal
        True exactly if the producer is elsewhere and a consumer is at the destination.
    targets : dict from tensor to list of destinations
    begin : dict from (tensor, destination) to IntVar
        Only if transfers queue.
    sent : dict from (tensor, destination) to list of (sender, literal)
        Only if transfers queue or load links.
    """

    def __init__(self, core: Core) -> None:
        self.core = core
        self.model = core.model
        self.rules = core.instance.model
        self.happens: dict[Crossing, cp_model.IntVar] = {}
        self.begin: dict[Crossing, cp_model.IntVar] = {}
        self.sent: dict[Crossing, list[tuple[int, cp_model.IntVar]]] = {}
        self.producer: list[int] = core.instance.graph.tensor_vertex.tolist()
        self.targets: dict[int, list[int]] = defaultdict(list)
        queues = core.task.timed and self.rules.queues
        for tensor, targets in self._consumers().items():
            for d, consumers in targets.items():
                if not self._senders(tensor, d):
                    continue
                self.targets[tensor].append(d)
                self.happens[tensor, d] = self._literal(tensor, d, consumers)
                if queues or core.task.loads_links:
                    self._route(tensor, d)
                if queues:
                    self._start(tensor, d)

    def _consumers(self) -> dict[int, dict[int, list[int]]]:
        """Return, per tensor and device, the units (but the producer) that may consume it there."""
        unit = self.core.instance.unit_of
        found: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for u, v, tensor in self.core.instance.graph.edges():
            if unit[u] == unit[v]:
                continue
            for d, _ in self.core.literals(v):
                if unit[v] not in found[tensor][d]:
                    found[tensor][d].append(int(unit[v]))
        return found

    def _senders(self, tensor: int, d: int) -> list[tuple[int, cp_model.IntVar]]:
        return [
            (e, here)
            for e, here in self.core.literals(self.producer[tensor])
            if e != d and self.core.task.grid.delay(tensor, e, d) >= 0
        ]

    def _literal(self, tensor: int, d: int, consumers: list[int]) -> cp_model.IntVar:
        core, u = self.core, self.producer[tensor]
        there = [core.on[w, d] for w in consumers]
        here = core.on.get((int(core.instance.unit_of[u]), d))
        if here is None and any(literal is core.one for literal in there):
            return core.one
        if here is None and len(there) == 1:
            return there[0]
        wanted = any(core.device_known(int(core.instance.units[w][0])) == d for w in consumers)
        crosses = core.literal(f"cross[{tensor},{d}]", wanted and core.device_known(u) != d)
        local = [] if here is None else [here]
        for literal in there:
            self.model.add_bool_or(~literal, crosses, *local)
        self.model.add_bool_or(~crosses, *there)
        for literal in local:
            self.model.add_implication(crosses, ~literal)
        return crosses

    def _start(self, tensor: int, d: int) -> None:
        """A transfer starts after its tensor is made; without a transfer, its start is free."""
        core, u = self.core, self.producer[tensor]
        head, duration = core.task.head, core.duration
        first = min(int(head[u, e] + duration[u, e]) for e, _ in core.literals(u))
        known = core.task.known
        value = 0 if known is None else known.begin.get((tensor, d), core.end_known(u))
        begin = core.integer(first, core.task.upper, f"begin[{tensor},{d}]", value)
        self.model.add(begin >= core.end[u])
        self.begin[tensor, d] = begin

    def _route(self, tensor: int, d: int) -> None:
        """A transfer that happens has one sender, the device of its producer."""
        core, u, crosses = self.core, self.producer[tensor], self.happens[tensor, d]
        known = core.task.known
        possible = self._senders(tensor, d)
        if len(possible) == 1 and len(core.literals(u)) == 1:
            self.sent[tensor, d] = [(possible[0][0], crosses)]
            return
        happens = known is not None and (tensor, d) in known.begin
        self.sent[tensor, d] = [
            (e, core.literal(f"sent[{tensor},{e},{d}]", happens and core.device_known(u) == e))
            for e, _ in possible
        ]
        self.model.add(sum(sent for _, sent in self.sent[tensor, d]) == crosses)
        for (_, here), (_, sent) in zip(possible, self.sent[tensor, d], strict=True):
            self.model.add_implication(sent, here)
            self.model.add_bool_or(~crosses, ~here, sent)

    # --- lengths ---------------------------------------------------------------------------

    def length(self, tensor: int, e: int, d: int) -> int:
        """Return the time from the start of a transfer to its arrival."""
        grid = self.core.task.grid
        send = int(grid.send[e]) if self.rules.sends else 0
        return send + grid.delay(tensor, e, d)

    def arrival(self, tensor: int, d: int) -> Expression:
        """Return the arrival of a transfer; its start if it is queued but does not happen."""
        if not self.rules.queues:
            u = self.producer[tensor]
            return self.core.end[u] + sum(
                self.length(tensor, e, d) * here for e, here in self._senders(tensor, d)
            )
        return self.begin[tensor, d] + sum(
            self.length(tensor, e, d) * sent for e, sent in self.sent[tensor, d]
        )

    def released(self, tensor: int, d: int) -> Expression:
        """Return when a queued transfer releases its sender, link or ports."""
        if not self.rules.sends:
            return self.arrival(tensor, d)
        send = self.core.task.grid.send
        return self.begin[tensor, d] + sum(int(send[e]) * x for e, x in self.sent[tensor, d])

    def begin_known(self, tensor: int, d: int) -> int:
        """Return the start of a transfer in the initial schedule, if it happens there."""
        known, u = self.core.task.known, self.producer[tensor]
        if known is None or not self.rules.queues:
            return self.core.end_known(u)
        return known.begin.get((tensor, d), self.core.end_known(u))

    def arrival_known(self, tensor: int, d: int) -> int:
        """Return the arrival of a tensor in the initial schedule; locally, its producer's end."""
        e = self.core.device_known(self.producer[tensor])
        if e in (-1, d):
            return self.core.end_known(self.producer[tensor])
        return self.begin_known(tensor, d) + self.length(tensor, e, d)

    def loads(self) -> Iterator[tuple[Resource, int, cp_model.IntVar]]:
        """Yield what each transfer adds to the load of which resource, and its literal."""
        send = self.core.task.grid.send
        for crossing, e, sent, length in self._lengths():
            for resource in self.rules.occupied(e, crossing[1]):
                yield resource, int(send[e]) if self.rules.sends else length, sent

    # --- queues ----------------------------------------------------------------------------

    def sends(self) -> dict[int, list[cp_model.IntervalVar]]:
        """Return send vertices by device; they take turns with the vertices there ([L] §2.4)."""
        found: dict[int, list[cp_model.IntervalVar]] = defaultdict(list)
        if self.rules.sends:
            send = self.core.task.grid.send
            for crossing, senders in self.sent.items():
                for e, sent in senders:
                    found[e].append(self.core.interval(self.begin[crossing], int(send[e]), sent))
        return found

    def add_queues(self) -> None:
        """Consumers wait for queued transfers, and links and ports have limited capacity."""
        if not self.rules.queues:
            return
        unit = self.core.instance.unit_of
        for u, v, tensor in self.core.instance.graph.edges():
            if unit[u] == unit[v]:
                continue
            for d, there in self.core.literals(v):
                if (tensor, d) in self.begin:
                    self._wait(tensor, v, d, there)
        if self.rules.sends:
            if self.core.task.load_cuts:
                self._load_of_sends()
            return
        queues: dict[Resource, list[tuple[Crossing, cp_model.IntVar, int]]] = defaultdict(list)
        for crossing, e, sent, length in self._lengths():
            for resource in self.rules.occupied(e, crossing[1]):
                queues[resource].append((crossing, sent, length))
        for queue in queues.values():
            self._carry(queue, self.rules.parallel)

    def _wait(self, tensor: int, v: int, d: int, there: cp_model.IntVar) -> None:
        crosses = self.happens[tensor, d]
        conditions = [there] if there is crosses else [there, crosses]
        self.core.no_later(self.arrival(tensor, d), self.core.start[v], *conditions)

    def _load_of_sends(self) -> None:
        """A device runs its vertices and its sends one at a time."""
        core = self.core
        for d in range(core.instance.devices):
            work = [
                int(core.duration[v, d]) * core.on[int(u), d]
                for v, u in enumerate(core.instance.unit_of)
                if (int(u), d) in core.on
            ]
            sending = [
                int(core.task.grid.send[d]) * sent
                for senders in self.sent.values()
                for e, sent in senders
                if e == d
            ]
            if work and sending:
                core.model.add(sum(work) + sum(sending) <= core.makespan)

    def _lengths(self) -> list[tuple[Crossing, int, cp_model.IntVar, int]]:
        """Every transfer with its sender, literal and length."""
        return [
            ((tensor, d), e, sent, self.length(tensor, e, d))
            for (tensor, d), senders in self.sent.items()
            for e, sent in senders
        ]

    def _carry(self, queue: list[tuple[Crossing, cp_model.IntVar, int]], channels: int) -> None:
        """Carry at most that many transfers at a time.

        A transfer without length needs a channel for its instant: one that carries no transfer that
        began before and ends after it. Time is counted in half ticks here: a transfer with length
        occupies all but its first half tick, one without length the half tick at its instant. Each
        of the former weighs as much as all of the latter together, which thus conflict only if all
        channels are taken.
        """
        if len(queue) <= channels:
            return
        if self.core.task.load_cuts:
            self._load_of_queue(queue, channels)
        if channels == 1:
            self.model.add_no_overlap(
                self.core.interval(self.begin[crossing], length, sent)
                for crossing, sent, length in queue
            )
            return
        instants = sum(length == 0 for _, _, length in queue)
        intervals, weights = [], []
        for crossing, sent, length in queue:
            begin = self.begin[crossing]
            if not instants:
                intervals.append(self.core.interval(begin, length, sent))
            elif length:
                intervals.append(self.core.interval(2 * begin + 1, 2 * length - 1, sent))
            else:
                intervals.append(self.core.interval(2 * begin, 1, sent))
            weights.append(max(1, instants) if length else 1)
        self.model.add_cumulative(intervals, weights, channels * max(1, instants))

    def _load_of_queue(
        self, queue: list[tuple[Crossing, cp_model.IntVar, int]], channels: int
    ) -> None:
        carried = [length * sent for _, sent, length in queue if length]
        if carried:
            self.model.add(sum(carried) <= channels * self.core.makespan)
