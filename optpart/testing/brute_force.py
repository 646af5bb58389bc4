"""The exact optimum of a tiny instance, by brute force.

It reads the raw numbers of the instance and shares no code with the solvers that it tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import networkx as nx

from optpart.problem.instance import Instance


@dataclass(frozen=True)
class Optimum:
    """The least makespan, and a placement and an order that achieve it."""

    makespan: Fraction
    placement: list[int]
    order: list[int]


def optimum(
    instance: Instance, accepts: Callable[[list[int]], bool] = lambda device: True
) -> Optimum | None:
    """Enumerate placements and orders together; return the best, ``None`` if there is no schedule.

    Supports communication ``delay`` and memory ``none`` or ``estimate``; meant for up to 6 vertices
    and 3 devices.

    Parameters
    ----------
    accepts : callable
        Returns whether a placement counts.
    """
    assert instance.model.communication == "delay"
    assert instance.model.memory in ("none", "estimate")
    search = _Search(instance, accepts)
    search.extend(0)
    if search.best is None:
        return None
    placement, order = search.best_solution
    return Optimum(Fraction(search.best, search.scale), placement, order)


def contiguous(instance: Instance, device: Sequence[int], order: Sequence[int] = ()) -> bool:
    """Return whether blocks are contiguous, or along an order of devices, by all paths (§2)."""
    graph = instance.graph
    edges = list(zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True))
    if order:
        place = {d: i for i, d in enumerate(order)}
        inside = all(d in place for d in device)
        return inside and all(place[device[u]] <= place[device[v]] for u, v in edges)
    paths = nx.DiGraph(edges)
    return all(
        len({device[v] for v in path}) == 1
        for u, w in product(paths, repeat=2)
        if device[u] == device[w]
        for path in nx.all_simple_paths(paths, u, w)
    )


def bottleneck(instance: Instance, device: Sequence[int]) -> Fraction | None:
    """Return the bottleneck of a placement (§2); ``None`` if the placement is not allowed.

    Supports every communication model, and memory ``none`` or ``estimate``.
    """
    graph, cluster, model = instance.graph, instance.cluster, instance.model
    assert model.memory in ("none", "estimate")
    load: dict[tuple[object, ...], Fraction] = {}
    need = _estimates(instance) if model.memory == "estimate" else [Fraction(0)] * len(graph)
    used = [Fraction(0)] * len(cluster)
    for v, d in enumerate(device):
        time = _run_time(instance, v, d)
        if time is None:
            return None
        load["device", d] = load.get(("device", d), Fraction(0)) + time
        used[d] += need[v]
    if any(len({device[v] for v in group}) > 1 for group in graph.colocation):
        return None
    if any(device[a] == device[b] for a, b in graph.separation):
        return None
    if any(most is not None and used[d] > most for d, most in enumerate(cluster.memory)):
        return None
    crossing = {
        (int(tensor), device[u], device[v])
        for u, v, tensor in zip(
            graph.edge_source, graph.edge_target, graph.edge_tensor, strict=True
        )
        if device[u] != device[v]
    }
    for tensor, d, e in crossing:
        time = _delay(instance, tensor, d, e)
        if time is None:
            return None
        every: dict[str, dict[tuple[object, ...], Fraction]] = {
            "delay": {},
            "sendrecv": {("device", d): model.send_ops / cluster.speed[d]},
            "link": {("link", d, e): time},
            "port": {("send", d): time / model.channels, ("receive", e): time / model.channels},
        }
        for resource, part in every[model.communication].items():
            load[resource] = load.get(resource, Fraction(0)) + part
    return max(load.values(), default=Fraction(0))


def least_bottleneck(
    instance: Instance, accepts: Callable[[list[int]], bool] = lambda device: True
) -> Fraction | None:
    """Return the least bottleneck over all placements; ``None`` if there is none."""
    devices = range(len(instance.cluster))
    found = (
        bottleneck(instance, device)
        for device in product(devices, repeat=len(instance.graph))
        if accepts(list(device))
    )
    return min((value for value in found if value is not None), default=None)


class _Search:
    """A depth-first search that appends one ready vertex to one device, as early as possible.

    All times are whole multiples of ``1 / scale`` and are kept as integers.
    """

    def __init__(self, instance: Instance, accepts: Callable[[list[int]], bool]) -> None:
        self.accepts = accepts
        graph, cluster = instance.graph, instance.cluster
        n, k = len(graph), len(cluster)
        self.n, self.k = n, k
        times = [[_run_time(instance, v, d) for d in range(k)] for v in range(n)]
        tensors = range(graph.tensors)
        delays = [
            [[_delay(instance, t, d, e) for e in range(k)] for d in range(k)] for t in tensors
        ]
        numbers = [t for row in times for t in row] + [t for m in delays for row in m for t in row]
        self.scale = math.lcm(1, *(t.denominator for t in numbers if t is not None))
        self.time = [[_whole(t, self.scale) for t in row] for row in times]
        self.delay = [[[_whole(t, self.scale) for t in row] for row in m] for m in delays]

        self.inputs: list[list[tuple[int, int]]] = [[] for _ in range(n)]
        self.successors: list[set[int]] = [set() for _ in range(n)]
        for u, v, t in zip(graph.edge_source, graph.edge_target, graph.edge_tensor, strict=True):
            self.inputs[v].append((int(u), int(t)))
            self.successors[u].add(int(v))
        self.group = _groups(n, graph.colocation)
        self.separation = graph.separation
        self.need = (
            _estimates(instance) if instance.model.memory == "estimate" else [Fraction(0)] * n
        )
        self.capacity = cluster.memory
        self.shortest = [min((t for t in row if t is not None), default=0) for row in self.time]
        self.tail = [0] * n
        for v in reversed(graph.topological_order.tolist()):
            after = max((self.tail[w] for w in self.successors[v]), default=0)
            self.tail[v] = self.shortest[v] + after

        self.device = [-1] * n
        self.end = [0] * n
        self.free = [0] * k
        self.used = [Fraction(0)] * k
        self.order: list[int] = []
        self.best: int | None = None
        self.best_solution: tuple[list[int], list[int]] = [], []

    def extend(self, now: int) -> None:
        """Try every continuation of a partial schedule whose last vertex starts at ``now``."""
        if len(self.order) == self.n:
            makespan = max(self.end, default=0)
            if not self.accepts(self.device):
                return
            if self.best is None or makespan < self.best:
                self.best = makespan
                self.best_solution = self.device.copy(), self.order.copy()
            return
        # Every schedule can be built by order of start, so nothing starts before `now`.
        steps = sorted(step for step in self._steps() if step[0] >= now)
        for start, v, d in steps:
            if self.best is not None and self._bound(now) >= self.best:
                return
            end, free = self.end[v], self.free[d]
            self.device[v] = d
            self.used[d] += self.need[v]
            time = self.time[v][d]
            assert time is not None
            self.end[v] = self.free[d] = start + time
            self.order.append(v)
            self.extend(start)
            self.order.pop()
            self.end[v], self.free[d] = end, free
            self.used[d] -= self.need[v]
            self.device[v] = -1

    def _steps(self) -> Iterator[tuple[int, int, int]]:
        """Yield every (start, vertex, device) that may come next."""
        for v in range(self.n):
            if self.device[v] >= 0 or any(self.device[u] < 0 for u, _ in self.inputs[v]):
                continue
            for d in range(self.k):
                start = self._start(v, d)
                if start is not None and self._allowed(v, d):
                    yield start, v, d

    def _start(self, v: int, d: int) -> int | None:
        start = self.free[d]
        for u, tensor in self.inputs[v]:
            delay = self.delay[tensor][self.device[u]][d]
            if delay is None:
                return None
            start = max(start, self.end[u] + delay)
        return start

    def _allowed(self, v: int, d: int) -> bool:
        capacity = self.capacity[d]
        return (
            all(self.time[w][d] is not None for w in self.group[v])
            and all(self.device[w] in (-1, d) for w in self.group[v])
            and all(self.device[b] != d for a, b in self.separation if a == v)
            and all(self.device[a] != d for a, b in self.separation if b == v)
            and all(a != b for a, b in self.separation)
            and (capacity is None or self.used[d] + self.need[v] <= capacity)
        )

    def _bound(self, now: int) -> int:
        """Return a lower bound of completions: critical paths without delays, and total work."""
        left = [v for v in range(self.n) if self.device[v] < 0]
        path = max(
            max([now, *(self.end[u] for u, _ in self.inputs[v])]) + self.tail[v] for v in left
        )
        work = sum(max(now, free) for free in self.free) + sum(self.shortest[v] for v in left)
        return max(path, -(-work // self.k), *self.free)


def _whole(time: Fraction | None, scale: int) -> int | None:
    return None if time is None else int(time * scale)


def _run_time(instance: Instance, v: int, d: int) -> Fraction | None:
    """Return the run time of a vertex; ``None`` if it must not run there."""
    graph, cluster, given = instance.graph, instance.cluster, instance.given_durations
    if graph.device_types[v] not in (None, cluster.types[d]):
        return None
    if v in graph.allowed_devices and cluster.names[d] not in graph.allowed_devices[v]:
        return None
    if given is None:
        return graph.ops[v] / cluster.speed[d]
    return given.times[v, d] if given.possible[v, d] else None


def _delay(instance: Instance, tensor: int, sender: int, receiver: int) -> Fraction | None:
    """Return the time from the producer's end to the arrival; ``None`` if there is no link."""
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


def _groups(n: int, colocation: tuple[tuple[int, ...], ...]) -> list[set[int]]:
    """Return, for each vertex, all vertices that share its device, itself included."""
    group = [{v} for v in range(n)]
    for members in colocation:
        merged = set().union(*(group[v] for v in members))
        for v in merged:
            group[v] = merged
    return group


def _estimates(instance: Instance) -> list[Fraction]:
    """Return the memory of each vertex by [L] §4.1 (3)."""
    graph = instance.graph
    need = [graph.memory[v] for v in range(len(graph))]
    for tensor, u in enumerate(graph.tensor_vertex):
        need[u] += graph.tensor_size[tensor]
    for v, tensor in set(zip(graph.edge_target, graph.edge_tensor, strict=True)):
        need[v] += graph.tensor_size[tensor]
    return need
