"""1F1B in less memory: part of what forward passes leave is on the host until it is needed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from optpart.base.errors import UnsupportedError
from optpart.interop.formats.pipeline_parts import FORWARD, STORE, Pass, Passes
from optpart.problem.instance import Instance
from optpart.solution.goal import Task
from optpart.strategies.base import NoPlacementError, Partition
from optpart.strategies.partition.passes import (
    one_forward_one_backward,
    one_stage_per_device,
    ordered,
)

#: Of the microbatches for which a stage has room, so many move; the others stay.
_MOVING = 2


def one_f_one_b_offload(instance: Instance, rng: np.random.Generator) -> Partition:
    """Offload as much as 1F1B needs to fit, and keep its order.

    A stage that has no room for all its microbatches in flight keeps all but two of those that it
    has room for, spread evenly. The others leave after their forward pass, and come back during the
    pass before their backward pass. Passes and transfers wait until there is room. The idea is that
    of PipeOffload (Wan et al. 2025); which microbatches move is ours.
    """
    passes = one_stage_per_device(instance)
    if Pass(0, STORE, 0) not in passes.vertex:
        remedy = "generate with an offload time, or use an order that keeps them"
        raise UnsupportedError("activations", "may not be offloaded", remedy)
    stages = len(passes.device)
    queues = [one_forward_one_backward(passes, s, stages - s) for s in range(stages)]
    moves = _Moves(instance, passes)
    for s, queue in enumerate(queues):
        moves.add(s, queue)
    found = ordered(instance, passes, queues, [*moves.after, *moves.waits.items()])
    for store, host in moves.host.items():
        found.placement[store] = host
    return found._replace(waits=moves.waits)


class _Moves:
    """What is offloaded, and which tasks wait for others because of it.

    Attributes
    ----------
    host : dict from vertex to device
        Of each vertex that stores on a host.
    after : list of (task, task)
        Pairs of which the first comes after the second.
    waits : dict from task to task
        What makes room for one.
    """

    def __init__(self, instance: Instance, passes: Passes) -> None:
        self.instance, self.passes = instance, passes
        self.host: dict[int, int] = {}
        self.after: list[tuple[Task, Task]] = []
        self.waits: dict[Task, Task] = {}
        self.read: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for u, v, tensor in instance.graph.edges():
            self.read[u].append((tensor, v))

    def add(self, stage: int, queue: Sequence[Pass]) -> None:
        """Decide what a stage offloads, and let it wait until there is room."""
        flight = min(len(self.passes.device) - stage, self.passes.microbatches)
        room = self._room(stage, flight)
        kept = flight if room == flight else max(0, room - _MOVING)
        # Of any `flight` microbatches in a row, `kept` stay.
        away = [m for m in range(self.passes.microbatches) if m * kept % flight >= kept]
        out, back = {}, {}
        for m in away:
            out[m], back[m] = self._move(stage, m)
        for moved in (out, back):
            tasks = [task for each in moved.values() for task in each]
            self.after += [(later, earlier) for earlier, later in pairwise(tasks)]
        first, last = self.passes.backward[0], self.passes.backward[-1]
        # Each that leaves or has been used makes room for one other. As no two wait for the same,
        # at most `room` of those that have come have not gone, in whatever order that happens.
        freed: list[Task] = []
        taken = 0
        for each in queue:
            m, v = each.microbatch, self.passes.vertex[each]
            takes: dict[str, Sequence[Task]] = {FORWARD: [v], first: back.get(m, [])}
            if here := takes.get(each.kind):
                if taken >= room:
                    self.waits |= dict.fromkeys(here, freed[taken - room])
                taken += 1
            if each.kind == FORWARD:
                freed += out.get(m, [])[-1:]
            elif each.kind == last:
                freed.append(v)

    def _room(self, stage: int, flight: int) -> int:
        """Return for how many microbatches a stage has room, at most those in flight."""
        device, sizes = self.passes.device[stage], self.instance.graph.tensor_size
        limit = self.instance.cluster.memory[device]
        left = [
            sum(sizes[tensor] for tensor, _ in self._stored(stage, m))
            for m in range(self.passes.microbatches)
        ]
        if limit is None or limit >= flight * max(left):
            return flight
        if limit < max(left):
            name = self.instance.cluster.names[device]
            raise NoPlacementError(f"found no order: {name} has no room for one microbatch")
        return int(limit // max(left))

    def _stored(self, stage: int, m: int) -> list[tuple[int, int]]:
        """Return what a forward pass leaves, by tensor, and the vertex that stores it."""
        store = self.passes.vertex[Pass(stage, STORE, m)]
        forward = self.passes.vertex[Pass(stage, FORWARD, m)]
        return [(tensor, v) for tensor, v in self.read[forward] if v == store]

    def _move(self, stage: int, m: int) -> tuple[list[Task], list[Task]]:
        """Store a microbatch on the host; return what moves there, and what comes back."""
        store, device = self.passes.vertex[Pass(stage, STORE, m)], self.passes.device[stage]
        allowed = np.flatnonzero(self.instance.allowed[self.instance.unit_of[store]]).tolist()
        hosts = [d for d in allowed if d != device]
        if not hosts:
            raise UnsupportedError(f"stage {stage}", "has no host", "allow one for what it stores")
        self.host[store] = hosts[0]
        forward = self.passes.vertex[Pass(stage, FORWARD, m)]
        out: list[Task] = [(tensor, hosts[0]) for tensor, _ in self._stored(stage, m)]
        self.after += [pair for task in out for pair in ((task, forward), (store, task))]
        self.after += [pair for tensor, v in self.read[store]
                       for pair in (((tensor, device), store), (v, (tensor, device)))]  # fmt: skip
        return out, [*dict.fromkeys((tensor, device) for tensor, _ in self.read[store])]
