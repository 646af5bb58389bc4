"""The mixed-integer linear program of the ``delay`` problem, one method per constraint group.

Contiguous blocks and loads are added from :mod:`optpart.exact.milp_blocks`.

Big-M disjunctions with one literal per direction, after Venugopalan & Sinnen, "ILP formulations for
optimal task scheduling with communication delays on parallel systems", IEEE TPDS 26(1), 2015,
adapted to heterogeneous devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pulp
from numpy.typing import NDArray

from optpart.exact.milp_task import MilpTask, passed_tensors
from optpart.problem.instance import Instance

#: Thresholds per device and side of the load cuts.
_THRESHOLDS = 12


class MilpModel:
    """The linear program, one method per constraint group.

    Attributes
    ----------
    problem : pulp.LpProblem
    objective : pulp.LpVariable
        The makespan or, if that is minimised, the bottleneck.
    rows : int
    on : dict from (unit, device) to variable
        Whether the unit is on the device.
    start : list of variable, length n
        Empty if times do not matter.
    before : dict from (vertex, vertex) to variable
        Whether the first ends before the second starts.
    """

    def __init__(self, task: MilpTask) -> None:
        self.task = task
        self.instance, self.grid = task.instance, task.grid
        self.head, self.tail, self.possible = task.head, task.tail, task.possible
        self.lower, self.upper = task.lower, task.upper
        self.unit: list[int] = task.instance.unit_of.tolist()
        self.devices: list[list[int]] = [np.flatnonzero(row).tolist() for row in task.possible]
        self.problem = pulp.LpProblem("delay", pulp.LpMinimize)
        self.objective = self.problem.add_variable("C" if task.loads is None else "B", *task.sought)
        self.problem += self.objective
        self.rows = 0
        self.start: list[pulp.LpVariable] = []
        self.before: dict[tuple[int, int], pulp.LpVariable] = {}
        self._placement()
        if task.timed:
            self.makespan = self.objective
            if task.loads is not None:
                self.makespan = self.problem.add_variable("C", task.lower, task.upper)
            self._starts()
            self._arrivals()
            self._one_at_a_time()
        self._separation()
        self._memory()
        self._traffic()
        if task.timed and task.load_cuts:
            self._load_cuts()
        self._order_of_alike_devices()
        self._hint()

    def extend(self, rows: Iterable[Any]) -> None:
        """Add rows."""
        for row in rows:
            self._add(row)

    def _binary(self, name: str) -> pulp.LpVariable:
        return self.problem.add_variable(name, cat=pulp.LpBinary)

    def _add(self, constraint: Any) -> None:
        self.problem += constraint
        self.rows += 1

    def _placement(self) -> None:
        """Every unit is on one device."""
        self.on: dict[tuple[int, int], pulp.LpVariable] = {}
        for u, devices in enumerate(self.devices):
            for d in devices:
                self.on[u, d] = self._binary(f"x_{u}_{d}")
            self._add(pulp.lpSum(self.on[u, d] for d in devices) == 1)

    def _literals(self, v: int) -> list[tuple[int, pulp.LpVariable]]:
        u = self.unit[v]
        return [(d, self.on[u, d]) for d in self.devices[u]]

    def _starts(self) -> None:
        """Starts within the windows; ends are linear in the placement."""
        head, tail, duration = self.head, self.tail, self.grid.duration
        self.end: list[pulp.LpAffineExpression] = []
        self.first: list[int] = []
        self.last: list[int] = []
        for v in range(self.instance.vertices):
            literals = self._literals(v)
            first = min(int(head[v, d]) for d, _ in literals)
            rest = min(int(duration[v, d] + tail[v, d]) for d, _ in literals)
            start = self.problem.add_variable(f"s_{v}", first, self.upper - rest)
            self.first.append(first)
            self.last.append(self.upper - min(int(tail[v, d]) for d, _ in literals))
            self.start.append(start)
            self.end.append(start + _sum((int(duration[v, d]), x) for d, x in literals))
            self._add(start >= _sum((int(head[v, d]), x) for d, x in literals))
            follows = _sum((int(duration[v, d] + tail[v, d]), x) for d, x in literals)
            self._add(start + follows <= self.makespan)

    def _arrivals(self) -> None:
        """No vertex starts before its predecessors have ended and its tensors have arrived."""
        for (u, v), tensors in passed_tensors(self.instance).items():
            if self.unit[u] == self.unit[v]:
                self._add(self.start[v] >= self.end[u])
                continue
            delay = {
                (e, d): [self.grid.delay(tensor, e, d) for tensor in tensors]
                for e, _ in self._literals(u)
                for d, _ in self._literals(v)
            }
            longest = {pair: max(times) for pair, times in delay.items() if min(times) >= 0}
            for e, d in delay.keys() - longest.keys():
                self._add(self.on[self.unit[u], e] + self.on[self.unit[v], d] <= 1)
            for d, there in self._literals(v):
                times = {e: longest.get((e, d), 0) for e, _ in self._literals(u)}
                most = max(times.values())
                arrival = self.end[u] + _sum((times[e], x) for e, x in self._literals(u))
                self._add(self.start[v] >= arrival - most * (1 - there))

    def _one_at_a_time(self) -> None:
        """Two vertices on one device run one after the other."""
        related = _related(self.instance)
        apart = set(self.instance.separated_units)
        given = set(self.task.order)
        for i, j in combinations(range(self.instance.vertices), 2):
            common = np.flatnonzero(
                self.possible[self.unit[i]] & self.possible[self.unit[j]]
            ).tolist()
            required = [pair for pair in ((i, j), (j, i)) if pair in given]
            if not common or tuple(sorted((self.unit[i], self.unit[j]))) in apart:
                continue
            for pair in required:
                self._either(i, j, {pair: common}, common)
            if required or related[i] >> j & 1 or related[j] >> i & 1:
                continue
            contended = [d for d in common if self._meet(i, j, d)]
            ways = {
                (a, b): [d for d in contended if self._fits(a, b, d)] for a, b in ((i, j), (j, i))
            }
            self._either(i, j, {pair: ds for pair, ds in ways.items() if ds}, contended)

    def _meet(self, i: int, j: int, d: int) -> bool:
        """Return whether the windows of two vertices on a device overlap."""
        head, last = self.head[:, d], self.upper - self.tail[:, d]
        return bool(last[i] > head[j] and last[j] > head[i])

    def _fits(self, i: int, j: int, d: int) -> bool:
        """Return whether the windows permit ``j`` to follow ``i`` on a device."""
        duration = self.grid.duration
        return bool(
            self.head[i, d] + duration[i, d] + duration[j, d] + self.tail[j, d] <= self.upper
        )

    def _either(
        self, i: int, j: int, ways: dict[tuple[int, int], list[int]], contended: list[int]
    ) -> None:
        """Require one of the possible orders if both vertices are on the same device."""
        for pair in ways:
            self._order(*pair)
        if len(ways) > 1:
            self._add(pulp.lpSum(self.before[pair] for pair in ways) <= 1)
        for d in contended:
            ordered = pulp.lpSum(
                self.before[pair] for pair, devices in ways.items() if d in devices
            )
            here, there = self.on[self.unit[i], d], self.on[self.unit[j], d]
            self._add(ordered >= (here if here is there else here + there - 1))

    def _order(self, i: int, j: int) -> None:
        """Add a literal that makes ``i`` end before ``j`` starts."""
        if (i, j) in self.before:
            return
        self.before[i, j] = literal = self._binary(f"y_{i}_{j}")
        wide = max(0, self.last[i] - self.first[j])
        self._add(self.start[j] >= self.end[i] - wide * (1 - literal))

    def _separation(self) -> None:
        for u, w in self.instance.separated_units:
            for d in range(self.instance.devices):
                if (u, d) in self.on and (w, d) in self.on:
                    self._add(self.on[u, d] + self.on[w, d] <= 1)

    def _memory(self) -> None:
        """Static memory per device, as shares of its capacity: solvers expect moderate numbers.

        Shares are rounded to doubles, by far less than the solvers' tolerances.
        """
        for d, most in enumerate(self.task.capacity.tolist()):
            if most >= 0:
                here = [(int(self.task.need[u]), x) for (u, e), x in self.on.items() if e == d]
                self._limit(here, Fraction(most))

    def _traffic(self) -> None:
        """A tensor crosses to every device with a consumer and without the producer."""
        if self.task.traffic is None:
            return
        graph = self.instance.graph
        crossings: list[tuple[Fraction, pulp.LpVariable]] = []
        for tensor, units in consumers(self.instance).items():
            size, maker = graph.tensor_size[tensor], self.unit[int(graph.tensor_vertex[tensor])]
            for d in range(self.instance.devices):
                there = [self.on[u, d] for u in units - {maker} if (u, d) in self.on]
                if not size or not there:
                    continue
                crossing = self.problem.add_variable(f"t_{tensor}_{d}", 0, 1)
                crossings.append((size, crossing))
                for literal in there:
                    self._add(crossing >= literal - self.on.get((maker, d), 0))
        self._limit(crossings, self.task.traffic)

    def _limit(self, terms: list[tuple[Any, pulp.LpVariable]], most: Fraction) -> None:
        """``Σ amount · literal ≤ most``, divided by ``most``."""
        for amount, literal in terms:
            if amount > most:
                self._add(literal <= 0)
        shares = [(float(Fraction(a) / most), x) for a, x in terms if 0 < a <= most]
        if shares:
            self._add(_sum(shares) <= 1)

    def _load_cuts(self) -> None:
        """Load cut: vertices on a device between two thresholds run one after the other.

        For a threshold ``h`` of heads and ``g`` of tails with ``h + g ≤ lower``: see
        ``models/README.md``.
        """
        for d in range(self.instance.devices):
            here = [v for v in range(self.instance.vertices) if self.possible[self.unit[v], d]]
            if not here:
                continue
            heads = _thresholds(self.head[here, d], self.lower)
            tails = _thresholds(self.tail[here, d], self.lower)
            for h, g in sorted({(h, tails[0]) for h in heads} | {(heads[0], g) for g in tails}):
                if h + g > self.lower:
                    continue
                load = _sum(
                    (int(self.grid.duration[v, d]), self.on[self.unit[v], d])
                    for v in here
                    if self.head[v, d] >= h and self.tail[v, d] >= g
                )
                self._add(load + h + g <= self.makespan)

    def _order_of_alike_devices(self) -> None:
        """Units of lower number use earlier interchangeable devices."""
        for devices in self.task.alike:
            for before, device in pairwise(devices):
                earlier: list[pulp.LpVariable] = []
                for u in range(len(self.devices)):
                    if (u, device) in self.on:
                        self._add(self.on[u, device] <= pulp.lpSum(earlier))
                    if (u, before) in self.on:
                        earlier.append(self.on[u, before])

    def _hint(self) -> None:
        """Give every variable its value in the schedule to start from."""
        placement, start = self.task.placement, self.task.start
        if placement is None or start is None:
            return
        for (u, d), literal in self.on.items():
            literal.setInitialValue(int(placement[self.instance.units[u][0]] == d))
        self.objective.setInitialValue(self.task.sought[1])
        if not self.task.timed:
            return
        for variable, time in zip(self.start, start.tolist(), strict=True):
            variable.setInitialValue(time)
        position = {v: i for i, v in enumerate(self.task.sequence)}
        for (i, j), literal in self.before.items():
            together = placement[i] == placement[j]
            literal.setInitialValue(int(together and position[i] < position[j]))
        self.makespan.setInitialValue(self.upper)

    def incumbent(
        self, values: Mapping[str, float]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64] | None]:
        """Read placement and starts, in ticks, off a solution; no starts if times do not matter."""
        device = {u: d for (u, d), literal in self.on.items() if values[literal.name] > 0.5}
        placement = np.array([device[u] for u in self.unit], dtype=np.int32)
        if not self.task.timed:
            return placement, None
        start = [round(values[variable.name]) for variable in self.start]
        return placement, np.array(start, dtype=np.int64)


def _sum(terms: Iterable[tuple[float, pulp.LpVariable]]) -> pulp.LpAffineExpression:
    return pulp.LpAffineExpression([(variable, factor) for factor, variable in terms])


def consumers(instance: Instance) -> dict[int, set[int]]:
    """Return the units that consume each tensor."""
    found: dict[int, set[int]] = {}
    for (_, v), tensors in passed_tensors(instance).items():
        for tensor in tensors:
            found.setdefault(tensor, set()).add(int(instance.unit_of[v]))
    return found


def _related(instance: Instance) -> list[int]:
    """Return, per vertex, the bit set of its descendants."""
    after = [0] * instance.vertices
    following: list[list[int]] = [[] for _ in after]
    for u, v in passed_tensors(instance):
        following[u].append(v)
    for u in reversed(instance.graph.topological_order.tolist()):
        for v in following[u]:
            after[u] |= after[v] | 1 << v
    return after


def _thresholds(values: NDArray[np.int64], most: int) -> list[int]:
    """Return the least value and some larger ones up to ``most``, ascending."""
    distinct = np.unique(values[values <= most])
    if len(distinct) > _THRESHOLDS:
        picked = np.linspace(0, len(distinct) - 1, _THRESHOLDS).round().astype(np.int64)
        distinct = distinct[picked]
    return [int(value) for value in distinct] or [0]
