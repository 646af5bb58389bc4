"""The CP-SAT model of the whole problem, one method per constraint group (design §2, §7).

Transfers are :mod:`optpart.exact.communication`, memory that changes with time is
:mod:`optpart.exact.memory_model`, a given order is :mod:`optpart.exact.ordering`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from optpart import goal
from optpart.exact.communication import Crossings
from optpart.exact.memory_model import add_dynamic_memory
from optpart.exact.ordering import add_order
from optpart.instance import Instance
from optpart.ticks import Grid

#: Thresholds per device and side of the load cuts.
_THRESHOLDS = 12

#: Units whose choice among interchangeable devices is ordered.
_BROKEN = 60

#: A time in the model.
Expression = cp_model.LinearExpr | int

#: What is asked: a least makespan, least traffic, or any schedule.
Asked = Literal["makespan", "traffic", "decision"]


@dataclass(frozen=True, eq=False)
class Known:
    """A schedule to start from, in ticks.

    Attributes
    ----------
    placement, start : ndarray, length n
    begin : dict from (tensor, destination) to start of the transfer
    """

    placement: NDArray[np.int32]
    start: NDArray[np.int64]
    begin: dict[tuple[int, int], int]


@dataclass(frozen=True, eq=False)
class Task:
    """All that the model is built from; whole numbers in ticks.

    Attributes
    ----------
    head, tail : ndarray of int64, n × k
    possible : ndarray of bool, units × k
    lower, upper : int
        Proven bound, and the makespan that must not be exceeded.
    need, capacity : ndarray of int64
        Static memory per unit and device; −1 is no limit.
    size : ndarray of int64, length t
        Memory of each tensor in units of ``need``, where memory changes with time.
    known : Known, optional
        A schedule within ``upper`` to start from.
    alike : list of list of int
        Classes of interchangeable devices.
    turn : ndarray of int64
        All units; of interchangeable devices, earlier ones use the earlier.
    identical : bool
        Whether devices differ in nothing and nothing takes time to cross.
    asked : {"makespan", "traffic", "decision"}
    timed : bool
        Whether times matter; if not only the placement is asked for.
    order : tuple of pairs of tasks
    weight : ndarray of int64, length t
        Size of each tensor as it counts in the traffic.
    most_traffic : int
        −1 is no limit.
    load_cuts : bool
        Whether to add what is implied by tasks taking turns on devices, links and ports.
    """

    instance: Instance
    grid: Grid
    head: NDArray[np.int64]
    tail: NDArray[np.int64]
    possible: NDArray[np.bool_]
    lower: int
    upper: int
    need: NDArray[np.int64]
    capacity: NDArray[np.int64]
    size: NDArray[np.int64]
    known: Known | None
    alike: list[list[int]]
    turn: NDArray[np.int64]
    identical: bool
    asked: Asked
    timed: bool
    order: tuple[tuple[goal.Task, goal.Task], ...]
    weight: NDArray[np.int64]
    most_traffic: int
    load_cuts: bool

    @property
    def sequences_only(self) -> bool:
        """Whether nothing is left to place: only the order on devices and links is asked for."""
        return not self.identical and bool((self.possible.sum(axis=1) == 1).all())

    @property
    def counts_traffic(self) -> bool:
        """Whether crossings count beyond the time that they take."""
        return self.asked == "traffic" or self.most_traffic >= 0


@dataclass(frozen=True)
class Found:
    """A solution: placement and starts in ticks, and starts of transfers where they may wait."""

    placement: NDArray[np.int32]
    start: NDArray[np.int64] | None
    begin: dict[tuple[int, int], int]


class ScheduleModel:
    """Start times shared by all devices, one optional interval per vertex and device.

    A unit that may be on one device only has no literal but the constant 1, and its vertices have
    plain intervals: a job shop is one interval per operation.

    Attributes
    ----------
    model : CpModel
    on : dict from (unit, device) to literal
    start : list of IntVar, one per vertex
    end : list of linear expressions, one per vertex
    crossings : Crossings, optional
        Where transfers take part in more than the precedences.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.instance = task.instance
        self.duration = task.grid.duration
        self.model = cp_model.CpModel()
        self.one = self.model.new_constant(1)
        self.hints: list[tuple[cp_model.IntVar, int]] = []
        self.devices = [np.flatnonzero(row).tolist() for row in task.possible]
        self._placement()
        self._separation()
        self._static_memory()
        self._missing_links()
        if task.timed:
            self.makespan = self.integer(task.lower, task.upper, "makespan", task.upper)
            self._starts()
        self.crossings = Crossings(self) if self._crossings_count() else None
        if task.timed:
            self._arrivals()
            self._devices_run_one_at_a_time()
            if self.crossings is not None:
                self.crossings.add_queues()
            add_dynamic_memory(self)
            add_order(self)
            if task.load_cuts:
                self._load_cuts()
        self._order_of_alike_devices()
        self._objective()
        if task.known is not None:
            for variable, value in self.hints:
                self.model.add_hint(variable, value)

    def _crossings_count(self) -> bool:
        model = self.instance.model
        queues = self.task.timed and model.communication != "delay"
        return queues or model.memory == "refcount" or self.task.counts_traffic

    # --- variables -------------------------------------------------------------------------

    def integer(self, low: int, high: int, name: str, value: int) -> cp_model.IntVar:
        """Make a variable with its value in the schedule to start from.

        Every variable is hinted, or none: incomplete hints cost more than they help.
        """
        variable = self.model.new_int_var(low, high, name)
        self.hints.append((variable, value))
        return variable

    def literal(self, name: str, value: bool) -> cp_model.IntVar:
        """Make a literal with its value in the schedule to start from."""
        variable = self.model.new_bool_var(name)
        self.hints.append((variable, int(value)))
        return variable

    def device_known(self, v: int) -> int:
        """Device of a vertex in the schedule to start from; −1 without one."""
        return -1 if self.task.known is None else int(self.task.known.placement[v])

    def start_known(self, v: int) -> int:
        """Start of a vertex in the schedule to start from; 0 without one."""
        return 0 if self.task.known is None else int(self.task.known.start[v])

    def end_known(self, v: int) -> int:
        """End of a vertex in the schedule to start from; 0 without one."""
        if self.task.known is None:
            return 0
        return self.start_known(v) + int(self.duration[v, self.device_known(v)])

    def literals(self, v: int) -> list[tuple[int, cp_model.IntVar]]:
        """Return the devices that a vertex may be on, each with the literal that says so."""
        u = int(self.instance.unit_of[v])
        return [(d, self.on[u, d]) for d in self.devices[u]]

    def edges(self) -> list[tuple[int, int, int]]:
        """Return source, target and tensor of every edge."""
        graph = self.instance.graph
        return list(
            zip(
                graph.edge_source.tolist(), graph.edge_target.tolist(), graph.edge_tensor.tolist(),
                strict=True,
            )
        )  # fmt: skip

    # --- constraint groups -----------------------------------------------------------------

    def _placement(self) -> None:
        """Every unit is on one device."""
        self.on: dict[tuple[int, int], cp_model.IntVar] = {}
        for u, devices in enumerate(self.devices):
            if len(devices) == 1:
                self.on[u, devices[0]] = self.one
                continue
            member = int(self.instance.units[u][0])
            for d in devices:
                self.on[u, d] = self.literal(f"on[{u},{d}]", self.device_known(member) == d)
            self.model.add_exactly_one(self.on[u, d] for d in devices)

    def _missing_links(self) -> None:
        """What cannot cross keeps producer and consumer off the devices without a link."""
        if (self.task.grid.delays >= 0).all() and (self.task.grid.measured >= 0).all():
            return
        unit, k = self.instance.unit_of, self.instance.devices
        done: set[tuple[int, int, int]] = set()
        for u, v, tensor in self.edges():
            if unit[u] == unit[v]:
                continue
            for d, there in self.literals(v):
                for e, here in self.literals(u):
                    key = (int(unit[u]) * k + e, int(unit[v]), d)
                    if self.task.grid.delay(tensor, e, d) < 0 and key not in done:
                        done.add(key)
                        self.model.add_bool_or(~here, ~there)

    def _starts(self) -> None:
        """Starts within the windows, and ends and tails as linear terms of the placement."""
        head, tail, duration = self.task.head, self.task.tail, self.duration
        self.start: list[cp_model.IntVar] = []
        self.end: list[Expression] = []
        for v in range(self.instance.vertices):
            literals = self.literals(v)
            first = min(int(head[v, d]) for d, _ in literals)
            rest = min(int(duration[v, d] + tail[v, d]) for d, _ in literals)
            start = self.integer(first, self.task.upper - rest, f"start[{v}]", self.start_known(v))
            self.start.append(start)
            if len(literals) == 1:
                d = literals[0][0]
                self.end.append(start + int(duration[v, d]))
                if self.task.asked == "makespan":
                    self.model.add(start + rest <= self.makespan)
                continue
            self.end.append(start + sum(int(duration[v, d]) * x for d, x in literals))
            self.model.add(start >= sum(int(head[v, d]) * x for d, x in literals))
            follows = sum(int(duration[v, d] + tail[v, d]) * x for d, x in literals)
            self.model.add(start + follows <= self.makespan)

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

    def interval(
        self, start: Expression, size: int, literal: cp_model.IntVar
    ) -> cp_model.IntervalVar:
        """Make an interval that is there if a literal holds, plain if that is always."""
        if literal is self.one:
            return self.model.new_fixed_size_interval_var(start, size, "")
        return self.model.new_optional_fixed_size_interval_var(start, size, literal, "")

    def _arrivals(self) -> None:
        """No vertex starts before its tensors have arrived, or before its predecessors have ended.

        Per edge and device of the consumer, the arrival is linear in the producer's placement.
        Where transfers queue this is the least that they take.
        """
        unit, grid = self.instance.unit_of, self.task.grid
        send = grid.send if self.instance.model.communication == "sendrecv" else 0 * grid.send
        for u, v, tensor in self.edges():
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

    def no_later(self, one: Expression, other: Expression, *literals: cp_model.IntVar) -> None:
        """Let one time be no later than another if all literals hold."""
        conditions = [literal for literal in literals if literal is not self.one]
        added = self.model.add(one <= other)
        if conditions:
            added.only_enforce_if(conditions)

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
        """Minimise makespan or traffic, or nothing; keep the limit of traffic."""
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

    def found(self, value: Callable[[cp_model.IntVar], int]) -> Found:
        """Read a solution from the values of the variables."""
        unit_device = np.full(len(self.devices), -1, dtype=np.int32)
        for (u, d), literal in self.on.items():
            if value(literal):
                unit_device[u] = d
        placement = unit_device[self.instance.unit_of]
        if not self.task.timed:
            return Found(placement, None, {})
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
        return Found(placement, start, begin)

    def _load_cuts(self) -> None:
        """Everything on a device between a threshold and the end takes its turn there.

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

    def _order_of_alike_devices(self) -> None:
        """Of interchangeable devices, the unit of earlier turn uses the earlier.

        Device ``i`` of a class is used by a unit only if device ``i − 1`` is by an earlier unit.
        Said of the first units only: the clauses grow with the square of their number.
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
