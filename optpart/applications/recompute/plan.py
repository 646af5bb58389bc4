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
from optpart.problem.instance import Instance

#: Which copy of a tensor is read; ``_HOST`` is the one that nobody reads.
FIRST, SECOND, BACK, _HOST = range(4)
#: Beyond, no model is built.
_MOST_VERTICES = 200


@dataclass(frozen=True, eq=False)
class Problem:
    """An instance, and the device that keeps what is offloaded, if any."""

    instance: Instance
    host: int | None

    @classmethod
    def of(cls, instance: Instance, offload_to: str | None) -> Problem:
        """Check that an instance has the models that plans are defined for."""
        for key, known in (("memory", "refcount"), ("communication", "delay")):
            given = getattr(instance.model, key)
            if given != known:
                raise InputError(f"model.{key}", f"is {given!r}", f"give an instance of {known!r}")
        if instance.vertices > _MOST_VERTICES:
            problem = f"{instance.vertices:,} of them"
            raise InputError("vertices", problem, f"give at most {_MOST_VERTICES}")
        if offload_to is None:
            return cls(instance, None)
        return cls(instance, named(offload_to, instance.cluster.index, "offload_to", "no device"))

    def ways(self, tensor: int, device: int) -> tuple[Fraction, Fraction] | None:
        """Return the times of a tensor to the host and back, if it can go there."""
        if self.host is None or device == self.host:
            return None
        out, back = (
            self.instance.delay(tensor, *way)
            for way in ((device, self.host), (self.host, device))
        )
        return None if out is None or back is None else (out, back)


class Run(NamedTuple):
    """An execution of a vertex; ``reads`` has the copy of each input tensor."""

    vertex: int
    start: Fraction
    reads: Mapping[int, int]


class Offload(NamedTuple):
    """The starts of the transfers of a tensor to the host, and back."""

    tensor: int
    out: Fraction
    back: Fraction


@dataclass(frozen=True)
class Plan:
    """The device of every vertex, all executions, and all that is offloaded."""

    placement: tuple[int, ...]
    runs: tuple[Run, ...]
    offloads: tuple[Offload, ...] = ()

    def of_vertex(self, vertex: int) -> list[Run]:
        """Return the executions of a vertex, the first one first."""
        return sorted((r for r in self.runs if r.vertex == vertex), key=lambda run: run.start)


class Held(NamedTuple):
    """A copy of a tensor that a device holds from one moment until another."""

    tensor: int
    copy: int
    device: int
    since: Fraction
    until: Fraction


def makespan(problem: Problem, plan: Plan) -> Fraction:
    """Return the latest end of an execution."""
    return max((_end(problem, plan, run) for run in plan.runs), default=Fraction(0))


def _end(problem: Problem, plan: Plan, run: Run) -> Fraction:
    return run.start + problem.instance.duration(run.vertex, plan.placement[run.vertex])


def held(problem: Problem, plan: Plan) -> list[Held]:
    """Return what devices hold, under a plan whose copies all exist (:func:`violations`)."""
    instance, where = problem.instance, plan.placement
    producer = instance.graph.tensor_vertex.tolist()
    span: dict[tuple[int, int, int], list[Fraction]] = {}
    made: dict[tuple[int, int], Fraction] = {}
    for tensor, u in enumerate(producer):
        for copy, run in enumerate(plan.of_vertex(u)):
            made[tensor, copy] = _end(problem, plan, run)
            span[tensor, copy, where[u]] = [run.start, made[tensor, copy]]
    for tensor, out, back in plan.offloads:
        home, (there, again) = where[producer[tensor]], _ways(problem, plan, tensor)
        first = span[tensor, FIRST, home]
        first[1] = max(first[1], out + there)
        span[tensor, BACK, home] = [back, back + again]
        span[tensor, _HOST, problem.host or 0] = [out, back + again]
    for run in plan.runs:
        free = run.start if instance.model.release == "start" else _end(problem, plan, run)
        for tensor, copy in run.reads.items():
            d, e = where[producer[tensor]], where[run.vertex]
            if d != e:
                begin, first = made[tensor, copy], span[tensor, copy, d]
                first[1] = max(first[1], begin + (instance.delay(tensor, d, e) or 0))
                span.setdefault((tensor, copy, e), [begin, begin])
            used = span[tensor, copy, e]
            used[1] = max(used[1], free)
    return [Held(*key, since, until) for key, (since, until) in span.items()]


def _ways(problem: Problem, plan: Plan, tensor: int) -> tuple[Fraction, Fraction]:
    home = plan.placement[int(problem.instance.graph.tensor_vertex[tensor])]
    return problem.ways(tensor, home) or (Fraction(0), Fraction(0))


def profile(problem: Problem, plan: Plan) -> list[dict[Fraction, Fraction]]:
    """Return what each device holds, weights included, from each moment until the next."""
    graph, spans = problem.instance.graph, held(problem, plan)
    size, found = graph.tensor_size.fractions(), []
    for d in range(problem.instance.devices):
        own = [each for each in spans if each.device == d]
        weights = graph.memory.sum(np.flatnonzero(np.array(plan.placement) == d))
        moments = sorted({Fraction(0), *(each.since for each in own)})
        found.append({
            at: weights + sum(size[each.tensor] for each in own if each.since <= at < each.until)
            for at in moments
        })  # fmt: skip
    return found


