"""Plans: a placement and an order, and what becomes of them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from optpart.exact.messages import Incumbent
from optpart.problem.instance import Instance
from optpart.solution.goal import Task
from optpart.solution.schedule import Schedule, crossings
from optpart.strategies.base import Partition
from optpart.strategies.simulator import Priority, simulate


@dataclass(frozen=True, eq=False)
class Plan:
    """A placement, and all vertices in an order, between them any transfers.

    A transfer that is not named queues when its tensor is made.
    """

    placement: NDArray[np.int32]
    order: tuple[Task, ...]


def ordered(instance: Instance, found: Incumbent) -> Plan:
    """Return the plan with an order of starts; of what starts together, the shorter comes first."""
    assert found.start is not None
    rank = {v: i for i, v in enumerate(instance.graph.topological_order.tolist())}
    keys: list[tuple[int, Fraction, int, int, Task]] = []
    for v, d in enumerate(found.placement.tolist()):
        keys.append((int(found.start[v]), instance.duration(v, d), rank[v], 0, v))
    for tensor, target in crossings(instance, found.placement):
        u = int(instance.graph.tensor_vertex[tensor])
        d = int(found.placement[u])
        sends = instance.model.sends
        length = instance.send_duration(d) if sends else instance.delay(tensor, d, target)
        if (tensor, target) in found.begin and length is not None:
            at = found.begin[tensor, target]
            keys.append((at, length, rank[u], 1, (tensor, target)))
    keys.sort(key=lambda key: key[:4])
    return Plan(found.placement, tuple(task for *_, task in keys))


def moved(instance: Instance, plan: Plan, rng: np.random.Generator) -> Plan:
    """Return a plan with a vertex elsewhere in the order, half of the time on another device."""
    order = [task for task in plan.order if isinstance(task, int)]
    v = int(rng.integers(len(order)))
    placement = plan.placement
    unit = int(instance.unit_of[v])
    devices = np.flatnonzero(instance.allowed[unit])
    if len(devices) > 1 and rng.random() < 0.5:
        placement = placement.copy()
        placement[instance.units[unit]] = rng.choice(devices)
    place = {task: i for i, task in enumerate(order)}
    graph = instance.graph
    before = graph.edge_source[graph.edge_target == v].tolist()
    after = graph.edge_target[graph.edge_source == v].tolist()
    low = max((place[u] + 1 for u in before), default=0)
    high = min((place[w] for w in after), default=len(order))
    order.remove(v)
    order.insert(int(rng.integers(low, max(low + 1, high))), v)
    return Plan(placement, tuple(order))


def dispatch(instance: Instance, plan: Plan) -> Schedule:
    """Return what happens if devices decide while they run, with the order as their priorities."""
    position: dict[Task, int] = {task: i for i, task in enumerate(plan.order)}
    moves = crossings(instance, plan.placement)
    producer = instance.graph.tensor_vertex
    ranks = [position[v] for v in range(instance.vertices)]
    ranks += [position.get(move, position[int(producer[move[0]])]) for move in moves]
    ranks = ranks if instance.model.queues else ranks[: instance.vertices]
    tie = np.arange(len(ranks))
    value = -np.array(ranks, dtype=np.float64)
    return simulate(instance, Partition(plan.placement), lambda *_: Priority(value, tie))
