"""Microbatches that pass through stages: the orders of GPipe and 1F1B, and their limit.

A strategy compiled with several microbatches is an ordinary instance, for which any method may find
an order. The orders here are those that systems use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Literal, TypeAlias

from optpart.errors import InputError
from optpart.problem.rational import shown
from optpart.solution.metrics import loads
from optpart.solution.schedule import Schedule, retime
from optpart.training.cluster import TrainingCluster
from optpart.training.compiled import DEFAULT, Compiled, Kind, Options
from optpart.training.compiler import compile_strategy
from optpart.training.graph import Role, TrainingGraph
from optpart.training.strategy import Strategy

#: ``gpipe``: all forward passes, then all backward passes. ``1f1b``: a stage begins with as many
#: forward passes as there are stages from it to the last, then each backward pass is followed by a
#: forward pass; it keeps that many microbatches in memory, however many there are.
GivenOrder: TypeAlias = Literal["gpipe", "1f1b"]


def pipeline_schedule(compiled: Compiled, order: GivenOrder) -> Schedule:
    """Return the schedule of a given order, in exact times.

    Each device keeps to its order even if something else is ready; a link sends first what was
    made first.

    Raises
    ------
    InputError
        If the groups are not the stages of a pipeline, or the order contradicts the edges.
    """
    instance, vertices = compiled.instance, compiled.vertices
    rank = {v: i for i, v in enumerate(instance.graph.topological_order.tolist())}
    left = stages(compiled)
    position = [(_position(compiled, v, order, left), rank[v]) for v in range(len(vertices))]
    queues: list[list[int]] = [[] for _ in range(len(compiled.cluster))]
    for v in sorted(range(len(vertices)), key=position.__getitem__):
        if vertices[v].device < len(queues):
            queues[vertices[v].device].append(v)
    return retime(instance, compiled.placement, _merged(compiled, queues))


def stages(compiled: Compiled) -> tuple[int, ...]:
    """Return, by operation, the number of stages from its own to the last, at least 1.

    Groups that share a device are one stage. Forward passes lead from stage to stage.

    Raises
    ------
    InputError
        If they also lead back.
    """
    graph, strategy = compiled.graph, compiled.strategy
    stage_of_device: dict[int, int] = {}
    for g, decision in enumerate(strategy.decisions):
        merged = {stage_of_device.get(d, g) for d in decision.devices} | {g}
        for d in {d for d, s in stage_of_device.items() if s in merged} | {*decision.devices}:
            stage_of_device[d] = min(merged)
    stage = [0] * len(graph)
    for group, decision in zip(strategy.groups, strategy.decisions, strict=True):
        for o in group:
            stage[o] = stage_of_device[decision.devices[0]]
    after: dict[int, set[int]] = {s: set() for s in stage}
    for edge in graph.edges:
        ends = graph.operations[edge.producer], graph.operations[edge.consumer]
        if all(operation.role is Role.FORWARD for operation in ends):
            after[stage[edge.producer]].add(stage[edge.consumer])
    for s, followers in after.items():
        followers.discard(s)
    left: dict[int, int] = {}
    try:
        for s in TopologicalSorter(after).static_order():  # the last stage comes first
            left[s] = 1 + max((left[follower] for follower in after[s]), default=0)
    except CycleError as error:
        first = {s: o for o, s in reversed(list(enumerate(stage)))}
        names = " → ".join(shown(graph.operations[first[s]].name) for s in reversed(error.args[1]))
        raise InputError(
            "groups",
            f"not stages of a pipeline: forward passes lead through those of {names}",
            "give groups whose devices lead one to the next",
        ) from None
    return tuple(left[s] for s in stage)


def bottleneck_of_many(
    graph: TrainingGraph,
    cluster: TrainingCluster,
    strategy: Strategy,
    options: Options = DEFAULT,
) -> Fraction:
    """Return the time per microbatch that no order goes below, the more microbatches there are.

    It is the most that one further microbatch of this size adds to the load of a device, a link or
    the queue of AllReduces (design §2). What is done once per iteration does not count.
    """
    count = options.microbatches
    found = []
    for times in (1, 2):
        more = replace(options, microbatches=times * count)
        larger = replace(strategy, batch=times * strategy.batch)
        compiled = compile_strategy(graph, cluster, larger, more)
        found.append(loads(compiled.instance, compiled.placement))
    once, twice = found
    return max((twice[r] - once.get(r, 0)) / count for r in twice)


def _position(compiled: Compiled, v: int, order: GivenOrder, left: Sequence[int]) -> int:
    """Return the place of a vertex's pass among those of its device."""
    what, count = compiled.vertices[v], compiled.options.microbatches
    role, m = compiled.graph.operations[what.operation].role, what.microbatch
    if role is Role.APPLY or what.kind is Kind.CHUNK:
        return 3 * count
    forward = role is Role.FORWARD
    if order == "gpipe":
        return m if forward else count + m
    ahead = min(left[what.operation], count)
    if forward:
        return m if m < ahead else 2 * m - ahead + 1  # right after backward pass m − ahead
    return ahead + 2 * m


def _merged(compiled: Compiled, queues: Sequence[Sequence[int]]) -> list[int]:
    """Return one order of all vertices that keeps the edges and the queues, by earliest starts."""
    instance, where = compiled.instance, compiled.placement.tolist()
    graph = instance.graph
    before: dict[int, dict[int, Fraction]] = {v: {} for v in range(len(where))}
    for u, v, tensor in zip(
        graph.edge_source.tolist(),
        graph.edge_target.tolist(),
        graph.edge_tensor.tolist(),
        strict=True,
    ):
        delay = instance.delay(tensor, where[u], where[v])
        assert delay is not None  # the compiler has checked the links
        before[v][u] = max(delay, before[v].get(u, delay))
    for queue in queues:
        for u, v in pairwise(queue):
            before[v].setdefault(u, Fraction(0))
    try:
        sequence = [*TopologicalSorter(before).static_order()]
    except CycleError as error:
        u, v = (shown(graph.names[v]) for v in error.args[1][:2])
        raise InputError(
            "order", f"puts {v} before {u}, which it waits for", "choose another order"
        ) from None
    start: dict[int, Fraction] = {}
    for v in sequence:
        start[v] = max(
            (start[u] + instance.duration(u, where[u]) + delay for u, delay in before[v].items()),
            default=Fraction(0),
        )
    return sorted(sequence, key=start.__getitem__)  # stable: ties stay in a valid order
