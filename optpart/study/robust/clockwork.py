"""The makespans of a plan at many run times at once, exact.

A plan is a placement, and an order on every device, link and port. In whole ticks, the start of a
task is the largest of what it waits for, at all run times at once: an array with an entry per case.

**Deviations.** For *at most g vertices deviate to the upper end of their interval*, entry ``g`` of
the end of a vertex is the larger of its start in entry ``g`` plus its own time and of its start in
entry ``g − 1`` plus the upper end. With a fixed order, a makespan is the longest path of a graph
without cycles, so this is the longest makespan that any such choice of vertices gives: the choice
that is worst for a path is made along that path.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optpart.problem.instance import Instance
from optpart.problem.model import Resource
from optpart.problem.rational import RationalArray
from optpart.solution.goal import Task
from optpart.solution.schedule import crossings

#: Times per case, in ticks: of machine size, or Python's integers where that could overflow.
Ticks = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Plan:
    """A placement, and all vertices in an order, between them any transfers.

    A transfer that is not named queues when its tensor is made.
    """

    placement: NDArray[np.int32]
    order: tuple[Task, ...]


class Clockwork:
    """Times plans.

    Parameters
    ----------
    instances : sequence of Instance
        They differ in their run times only.
    high : Instance, optional
        With the upper ends of the intervals of the only one.
    deviations : int
        Vertices that deviate at most.

    Attributes
    ----------
    scale : int
        Ticks per unit of time.
    coarsest : Fraction
        The least such number for which all times are whole.
    """

    def __init__(
        self, instances: Sequence[Instance], high: Instance | None = None, deviations: int = 0
    ) -> None:
        self.instance = instances[0]
        self._deviations = deviations
        times = [_given(each) for each in (*instances, *([] if high is None else [high]))]
        delays = [time for time in self._distinct_delays() if time is not None]
        sends = [self.instance.send_duration(d) for d in range(self.instance.devices)]
        self.scale = math.lcm(
            *(den for _, den in times), *(time.denominator for time in (*delays, *sends))
        )
        ticks = [numerators * (self.scale // den) for numerators, den in times]
        grain = math.gcd(
            *(int(np.gcd.reduce(each, axis=None)) for each in ticks if each.size),
            *(int(time * self.scale) for time in (*delays, *sends)),
        )
        self.coarsest = Fraction(self.scale, grain or 1)
        longest = sum(int(each.max(axis=1).sum()) for each in ticks)
        longest += self.scale * math.ceil(
            sum(delays, Fraction(0)) * self.instance.graph.tensors * self.instance.devices
            + sum(sends, Fraction(0)) * self.instance.graph.tensors
        )
        kind: Any = np.int64 if longest < 2**62 else object
        self._send = [int(time * self.scale) for time in sends]
        self._delay: dict[tuple[int, int, int], int | None] = {}
        self._high = None if high is None else ticks.pop().astype(kind)
        self._run: Ticks = np.stack(ticks, axis=2).astype(kind)
        if high is not None:
            self._run = np.repeat(self._run, deviations + 1, axis=2)
        self._zero = np.zeros(self._run.shape[2], dtype=kind)
        graph = self.instance.graph
        start, edges = (array.tolist() for array in graph.in_edges)
        self._inputs = [
            [int(graph.edge_tensor[e]) for e in edges[start[v] : start[v + 1]]]
            for v in range(len(graph))
        ]

    def makespans(self, plan: Plan) -> Ticks | None:
        """Return the makespan in every case; ``None`` if there is no schedule.

        There is none if the order contradicts the edges, or a tensor has to cross where no link is.
        """
        found = self._timed(plan)
        return None if found is None else self._longest(found)

    def worst(self, plan: Plan) -> frozenset[int]:
        """Return vertices, as many as may deviate, whose deviation takes the plan longest."""
        assert self._high is not None
        found = self._timed(plan)
        assert found is not None
        left, deviating = self._deviations, set[int]()
        last: Task | None = max(found.end, key=lambda v: found.end[v][left], default=None)
        while last is not None:
            start = found.start(last, self._zero)
            if isinstance(last, int):
                device = int(plan.placement[last])
                if found.end[last][left] != start[left] + self._run[last, device][left]:
                    deviating.add(last)
                    left -= 1
            at = start[left]
            last = next((task for task, time in found.after[last] if time[left] == at), None)
        return frozenset(deviating)

    def _distinct_delays(self) -> set[Fraction | None]:
        graph, k = self.instance.graph, self.instance.devices
        sizes = graph.tensor_size.numerators.tolist()
        alike = {(t if t in graph.tensor_delay else -1, size): t for t, size in enumerate(sizes)}
        pairs = [(d, e) for d in range(k) for e in range(k)]
        return {self.instance.delay(t, d, e) for t in alike.values() for d, e in pairs}

    def _delay_of(self, tensor: int, sender: int, target: int) -> int | None:
        key = tensor, sender, target
        if key not in self._delay:
            time = self.instance.delay(*key)
            self._delay[key] = None if time is None else int(time * self.scale)
        return self._delay[key]

    def _longest(self, found: _Timed) -> Ticks:
        longest = self._zero
        for end in found.end.values():
            longest = np.maximum(longest, end)
        return longest

    def _timed(self, plan: Plan) -> _Timed | None:
        found = _Timed()
        device: list[int] = plan.placement.tolist()
        producer = self.instance.graph.tensor_vertex.tolist()
        named = {task for task in plan.order if not isinstance(task, int)}
        at_once: dict[int, list[tuple[int, int]]] = {}
        for crossing in crossings(self.instance, plan.placement):
            if crossing not in named:
                at_once.setdefault(producer[crossing[0]], []).append(crossing)
        free: dict[Resource, tuple[Task, Ticks]] = {}

        def cross(crossing: tuple[int, int]) -> bool:
            tensor, target = crossing
            u = producer[tensor]
            delay = self._delay_of(tensor, device[u], target)
            if u not in found.end or delay is None:
                return False
            used = self.instance.model.occupied(device[u], target)
            found.after[crossing] = [(u, found.end[u]), *(free[r] for r in used if r in free)]
            start = found.start(crossing, self._zero)
            sends = self.instance.model.sends
            send = self._send[device[u]] if sends else 0
            found.arrival[crossing] = start + (send + delay)
            for resource in used:
                free[resource] = crossing, start + (send if sends else delay)
            return True

        for task in plan.order:
            if not isinstance(task, int):
                if not cross(task):
                    return None
                continue
            here = device[task]
            resource: Resource = ("device", here, here)
            after = [free[resource]] if resource in free else []
            for tensor in self._inputs[task]:
                u = producer[tensor]
                source: Task = u if device[u] == here else (tensor, here)
                time = found.end.get(u) if device[u] == here else found.arrival.get((tensor, here))
                if time is None:
                    return None
                after.append((source, time))
            found.after[task] = after
            start = found.start(task, self._zero)
            end = start + self._run[task, here]
            if self._high is not None:
                end[1:] = np.maximum(end[1:], start[:-1] + self._high[task, here])
            found.end[task] = end
            free[resource] = task, end
            if not all(cross(crossing) for crossing in at_once.get(task, ())):
                return None
        return found


class _Timed:
    """The ends of vertices, the arrivals of transfers, and what each of them waited for."""

    def __init__(self) -> None:
        self.end: dict[int, Ticks] = {}
        self.arrival: dict[tuple[int, int], Ticks] = {}
        self.after: dict[Task, list[tuple[Task, Ticks]]] = {}

    def start(self, task: Task, zero: Ticks) -> Ticks:
        start = zero
        for _, time in self.after[task]:
            start = np.maximum(start, time)
        return start


def _given(instance: Instance) -> tuple[Ticks, int]:
    """Return run times, 0 where impossible, as numerators and their common denominator."""
    n, k, allowed = instance.vertices, instance.devices, instance.vertex_allowed
    times = RationalArray.from_fractions(
        instance.duration(v, d) if allowed[v, d] else Fraction(0)
        for v in range(n)
        for d in range(k)
    )
    return times.numerators.reshape(n, k).astype(object), times.denominator
