"""The exact checker of pipeline plans, in fractions; it shares no code with what finds them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

from optpart.exact.pipeline.problem import Pipeline
from optpart.exact.pipeline.splits import Stage

_ZERO = Fraction(0)


def violations(
    pipeline: Pipeline, stages: Sequence[Stage], order: Sequence[int] = (), replicas: int = 1
) -> Iterator[str]:
    """Yield every broken rule, in words.

    Parameters
    ----------
    order : sequence of int
        The only devices to use; all of a stage come before all of any later stage. Any if empty.
    replicas : int
        Most devices of a stage.
    """
    names, devices = pipeline.vertices, pipeline.devices
    place: dict[int, int] = {}
    for i, stage in enumerate(stages):
        for v in stage.vertices:
            if v in place:
                yield f"{names[v]} is in two stages"
            place[v] = i
        if not stage.vertices or not stage.devices:
            yield f"stage {i} is empty or has no device"
        if len(stage.devices) > replicas:
            yield f"stage {i} has {len(stage.devices)} replicas, of which {replicas} are allowed"
    missing = [v for v in range(len(names)) if v not in place]
    if missing:
        yield f"{names[missing[0]]} is in no stage"
        return
    taken = [d for stage in stages for d in stage.devices]
    for d in sorted({d for d in taken if taken.count(d) > 1}):
        yield f"{devices[d]} is used twice"
    if order:
        yield from _out_of_order(pipeline, stages, order)
    for u, v in pipeline.edges:
        if place[u] > place[v]:
            yield f"{names[u]} is in a later stage than {names[v]}, which it precedes"
    for group in pipeline.together:
        if len({place[v] for v in group}) > 1:
            yield f"{names[group[0]]} and its group are in different stages"
    for u, v in pipeline.apart:
        if place[u] == place[v]:
            yield f"{names[u]} and {names[v]} share a stage"
    for i, stage in enumerate(stages):
        yield from _stage(pipeline, i, stage)


def _out_of_order(
    pipeline: Pipeline, stages: Sequence[Stage], order: Sequence[int]
) -> Iterator[str]:
    taken = [(order.index(d), i) for i, s in enumerate(stages) for d in s.devices if d in order]
    for stage in stages:
        for d in stage.devices:
            if d not in order:
                yield f"{pipeline.devices[d]} is not in the order of devices"
    for (_, i), (at, j) in pairwise(sorted(taken)):
        if i > j:
            name = pipeline.devices[order[at]]
            yield f"stage {j} has {name}, which comes after a device of stage {i} in the order"


def _stage(pipeline: Pipeline, i: int, stage: Stage) -> Iterator[str]:
    names, devices = pipeline.vertices, pipeline.devices
    for d in stage.devices:
        for v in stage.vertices:
            if pipeline.times[v][d] is None:
                yield f"{names[v]} cannot run on {devices[d]}"
        held = sum((pipeline.need[v] for v in stage.vertices), _ZERO)
        limit = pipeline.capacity[d]
        if limit is not None and held > limit:
            yield f"{devices[d]} holds {held} and has memory for {limit}"
    first = stage.devices[:1]
    if any(pipeline.alike[d] != pipeline.alike[e] for d in stage.devices for e in first):
        yield f"the replicas of stage {i} are on unlike devices"
    weights = sum((pipeline.weights[v] for v in stage.vertices), _ZERO)
    if len(stage.devices) > 1 and weights and pipeline.rings[pipeline.alike[first[0]]] is None:
        yield f"the replicas of stage {i} are not linked"


def loads(pipeline: Pipeline, stages: Sequence[Stage]) -> list[Fraction]:
    """Return the load of each device of each stage, for stages without violations."""
    place = {v: i for i, stage in enumerate(stages) for v in stage.vertices}
    transfers = [_ZERO] * len(stages)
    for tensor in pipeline.tensors:
        ends = {place[tensor.producer], *(place[v] for v in tensor.consumers)}
        if len(ends) > 1:
            for i in ends:
                transfers[i] += tensor.cost
    found = []
    for i, stage in enumerate(stages):
        d, replicas = stage.devices[0], len(stage.devices)
        load = transfers[i] if pipeline.pays[d] else _ZERO
        for v in stage.vertices:
            time = pipeline.times[v][d]
            assert time is not None
            load += time
        load /= replicas
        ring = pipeline.rings[pipeline.alike[d]]
        weights = sum((pipeline.weights[v] for v in stage.vertices), _ZERO)
        if replicas > 1 and weights:
            assert ring is not None
            steps = 2 * (replicas - 1)
            load += steps * ring.latency + steps * weights / replicas * ring.per_unit
        found.append(load)
    return found
