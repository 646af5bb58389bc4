"""Microbatches that pass through stages: the orders of GPipe and 1F1B, and their limit.

A strategy compiled with several microbatches is an ordinary instance, for which any method may find
an order. The orders here are those that systems use.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from optpart.applications.training.cluster import TrainingCluster
from optpart.applications.training.compiled import DEFAULT, Compiled, Options, VertexKind
from optpart.applications.training.compiler import compile_strategy
from optpart.applications.training.graph import CONTROL, Role, TrainingGraph
from optpart.applications.training.strategy import Strategy
from optpart.base.errors import InputError
from optpart.kernels.tasks import Tasks
from optpart.problem.instance import Instance
from optpart.problem.rational import RationalArray, shown
from optpart.solution.metrics import loads
from optpart.solution.schedule import Schedule
from optpart.strategies.base import Partition
from optpart.strategies.simulator import Priority, simulate

#: ``gpipe``: all forward passes, then all backward passes. ``1f1b``: a stage begins with as many
#: forward passes as there are stages from it to the last, then each backward pass is followed by a
#: forward pass; it keeps that many microbatches in memory, however many there are.
GivenOrder: TypeAlias = Literal["gpipe", "1f1b"]


def pipeline_schedule(compiled: Compiled, order: GivenOrder) -> Schedule:
    """Return the schedule of a given order, in exact times.

    Each device keeps its passes in order, even if another is ready. A link, and the queue of
    AllReduces, takes first what is ready first. What sums gradients of several devices is not part
    of a pass: a device does it between two operations as soon as it can.

    Raises
    ------
    InputError
        If the groups are not the stages of a pipeline, or the order contradicts the edges.
    """
    instance, vertices = compiled.instance, compiled.vertices
    where, graph = compiled.placement, instance.graph
    receives = {*graph.edge_target[where[graph.edge_source] != where[graph.edge_target]].tolist()}
    left = stages(compiled)
    queues: list[list[int]] = [[] for _ in range(len(compiled.cluster))]
    for v in sorted(
        graph.topological_order.tolist(), key=lambda v: _position(compiled, v, order, left)
    ):
        kind, device = vertices[v].kind, vertices[v].device
        together = kind is VertexKind.CHUNK or (kind is VertexKind.ADDN and v in receives)
        if device < len(queues) and not together:
            queues[device].append(v)
    return simulate(_queued(instance, queues), Partition(compiled.placement), _first_ready)


def stages(compiled: Compiled) -> tuple[int, ...]:
    """Return, by operation, the number of stages from its own to the last, at least 1.

    Groups that share a device are one stage. Forward passes lead from stage to stage, and it is an
    :class:`InputError` if they also lead back.
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
    graph: TrainingGraph, cluster: TrainingCluster, strategy: Strategy, options: Options = DEFAULT
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
    if role is Role.APPLY:
        return 3 * count
    forward = role is Role.FORWARD
    if order == "gpipe":
        return m if forward else count + m
    ahead = left[what.operation]
    if forward:
        return m if m < ahead else 2 * m - ahead + 1  # right after backward pass m − ahead
    return ahead + 2 * m


def _first_ready(work: Tasks, partition: Partition, rng: np.random.Generator) -> Priority:
    return Priority(None, np.arange(len(work.duration)))


def _queued(instance: Instance, queues: Iterable[Sequence[int]]) -> Instance:
    """Return the instance in which every device also waits by its queue.

    Tensors keep their numbers, so that a schedule of the one is a schedule of the other.
    """
    graph = instance.graph
    signal = {
        int(graph.tensor_vertex[t]): int(t) for t in np.flatnonzero(graph.tensor_output == CONTROL)
    }
    present = {*zip(graph.edge_source.tolist(), graph.edge_tensor.tolist(),
                    graph.edge_target.tolist(), strict=True)}  # fmt: skip
    pairs = [pair for queue in queues for pair in pairwise(queue)]
    new = [u for u, _ in pairs if u not in signal]  # each is followed by one vertex of its queue
    signal |= {u: graph.tensors + i for i, u in enumerate(new)}
    added = [(u, v) for u, v in pairs if (u, signal[u], v) not in present]
    sizes = graph.tensor_size
    try:
        longer = replace(
            graph,
            tensor_vertex=_extended(graph.tensor_vertex, new),
            tensor_output=_extended(graph.tensor_output, [CONTROL] * len(new)),
            tensor_size=RationalArray(
                np.concatenate((sizes.numerators, np.zeros_like(sizes.numerators, shape=len(new)))),
                sizes.denominator,
            ),
            edge_source=_extended(graph.edge_source, [u for u, _ in added]),
            edge_target=_extended(graph.edge_target, [v for _, v in added]),
            edge_tensor=_extended(graph.edge_tensor, [signal[u] for u, _ in added]),
        )
    except InputError as error:
        raise InputError(
            "order", f"contradicts the edges: {error.problem}", "choose another order"
        ) from None
    return replace(instance, graph=longer)


def _extended(array: NDArray[np.int32], values: Sequence[int]) -> NDArray[np.int32]:
    return np.concatenate((array, np.array(values, dtype=np.int32)))
