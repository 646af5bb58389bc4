"""Graphs in series without limits of memory: every block solved by itself, as far as it matters.

Under all models of communication, all that precedes a cut vertex has ended when it starts,
transfers and sends included: each has a consumer that does not start after the cut vertex. If no
edge jumps over the cut vertex and no group spans it, nothing else depends on what was before. So
without limits of memory the least makespan is a shortest path: its nodes are the devices of the cut
vertices, and an arc is the least time to run the *block* between two of them.

Only few arcs matter. Each begins with a lower bound from the relaxation of the whole graph in which
transfers never wait. CP-SAT solves the arcs of the shortest path, first in that relaxation, which
takes it a fraction of a second, then, if transfers take turns, truly, and the results replace the
bounds, until all arcs of the shortest path are solved. Its length is a lower bound at any moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from optpart.base import clock
from optpart.exact.series.dual import Dual
from optpart.exact.series.lattice import NEVER
from optpart.exact.series.problem import Series
from optpart.exact.solve import solve
from optpart.problem.induced import durations_of, induced, tensors_among
from optpart.problem.instance import Instance
from optpart.problem.rational import RationalArray
from optpart.solution.result import Budget, Status
from optpart.solution.schedule import Schedule, Transfers
from optpart.solution.termination import Termination

#: Blocks beyond this many vertices are too large to be solved again and again.
_MOST_VERTICES = 60

#: The last stage of an arc.
_STAGES = 2

#: Share of the time left for a single arc, and its fewest seconds.
_SHARE, _LEAST_SECONDS = 0.2, 0.5


@dataclass(frozen=True)
class Block:
    """The vertices between two cut vertices that no edge spans.

    Attributes
    ----------
    before : int
        The cut vertex before; −1 for the first block.
    vertices : tuple of int
        In topological order; of a block that a cut vertex closes, that vertex is the last.
    closed : bool
    bound : dict from (device, device) to Fraction
        Lower bounds of the time between the ends of the cut vertices on these devices. The first
        block begins on device 0, and an open one ends there, whatever devices its vertices use.
    """

    before: int
    vertices: tuple[int, ...]
    closed: bool
    bound: dict[tuple[int, int], Fraction]

    @property
    def with_before(self) -> list[int]:
        """The cut vertex before, if there is one, and the vertices."""
        return [*([self.before] if self.before >= 0 else []), *self.vertices]


@dataclass
class Arc:
    """Bounds and schedules of a block between two devices.

    Attributes
    ----------
    lower : Fraction
    upper : Fraction, optional
    schedule : Schedule, optional
        Of the block alone, with its cut vertex before first, of length 0, and ``upper`` long.
    stage : int
        1 when CP-SAT has solved the relaxation, 2 when it has solved the block, or given up.
    """

    lower: Fraction
    upper: Fraction | None = None
    schedule: Schedule | None = None
    stage: int = 0


@dataclass(frozen=True)
class BlockResult:
    """A lower bound, ``None`` if there is no schedule at all, and a schedule if it is new."""

    bound: Fraction | None
    schedule: Schedule | None = None


def applies(series: Series) -> bool:
    """Return whether blocks share only the devices of cut vertices, and are small."""
    model = series.instance.model
    if series.limited:
        return False
    if model.timed_memory and any(limit is not None for limit in series.instance.cluster.memory):
        return False
    sizes = [len(vertices) for _, vertices in _spans(series)]
    return len(sizes) > 1 and max(sizes) <= _MOST_VERTICES


class BlockPath:
    """The shortest path over blocks.

    Parameters
    ----------
    dual : Dual
        The relaxation without prices.
    """

    def __init__(self, series: Series, dual: Dual) -> None:
        self.series = series
        self.instance = series.instance
        self.blocks = list(_blocks(series, dual))
        first = 0 if self.instance.model.queues else _STAGES - 1
        self.arcs = [
            {ends: Arc(lower, stage=first) for ends, lower in block.bound.items()}
            for block in self.blocks
        ]
        self._best: Fraction | None = None
        self._solve_single_vertices()

    def run(self, deadline: float, budget: Budget, seed: int) -> Iterator[BlockResult]:
        """Yield bounds and schedules until they meet or time is up."""
        while True:
            path = _shortest([{ends: arc.lower for ends, arc in x.items()} for x in self.arcs])
            if path is None:
                yield BlockResult(None)
                return
            arcs = [arcs[ends] for arcs, ends in zip(self.arcs, path, strict=True)]
            bound = sum((arc.lower for arc in arcs), Fraction(0))
            yield BlockResult(bound, self._schedule())
            stage = min(arc.stage for arc in arcs) + 1
            if stage > _STAGES:
                return
            for i in (i for i, arc in enumerate(arcs) if arc.stage < stage):
                left = deadline - clock.now()
                if left <= 0:
                    return
                seconds = min(left, max(_LEAST_SECONDS, _SHARE * left))
                own = Budget(seconds, budget.workers, memory=budget.memory)
                self._solve(i, path[i], stage, own, seed)

    def _schedule(self) -> Schedule | None:
        """Return the best schedule of known ones for all blocks; ``None`` if it is not new."""
        path = _shortest(
            [{ends: a.upper for ends, a in x.items() if a.upper is not None} for x in self.arcs]
        )
        if path is None:
            return None
        found = self._joined(path)
        value = found.makespan(self.instance)
        if self._best is not None and value >= self._best:
            return None
        self._best = value
        return found

    def _solve_single_vertices(self) -> None:
        """Solve the blocks of one vertex, unless it gets several tensors or is in a group."""
        instance, links = self.instance, self.series.links
        for block, arcs in zip(self.blocks, self.arcs, strict=True):
            v = block.vertices[0]
            if len(block.vertices) > 1 or not block.closed or links.mates[v] or links.apart[v]:
                continue
            tensors = tensors_among(instance.graph, block.with_before)
            if len(tensors) > 1:
                continue
            for d, e in list(arcs):
                arc = _single(instance, block, d, e, tensors)
                if arc is None:
                    del arcs[d, e]
                else:
                    arcs[d, e] = arc

    def _solve(self, i: int, ends: tuple[int, int], stage: int, budget: Budget, seed: int) -> None:
        """Solve a block between two devices, and learn the same of devices like these."""
        block = self.blocks[i]
        alike = [other for other in self.arcs[i] if self._alike(block, ends, other)]
        instance = self._instance(block, ends)
        if instance is None:
            for other in alike:
                del self.arcs[i][other]
            return
        if stage < _STAGES:
            instance = replace(instance, model=replace(instance.model, communication="delay"))
        result = solve(instance, budget=budget, seed=seed)
        if result.termination is Termination.INTERRUPTED:
            raise KeyboardInterrupt
        for other in alike:
            arc = self.arcs[i][other]
            if result.status is Status.INFEASIBLE:
                del self.arcs[i][other]
                continue
            arc.stage = stage
            if result.lower_bound is not None:
                arc.lower = max(arc.lower, result.lower_bound)
            if stage == _STAGES and result.schedule is not None:
                arc.upper = result.makespan
                arc.schedule = _moved(result.schedule, self._exchange(_given(block, ends, other)))

    def _alike(self, block: Block, ends: tuple[int, int], other: tuple[int, int]) -> bool:
        """Return whether exchanging interchangeable devices turns one pair of ends into another."""
        kind, pairs = self.series.kind, _given(block, ends, other)
        same = len({d for d, _ in pairs}) == len({d for _, d in pairs})
        return same and all(kind[d] == kind[e] for d, e in pairs)

    def _exchange(self, pairs: list[tuple[int, int]]) -> list[int]:
        """Return a permutation of interchangeable devices that has some values."""
        to = list(range(self.series.devices))
        for d, e in pairs:
            place = to.index(e)
            to[d], to[place] = to[place], to[d]
        return to

    def _instance(self, block: Block, ends: tuple[int, int]) -> Instance | None:
        """Return the block alone; the cut vertex before it takes no time.

        ``None`` if the ends leave a group without a device.
        """
        instance = self.instance
        vertices = block.with_before
        given = {vertices[-1]: ends[1]} if block.closed else {}
        durations = durations_of(instance, vertices, given, {block.before: ends[0]})
        place = {v: i for i, v in enumerate(vertices)}
        for v in vertices:
            group = [place[w] for w in (v, *self.series.links.mates[v]) if w in place]
            if not durations.possible[group].all(axis=0).any():
                return None
        graph = induced(instance.graph, vertices)
        return Instance(graph, instance.cluster, instance.model, durations)

    def _joined(self, path: list[tuple[int, int]]) -> Schedule:
        """Put the schedules of all blocks one after the other."""
        instance = self.instance
        placement = np.zeros(instance.vertices, dtype=np.int32)
        start = [Fraction(0)] * instance.vertices
        rows: list[tuple[int, int, Fraction, Fraction]] = []
        offset = Fraction(0)
        for block, arcs, ends in zip(self.blocks, self.arcs, path, strict=True):
            arc = arcs[ends]
            assert arc.schedule is not None
            assert arc.upper is not None
            first = int(block.before >= 0)
            for i, v in enumerate(block.vertices, first):
                placement[v] = arc.schedule.placement[i]
                start[v] = offset + arc.schedule.start[i]
            tensors = tensors_among(instance.graph, block.with_before)
            transfers = arc.schedule.transfers
            rows += [
                (tensors[int(t)], int(d), offset + transfers.start[j], offset + transfers.end[j])
                for j, (t, d) in enumerate(zip(transfers.tensor, transfers.target, strict=True))
            ]
            offset += arc.upper
        return Schedule(placement, RationalArray.from_fractions(start), Transfers.of(rows))


def _shortest(
    values: list[dict[tuple[int, int], Fraction]],
) -> list[tuple[int, int]] | None:
    """Return the devices at the ends of every block on a shortest path; ``None`` if none exists."""
    reached: dict[int, tuple[Fraction, list[tuple[int, int]]]] = {0: (Fraction(0), [])}
    for arcs in values:
        following: dict[int, tuple[Fraction, list[tuple[int, int]]]] = {}
        for (d, e), length in arcs.items():
            if d not in reached:
                continue
            value, path = reached[d]
            if e not in following or value + length < following[e][0]:
                following[e] = value + length, [*path, (d, e)]
        reached = following
    return min(reached.values(), key=lambda entry: entry[0])[1] if reached else None


def _single(
    instance: Instance, block: Block, sender: int, receiver: int, tensors: list[int]
) -> Arc | None:
    """Return the arc of a single vertex; ``None`` if its tensor cannot cross."""
    (v,) = block.vertices
    first = block.before < 0
    rows: list[tuple[int, int, Fraction, Fraction]] = []
    begin = Fraction(0)
    if not first and sender != receiver:
        (tensor,) = tensors
        delay = instance.delay(tensor, sender, receiver)
        if delay is None:
            return None
        begin = delay
        if instance.model.sends:
            begin += instance.model.send_ops / instance.cluster.speed[sender]
        rows = [(0, receiver, Fraction(0), begin)]
    end = begin + instance.duration(v, receiver)
    schedule = Schedule(
        np.array([receiver] if first else [sender, receiver], dtype=np.int32),
        RationalArray.from_fractions([begin] if first else [Fraction(0), begin]),
        Transfers.of(rows),
    )
    return Arc(end, end, schedule, stage=2)


def _given(block: Block, ends: tuple[int, int], other: tuple[int, int]) -> list[tuple[int, int]]:
    """Pair the devices of two pairs of ends, as far as the block has such an end."""
    both = list(zip(ends, other, strict=True))
    return ([both[0]] if block.before >= 0 else []) + ([both[1]] if block.closed else [])


def _spans(series: Series) -> list[tuple[int, tuple[int, ...]]]:
    """Return the first part and the vertices of every block."""
    firsts = [i for i, clean in enumerate(series.clean) if clean]
    if not firsts or firsts[-1] != len(series.parts):
        firsts.append(len(series.parts))
    return [
        (first, tuple(v for part in series.parts[first:last] for v in part.vertices))
        for first, last in pairwise(firsts)
    ]


def _blocks(series: Series, dual: Dual) -> Iterator[Block]:
    spans = _spans(series)
    ends = [*(first for first, _ in spans[1:]), len(series.parts)]
    for (first, vertices), last in zip(spans, ends, strict=True):
        closed = series.parts[last - 1].closed
        bound: dict[tuple[int, int], Fraction] = {}
        for d in series.allowed_before(first):
            for e in np.flatnonzero(series.duration[vertices[-1]] >= 0).tolist() if closed else [0]:
                before, after = int(dual.after[first, d]), int(dual.after[last, e]) if closed else 0
                if before < NEVER // 2 and after < NEVER // 2:
                    # The relaxation has before ≤ (least time of the block) + after.
                    bound[d, e] = series.grid.time(max(0, before - after))
        yield Block(series.cut(first), vertices, closed, bound)


def _moved(schedule: Schedule, to: list[int]) -> Schedule:
    """Exchange devices."""
    change = np.array(to, dtype=np.int32)
    transfers = schedule.transfers
    return Schedule(
        change[schedule.placement],
        schedule.start,
        Transfers(transfers.tensor, change[transfers.target], transfers.start, transfers.end),
    )
