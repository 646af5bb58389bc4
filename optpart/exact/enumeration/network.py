"""The scheduling problem under a placement: events, arcs and resources."""

from __future__ import annotations

from collections.abc import Iterator

from optpart.exact.enumeration.numbers import Numbers
from optpart.exact.enumeration.resource import Arc, Event, Resource, Use, before
from optpart.solution.goal import Task

#: A device, a link or one of the two ports of a device.
Place = tuple[str, int] | tuple[str, int, int]


class Network:
    """Events, arcs and resources under a placement.

    Under an incomplete placement, it is a relaxation: a vertex without a device takes its shortest
    time, uses no resource, and passes its tensors on immediately.
    """

    def __init__(self, numbers: Numbers, device: list[int]) -> None:
        self.numbers = numbers
        self.device = device
        self.length = [
            min((t for t in numbers.time[v] if t is not None), default=0)
            if d == -1
            else _known(numbers.time[v][d])
            for v, d in enumerate(device)
        ]
        self.variables = numbers.n
        self.arcs: list[Arc] = []
        #: The resources that each task occupies, and its interval on them.
        self.tasks: dict[Task, tuple[list[Place], Use]] = {
            v: ([("device", d)], Use((v, 0), (self.end(v),)))
            for v, d in enumerate(device)
            if d != -1
        }
        self.begin: dict[tuple[int, int], Event] = {}
        self.arrival: dict[tuple[int, int], Event] = {}
        for crossing in numbers.crossings(device):
            self._transfer(*crossing)
        for v, tensor in numbers.edges:
            self.arcs.append(before(self.available(tensor, v), (v, 0)))
        self._order()
        self.resources = [*self._occupied()]
        if -1 not in device:
            self.resources += self._memory()

    def end(self, v: int) -> Event:
        """Return the end of a vertex."""
        return v, self.length[v]

    def available(self, tensor: int, v: int) -> Event:
        """Return the event at which a tensor becomes available to ``v``."""
        return self.arrival.get((tensor, self.device[v]), self.end(self.numbers.producer[tensor]))

    def _transfer(self, tensor: int, target: int) -> None:
        numbers = self.numbers
        u = numbers.producer[tensor]
        sender = self.device[u]
        delay, send = _known(numbers.delay[tensor][sender][target]), numbers.send[sender]
        begin, made = (self.variables, 0), self.end(u)
        if numbers.model.communication == "delay":
            begin = made
        else:
            self.variables += 1
            self.arcs.append(before(made, begin))
        variable, offset = begin
        held = offset + (send if numbers.model.communication == "sendrecv" else delay)
        self.begin[tensor, target] = begin
        self.arrival[tensor, target] = variable, offset + send + delay
        where: list[Place]
        match numbers.model.communication:
            case "delay":
                where = []
            case "sendrecv":
                where = [("device", sender)]
            case "link":
                where = [("link", sender, target)]
            case "port":
                where = [("send", sender), ("receive", target)]
        self.tasks[tensor, target] = where, Use(begin, ((variable, held),))

    def _order(self) -> None:
        """Add the given order for tasks that share a resource."""
        for first, second in self.numbers.order:
            if first in self.tasks and second in self.tasks:
                (at, earlier), (there, later) = self.tasks[first], self.tasks[second]
                if set(at) & set(there):
                    self.arcs.append(before(earlier.ends[0], later.begin))

    def _occupied(self) -> Iterator[Resource]:
        uses: dict[Place, list[Use]] = {}
        for where, use in self.tasks.values():
            for resource in where:
                uses.setdefault(resource, []).append(use)
        for resource, listed in uses.items():
            port = resource[0] in ("send", "receive")
            yield Resource(self.numbers.model.channels if port else 1, listed, occupied=True)

    def _memory(self) -> Iterator[Resource]:
        numbers = self.numbers
        match numbers.model.memory:
            case "edges":
                held = self._active_edges()
            case "refcount":
                held = self._copies()
            case _:
                return
        for d, capacity in enumerate(numbers.capacity):
            if capacity is not None:
                uses = [use for at, use in held if at == d and use.amount]
                yield Resource(capacity - numbers.held(self.device, d), uses, occupied=False)

    def _active_edges(self) -> list[tuple[int, Use]]:
        """Return memory uses as in [M] eq. 2: from an edge's arrival until its target starts."""
        size = self.numbers.size
        return [
            (self.device[v], Use(self.available(tensor, v), ((v, 0),), size[tensor]))
            for v, tensor in self.numbers.edges
        ]

    def _copies(self) -> list[tuple[int, Use]]:
        """Return memory uses as in [L] §3.1.6: until the last use of a copy on its device."""
        numbers = self.numbers
        copies: dict[tuple[int, int], tuple[Event, list[Event]]] = {}
        for tensor, u in enumerate(numbers.producer):
            copies[tensor, self.device[u]] = (u, 0), [self.end(u)]
        for (tensor, target), begin in self.begin.items():
            copies[tensor, target] = begin, []
            home = self.device[numbers.producer[tensor]]
            copies[tensor, home][1].append(self.arrival[tensor, target])
        for v, tensor in numbers.edges:
            freed = (v, 0) if numbers.model.release == "start" else self.end(v)
            copies[tensor, self.device[v]][1].append(freed)
        return [
            (d, Use(begin, tuple(ends), numbers.size[tensor]))
            for (tensor, d), (begin, ends) in copies.items()
        ]

    def bound(self, start: list[int]) -> int:
        """Return a lower bound on the makespan of schedules with starts of at least ``start``."""
        ends = [start[v] + length for v, length in enumerate(self.length)]
        single = [r.free_at(start) for r in self.resources if r.occupied and r.limit == 1]
        work = -(-sum(self.length) // self.numbers.k)
        return max([0, *ends, *single, work])


def _known(number: int | None) -> int:
    assert number is not None
    return number
