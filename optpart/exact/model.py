"""The CP-SAT model of the whole problem, one method per constraint group (design §2, §7).

Transfers are in :mod:`optpart.exact.communication`, memory that changes with time in
:mod:`optpart.exact.memory`, contiguous blocks in :mod:`optpart.exact.blocks`.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from optpart.exact.blocks import add_blocks
from optpart.exact.communication import Crossing, Crossings
from optpart.exact.core import Core, Expression
from optpart.exact.cp_sat import Value
from optpart.exact.memory import add_dynamic_memory
from optpart.exact.messages import Incumbent
from optpart.exact.task import Task
from optpart.problem.model import Resource
from optpart.solution import goal

#: Thresholds per device and side of the load cuts.
_THRESHOLDS = 12

#: Maximal number of units whose choice among interchangeable devices is ordered.
_BROKEN = 60


class ScheduleModel(Core):
    """Start times shared by all devices, one optional interval per vertex and device.

    A unit that may be on only one device has the constant 1 as its literal, and its vertices have
    plain intervals: a job shop is one interval per operation.

    Attributes
    ----------
    crossings : Crossings, optional
        Present if transfers matter beyond the precedences.
    """

    def __init__(self, task: Task, placed: Core | None = None) -> None:
        super().__init__(task, placed)
        if placed is None:
            self._separation()
            self._static_memory()
            self._missing_links()
            add_blocks(self)
        if task.timed:
            self.add_times()
        self.crossings = Crossings(self) if self._crossings_count() else None
        if task.timed:
            self._arrivals()
            self._devices_run_one_at_a_time()
            if self.crossings is not None:
                self.crossings.add_queues()
            add_dynamic_memory(self, self.crossings)
            _add_order(self, self.crossings)
            if task.load_cuts:
                self._load_cuts()
            self._exclude_choices()
        self._order_of_interchangeable_devices()
        self._objective()
        self.add_hints()

    def _crossings_count(self) -> bool:
        model = self.instance.model
        queues = self.task.timed and model.queues
        return (
            queues
            or model.memory == "refcount"
            or self.task.counts_traffic
            or self.task.loads_links
        )

    # --- constraint groups -----------------------------------------------------------------

    def _missing_links(self) -> None:
        """Keep producer and consumer off device pairs that their tensor cannot cross."""
        if (self.task.grid.delays >= 0).all() and (self.task.grid.measured >= 0).all():
            return
        unit, k = self.instance.unit_of, self.instance.devices
        done: set[tuple[int, int, int]] = set()
        for u, v, tensor in self.instance.graph.edges():
            if unit[u] == unit[v]:
                continue
            for d, there in self.literals(v):
                for e, here in self.literals(u):
                    key = (int(unit[u]) * k + e, int(unit[v]), d)
                    if self.task.grid.delay(tensor, e, d) < 0 and key not in done:
                        done.add(key)
                        self.model.add_bool_or(~here, ~there)

    def _devices_run_one_at_a_time(self) -> None:
        sends = {} if self.crossings is None else self.crossings.sends()
        for d in range(self.instance.devices):
            intervals = list(sends.get(d, []))
            for v in range(self.instance.vertices):
                literal = self.on.get((int(self.instance.unit_of[v]), d))
                if literal is not None:
                    intervals.append(
                        self.interval(self.start[v], int(self.duration[v, d]), literal)
                    )
            if len(intervals) > 1:
                self.model.add_no_overlap(intervals)

    def _arrivals(self) -> None:
        """No vertex starts before its tensors have arrived, or before its predecessors have ended.

        Per edge and device of the consumer, the arrival is linear in the producer's placement. If
        transfers queue, this is a lower bound of it.
        """
        unit, grid = self.instance.unit_of, self.task.grid
        send = grid.send if self.instance.model.sends else 0 * grid.send
        for u, v, tensor in self.instance.graph.edges():
            self.model.add(self.start[v] >= self.end[u])
            if unit[u] == unit[v]:
                continue
            for d, there in self.literals(v):
                delays = {
                    e: max(0, grid.delay(tensor, e, d)) + (int(send[e]) if e != d else 0)
                    for e, _ in self.literals(u)
                }
                if any(delays.values()):
                    arrival = sum(delays[e] * here for e, here in self.literals(u))
                    self.no_later(self.end[u] + arrival, self.start[v], there)

    def _separation(self) -> None:
        for u, w in self.instance.separated_units:
            for d in range(self.instance.devices):
                if (u, d) in self.on and (w, d) in self.on:
                    self.model.add_at_most_one(self.on[u, d], self.on[w, d])

    def _static_memory(self) -> None:
        """Static memory per device."""
        for d, capacity in enumerate(self.task.capacity.tolist()):
            if capacity >= 0:
                terms = [int(self.task.need[u]) * x for (u, e), x in self.on.items() if e == d]
                if terms:
                    self.model.add(sum(terms) <= capacity)

    def _objective(self) -> None:
        """Minimise makespan, traffic, bottleneck or nothing, within the limit of traffic."""
        if self.task.counts_traffic:
            assert self.crossings is not None
            traffic = sum(
                int(self.task.weight[tensor]) * literal
                for (tensor, _), literal in self.crossings.happens.items()
                if self.task.weight[tensor]
            )
            if self.task.most_traffic >= 0:
                self.model.add(traffic <= self.task.most_traffic)
            if self.task.asked == "traffic":
                self.model.minimize(traffic)
        if self.task.asked == "makespan":
            self.model.minimize(self.makespan)
        if self.task.asked == "bottleneck":
            self._bottleneck()

    def _bottleneck(self) -> None:
        """Minimise the largest load, counted in ticks divided by the channels of a port."""
        least, most = self.task.loads
        bottleneck = self.integer(least, most, "bottleneck", most)
        load: dict[Resource, list[tuple[int, cp_model.IntVar]]] = defaultdict(list)
        for d in range(self.instance.devices):
            for u, members in enumerate(self.instance.units):
                literal = self.on.get((u, d))
                if literal is not None:
                    run = int(self.duration[members, d].sum())
                    load["device", d, d].append((self.task.channels * run, literal))
        if self.crossings is not None and self.task.loads_links:
            for resource, time, sent in self.crossings.loads():
                load[resource].append((time, sent))
        for terms in load.values():
            # More than the limit is too much, however much more; sums must not overflow.
            amounts = [(min(time, most + 1), literal) for time, literal in terms]
            self.model.add(sum(time * literal for time, literal in amounts) <= bottleneck)
        self.model.minimize(bottleneck)

    def found(self, value: Value) -> Incumbent:
        """Read a solution from the values of the variables."""
        unit_device = np.full(len(self.devices), -1, dtype=np.int32)
        for (u, d), literal in self.on.items():
            if value(literal):
                unit_device[u] = d
        placement = unit_device[self.instance.unit_of]
        if not self.task.timed:
            return Incumbent(placement)
        begin = (
            {}
            if self.crossings is None
            else {
                key: value(variable)
                for key, variable in self.crossings.begin.items()
                if value(self.crossings.happens[key])
            }
        )
        start = np.array([value(s) for s in self.start], dtype=np.int64)
        return Incumbent(placement, start, begin)

    def _load_cuts(self) -> None:
        """Add load cuts: vertices on a device between two thresholds run one after the other.

        For a threshold ``h`` of heads and ``g`` of tails, ``h + g`` plus the run times on ``d`` of
        vertices with head ``≥ h`` and tail ``≥ g`` is at most the makespan: of those vertices the
        first starts at ``h`` or later and the last ends ``g`` or more before the end. If there are
        none on ``d`` it still holds, because only thresholds with ``h + g`` up to the proven lower
        bound are used.
        """
        head, tail, lower = self.task.head, self.task.tail, self.task.lower
        for d in range(self.instance.devices):
            here = [
                v
                for v in range(self.instance.vertices)
                if self.task.possible[self.instance.unit_of[v], d]
            ]
            if not here:
                continue
            heads = _thresholds(head[here, d], lower)
            tails = _thresholds(tail[here, d], lower)
            least_head, least_tail = heads[0], tails[0]
            pairs = {(h, least_tail) for h in heads} | {(least_head, g) for g in tails}
            pairs |= {
                (h, g) for h in heads[:: _THRESHOLDS // 4] for g in tails[:: _THRESHOLDS // 4]
            }
            for h, g in sorted(pairs):
                if h + g > lower:
                    continue
                weight: dict[int, int] = {}
                for v in here:
                    if head[v, d] >= h and tail[v, d] >= g:
                        u = int(self.instance.unit_of[v])
                        weight[u] = weight.get(u, 0) + int(self.duration[v, d])
                if weight:
                    load = sum(p * self.on[u, d] for u, p in weight.items())
                    self.model.add(load + h + g <= self.makespan)

    def _exclude_choices(self) -> None:
        """Forbid that all choices of an entry are made."""
        reversals: dict[tuple[int | Crossing, int | Crossing], cp_model.IntVar] = {}
        for choices in self.task.excluded:
            if not all(choice in self.on for choice in choices.placed):
                continue  # the windows exclude it already
            others = [~self.on[choice] for choice in sorted(choices.placed)]
            for first, second in sorted(choices.ordered, key=str):
                other = reversals.get((first, second))
                if other is None:
                    other = self.model.new_bool_var(f"after[{first},{second}]")
                    reversals[first, second] = other
                    self.no_later(self._occupied(second)[1], self._occupied(first)[0], other)
                others.append(other)
            self.model.add_bool_or(others)

    def _occupied(self, task: int | Crossing) -> tuple[Expression, Expression]:
        """Return when a task begins to occupy its device, link or ports, and until when it does."""
        if isinstance(task, int):
            return self.start[task], self.end[task]
        assert self.crossings is not None
        return self.crossings.begin[task], self.crossings.released(*task)

    def _order_of_interchangeable_devices(self) -> None:
        """Make units of earlier turn use earlier interchangeable devices.

        Device ``i`` of a class is used by a unit only if device ``i − 1`` is by an earlier unit.
        Imposed on the first units only: the clauses grow with the square of their number.
        """
        for devices in self.task.alike:
            for before, device in pairwise(devices):
                earlier: list[cp_model.IntVar] = []
                for u in self.task.turn[:_BROKEN].tolist():
                    literal = self.on.get((u, device))
                    if literal is not None:
                        self.model.add_bool_or([*earlier, ~literal])
                    if (u, before) in self.on:
                        earlier.append(self.on[u, before])


def _thresholds(values: NDArray[np.int64], most: int) -> list[int]:
    """Return the least value and some larger ones up to ``most``, ascending."""
    distinct = np.unique(values)
    distinct = distinct[distinct <= most]
    if not len(distinct):
        return [0]
    if len(distinct) > _THRESHOLDS:
        picked = np.linspace(0, len(distinct) - 1, _THRESHOLDS).round().astype(np.int64)
        distinct = distinct[picked]
    return [int(value) for value in distinct]


class Use(NamedTuple):
    """The use of a resource by a task: name and devices, literal, start and end."""

    resource: tuple[str, int, int]
    literal: cp_model.IntVar
    start: Expression
    end: Expression


def _add_order(core: Core, crossings: Crossings | None) -> None:
    """Add the given order ([H] §3).

    In each pair, the first ends before the second starts on a shared resource.
    """
    for first, second in core.task.order:
        for one in uses(core, crossings, first):
            for other in uses(core, crossings, second):
                if one.resource == other.resource:
                    core.no_later(one.end, other.start, one.literal, other.literal)


def uses(core: Core, crossings: Crossings | None, task: goal.Task) -> list[Use]:
    """Return what a task uses wherever it may be."""
    if isinstance(task, int):
        return [
            Use(("device", d, d), literal, core.start[task], core.end[task])
            for d, literal in core.literals(task)
        ]
    if crossings is None or task not in crossings.begin:
        return []
    begin, target = crossings.begin[task], task[1]
    found: list[Use] = []
    for e, sent in crossings.sent[task]:
        model, length = core.instance.model, crossings.length(task[0], e, target)
        end = begin + (int(core.task.grid.send[e]) if model.sends else length)
        found += [Use(resource, sent, begin, end) for resource in model.occupied(e, target)]
    return found
