"""Every contiguous placement of a small instance, and every plan with replicas, one by one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise, permutations, product

import networkx as nx
import numpy as np

from optpart.exact.pipeline.problem import Pipeline
from optpart.interop.formats.native import from_dict
from optpart.problem.instance import Instance
from optpart.solution.schedule import crossings, retime
from optpart.testing.naive_plans import every_plan

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


def chained(instance: Instance) -> Instance:
    """The instance with edges between neighbours in topological order, and no others."""
    document = instance.to_dict()
    names = instance.graph.names
    order = [names[v] for v in instance.graph.topological_order.tolist()]
    steps = list(pairwise(order))
    edges = [edge for edge in document["edges"] if (edge[0], edge[1]) in steps]
    known = {(edge[0], edge[1]) for edge in edges}
    edges += [[u, v, None] for u, v in steps if (u, v) not in known]
    return from_dict({**document, "edges": edges})


def makespan(instance: Instance, placement: Placement) -> Fraction:
    """The least makespan of a chain over all orders of transfers."""
    vertices = instance.graph.topological_order.tolist()
    moves = crossings(instance, np.array(placement, np.int32))
    found = []
    for turn in permutations(moves):
        order: list[int | tuple[int, int]] = []
        for v in vertices:
            order.append(v)
            order += [move for move in turn if int(instance.graph.tensor_vertex[move[0]]) == v]
        found.append(retime(instance, placement, order).makespan(instance))
    return min(found)


def plans(
    pipeline: Pipeline, replicas: int, order: Sequence[int] = ()
) -> Iterator[tuple[list[tuple[tuple[int, ...], tuple[int, ...]]], Fraction]]:
    """Every plan that keeps the rules, as stages of vertices and devices, with its bottleneck."""

    def load(block: frozenset[int], devices: frozenset[int]) -> Fraction | None:
        if len({pipeline.alike[d] for d in devices}) > 1:
            return None
        return _load(pipeline, set(block), tuple(sorted(devices)))

    n, k = len(pipeline.vertices), len(pipeline.devices)
    for stages, value in every_plan(n, k, pipeline.edges, load, replicas, order):
        yield [(tuple(sorted(block)), tuple(sorted(group))) for block, group in stages], value


def _load(pipeline: Pipeline, block: set[int], devices: tuple[int, ...]) -> Fraction | None:
    d, r = devices[0], len(devices)
    limit = pipeline.capacity[d]
    if limit is not None and sum(pipeline.need[v] for v in block) > limit:
        return None
    if any(set(pair) <= block for pair in pipeline.apart):
        return None
    if any(0 < len(set(group) & block) < len(group) for group in pipeline.together):
        return None
    load = Fraction(0)
    for v in block:
        time = pipeline.times[v][d]
        if time is None:
            return None
        load += time
    for tensor in pipeline.tensors:
        inside = [v in block for v in (tensor.producer, *tensor.consumers)]
        if pipeline.pays[d] and any(inside) and not all(inside):
            load += tensor.cost
    weights = sum((pipeline.weights[v] for v in block), Fraction(0))
    load /= r
    if r > 1 and weights:
        ring = pipeline.rings[pipeline.alike[d]]
        if ring is None:
            return None
        load += 2 * (r - 1) * (ring.latency + weights / r * ring.per_unit)
    return load
