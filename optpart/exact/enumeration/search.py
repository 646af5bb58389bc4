"""The branch and bound over placements, and over the order of tasks on resources."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optpart.base.errors import UnsupportedError
from optpart.exact.enumeration.network import Network
from optpart.exact.enumeration.numbers import Numbers
from optpart.exact.enumeration.resource import Arc, Event, earliest
from optpart.problem.feasibility import contradiction, excluded
from optpart.problem.instance import Instance
from optpart.problem.rational import RationalArray
from optpart.solution.goal import MINIMISED, Goal, Measure
from optpart.solution.job import Job, method
from optpart.solution.result import Progress, Result, Watch, conclude
from optpart.solution.schedule import Schedule, Transfers
from optpart.solution.termination import Termination

#: Larger graphs take impractically long.
MAX_VERTICES = 12

#: Branches that count as one unit of deterministic time.
_BRANCHES = 10_000

#: Makespan, traffic and bottleneck, as integers; the bottleneck is 0 unless it is minimised.
Value = tuple[int, int, int]
_MEASURES: tuple[Measure, ...] = ("makespan", "traffic", "bottleneck")


@method
def enumerate_all(job: Job, watch: Watch | None = None) -> Result:
    """Solve a small instance of any model exactly, by enumeration.

    Every objective, limit and given decision is supported. The placement of the start is tried
    first; the seed has no effect.

    Returns
    -------
    Result
        Optimal or infeasible unless the budget ran out. The bound is valid for the instance
        restricted by ``goal``.

    Raises
    ------
    UnsupportedError
        If the graph has more than :data:`MAX_VERTICES` vertices.
    """
    check_scope(job.instance, job.goal)
    return _Search(job, watch).run()


def check_scope(instance: Instance, goal: Goal) -> None:
    """Raise :class:`UnsupportedError` if the graph is too large."""
    if instance.vertices > MAX_VERTICES:
        raise UnsupportedError(
            "vertices",
            f"enumerate does not support {instance.vertices} vertices",
            f"give at most {MAX_VERTICES}",
        )
    goal.check(instance)


@dataclass(frozen=True)
class _Node:
    """A part of the search space: all schedules under a placement that satisfy the arcs."""

    network: Network
    start: list[int]
    arcs: list[Arc]
    value: Value


class _Search:
    """Depth-first search that enters the most promising branch first."""

    def __init__(self, job: Job, watch: Watch | None) -> None:
        self.begin = time.perf_counter()
        instance, goal = job.instance, job.goal
        self.instance = instance
        self.seed = job.seed
        self.budget = job.budget
        self.watch = watch
        self.goal = goal
        self.compared = [_MEASURES.index(measure) for measure in MINIMISED[goal.objective]]
        self.numbers = Numbers(instance, goal)
        self.alike = self.numbers.alike_devices()
        self.load_unit = self.numbers.scale * self.numbers.channels
        self.most = (
            math.inf if goal.makespan is None else goal.makespan * self.numbers.scale,
            math.inf if goal.traffic is None else goal.traffic * self.numbers.measure,
        )
        self.first = [] if job.start is None else job.start.placement.tolist()
        self.device = [-1] * self.numbers.n
        self.best: Value | None = None
        self.schedule: Schedule | None = None
        self.root: Value = 0, 0, 0
        #: Lower bounds of the branches left unexplored.
        self.open: list[tuple[int, ...]] = []
        self.branches = 0
        self.trace: list[Progress] = []

    def run(self) -> Result:
        ended, reason = Termination.COMPLETED, ""
        try:
            root = self._node(self.device)
            if root is not None:
                self.root = root.value
                self._place(0, root)
        except KeyboardInterrupt:
            ended, reason = Termination.INTERRUPTED, "interrupted"
            self.open.append(self._key(self.root))
        if self.best is not None:  # which may be newer than some of the open branches
            self.open = [value for value in self.open if value < self._key(self.best)]
        if self.open and ended is not Termination.INTERRUPTED:
            ended, reason = Termination.TIME_LIMIT, "time limit"
        return conclude(
            self.instance,
            "enumerate",
            self.schedule,
            bound=self._bounds(),
            infeasible="" if self.best or self.open else self._why_infeasible(),
            termination=ended,
            reason=reason,
            seconds=time.perf_counter() - self.begin,
            seed=self.seed,
            trace=tuple(self.trace),
            goal=self.goal,
        )

    def _why_infeasible(self) -> str:
        found = contradiction(self.instance) or self.goal.contradiction(self.instance)
        return found or excluded(self.instance, "enumeration", self.goal.given)

    def _bounds(self) -> dict[Measure, Fraction]:
        """Return the proven bounds on the makespan and on what is minimised."""
        proven = dict(zip(_MEASURES, self.root, strict=True))
        minimised = MINIMISED[self.goal.objective]
        if self.best is not None or self.open:
            least = min([*self.open, *([self._key(self.best)] if self.best else [])])
            proven[minimised[0]] = least[0]
            # The traffic is minimal only among schedules of the least makespan.
            if len(least) > 1 and self.best is not None and self.best[0] == least[0]:
                proven["traffic"] = least[1]
        units = (self.numbers.scale, self.numbers.measure, self.load_unit)
        return {
            measure: Fraction(proven[measure], unit)
            for measure, unit in zip(_MEASURES, units, strict=True)
            if measure in ("makespan", *minimised)
        }

    def _key(self, value: Value) -> tuple[int, ...]:
        """Return the value that the objective compares."""
        return tuple(value[i] for i in self.compared)

    def _hopeless(self, value: Value) -> bool:
        """Return whether a branch with this lower bound can be pruned."""
        if value[0] > self.most[0] or value[1] > self.most[1]:
            return True
        return self.best is not None and self._key(value) >= self._key(self.best)

    def _out_of_time(self) -> bool:
        self.branches += 1
        limit = self.budget.deterministic
        if limit is not None and self.branches > limit * _BRANCHES:
            return True
        return time.perf_counter() - self.begin > self.budget.seconds

    def _enter(self, node: _Node) -> bool:
        """Return whether to explore a branch; one skipped for lack of time stays open."""
        if self._hopeless(node.value):
            return False
        if self._out_of_time():
            self.open.append(self._key(node.value))
            return False
        return True

    def _node(self, device: list[int]) -> _Node | None:
        """Return the branch below a placement, complete or not; ``None`` if it is empty."""
        if not self.numbers.possible(device):
            return None
        network = Network(self.numbers, device.copy())
        start = earliest([0] * network.variables, network.arcs)
        if start is None:  # the given order contradicts the edges
            return None
        load = self.numbers.bottleneck(device) if self.goal.objective == "bottleneck" else 0
        value = network.bound(start), self.numbers.traffic(device), load
        return _Node(network, start, network.arcs, value)

    def _place(self, unit: int, node: _Node) -> None:
        """Try every device for this unit and those after it."""
        if unit == len(self.numbers.units):
            self._sequence(node)
            return
        members = self.numbers.units[unit]
        options: list[tuple[tuple[int, ...], bool, int, _Node]] = []
        for d in range(self.numbers.k):
            if self._redundant(d) or any(self.numbers.time[v][d] is None for v in members):
                continue
            self._assign(members, d)
            placed = self._node(self.device)
            self._assign(members, -1)
            if placed is not None:
                other = self.first[min(members) :][:1] != [d]
                options.append((self._key(placed.value), other, d, placed))
        for _, _, d, placed in sorted(options, key=lambda o: (o[1], o[0], o[2])):
            if self._enter(placed):
                self._assign(members, d)
                self._place(unit + 1, placed)
                self._assign(members, -1)

    def _assign(self, members: set[int], d: int) -> None:
        for v in members:
            self.device[v] = d

    def _redundant(self, d: int) -> bool:
        """Return whether an empty device can be skipped in favour of an earlier, equivalent one."""
        return d not in self.device and any(e not in self.device for e in self.alike[d])

    def _sequence(self, node: _Node) -> None:
        """Branch on one conflict; without conflicts, the minimal solution is optimal."""
        found = [
            self._children(node, resource.ways(together))
            for resource in node.network.resources
            if (together := resource.excess(node.start))
        ]
        if not found:
            self._offer(node)
            return
        # Prefer the conflict with the fewest branches, then the one with the largest bounds.
        children = min(found, key=lambda nodes: (len(nodes), -sum(n.value[0] for n in nodes)))
        for child in sorted(children, key=lambda child: (self._key(child.value), child.value)):
            if self._enter(child):
                self._sequence(child)

    def _children(self, node: _Node, ways: Iterator[list[Arc]]) -> list[_Node]:
        """Return the branches of a conflict; later ones exclude the schedules of earlier ones."""
        network, (_, traffic, load) = node.network, node.value
        children, known = [], node.arcs
        for way in ways:
            arcs = [*known, *way]
            start = earliest(node.start, arcs)
            if start is not None:
                child = _Node(network, start, arcs, (network.bound(start), traffic, load))
                if not self._hopeless(child.value):
                    children.append(child)
            if len(way) == 1:
                ((i, j, w),) = way
                # The complement, start[j] < start[i] + w. All offsets are whole numbers, and so
                # are the minimal solutions, so the inequality can be tightened by one.
                known = [*known, (j, i, 1 - w)]
        return children

    def _offer(self, node: _Node) -> None:
        ends = (node.start[v] + length for v, length in enumerate(node.network.length))
        self.best = max([0, *ends]), *node.value[1:]
        self.schedule = self._schedule(node)
        of, unit = {
            "traffic": (1, self.numbers.measure),
            "bottleneck": (2, self.load_unit),
        }.get(self.goal.objective, (0, self.numbers.scale))
        step = Progress(
            time.perf_counter() - self.begin,
            Fraction(self.best[of], unit),
            Fraction(self.root[of], unit),
        )
        self.trace.append(step)
        if self.watch is not None:
            self.watch(step)

    def _schedule(self, node: _Node) -> Schedule:
        network, scale = node.network, self.numbers.scale

        def at(event: Event) -> Fraction:
            return Fraction(node.start[event[0]] + event[1], scale)

        return Schedule(
            np.array(network.device, dtype=np.int32),
            RationalArray.from_integers(node.start[: self.numbers.n], scale),
            Transfers.of(
                (*crossing, at(begin), at(network.arrival[crossing]))
                for crossing, begin in network.begin.items()
            ),
        )
