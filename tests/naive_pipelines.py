"""Every contiguous placement of a small instance, and every plan with replicas, one by one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import permutations, product

import networkx as nx

from optpart.problem.instance import Instance

Placement = tuple[int, ...]


def edges(instance: Instance) -> list[tuple[int, int]]:
    graph = instance.graph
    return list(zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True))


def convex(instance: Instance, placement: Placement) -> bool:
    graph = nx.DiGraph(edges(instance))
    graph.add_nodes_from(range(instance.vertices))
    for d in set(placement):
        block = {v for v, on in enumerate(placement) if on == d}
        below = set().union(*(nx.descendants(graph, v) for v in block))
        above = set().union(*(nx.ancestors(graph, v) for v in block))
        if (below & above) - block:
            return False
    return True


def ordered(instance: Instance, placement: Placement, order: Sequence[int]) -> bool:
    place = {d: i for i, d in enumerate(order)}
    return set(placement) <= set(order) and all(
        place[placement[u]] <= place[placement[v]] for u, v in edges(instance)
    )


def orderable(instance: Instance, placement: Placement) -> bool:
    return any(
        ordered(instance, placement, order) for order in permutations(range(instance.devices))
    )


def loads(instance: Instance, placement: Placement) -> dict[object, Fraction] | None:
    """The load of every resource; ``None`` if the placement breaks a rule."""
    graph, model = instance.graph, instance.model
    total: dict[object, Fraction] = defaultdict(Fraction)
    held: dict[int, Fraction] = defaultdict(Fraction)
    size = graph.tensor_size.fractions()
    for v, d in enumerate(placement):
        if not instance.vertex_allowed[v, d]:
            return None
        total[d] += instance.duration(v, d)
        held[d] += graph.memory[v]
    moves = set()
    for tensor, v in zip(graph.edge_tensor.tolist(), graph.edge_target.tolist(), strict=True):
        held[placement[v]] += size[tensor]
        moves.add((tensor, placement[int(graph.tensor_vertex[tensor])], placement[v]))
    for tensor, v in enumerate(graph.tensor_vertex.tolist()):
        held[placement[v]] += size[tensor]
    for group in graph.colocation:
        if len({placement[v] for v in group}) > 1:
            return None
    if any(placement[u] == placement[v] for u, v in graph.separation):
        return None
    for d, limit in enumerate(instance.cluster.memory):
        if model.memory == "estimate" and limit is not None and held[d] > limit:
            return None
    for tensor, d, e in moves:
        if d == e:
            continue
        delay = instance.delay(tensor, d, e)
        if delay is None:
            return None
        match model.communication:
            case "sendrecv":
                total[d] += model.send_ops / instance.cluster.speed[d]
            case "link":
                total[d, e] += delay
            case "port":
                total["out", d] += delay / model.channels
                total["in", e] += delay / model.channels
    return total


def placements(instance: Instance) -> Iterator[tuple[Placement, Fraction]]:
    """Every placement that keeps the rules, with its bottleneck."""
    for placement in product(range(instance.devices), repeat=instance.vertices):
        found = loads(instance, placement)
        if found is not None:
            yield placement, max(found.values(), default=Fraction(0))
