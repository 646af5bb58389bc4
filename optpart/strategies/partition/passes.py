"""Orders of passes on the devices of a training pipeline.

An order gives each rank the sequence of its passes, and each device waits for the next of them even
if another is ready. It is never repaired: whether it fits into memory is said by the verifier.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from optpart.base.errors import UnsupportedError
from optpart.interop.formats.pipeline_parts import FORWARD, WEIGHT, Pass, Passes, passes_of
from optpart.problem.instance import Instance
from optpart.solution.goal import Task
from optpart.strategies.base import NoPlacementError, Partition

if TYPE_CHECKING:
    from optpart.solution.goal import Goal


def check_scope(instance: Instance, goal: Goal) -> None:
    """Refuse what is no training pipeline."""
    passes_of(instance)


def one_stage_per_device(instance: Instance) -> Passes:
    """Return the passes; raise :class:`UnsupportedError` if a device has several stages."""
    found = passes_of(instance)
    if len(found.devices) != len(found.device):
        raise UnsupportedError("chunks", "several stages on a device", "use an order for chunks")
    return found


def check_split(passes: Passes) -> None:
    """Refuse backward passes that are one task."""
    if WEIGHT not in passes.backward:
        problem = "are one task each, where this order delays gradients of weights"
        raise UnsupportedError("backward passes", problem, "use an order for such, as 1f1b")


def v_shape(instance: Instance) -> Passes:
    """Return the passes; raise :class:`UnsupportedError` if stages do not lead there and back."""
    found = passes_of(instance)
    if found.device != found.devices + found.devices[::-1]:
        problem = "are not two per device that lead there and back"
        raise UnsupportedError("stages", problem, "use an order for other shapes")
    return found


def ordered(
    instance: Instance,
    passes: Passes,
    queues: Iterable[Sequence[Pass]],
    pairs: Iterable[tuple[Task, Task]] = (),
) -> Partition:
    """Return the placement of the stages, with an order that keeps the queue of each rank.

    Parameters
    ----------
    pairs : iterable of (task, task)
        Of each, the first comes after the second.
    """
    graph, vertex = instance.graph, passes.vertex
    after: TopologicalSorter[Task] = TopologicalSorter()
    for u, v in zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True):
        after.add(v, u)
    for queue in queues:
        for one, other in pairwise(queue):
            after.add(vertex[other], vertex[one])
    for later, earlier in pairs:
        after.add(later, earlier)
    try:
        order = list(after.static_order())
    except CycleError:
        raise NoPlacementError("found no order: its queues wait for one another") from None
    device = np.empty(len(graph), np.int32)
    for each, v in vertex.items():
        device[v] = passes.device[each.stage]
    return Partition(device, order=order)


def one_forward_one_backward(passes: Passes, stage: int, ahead: int, delay: int = 0) -> list[Pass]:
    """Return an order of one stage: forward passes, then backward and forward passes in turns.

    Parameters
    ----------
    ahead : int
        Forward passes before the first gradient.
    delay : int
        The gradient of weights comes after that of the input so many microbatches later.
    """
    count, first, *last = passes.microbatches, *passes.backward
    order = [Pass(stage, FORWARD, m) for m in range(min(ahead, count))]
    for m in range(count):
        order.append(Pass(stage, first, m))
        order += [Pass(stage, kind, m - delay) for kind in last if m >= delay]
        if m + ahead < count:
            order.append(Pass(stage, FORWARD, m + ahead))
    late = range(max(0, count - delay), count)
    return order + [Pass(stage, kind, m) for m in late for kind in last]


class Taken:
    """The passes of one rank as they are taken one by one, each kind by rising microbatch."""

    def __init__(self, stages: Sequence[int], microbatches: int) -> None:
        self._stages, self._microbatches = stages, microbatches
        self._taken: dict[tuple[int, str], int] = {}
        self.order: list[Pass] = []

    def done(self, chunk: int, kind: str) -> int:
        """Return how many passes of a kind a chunk has had."""
        return self._taken.get((chunk, kind), 0)

    def left(self, chunk: int, kind: str) -> int:
        """Return how many are still to come."""
        return self._microbatches - self.done(chunk, kind)

    def take(self, chunk: int, kinds: str, times: int = 1) -> None:
        """Take the next pass of each kind, again and again, as far as there are any."""
        for _ in range(times):
            for kind in kinds:
                m = self.done(chunk, kind)
                if m < self._microbatches:
                    self._taken[chunk, kind] = m + 1
                    self.order.append(Pass(self._stages[chunk], kind, m))
