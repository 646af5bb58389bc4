"""Stages of a path: items in a total order of which only neighbours exchange tensors.

What a cut costs depends only on the cut and on the devices before and after it. So
``best[used, d, i]``, over the stages before item ``i`` of which the last is on ``d``, follows from
``best[used − d, e, j]``, the transfers from ``e`` to ``d`` at ``j``, and the stage from ``j`` to
``i``: for the bottleneck as the largest of the three, for the makespan as their sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise, product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from optpart.base.errors import UnsupportedError
from optpart.exact.pipeline.clock import NEVER, check, portions
from optpart.exact.pipeline.downsets import Items, total
from optpart.exact.pipeline.kernel import Path, split_path
from optpart.exact.pipeline.problem import classes_of, limits, vertex_memory
from optpart.exact.pipeline.splits import MOST_ENTRIES, MOST_STEPS, Split, Stage
from optpart.exact.pipeline.whole import scale_of
from optpart.kernels.segments import (
    NONE,
    Segment,
    States,
    in_order,
    no_segments,
    segments,
    states_of,
)
from optpart.problem.instance import Instance

Measure = Literal["bottleneck", "makespan"]


def is_chain(instance: Instance) -> bool:
    """Return whether every vertex feeds the next one in topological order.

    Then the order is total, contiguous blocks are intervals of it, and no two vertices overlap.
    """
    graph = instance.graph
    edges = set(graph.pairs())
    return all(pair in edges for pair in pairwise(graph.topological_order.tolist()))


def only_neighbours(instance: Instance, items: Items) -> bool:
    """Return whether each item feeds the next one and no edge passes over an item."""
    source = items.item[instance.graph.edge_source]
    target = items.item[instance.graph.edge_target]
    return items.is_path and bool((target - source <= 1).all())


def best_path(
    instance: Instance,
    items: Items,
    measure: Measure,
    order: Sequence[int] = (),
    deadline: float = NEVER,
) -> Split | None:
    """Return the stages of least bottleneck or makespan, or ``None`` if there are none.

    Parameters
    ----------
    instance : Instance
        :func:`only_neighbours` holds; for the makespan, so does :func:`is_chain`.
    order : sequence of int
        The only devices to use, in the order of their stages. By default, all in any order.

    Raises
    ------
    UnsupportedError
        If there are too many states, or the time of several tensors that cross at once over a
        port of several channels would have to be found.
    TimeUpError
        After the deadline.
    """
    if not items.members:
        return Split((), Fraction(0), Fraction(0))
    return _Program(instance, items, measure, tuple(order), deadline).run()


class _Program:
    def __init__(
        self,
        instance: Instance,
        items: Items,
        measure: Measure,
        order: tuple[int, ...],
        deadline: float,
    ) -> None:
        self.deadline = deadline
        self.instance, self.items, self.measure, self.order = instance, items, measure, order
        self.classes = [[d] for d in order] if order else classes_of(instance)
        self.members = items.members
        self.apart = [
            sorted((int(items.item[u]), int(items.item[v]))) for u, v in instance.graph.separation
        ]

    def run(self) -> Split | None:
        states = in_order(range(len(self.order))) if self.order else self._counted()
        n, count = len(self.members), len(states.device)
        steps = n * len(states.entry) + n * n * count // 2
        if steps > MOST_STEPS or n * count > MOST_ENTRIES:
            raise _too_many_ways()
        path, tables = self._path(), no_segments(states, n, whole=True)
        for begin, end in portions(count, steps // count, self.deadline):
            split_path(states, path, self.measure == "makespan", tables, begin, end)
        last = int(np.argmin(tables.value[:, n]))
        value = int(tables.value[last, n])
        if value == NONE:
            return None
        blocks = segments(states, tables, last)
        return Split(self._stages(blocks), self.scale.value(value), self._value(blocks))

    def _counted(self) -> States:
        """Return the states that tell how many devices of each class are taken."""
        sizes = [len(members) for members in self.classes]
        if math.prod(size + 1 for size in sizes) * len(sizes) > 10**6:
            raise _too_many_ways()
        device, entries = [0], list[list[int]]([[]])
        number: dict[tuple[tuple[int, ...], int], int] = {}
        for used in product(*(range(size + 1) for size in sizes)):
            for last, count in enumerate(used):
                if not count:
                    continue
                before = (*used[:last], count - 1, *used[last + 1 :])
                came = [number[before, other] for other, more in enumerate(before) if more]
                number[used, last] = len(device)
                device.append(last)
                entries.append(came if any(before) else [0])
        return states_of(device, entries)

    def _path(self) -> Path:
        instance, members = self.instance, self.members
        devices = [own[0] for own in self.classes]
        n, o = len(members), len(devices)
        self.times = times = [
            [total([instance.duration(v, d) for v in item]) for d in devices]
            for item in self._in_time(members)
        ]
        self.cuts = cuts = [self._cut(i) for i in range(1, n)]
        counted = self.measure == "bottleneck" and instance.model.sends
        sends = [instance.send_duration(d) if counted else Fraction(0) for d in devices]
        self.leaving = leaving = [
            [len(self._crossing(i)) * send for send in sends] for i in range(1, n)
        ]
        every = [entry for table in (times, leaving) for row in table for entry in row]
        across = [entry for cut in cuts for row in cut for entry in row if entry is not None]
        most = total([max(row) for row in (*times, *leaving)])
        most += total(across)
        self.scale = scale_of([*every, *across], most)
        floor = self.scale.floor
        run, left = (np.zeros((n + 1, o), np.int64) for _ in range(2))
        run[1:] = np.cumsum([[floor(entry) for entry in row] for row in times], axis=0)
        cut = np.zeros((n + 1, o, o), np.int64)
        for i in range(1, n):
            left[i] = [floor(entry) for entry in leaving[i - 1]]
            cut[i] = [
                [NONE if entry is None else floor(entry) for entry in row] for row in cuts[i - 1]
            ]
        return Path(self._first(), run.T.copy(), (run + left).T.copy(), cut)

    def _in_time(self, members: list[list[int]]) -> Iterator[list[int]]:
        """Yield items until the deadline."""
        for item in members:
            check(self.deadline)
            yield item

    def _crossing(self, i: int) -> list[int]:
        """Return the tensors that cross if a stage begins with item ``i``."""
        graph, item = self.instance.graph, self.items.item
        here = (item[graph.edge_source] < i) & (item[graph.edge_target] >= i)
        return sorted(set(graph.edge_tensor[here].tolist()))

    def _cut(self, i: int) -> list[list[Fraction | None]]:
        """Return the time of what crosses before item ``i``, by classes of devices."""
        check(self.deadline)
        tensors = self._crossing(i)
        table: list[list[Fraction | None]] = []
        for one, source in enumerate(self.classes):
            row: list[Fraction | None] = []
            for other, target in enumerate(self.classes):
                if one != other:
                    row.append(self._time(tensors, source[0], target[0]))
                elif len(source) > 1:
                    row.append(self._time(tensors, source[0], source[1]))
                else:
                    row.append(None)
            table.append(row)
        return table

    def _time(self, tensors: list[int], source: int, target: int) -> Fraction | None:
        """Return the time of transfers that become ready at once; ``None`` without a link."""
        model = self.instance.model
        delays = []
        for tensor in tensors:
            delay = self.instance.delay(tensor, source, target)
            if delay is None:
                return None
            delays.append(delay)
        if self.measure == "bottleneck":
            if model.sends or not model.queues:
                return Fraction(0)
            return total(delays) / model.parallel
        match model.communication:
            case "delay":
                return max(delays, default=Fraction(0))
            case "sendrecv":
                # Sends take turns; the longest transfer goes first, by exchange of neighbours.
                send = self.instance.send_duration(source)
                longest = sorted(delays, reverse=True)
                return max(
                    (i * send + delay for i, delay in enumerate(longest, 1)), default=Fraction(0)
                )
            case "port" if model.channels > 1 and len(delays) > 1:
                if len(delays) <= model.channels:
                    return max(delays)
                raise UnsupportedError(
                    "model.channels",
                    "more tensors cross at once than a port has channels",
                    "use one channel, or another method",
                )
            case "link" | "port":
                return total(delays)

    def _first(self) -> NDArray[np.int64]:
        """Return where the longest stage begins that ends before each item, by class.

        A part of a stage that fits, fits too.
        """
        n, need = len(self.members), vertex_memory(self.instance)
        capacity = limits(self.instance)
        needs = [total([need[v] for v in item]) for item in self.members]
        first = np.zeros((len(self.classes), n + 1), np.int64)
        for o, (d, *_) in enumerate(self.classes):
            at, held, limit = 0, Fraction(0), capacity[d]
            for j in range(1, n + 1):
                item = self.members[j - 1]
                held += needs[j - 1]
                start = at
                if not all(self.instance.vertex_allowed[v, d] for v in item):
                    start = j
                for one, other in self.apart:
                    if other == j - 1:
                        start = max(start, one + 1)
                while at < start or (limit is not None and held > limit):
                    held -= needs[at]
                    at += 1
                first[o, j] = at
        return first

    def _stages(self, blocks: list[Segment]) -> tuple[Stage, ...]:
        free = [list(members) for members in self.classes]
        stages = []
        for start, end, kind in blocks:
            vertices = sorted(v for item in self.members[start:end] for v in item)
            stages.append(Stage(tuple(vertices), (free[kind].pop(0),)))
        return tuple(stages)

    def _value(self, blocks: list[Segment]) -> Fraction:
        """Return the exact bottleneck or makespan."""
        n = len(self.members)
        parts = []
        for start, end, kind in blocks:
            leaving = self.leaving[end - 1][kind] if end < n else Fraction(0)
            parts.append(total([row[kind] for row in self.times[start:end]]) + leaving)
        for (_, end, kind), (_, _, other) in pairwise(blocks):
            cut = self.cuts[end - 1][kind][other]
            assert cut is not None
            parts.append(cut)
        return total(parts) if self.measure == "makespan" else max(parts)


def _too_many_ways() -> UnsupportedError:
    return UnsupportedError(
        "devices", "can be used in too many ways", "give the order of the devices"
    )
