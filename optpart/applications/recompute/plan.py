"""Plans that keep, recompute or offload tensors, and the rules that they break (design §2).

Nothing here is used by the search. A vertex is executed once or twice on its device, and every
execution reads one copy of each input: of the first execution of its producer, of the second, or
the one that comes back from the host.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

import numpy as np

from optpart.base.errors import InputError
from optpart.interop.formats.json import named
from optpart.kernels.ticks import Grid
from optpart.problem.instance import Instance

#: Copies of a tensor; nobody reads the one on the host.
FIRST, SECOND, BACK, HOST = range(4)
_NEEDED = {"memory": "refcount", "communication": "delay", "release": "end"}
#: Beyond, no model is built.
_MOST_VERTICES = 200

Span = tuple[Fraction, Fraction]


@dataclass(frozen=True, eq=False)
class Problem:
    """An instance, and the device that keeps what is offloaded, if any."""

    instance: Instance
    host: int | None

    @classmethod
    def of(cls, instance: Instance, offload_to: str | None) -> Problem:
        """Check that plans are defined for an instance."""
        for key, known in _NEEDED.items():
            if getattr(instance.model, key) != known:
                problem = f"is {getattr(instance.model, key)!r}"
                raise InputError(f"model.{key}", problem, f"give an instance with {known!r}")
        if instance.vertices > _MOST_VERTICES:
            remedy = f"give at most {_MOST_VERTICES}"
            raise InputError("vertices", f"{instance.vertices:,} of them", remedy)
        if not Grid.of(instance).exact:
            raise InputError("", "its times have no common tick", "round times and bandwidths")
        at, what, index = "offload_to", "no device", instance.cluster.index
        return cls(instance, None if offload_to is None else named(offload_to, index, at, what))

    def ways(self, tensor: int, device: int) -> tuple[Fraction, Fraction] | None:
        """Return the times of a tensor to the host and back, if it can go there."""
        if self.host is None or device == self.host:
            return None
        out = self.instance.delay(tensor, device, self.host)
        back = self.instance.delay(tensor, self.host, device)
        return None if out is None or back is None else (out, back)


class Run(NamedTuple):
    """An execution of a vertex; ``reads`` has the copy of each input tensor."""

    vertex: int
    start: Fraction
    reads: Mapping[int, int]


class Offload(NamedTuple):
    """The starts of the transfers of the first copy of a tensor to the host, and back."""

    tensor: int
    out: Fraction
    back: Fraction


class Plan(NamedTuple):
    """The device of every vertex, all executions, and all that is offloaded."""

    placement: tuple[int, ...]
    runs: tuple[Run, ...]
    offloads: tuple[Offload, ...] = ()


def end(problem: Problem, plan: Plan, run: Run) -> Fraction:
    """Return when an execution ends."""
    return run.start + problem.instance.duration(run.vertex, plan.placement[run.vertex])


def makespan(problem: Problem, plan: Plan) -> Fraction:
    """Return the latest end of an execution."""
    return max((end(problem, plan, run) for run in plan.runs), default=Fraction(0))


def _made(problem: Problem, plan: Plan) -> dict[tuple[int, int], Span]:
    """Return from when each copy takes memory at its producer, and when it can be read there."""
    producer, found = problem.instance.graph.tensor_vertex.tolist(), {}
    for tensor, u in enumerate(producer):
        runs = sorted((run for run in plan.runs if run.vertex == u), key=lambda run: run.start)
        for copy, run in enumerate(runs[:2]):
            found[tensor, copy] = (run.start, end(problem, plan, run))
    for tensor, out, back in plan.offloads:
        there, again = problem.ways(tensor, plan.placement[producer[tensor]]) or (0, 0)
        found[tensor, BACK], found[tensor, HOST] = (back, back + again), (out, out + there)
    return found


def held(problem: Problem, plan: Plan) -> dict[tuple[int, int, int], Span]:
    """Return since and until when each device holds each copy: by (tensor, copy, device)."""
    where, made = plan.placement, _made(problem, plan)
    producer = problem.instance.graph.tensor_vertex.tolist()
    span = {(t, copy, where[producer[t]]): at for (t, copy), at in made.items() if copy != HOST}

    def hold(key: tuple[int, int, int], since: Fraction, until: Fraction) -> None:
        known = span.get(key, (since, until))
        span[key] = known[0], max(known[1], until)

    for tensor, out, _ in plan.offloads:
        hold((tensor, FIRST, where[producer[tensor]]), out, made[tensor, HOST][1])
        hold((tensor, HOST, problem.host or 0), out, made[tensor, BACK][1])
    for run in plan.runs:
        for tensor, copy in run.reads.items():
            ready, d, e = made[tensor, copy][1], where[producer[tensor]], where[run.vertex]
            if d != e:
                arrival = ready + (problem.instance.delay(tensor, d, e) or 0)
                hold((tensor, copy, d), ready, arrival)
            hold((tensor, copy, e), ready, end(problem, plan, run))
    return span


def profile(problem: Problem, plan: Plan) -> list[dict[Fraction, Fraction]]:
    """Return what each device holds, weights included, from each moment until the next."""
    graph, spans, found = problem.instance.graph, held(problem, plan), []
    for d in range(problem.instance.devices):
        own = [(graph.tensor_size[t], *at) for (t, _, e), at in spans.items() if e == d]
        weights = graph.memory.sum(np.flatnonzero(np.array(plan.placement) == d))
        found.append({
            at: weights + sum(size for size, since, until in own if since <= at < until)
            for at in sorted({Fraction(0), *(since for _, since, _ in own)})
        })  # fmt: skip
    return found


def violations(problem: Problem, plan: Plan) -> list[str]:
    """Return every rule that a plan of known vertices, devices and tensors breaks."""
    broken = [*_placed(problem, plan)] or [*_timed(problem, plan)]
    return broken or [*_fitted(problem, plan)]


def _placed(problem: Problem, plan: Plan) -> Iterator[str]:
    """Yield what is wrong with devices, the number of executions and their inputs."""
    instance, where, graph = problem.instance, plan.placement, problem.instance.graph
    inputs: dict[int, set[int]] = defaultdict(set)
    for u, v, tensor in graph.edges():
        inputs[v].add(tensor)
        if instance.delay(tensor, where[u], where[v]) is None:
            yield f"no link takes {graph.tensor_name(tensor)} to {graph.names[v]}"
    for v, d in enumerate(where):
        reads = [{*run.reads} for run in plan.runs if run.vertex == v]
        if not instance.vertex_allowed[v, d]:
            yield f"{graph.names[v]} must not be on {instance.cluster.names[d]}"
        if reads not in ([inputs[v]], [inputs[v]] * 2):
            yield f"{graph.names[v]} is not executed once or twice with all its inputs"
    for group in graph.colocation:
        if len({where[v] for v in group}) > 1:
            yield f"{graph.names[group[0]]} and others of its group are apart"
    for u, v in graph.separation:
        if where[u] == where[v]:
            yield f"{graph.names[u]} and {graph.names[v]} share a device"
    moved = [each.tensor for each in plan.offloads]
    for tensor in {*moved}:
        home = where[int(graph.tensor_vertex[tensor])]
        if moved.count(tensor) > 1 or problem.ways(tensor, home) is None:
            yield f"{graph.tensor_name(tensor)} cannot be offloaded, or not twice"


def _timed(problem: Problem, plan: Plan) -> Iterator[str]:
    """Yield what is too early, and what overlaps on devices and on links to the host and back."""
    instance, where, graph = problem.instance, plan.placement, problem.instance.graph
    made, devices = _made(problem, plan), instance.cluster.names
    busy: dict[tuple[str, str], list[tuple[Fraction, Fraction, str]]] = defaultdict(list)
    for tensor, out, back in plan.offloads:
        name, device = graph.tensor_name(tensor), devices[where[int(graph.tensor_vertex[tensor])]]
        if out < made[tensor, FIRST][1] or back < made[tensor, HOST][1]:
            yield f"{name} is offloaded before it is there"
        for way, copy in (("from", HOST), ("to", BACK)):
            busy[f"a link {way}", device].append((*made[tensor, copy], name))
    for run in plan.runs:
        name, d = graph.names[run.vertex], where[run.vertex]
        busy["", devices[d]].append((run.start, end(problem, plan, run), name))
        if run.start < 0:
            yield f"{name} starts before 0"
        for tensor, copy in run.reads.items():
            sender, what = where[int(graph.tensor_vertex[tensor])], graph.tensor_name(tensor)
            if (tensor, copy) not in made or (copy == BACK and sender != d):
                yield f"{name} reads a copy of {what} that is not there"
            elif run.start < made[tensor, copy][1] + (instance.delay(tensor, sender, d) or 0):
                yield f"{name} starts at {run.start}, before {what} is there"
    for (kind, device), spans in busy.items():
        for (begin, stop, one), (start, until, other) in combinations(spans, 2):
            if begin < until and start < stop:
                yield f"{one} and {other} overlap on {kind} {device}".replace("  ", " ")


def _fitted(problem: Problem, plan: Plan) -> Iterator[str]:
    """Yield where memory is exceeded."""
    cluster = problem.instance.cluster
    for d, amounts in enumerate(profile(problem, plan)):
        limit, most = cluster.memory[d], max(amounts.values())
        if limit is not None and most > limit:
            yield f"{cluster.names[d]} holds {most}, but has room for {limit}"
