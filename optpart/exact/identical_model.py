"""The CP-SAT model of identical devices, in which the choice of device does not matter."""

from __future__ import annotations

import numpy as np
from ortools.sat.python import cp_model

from optpart.exact.cp_sat import Value
from optpart.exact.messages import Incumbent
from optpart.exact.task import Task


class IdenticalModel:
    """Start times, and one cumulative constraint in place of the devices.

    Vertices without length do not count: such a vertex may always run on the device and at the end
    of the last of its inputs, or at 0, when no vertex is in mid-run.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.instance = task.instance
        self.duration = task.grid.duration[:, 0].tolist()
        self.model = cp_model.CpModel()
        self.makespan = self.model.new_int_var(task.lower, task.upper, "makespan")
        self._starts()
        self._precedence()
        self._as_many_as_devices()
        if task.asked == "makespan":
            self.model.minimize(self.makespan)
        self._hint()

    def _starts(self) -> None:
        head, tail = self.task.head[:, 0].tolist(), self.task.tail[:, 0].tolist()
        self.start = []
        for v, duration in enumerate(self.duration):
            last = self.task.upper - duration - tail[v]
            start = self.model.new_int_var(head[v], last, f"start[{v}]")
            self.start.append(start)
            self.model.add(start + duration + tail[v] <= self.makespan)

    def _precedence(self) -> None:
        graph = self.instance.graph
        for u, v in sorted(set(graph.pairs())):
            self.model.add(self.start[v] >= self.start[u] + self.duration[u])

    def _as_many_as_devices(self) -> None:
        intervals = [
            self.model.new_fixed_size_interval_var(start, duration, "")
            for start, duration in zip(self.start, self.duration, strict=True)
            if duration
        ]
        if self.instance.devices == 1:
            self.model.add_no_overlap(intervals)
        elif len(intervals) > self.instance.devices:
            self.model.add_cumulative(intervals, [1] * len(intervals), self.instance.devices)

    def _hint(self) -> None:
        if self.task.known is not None:
            for variable, value in zip(self.start, self.task.known.start.tolist(), strict=True):
                self.model.add_hint(variable, value)
            self.model.add_hint(self.makespan, self.task.upper)

    def found(self, value: Value) -> Incumbent:
        """Read a solution and give every vertex a device that is free."""
        graph = self.instance.graph
        start = np.array([value(s) for s in self.start], dtype=np.int64)
        placement = np.full(len(start), -1, dtype=np.int32)
        free = np.zeros(self.instance.devices, dtype=np.int64)
        for v in np.argsort(start, kind="stable").tolist():
            if self.duration[v]:
                d = int(np.argmin(free))
                placement[v] = d
                free[d] = start[v] + self.duration[v]
        in_start, in_edges = graph.in_edges
        for v in graph.topological_order.tolist():
            if not self.duration[v]:
                inputs = graph.edge_source[in_edges[in_start[v] : in_start[v + 1]]].tolist()
                last = max(inputs, key=lambda u: int(start[u]) + self.duration[u], default=-1)
                placement[v] = placement[last] if inputs else 0
                start[v] = start[last] + self.duration[last] if inputs else 0
        return Incumbent(placement, start)