def violations(problem: Problem, plan: Plan) -> Iterator[str]:
    """Yield every rule that a plan of known vertices, devices, tensors and copies breaks."""
    broken = [*_placed(problem, plan), *_copied(problem, plan)]
    yield from broken or [*_timed(problem, plan), *_fitted(problem, plan)]


def _placed(problem: Problem, plan: Plan) -> Iterator[str]:
    """Yield what is wrong with devices and the number of executions."""
    instance, where = problem.instance, plan.placement
    graph, names = instance.graph, instance.graph.names
    for v, d in enumerate(where):
        if not instance.vertex_allowed[v, d]:
            yield f"{names[v]} must not be on {instance.cluster.names[d]}"
        if len(plan.of_vertex(v)) not in (1, 2):
            yield f"{names[v]} is executed {len(plan.of_vertex(v))} times"
    for group in graph.colocation:
        for v in group[1:]:
            if where[v] != where[group[0]]:
                yield f"{names[group[0]]} and {names[v]} are apart"
    for u, v in graph.separation:
        if where[u] == where[v]:
            yield f"{names[u]} and {names[v]} share a device"


def _copied(problem: Problem, plan: Plan) -> Iterator[str]:
    """Yield where a copy is missing or cannot be where it is read."""
    instance, where = problem.instance, plan.placement
    graph, moved = instance.graph, [each.tensor for each in plan.offloads]
    for tensor in {*moved}:
        u = int(graph.tensor_vertex[tensor])
        if moved.count(tensor) > 1:
            yield f"{graph.tensor_name(tensor)} is offloaded twice"
        if problem.ways(tensor, where[u]) is None:
            yield f"{graph.tensor_name(tensor)} cannot be offloaded from its device"
    inputs: dict[int, set[int]] = defaultdict(set)
    for _, v, tensor in graph.edges():
        inputs[v].add(tensor)
    for run in plan.runs:
        if {*run.reads} != inputs[run.vertex]:
            yield f"{graph.names[run.vertex]} does not read exactly its inputs"
        for tensor, copy in run.reads.items():
            u = int(graph.tensor_vertex[tensor])
            d, e = where[u], where[run.vertex]
            what = f"{graph.names[run.vertex]} reads {graph.tensor_name(tensor)}"
            if instance.delay(tensor, d, e) is None:
                yield f"{what}, which no link takes to its device"
            if copy == SECOND and len(plan.of_vertex(u)) < 2:
                yield f"{what} of a second execution that there is not"
            if copy == BACK and (tensor not in moved or d != e):
                yield f"{what} back from the host, where it is not"


def _timed(problem: Problem, plan: Plan) -> Iterator[str]:
    """Yield what is too early, and what overlaps on devices and on links to the host and back."""
    instance, where = problem.instance, plan.placement
    graph, names = instance.graph, instance.graph.names
    busy: dict[str, list[tuple[Fraction, Fraction, str]]] = defaultdict(list)
    back: dict[int, Fraction] = {}
    for tensor, out, returned in plan.offloads:
        u, name = int(graph.tensor_vertex[tensor]), graph.tensor_name(tensor)
        there, again = _ways(problem, plan, tensor)
        back[tensor] = returned + again
        if out < _end(problem, plan, plan.of_vertex(u)[0]) or returned < out + there:
            yield f"{name} is offloaded before it is there"
        device = instance.cluster.names[where[u]]
        busy[f"the link from {device} to the host"].append((out, out + there, name))
        busy[f"the link from the host to {device}"].append((returned, back[tensor], name))
    for run in plan.runs:
        v, d = run.vertex, where[run.vertex]
        busy[instance.cluster.names[d]].append((run.start, _end(problem, plan, run), names[v]))
        if run.start < 0:
            yield f"{names[v]} starts before 0"
        for tensor, copy in run.reads.items():
            u = int(graph.tensor_vertex[tensor])
            if copy == BACK:
                at = back[tensor]
            else:
                made = _end(problem, plan, plan.of_vertex(u)[copy])
                at = made + (instance.delay(tensor, where[u], d) or 0)
            if run.start < at:
                name = graph.tensor_name(tensor)
                yield f"{names[v]} starts at {run.start}, before {name} is there at {at}"
    for what, spans in busy.items():
        for (begin, end, one), (start, stop, other) in combinations(spans, 2):
            if begin < stop and start < end:
                yield f"{one} and {other} overlap on {what}"


def _fitted(problem: Problem, plan: Plan) -> Iterator[str]:
    """Yield where memory is exceeded."""
    cluster = problem.instance.cluster
    for d, amounts in enumerate(profile(problem, plan)):
        limit = cluster.memory[d]
        at = max(amounts, key=lambda at: amounts[at])
        if limit is not None and amounts[at] > limit:
            yield f"{cluster.names[d]} holds {amounts[at]} at {at}, but has room for {limit}"
