"""Every plan of a pipeline with replicas, one by one, by the rules of design §2 and nothing else.

It shares no code with the method or its verifier, reads the instance itself, and removes nothing
but what the rules exclude.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from fractions import Fraction
from itertools import chain, combinations

from optpart.problem.instance import Instance

#: Vertices and devices.
Stage = tuple[frozenset[int], frozenset[int]]

#: The load of each device of a stage; ``None`` if a rule excludes the stage.
Load = Callable[[frozenset[int], frozenset[int]], Fraction | None]


def every_plan(
    vertices: int,
    devices: int,
    edges: Collection[tuple[int, int]],
    load: Load,
    replicas: int = 1,
    order: Sequence[int] = (),
) -> Iterator[tuple[tuple[Stage, ...], Fraction]]:
    """Yield every sequence of stages that keeps the rules, with its bottleneck."""
    known: dict[Stage, Fraction | None] = {}

    def extended(
        stages: tuple[Stage, ...], left: frozenset[int], value: Fraction
    ) -> Iterator[tuple[tuple[Stage, ...], Fraction]]:
        if not left:
            yield stages, value
            return
        taken = frozenset[int]().union(*(group for _, group in stages))
        free = [d for d in order or range(devices) if d not in taken]
        if order and taken:
            last = max(order.index(d) for d in taken)
            free = [d for d in free if order.index(d) > last]
        for block in _subsets(sorted(left), len(left)):
            rest = left - block
            if any(u in rest and v in block for u, v in edges):
                continue
            for group in _subsets(free, replicas):
                stage = block, group
                if stage not in known:
                    known[stage] = load(*stage)
                time = known[stage]
                if time is not None:
                    yield from extended((*stages, stage), rest, max(value, time))

    yield from extended((), frozenset(range(vertices)), Fraction(0))


def plans_of(
    instance: Instance,
    replicas: int = 1,
    order: Sequence[int] = (),
    rate: Fraction | str | None = None,
) -> Iterator[tuple[tuple[Stage, ...], Fraction]]:
    """Yield every plan of an instance with its bottleneck.

    Parameters
    ----------
    rate : Fraction or "links", optional
        How replicas synchronise, if they do.
    """
    graph = instance.graph
    edges = set(zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True))
    rules = _Rules(instance, rate)
    return every_plan(instance.vertices, instance.devices, edges, rules.load, replicas, order)


def in_scope(instance: Instance) -> bool:
    """Return whether plans of an instance are defined."""
    cluster, model = instance.cluster, instance.model
    pairs = [(d, e) for d in range(instance.devices) for e in range(instance.devices) if d != e]
    linked = all(cluster.infinite[pair] or cluster.bandwidth[pair] for pair in pairs) and all(
        entry is not None
        for matrix in instance.graph.tensor_delay.values()
        for row in matrix
        for entry in row
    )
    limited = any(limit is not None for limit in cluster.memory)
    timed = model.memory in ("edges", "refcount") and limited
    return model.communication == "delay" and linked and not timed


class _Rules:
    def __init__(self, instance: Instance, rate: Fraction | str | None) -> None:
        self.instance, self.rate = instance, rate
        self.units = [{v} for v in range(instance.vertices)]
        for group in instance.graph.colocation:
            merged = set(group).union(*(unit for unit in self.units if unit & set(group)))
            self.units = [unit for unit in self.units if not unit & merged] + [merged]
        every = range(instance.devices)
        self.near = {d: {e for e in every if self._equal(d, e)} for d in every}
        self.like = {d: {e for e in self.near[d] if self._exchange(d, e)} for d in every}

    # --- devices that are alike --------------------------------------------------------------

    def _may(self, unit: Collection[int], d: int) -> bool:
        return all(self.instance.vertex_allowed[v, d] for v in unit)

    def _equal(self, d: int, e: int) -> bool:
        instance = self.instance
        memory = instance.cluster.memory
        if instance.model.memory == "estimate" and memory[d] != memory[e]:
            return False
        for unit in self.units:
            if self._may(unit, d) != self._may(unit, e):
                return False
            if self._may(unit, d) and any(
                instance.duration(v, d) != instance.duration(v, e) for v in unit
            ):
                return False
        return True

    def _exchange(self, d: int, e: int) -> bool:
        """Return whether exchanging two devices leaves the links of those like them unchanged."""
        if self.rate != "links":
            return True
        name = {d: e, e: d}
        return all(
            self._link(one, other) == self._link(name.get(one, one), name.get(other, other))
            for one in self.near[d]
            for other in self.near[d]
            if one != other
        )

    def _link(self, d: int, e: int) -> tuple[Fraction, Fraction]:
        """Return the latency, and the time per unit of size."""
        cluster = self.instance.cluster
        time = Fraction(0) if cluster.infinite[d, e] else 1 / cluster.bandwidth[d, e]
        return cluster.latency[d, e], time

    # --- stages ------------------------------------------------------------------------------

    def load(self, block: frozenset[int], devices: frozenset[int]) -> Fraction | None:
        instance, graph, r = self.instance, self.instance.graph, len(devices)
        d, *others = sorted(devices)
        if not all(e in self.like[d] for e in others):
            return None
        if any(0 < len(unit & block) < len(unit) for unit in self.units):
            return None
        if any(u in block and v in block for u, v in graph.separation):
            return None
        for e in devices:
            limit = instance.cluster.memory[e]
            held = sum((self._held(v) for v in block), Fraction(0))
            if not self._may(block, e):
                return None
            if instance.model.memory == "estimate" and limit is not None and held > limit:
                return None
        load = sum((instance.duration(v, d) for v in block), Fraction(0)) / r
        weights = sum((graph.memory[v] for v in block), Fraction(0))
        if self.rate is not None and others and weights:
            latency, time = (
                self._link(d, others[0])
                if isinstance(self.rate, str)
                else (Fraction(0), 1 / self.rate)
            )
            load += 2 * (r - 1) * (latency + weights / r * time)
        return load

    def _held(self, v: int) -> Fraction:
        """Memory of a vertex under ``estimate``: itself, its outputs and its distinct inputs."""
        graph = self.instance.graph
        size = graph.tensor_size.fractions()
        inputs = {
            tensor
            for tensor, target in zip(
                graph.edge_tensor.tolist(), graph.edge_target.tolist(), strict=True
            )
            if target == v
        }
        outputs = [t for t, u in enumerate(graph.tensor_vertex.tolist()) if u == v]
        return graph.memory[v] + sum((size[t] for t in (*outputs, *inputs)), Fraction(0))


def _subsets(items: Sequence[int], most: int) -> Iterator[frozenset[int]]:
    sizes = range(1, min(most, len(items)) + 1)
    return map(frozenset, chain.from_iterable(combinations(items, size) for size in sizes))
