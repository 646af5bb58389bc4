"""Random placements, orders and schedules of small instances."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from optpart.problem.instance import Instance
from optpart.solution.schedule import Schedule, crossings, retime
from optpart.solution.verifier import verify
from optpart.testing.pick import Pick, picking

#: A step of an order: a vertex, or a transfer (tensor, destination device).
Step = int | tuple[int, int]


def random_placement(rng: np.random.Generator, instance: Instance) -> NDArray[np.int32] | None:
    """Draw a placement that satisfies every rule but memory; ``None`` if there is none."""
    placements = allowed_placements(instance)
    return placements[int(rng.integers(len(placements)))] if placements else None


def random_order(
    rng: np.random.Generator, instance: Instance, transfers: Sequence[tuple[int, int]] = ()
) -> list[Step]:
    """Draw a topological order of the vertices, with ``transfers`` inserted at random."""
    return picked_order(picking(rng), instance, transfers)


def random_schedule(
    rng: np.random.Generator, instance: Instance, tries: int = 3
) -> Schedule | None:
    """Draw a valid schedule; ``None`` if no try finds one."""
    for _ in range(tries):
        placement = random_placement(rng, instance)
        if placement is None:
            return None
        order = random_order(rng, instance, crossings(instance, placement))
        schedule = retime(instance, placement, order)
        if not verify(instance, schedule, most=1):
            return schedule
    return None


def allowed_placements(instance: Instance) -> list[NDArray[np.int32]]:
    """List the placements that satisfy types, groups, separation and links, but not memory."""
    choices = [np.flatnonzero(row).tolist() for row in instance.allowed]
    graph = instance.graph
    unit = instance.unit_of.tolist()
    needed = {
        (unit[u], unit[v], tensor)
        for u, v, tensor in zip(
            graph.edge_source.tolist(),
            graph.edge_target.tolist(),
            graph.edge_tensor.tolist(),
            strict=True,
        )
    }
    apart = instance.separated_units
    k = instance.devices
    crosses = {
        tensor: [[instance.delay(tensor, d, e) is not None for e in range(k)] for d in range(k)]
        for _, _, tensor in needed
    }
    return [
        np.array([devices[u] for u in unit], dtype=np.int32)
        for devices in product(*choices)
        if all(devices[a] != devices[b] for a, b in apart)
        and all(crosses[tensor][devices[u]][devices[v]] for u, v, tensor in needed)
    ]


def picked_order(
    pick: Pick, instance: Instance, transfers: Sequence[tuple[int, int]]
) -> list[Step]:
    """Build an order by repeatedly picking one of the steps whose predecessors are done.

    A vertex waits for all transfers of its input tensors, whichever device they go to. These may be
    more than it needs, but they do not depend on the placement.
    """
    graph = instance.graph
    producer = graph.tensor_vertex.tolist()
    before: dict[Step, set[Step]] = {v: set() for v in range(instance.vertices)}
    for tensor, target in transfers:
        before[tensor, target] = {producer[tensor]}
    for u, v, tensor in zip(graph.edge_source, graph.edge_target, graph.edge_tensor, strict=True):
        before[int(v)] |= {int(u)} | {move for move in transfers if move[0] == tensor}
    order: list[Step] = []
    while before:
        ready = [step for step, missing in before.items() if not missing]
        step = ready[pick(0, len(ready) - 1)]
        del before[step]
        for missing in before.values():
            missing.discard(step)
        order.append(step)
    return order
