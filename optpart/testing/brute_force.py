"""The exact optimum of a tiny instance, by brute force.

It reads the JSON document of the instance and computes everything else from the definitions in
design §2 and in docs/formats.md. It shares no code with the solvers and verifiers that it tests.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any

import networkx as nx

from optpart.interop.formats import native
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
    """Enumerate placements, and orders of each; return the best, ``None`` if there is no schedule.

    Supports communication ``delay`` and memory ``none`` or ``estimate``; meant for up to 6 vertices
    and 3 devices.

    Parameters
    ----------
    accepts : callable
        Returns whether a placement counts.
    """
    problem = _problem(instance)
    assert problem.model.get("communication", "delay") == "delay"
    best = None
    for device in problem.placements():
        if accepts(device):
            best = _Orders(problem, device, best).best
    return best


def contiguous(instance: Instance, device: Sequence[int], order: Sequence[int] = ()) -> bool:
    """Return whether blocks are contiguous, or along an order of devices, by all paths (§2)."""
    problem = _problem(instance)
    if order:
        return set(device) <= set(order) and all(
            order.index(device[u]) <= order.index(device[v]) for u, v, _ in problem.edges
        )
    return not any(
        device[u] == device[w] != device[v]
        for u, after in enumerate(problem.after)
        for v in after
        for w in problem.after[v]
    )


def bottleneck(instance: Instance, device: Sequence[int]) -> Fraction | None:
    """Return the bottleneck of a placement (§2); ``None`` if the placement is not allowed.

    Supports every communication model, and memory ``none`` or ``estimate``.
    """
    problem = _problem(instance)
    if not problem.allows(device):
        return None
    model = problem.model
    load: defaultdict[tuple[object, ...], Fraction] = defaultdict(Fraction)
    for v, d in enumerate(device):
        load["device", d] += problem.run[v][d]
    for u, output, e in {
        (u, output, device[v]) for u, v, output in problem.edges if device[u] != device[v]
    }:
        d = device[u]
        time = problem.transfer[u, output][d][e]
        match model.get("communication", "delay"):
            case "sendrecv":
                load["device", d] += Fraction(model.get("send_ops", 0)) / problem.speed[d]
            case "link":
                load["link", d, e] += time
            case "port":
                load["send port", d] += time / model.get("channels", 1)
                load["receive port", e] += time / model.get("channels", 1)
            case name:
                assert name == "delay", name
    return max(load.values(), default=Fraction(0))


def least_bottleneck(
    instance: Instance, accepts: Callable[[list[int]], bool] = lambda device: True
) -> Fraction | None:
    """Return the least bottleneck over all placements; ``None`` if there is none."""
    values = (
        bottleneck(instance, device)
        for device in _problem(instance).placements()
        if accepts(device)
    )
    return min((value for value in values if value is not None), default=None)


class _Problem:
    """The numbers of an instance, by index; ``None`` is a run or a transfer that must not be."""

    def __init__(self, instance: Instance) -> None:
        document = json.loads(native.dumps(instance), parse_float=Fraction)
        self.model: dict[str, Any] = document.get("model", {})
        vertices, devices = document["vertices"], document["devices"]
        number = {vertex["name"]: v for v, vertex in enumerate(vertices)}
        self.edges = {(number[u], number[v], k) for u, v, k in document.get("edges", [])}
        graph = nx.DiGraph((u, v) for u, v, _ in self.edges)
        graph.add_nodes_from(range(len(vertices)))
        self.topological = list(nx.topological_sort(graph))
        self.after = [nx.descendants(graph, v) for v in range(len(vertices))]
        self.colocation = [[number[v] for v in group] for group in document.get("colocation", [])]
        self.separation = [(number[u], number[v]) for u, v in document.get("separation", [])]
        self.speed = [Fraction(device.get("speed", 1)) for device in devices]
        self.capacity = [_rational(device.get("memory")) for device in devices]

        durations = document.get("durations")
        self.run: list[list[Any]] = [
            [Fraction(vertex.get("ops", 0)) / speed for speed in self.speed]
            if durations is None
            else [_rational(time) for time in durations[v]]
            for v, vertex in enumerate(vertices)
        ]
        for row, vertex in zip(self.run, vertices, strict=True):
            kind, names = vertex.get("device_type"), vertex.get("devices")
            for d, device in enumerate(devices):
                if kind not in (None, device.get("type")) or (
                    names is not None and device["name"] not in names
                ):
                    row[d] = None

        m = len(devices)
        bandwidth = _matrix(document.get("bandwidth"), m)
        latency = _matrix(document.get("latency", 0), m)

        def time_between(d: int, e: int, size: Fraction, measured: Any) -> Any:
            rate = bandwidth[d][e]
            if d == e:
                return Fraction(0)
            if rate == 0:
                return None
            if measured is not None:
                return _rational(measured[d][e])
            return latency[d][e] if rate is None else latency[d][e] + size / rate

        size: dict[tuple[int, int | None], Fraction] = {}
        self.transfer: dict[tuple[int, int | None], list[list[Any]]] = {}
        for v, vertex in enumerate(vertices):
            # The signal of a control dependency is a tensor of size 0.
            for k, output in [(None, 0), *enumerate(vertex.get("outputs", []))]:
                fields = output if isinstance(output, dict) else {"size": output}
                size[v, k] = Fraction(fields.get("size", 0))
                self.transfer[v, k] = [
                    [time_between(d, e, size[v, k], fields.get("delay")) for e in range(m)]
                    for d in range(m)
                ]
        self.need = [
            Fraction(vertex.get("memory", 0))
            + sum(size[v, k] for k in range(len(vertex.get("outputs", []))))
            + sum(size[tensor] for tensor in {(u, k) for u, w, k in self.edges if w == v})
            for v, vertex in enumerate(vertices)
        ]

    def placements(self) -> Iterator[list[int]]:
        """Yield every placement that the instance allows."""
        usable = [[d for d, time in enumerate(row) if time is not None] for row in self.run]
        return (list(device) for device in product(*usable) if self.allows(device))

    def allows(self, device: Sequence[int]) -> bool:
        """Return whether a placement keeps rules 1 and 4, and every tensor can cross."""
        memory = self.model.get("memory", "none")
        assert memory in ("none", "estimate")
        held = [Fraction(0)] * len(self.speed)
        for need, d in zip(self.need, device, strict=True):
            held[d] += need
        return (
            all(row[d] is not None for row, d in zip(self.run, device, strict=True))
            and all(len({device[v] for v in group}) <= 1 for group in self.colocation)
            and all(device[u] != device[v] for u, v in self.separation)
            and all(self.transfer[u, k][device[u]][device[v]] is not None for u, v, k in self.edges)
            and all(
                memory == "none" or capacity is None or need <= capacity
                for need, capacity in zip(held, self.capacity, strict=True)
            )
        )


_problem = lru_cache(maxsize=1)(_Problem)


class _Orders:
    """A depth-first search that appends one ready vertex after another, as early as possible.

    Vertices come in the order of their starts. All times are whole multiples of ``1 / scale``.
    """

    def __init__(self, problem: _Problem, device: list[int], best: Optimum | None) -> None:
        self.device, self.best = device, best
        run = [problem.run[v][d] for v, d in enumerate(device)]
        delay = {
            (u, v, k): problem.transfer[u, k][device[u]][device[v]] for u, v, k in problem.edges
        }
        self.scale = math.lcm(*(time.denominator for time in (*run, *delay.values())))
        self.run = [int(time * self.scale) for time in run]
        self.inputs: list[list[tuple[int, int]]] = [[] for _ in run]
        self.tail = list(self.run)  # from the start of a vertex to the end of all that follow
        for (u, v, _), time in delay.items():
            self.inputs[v].append((u, int(time * self.scale)))
        for v in reversed(problem.topological):
            for u, time in self.inputs[v]:
                self.tail[u] = max(self.tail[u], self.run[u] + time + self.tail[v])
        self.limit = math.inf if best is None else math.ceil(best.makespan * self.scale)
        self.order: list[int] = []
        self.end: dict[int, int] = {}
        self.free = [0] * len(problem.speed)
        self._extend(0)

    def _extend(self, now: int) -> None:
        """Try every continuation of a partial schedule whose last vertex starts at ``now``."""
        left = [v for v in range(len(self.run)) if v not in self.end]
        if not left:
            makespan = max(self.end.values(), default=0)
            if makespan < self.limit:
                self.limit = makespan
                self.best = Optimum(
                    Fraction(makespan, self.scale), list(self.device), list(self.order)
                )
            return
        work = list(self.free)
        for v in left:
            work[self.device[v]] += self.run[v]
        if max(work) >= self.limit or any(now + self.tail[v] >= self.limit for v in left):
            return
        for v in left:
            if any(u not in self.end for u, _ in self.inputs[v]):
                continue
            d = self.device[v]
            before = self.free[d]
            start = max([before, *(self.end[u] + delay for u, delay in self.inputs[v])])
            if start < now or start + self.tail[v] >= self.limit:
                continue
            self.free[d] = self.end[v] = start + self.run[v]
            self.order.append(v)
            self._extend(start)
            self.order.pop()
            self.free[d] = before
            del self.end[v]


def _rational(value: Any) -> Fraction | None:
    return None if value is None else Fraction(value)


def _matrix(value: Any, n: int) -> list[list[Any]]:
    rows = value if isinstance(value, list) else [[value] * n] * n
    return [[_rational(entry) for entry in row] for row in rows]
