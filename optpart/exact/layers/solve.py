"""The method ``layers``: wide layers between cut vertices, on devices of proportional speed.

Every part between two cut vertices, with the device of either given, is a problem by itself if the
edges that jump over a cut vertex are left out; that is a relaxation. So the shortest path over the
devices of cut vertices is a lower bound, with a :class:`~optpart.exact.layers.layer.Layer` for each
arc, of which only those on the shortest path need to be solved. Other vertices of a part that come
before or after most of it, its *hubs*, have their devices given, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import NamedTuple

import numpy as np

from optpart.base import clock
from optpart.base.errors import UnsupportedError
from optpart.exact.layers.layer import Layer, Sizes, sizes
from optpart.exact.series.parts import Part, parts
from optpart.exact.symmetry import interchangeable_devices
from optpart.kernels.ticks import Grid, quantum
from optpart.problem.feasibility import contradiction
from optpart.problem.graph import Graph
from optpart.problem.induced import durations_of, induced
from optpart.problem.instance import Instance
from optpart.solution.goal import Goal
from optpart.solution.job import Job, method
from optpart.solution.record import Record
from optpart.solution.result import Result, Starts, Watch
from optpart.solution.schedule import Schedule, retime
from optpart.solution.termination import Termination

#: Arcs of a part, and vertices of one, at most.
_MOST_ARCS, _MOST_VERTICES = 512, 2_000

#: Ticks of the serial schedule, at most; sums of a few such times are within 64 bits.
_MOST_TICKS = 2**48

#: Devices of cut vertices and hubs: those of the hubs, then that of the cut vertex.
Ends = tuple[int, tuple[int, ...]]


class Stage(NamedTuple):
    """A part of the graph, in which all that is wide may run on the same devices.

    Attributes
    ----------
    before : int
        The cut vertex before; −1 for the first part.
    vertices, wide : list of int
    given : list of int
        The hubs and, last, the cut vertex that closes the part, if one does.
    sizes : Sizes
        Of what is wide.
    """

    before: int
    vertices: list[int]
    wide: list[int]
    given: list[int]
    sizes: Sizes


def check_scope(instance: Instance, goal: Goal) -> None:
    """Raise :class:`UnsupportedError` if the method does not support the goal or the model."""
    if goal.objective != "makespan":
        raise UnsupportedError(
            "goal.objective", f"layers does not minimise {goal.objective}", "use makespan"
        )
    if goal.blocks or goal.order or goal.traffic is not None or goal.makespan is not None:
        raise UnsupportedError("goal", "layers takes no blocks, order or limit", "use cpsat")
    limited = any(most is not None for most in instance.cluster.memory)
    if instance.model.communication != "delay" or (limited and instance.model.memory != "none"):
        raise UnsupportedError("model", "layers is for delay without limits of memory", "use cpsat")
    if instance.graph.colocation or instance.graph.separation:
        raise UnsupportedError("graph", "layers takes no colocation or separation", "use cpsat")


def exact_grid(instance: Instance) -> Grid | None:
    """Return an exact grid, finer than solvers could use."""
    step = quantum(instance, most=_MOST_TICKS)
    return None if step is None else Grid.at(instance, 1 / step, exact=True)


def stages(instance: Instance, grid: Grid) -> list[Stage]:
    """Return the parts of a graph as layers; none if the method does not fit the instance."""
    found: list[Stage] = []
    if not ((grid.delays >= 0).all() and (grid.measured >= 0).all()):
        return []
    before = -1
    for part in parts(instance.graph):
        stage = _stage(instance, grid, before, part)
        if stage is None:
            return []
        found.append(stage)
        before = part.vertices[-1]
    return found


def wide_layers(instance: Instance) -> list[list[int]]:
    """Return the vertices of each layer; none if the method does not fit the instance."""
    grid = exact_grid(instance)
    return [stage.wide for stage in stages(instance, grid)] if grid else []


def _stage(instance: Instance, grid: Grid, before: int, part: Part) -> Stage | None:
    k, closed = instance.devices, part.closed
    if len(part.vertices) > _MOST_VERTICES:
        return None
    inner = list(part.vertices[:-1] if closed else part.vertices)
    related = _related(instance.graph, inner)
    hubs = [v for v in sorted(inner, key=lambda v: -related[v]) if 2 * related[v] > len(inner)]
    while k ** ((before >= 0) + len(hubs) + closed) > _MOST_ARCS:
        if not hubs:
            return None
        hubs.pop()
    wide = [v for v in inner if v not in hubs]
    given = [*hubs, *part.vertices[len(inner) :]]
    duration = grid.duration[np.array(wide, dtype=np.int64)]
    devices = np.flatnonzero((duration >= 0).any(axis=0)).tolist() if wide else list(range(k))
    found = sizes(duration, devices) if devices else None
    return found and Stage(before, list(part.vertices), wide, given, found)


def _related(graph: Graph, vertices: Sequence[int]) -> dict[int, int]:
    """Return how many of some vertices, in topological order, precede or follow each of them."""
    place = {v: i for i, v in enumerate(vertices)}
    before = dict.fromkeys(vertices, 0)
    after = dict.fromkeys(vertices, 0)
    edges = [
        (place[u], place[v])
        for u, v in zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True)
        if u in place and v in place
    ]
    for i, j in sorted(edges, key=lambda edge: edge[1]):
        before[vertices[j]] |= before[vertices[i]] | 1 << i
    for i, j in sorted(edges, reverse=True):
        after[vertices[i]] |= after[vertices[j]] | 1 << j
    return {v: (before[v] | after[v]).bit_count() for v in vertices}


@method
def solve_layers(job: Job, watch: Watch | None = None, *, starts: Starts | None = None) -> Result:
    """Solve an instance whose parts are wide layers, each by itself.

    Raises
    ------
    UnsupportedError
        If the goal is not the least makespan alone, or the model is not ``delay`` without limits of
        memory.
    """
    check_scope(job.instance, job.goal)
    return _Solve(job, watch, starts).run()


class _Solve:
    def __init__(self, job: Job, watch: Watch | None, starts: Starts | None) -> None:
        self.job, self.starts = job, starts
        self.instance = job.instance
        self.record = Record(job, watch)

    def run(self) -> Result:
        infeasible = self.job.goal.contradiction(self.instance)
        if not infeasible:
            self.instance = self.job.goal.narrowed(self.instance)
            infeasible = contradiction(self.instance)
        if not infeasible:
            with self.record.until_interrupted():
                try:
                    with clock.limited(self.job.budget.seconds):
                        self._solve()
                except clock.OutOfTimeError:
                    self.record.end(Termination.TIME_LIMIT, str(Termination.TIME_LIMIT))
        return self.record.result("layers", infeasible=infeasible)

    def _solve(self) -> None:
        record, job = self.record, self.job
        if job.start is not None:
            record.offer_start(job.start)
        for found in self.starts(self.instance, job.seed, job.budget.memory) if self.starts else ():
            record.offer_verified(found)
        grid = exact_grid(self.instance)
        self.stages = stages(self.instance, grid) if grid else []
        if grid is None or not self.stages:
            record.end(Termination.UNSUPPORTED, "its parts are not layers of proportional times")
            return
        self.grid = grid
        self.classes = interchangeable_devices(self.instance)
        arcs = [dict(self._arcs(stage)) for stage in self.stages]
        while True:
            path = _shortest([{ends: arc.lower for ends, arc in x.items()} for x in arcs])
            layers = [of[ends] for of, ends in zip(arcs, path, strict=True)]
            bound = sum(layer.lower for layer in layers)
            if all(layer.schedule is not None for layer in layers):
                record.offer(self._joined(path, layers))
            self._raise(bound)
            left = [layer for layer in layers if not layer.ended]
            if record.closed("makespan"):
                return
            if not left:
                record.end(Termination.COMPLETED, "no more can be said layer by layer")
                return
            most = bound if record.makespan is None else self._ticks(record.makespan) - 1
            layer = min(left, key=lambda layer: len(layer.wide))  # soon all have a schedule
            layer.step(layer.lower + most - bound if record.makespan else 2**60, job.budget)
            record.pulse()

    def _ticks(self, time: Fraction) -> int:
        return math.ceil(time * self.grid.scale)

    def _raise(self, ticks: int) -> None:
        time, known = self.grid.time(ticks), self.record.makespan
        self.record.raise_bound(time if known is None else min(time, known))

    def _arcs(self, stage: Stage) -> Iterator[tuple[Ends, Layer]]:
        """Yield a layer for all devices of its cut vertices and hubs.

        Those that differ in the names of interchangeable devices only have the same one.
        """
        allowed, begins = self.instance.vertex_allowed, stage.before >= 0
        fixed = [*([stage.before] if begins else []), *stage.given]
        known: dict[tuple[int, ...], Layer] = {}
        for devices in product(*(np.flatnonzero(allowed[v]).tolist() for v in fixed)):
            clock.check_time()
            to = self._names(devices)
            first = tuple(to.index(d) for d in devices)
            if first not in known:
                known[first] = self._layer(stage, dict(zip(fixed, first, strict=True)))
            yield (devices[0] if begins else 0, devices[begins:]), known[first]

    def _names(self, devices: Sequence[int]) -> list[int]:
        """Return a permutation of interchangeable devices that brings some into order."""
        to = list(range(self.instance.devices))
        for alike in self.classes:
            used = dict.fromkeys(d for d in devices if d in alike)
            for d, e in zip(alike, [*used, *(d for d in alike if d not in used)], strict=True):
                to[d] = e
        return to

    def _layer(self, stage: Stage, given: dict[int, int]) -> Layer:
        """Return a part alone; the cut vertex before it takes no time."""
        instance, vertices = self.instance, _alone(stage)
        before = {v: d for v, d in given.items() if v == stage.before}
        alone = Instance(
            induced(instance.graph, vertices),
            instance.cluster,
            instance.model,
            durations_of(instance, vertices, given, before),
        )
        grid = Grid.at(alone, self.grid.scale, exact=True)
        place = {v: i for i, v in enumerate(vertices)}
        wide = [place[v] for v in stage.wide]
        return Layer(alone, grid, wide, {place[v]: d for v, d in given.items()}, stage.sizes)

    def _joined(self, path: Sequence[Ends], layers: Sequence[Layer]) -> Schedule:
        """Put the schedules of all layers one after the other, with all edges."""
        instance = self.instance
        placement = np.zeros(instance.vertices, dtype=np.int32)
        order: list[int] = []
        for stage, (before, devices), layer in zip(self.stages, path, layers, strict=True):
            assert layer.schedule is not None
            vertices, start = _alone(stage), layer.schedule.start
            at = layer.schedule.placement
            to = self._names([*([before] if stage.before >= 0 else []), *devices])
            placement[vertices] = np.array(to, dtype=np.int32)[at]
            # What takes no time comes before what starts together with it.
            order += [
                vertices[i]
                for i in sorted(
                    range(len(vertices)),
                    key=lambda i: (start[i], layer.grid.duration[i, at[i]], i),
                )
                if vertices[i] != stage.before
            ]
        return retime(instance, placement, order)


def _alone(stage: Stage) -> list[int]:
    return [*([stage.before] if stage.before >= 0 else []), *stage.vertices]


def _shortest(lengths: Sequence[dict[Ends, int]]) -> list[Ends]:
    """Return the ends of each part on a shortest path."""
    reached: dict[int, tuple[int, list[Ends]]] = {0: (0, [])}
    first = True
    for arcs in lengths:
        following: dict[int, tuple[int, list[Ends]]] = {}
        for (before, devices), length in arcs.items():
            value, path = reached[0 if first else before]
            after = devices[-1] if devices else 0
            if after not in following or value + length < following[after][0]:
                following[after] = value + length, [*path, (before, devices)]
        reached, first = following, False
    return min(reached.values(), key=lambda entry: entry[0])[1]
