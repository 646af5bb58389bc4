"""Times and sizes of an instance as Python integers over common denominators."""

from __future__ import annotations

import math
from fractions import Fraction

from optpart.problem.instance import Instance
from optpart.solution.goal import Goal


class Numbers:
    """The instance as integers: times over ``scale``, sizes and memory over ``measure``."""

    def __init__(self, instance: Instance, goal: Goal) -> None:
        graph, cluster = instance.graph, instance.cluster
        n, k = len(graph), len(cluster)
        self.n, self.k = n, k
        times = [[_run_time(instance, goal, v, d) for d in range(k)] for v in range(n)]
        delays = [
            [[_delay(instance, t, d, e) for e in range(k)] for d in range(k)]
            for t in range(graph.tensors)
        ]
        sends = [
            instance.model.send_ops / speed if instance.model.communication == "sendrecv" else 0
            for speed in cluster.speed.fractions()
        ]
        known = [*sends, *(t for row in times for t in row)]
        known += [t for matrix in delays for row in matrix for t in row]
        self.scale = math.lcm(1, *(t.denominator for t in known if t is not None))
        self.time = [[_whole(t, self.scale) for t in row] for row in times]
        self.delay = [[[_whole(t, self.scale) for t in row] for row in m] for m in delays]
        self.send = [int(t * self.scale) for t in sends]

        sizes, resident = graph.tensor_size.fractions(), graph.memory.fractions()
        amounts = [*sizes, *resident, *(m for m in cluster.memory if m is not None)]
        self.measure = math.lcm(1, *(amount.denominator for amount in amounts))
        self.size = [int(size * self.measure) for size in sizes]
        self.resident = [int(size * self.measure) for size in resident]
        self.capacity = [_whole(m, self.measure) for m in cluster.memory]

        self.producer = graph.tensor_vertex.tolist()
        self.edges = list(zip(graph.edge_target.tolist(), graph.edge_tensor.tolist(), strict=True))
        self.apart = graph.separation
        self.model = instance.model
        self.units = _units(n, graph.colocation, graph.topological_order.tolist())
        self.order = goal.order
        self.blocks = goal.blocks
        self.place = {d: i for i, d in enumerate(goal.device_order)}
        self.after = self._descendants(graph.topological_order.tolist())
        #: Loads are counted in time units over ``scale`` times this.
        self.channels = instance.model.channels if self.model.communication == "port" else 1
        self.static = self._static()

    def _descendants(self, order: list[int]) -> list[set[int]]:
        """Return the vertices to which a path leads from each vertex."""
        after: list[set[int]] = [set() for _ in range(self.n)]
        for u in reversed(order):
            for v, tensor in self.edges:
                if self.producer[tensor] == u:
                    after[u] |= {v} | after[v]
        return after

    def _static(self) -> list[int]:
        """Return the memory that each vertex holds on its device for the whole run."""
        match self.model.memory:
            case "none" | "edges":
                return [0] * self.n
            case "refcount":
                return self.resident
            case "estimate":  # [L] §4.1 (3)
                need = self.resident.copy()
                for tensor, u in enumerate(self.producer):
                    need[u] += self.size[tensor]
                for v, tensor in set(self.edges):
                    need[v] += self.size[tensor]
                return need

    def crossings(self, device: list[int]) -> list[tuple[int, int]]:
        """Return the crossings (tensor, destination) between placed vertices, sorted."""
        return sorted(
            {
                (tensor, device[v])
                for v, tensor in self.edges
                if -1 != device[v] != device[self.producer[tensor]] != -1
            }
        )

    def alike_devices(self) -> list[list[int]]:
        """Return, for each device, the earlier devices with which it is interchangeable."""
        if any(isinstance(task, tuple) for pair in self.order for task in pair):
            return [[] for _ in range(self.k)]  # transfers name their destinations
        return [[d for d in range(e) if self._alike(d, e)] for e in range(self.k)]

    def _alike(self, d: int, e: int) -> bool:
        swapped = list(range(self.k))
        swapped[d], swapped[e] = e, d
        return (
            not {d, e} & self.place.keys()
            and all(row[d] == row[e] for row in self.time)
            and self.send[d] == self.send[e]
            and self.capacity[d] == self.capacity[e]
            and all([[m[i][j] for j in swapped] for i in swapped] == m for m in self.delay)
        )

    def traffic(self, device: list[int]) -> int:
        """Return the traffic of a placement."""
        return sum(self.size[tensor] for tensor, _ in self.crossings(device))

    def possible(self, device: list[int]) -> bool:
        """Return whether a placement, complete or not, satisfies all constraints without times."""
        if any(device[a] == device[b] != -1 for a, b in self.apart):
            return False
        if any(
            self.delay[tensor][device[self.producer[tensor]]][target] is None
            for tensor, target in self.crossings(device)
        ):
            return False
        if self.blocks and not self._in_blocks(device):
            return False
        return all(
            capacity is None or self.held(device, d) <= capacity
            for d, capacity in enumerate(self.capacity)
        )

    def _in_blocks(self, device: list[int]) -> bool:
        """Return whether the placed vertices are in contiguous blocks, in the order of devices."""
        placed = [v for v, d in enumerate(device) if d != -1]
        if self.place:
            return all(
                self.place[device[u]] <= self.place[device[v]]
                for u in placed
                for v in placed
                if v in self.after[u]
            )
        return not any(
            device[u] == device[w] != device[v]
            for u in placed
            for v in placed
            for w in placed
            if v in self.after[u] and w in self.after[v]
        )

    def bottleneck(self, device: list[int]) -> int:
        """Return a lower bound of the bottleneck, which is exact if all vertices are placed."""
        load = dict.fromkeys((("device", d) for d in range(self.k)), 0)
        left = 0
        for v, d in enumerate(device):
            if d == -1:
                left += min((t for t in self.time[v] if t is not None), default=0)
            else:
                load["device", d] += self.channels * (self.time[v][d] or 0)
        other: dict[tuple[str, int, int], int] = {}
        for tensor, target in self.crossings(device):
            sender = device[self.producer[tensor]]
            delay = self.delay[tensor][sender][target] or 0
            match self.model.communication:
                case "delay":
                    continue
                case "sendrecv":
                    load["device", sender] += self.send[sender]
                case "link":
                    other["link", sender, target] = other.get(("link", sender, target), 0) + delay
                case "port":
                    for port in (("send", sender, sender), ("receive", target, target)):
                        other[port] = other.get(port, 0) + delay
        share = -(-(sum(load.values()) + self.channels * left) // self.k)
        return max([share, *load.values(), *other.values()])

    def held(self, device: list[int], d: int) -> int:
        """Return the memory occupied on a device for the whole run."""
        return sum(self.static[v] for v in range(self.n) if device[v] == d)


def _run_time(instance: Instance, goal: Goal, v: int, d: int) -> Fraction | None:
    """Return the run time of a vertex on a device; ``None`` if it must not run there."""
    graph, cluster, given = instance.graph, instance.cluster, instance.given_durations
    if goal.placement.get(v, d) != d or (goal.device_order and d not in goal.device_order):
        return None
    if graph.device_types[v] not in (None, cluster.types[d]):
        return None
    if v in graph.allowed_devices and cluster.names[d] not in graph.allowed_devices[v]:
        return None
    if given is None:
        return graph.ops[v] / cluster.speed[d]
    return given.times[v, d] if given.possible[v, d] else None


def _delay(instance: Instance, tensor: int, sender: int, receiver: int) -> Fraction | None:
    """Return δ of design §2; ``None`` if the tensor cannot cross there."""
    graph, cluster = instance.graph, instance.cluster
    if sender == receiver:
        return Fraction(0)
    rate = cluster.bandwidth[sender, receiver]
    infinite = cluster.infinite[sender, receiver]
    if not infinite and rate == 0:
        return None
    if tensor in graph.tensor_delay:
        return graph.tensor_delay[tensor][sender][receiver]
    latency = cluster.latency[sender, receiver]
    return latency if infinite else latency + graph.tensor_size[tensor] / rate


def _whole(number: Fraction | None, scale: int) -> int | None:
    """Return a number in units of which all numbers of its sort are multiples."""
    return None if number is None else int(number * scale)


def _units(n: int, colocation: tuple[tuple[int, ...], ...], order: list[int]) -> list[set[int]]:
    """Return the units, each a set of vertices, in topological order of their first vertices."""
    group = [{v} for v in range(n)]
    for members in colocation:
        merged = set().union(*(group[v] for v in members))
        for v in merged:
            group[v] = merged
    return [group[v] for i, v in enumerate(order) if not group[v] & set(order[:i])]
