"""The CP-SAT model of the ``delay`` problem, one method per constraint group (design §7)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from optpart.instance import Instance
from optpart.ticks import Grid

#: Thresholds per device and side of the load cuts.
_THRESHOLDS = 12

#: Units whose choice among interchangeable devices is ordered.
_BROKEN = 60


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
    placement, start : ndarray, optional
        A schedule of makespan ``upper`` to start from.
    alike : list of list of int
        Classes of interchangeable devices.
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
    placement: NDArray[np.int32] | None
    start: NDArray[np.int64] | None
    alike: list[list[int]]


class DelayModel:
    """Start times shared by all devices, one optional interval per vertex and device.

    Attributes
    ----------
    model : CpModel
    on : dict from (unit, device) to literal
        Whether the unit is on the device.
    start : list of IntVar, length n
    makespan : IntVar
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.instance = task.instance
        self.duration = task.grid.duration
        self.model = cp_model.CpModel()
        self.makespan = self.model.new_int_var(task.lower, task.upper, "makespan")
        self.devices = [np.flatnonzero(row).tolist() for row in task.possible]
        self._placement()
        self._starts()
        self._devices_run_one_at_a_time()
        self._arrivals()
        self._separation()
        self._memory()
        self._load_cuts()
        self._order_of_alike_devices()
        self.model.minimize(self.makespan)
        self._hint()

    def _placement(self) -> None:
        """Every unit is on one device."""
        self.on: dict[tuple[int, int], cp_model.IntVar] = {}
        for u, devices in enumerate(self.devices):
            for d in devices:
                self.on[u, d] = self.model.new_bool_var(f"on[{u},{d}]")
            self.model.add_exactly_one(self.on[u, d] for d in devices)

    def _literals(self, v: int) -> list[tuple[int, cp_model.IntVar]]:
        u = int(self.instance.unit_of[v])
        return [(d, self.on[u, d]) for d in self.devices[u]]

    def _starts(self) -> None:
        """Starts within the windows, and ends and tails as linear terms of the placement."""
        head, tail, duration = self.task.head, self.task.tail, self.duration
        self.start: list[cp_model.IntVar] = []
        self.end: list[cp_model.LinearExprT] = []
        for v in range(self.instance.vertices):
            literals = self._literals(v)
            first = min(int(head[v, d]) for d, _ in literals)
            rest = min(int(duration[v, d] + tail[v, d]) for d, _ in literals)
            start = self.model.new_int_var(first, self.task.upper - rest, f"start[{v}]")
            self.start.append(start)
            self.end.append(start + sum(int(duration[v, d]) * x for d, x in literals))
            self.model.add(start >= sum(int(head[v, d]) * x for d, x in literals))
            follows = sum(int(duration[v, d] + tail[v, d]) * x for d, x in literals)
            self.model.add(start + follows <= self.makespan)

    def _devices_run_one_at_a_time(self) -> None:
        for d in range(self.instance.devices):
            intervals = []
            for v in range(self.instance.vertices):
                literal = self.on.get((int(self.instance.unit_of[v]), d))
                if literal is not None:
                    intervals.append(
                        self.model.new_optional_fixed_size_interval_var(
                            self.start[v], int(self.duration[v, d]), literal, f"run[{v},{d}]"
                        )
                    )
            self.model.add_no_overlap(intervals)

    def _arrivals(self) -> None:
        """No vertex starts before its tensors have arrived, or before its predecessors have ended.

        Per edge and device of the consumer, the arrival is linear in the producer's placement.
        """
        graph, unit = self.instance.graph, self.instance.unit_of
        done: set[tuple[int, int, int]] = set()
        for u, v, tensor in zip(
            graph.edge_source.tolist(), graph.edge_target.tolist(), graph.edge_tensor.tolist(),
            strict=True,
        ):  # fmt: skip
            self.model.add(self.start[v] >= self.end[u])
            if unit[u] == unit[v]:
                continue
            for d, there in self._literals(v):
                delays = {}
                for e, here in self._literals(u):
                    delay = self.task.grid.delay(tensor, e, d)
                    delays[e] = delay
                    key = (int(unit[u]) * self.instance.devices + e, int(unit[v]), d)
                    if delay < 0 and key not in done:
                        done.add(key)
                        self.model.add_bool_or(~here, ~there)
                if any(delay > 0 for delay in delays.values()):
                    arrival = sum(max(0, delays[e]) * here for e, here in self._literals(u))
                    self.model.add(self.start[v] >= self.end[u] + arrival).only_enforce_if(there)

    def _separation(self) -> None:
        for u, w in self.instance.separated_units:
            for d in range(self.instance.devices):
                if (u, d) in self.on and (w, d) in self.on:
                    self.model.add_at_most_one(self.on[u, d], self.on[w, d])

    def _memory(self) -> None:
        """Static memory per device."""
        for d, capacity in enumerate(self.task.capacity.tolist()):
            if capacity >= 0:
                terms = [int(self.task.need[u]) * x for (u, e), x in self.on.items() if e == d]
                self.model.add(sum(terms) <= capacity)

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
        """Of interchangeable devices, the unit of lower number uses the earlier.

        Device ``i`` of a class is used by a unit only if device ``i − 1`` is by an earlier unit.
        Said of the first units only: the clauses grow with the square of their number.
        """
        for devices in self.task.alike:
            for before, device in pairwise(devices):
                earlier: list[cp_model.IntVar] = []
                for u in range(min(len(self.devices), _BROKEN)):
                    literal = self.on.get((u, device))
                    if literal is not None:
                        self.model.add_bool_or([*earlier, ~literal])
                    if (u, before) in self.on:
                        earlier.append(self.on[u, before])

    def _hint(self) -> None:
        """Hint every variable, or none: incomplete hints cost more than they help."""
        placement, start = self.task.placement, self.task.start
        if placement is None or start is None:
            return
        for (u, d), literal in self.on.items():
            member = int(self.instance.units[u][0])
            self.model.add_hint(literal, int(placement[member]) == d)
        for v, variable in enumerate(self.start):
            self.model.add_hint(variable, int(start[v]))
        self.model.add_hint(self.makespan, self.task.upper)


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
