"""What a strategy costs, computed thousands of times per second, exactly as if it were compiled.

The makespan is that of the instance which
:func:`~optpart.training.compiler.compile_strategy` builds, executed by [G]'s rank; memory is that
of ``refcount``. Both are whole numbers, equal to those of simulator and verifier.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.errors import InputError
from optpart.kernels.compiled import UNLIMITED
from optpart.training.collectives import allreduce
from optpart.training.evaluator_kernel import (
    A_COUNT,
    A_DEVICES,
    A_SYNC,
    ALLREDUCE,
    BATCHED,
    C_COLUMNS,
    DONE,
    E_COLUMNS,
    L_COLUMNS,
    R_COLUMNS,
    S_COLUMNS,
    SIGNAL,
    SUMMED,
    T_COLUMNS,
    WHOLE,
    Tables,
    Work,
    evaluate,
)
from optpart.training.graph import CONTROL, Layout, Line, Role
from optpart.training.problem import StrategyProblem
from optpart.training.strategy import Decision

Interval = tuple[Fraction, Fraction]

_ALL: Interval = (Fraction(0), Fraction(1))

_LAYOUT = {Layout.BATCHED: BATCHED, Layout.SUMMED: SUMMED, Layout.WHOLE: WHOLE}


class Outcome(NamedTuple):
    """What one strategy costs.

    Attributes
    ----------
    makespan : Fraction or None
        Nanoseconds, whether or not memory holds; ``None`` if a link is missing.
    excess : Fraction
        Bytes that the worst device lacks; 0 if memory holds.
    """

    makespan: Fraction | None
    excess: Fraction

    @property
    def feasible(self) -> bool:
        """Whether links and memory allow the strategy."""
        return self.makespan is not None and not self.excess


class Evaluator:
    """Evaluates the strategies of one problem.

    Parameters
    ----------
    problem : StrategyProblem

    Attributes
    ----------
    exact_memory : bool
        Whether bytes are exact. If their denominators are too large, sizes are rounded up and
        limits down: then a strategy may seem to lack a byte, but none seems to fit that does not.

    Raises
    ------
    InputError
        If it does not know an option: see :func:`supports`.
    """

    def __init__(self, problem: StrategyProblem) -> None:
        unknown = unsupported(problem)
        if unknown:
            raise InputError(unknown, "unknown to the evaluator", "compile and simulate instead")
        self.problem = problem
        self.decisions: list[Decision] = []
        self._number: dict[Decision, int] = {}
        self.exact_memory = True
        self._static = _Static(problem)
        self._parts: dict[Fraction, int] = {}
        self._part_tables: list[_PartTables] = []
        self._samples: dict[Interval, int] = {}
        self._pairs: dict[tuple[int, int], list[list[int]]] = {}
        self._rings: dict[tuple[int, ...], list[int]] = {}
        self._tables: Tables | None = None
        self._part(Fraction(0))
        self._everything = self._interval(_ALL)
        self._work = self._static.work()

    # --- actions ---------------------------------------------------------------------------

    def action(self, decision: Decision) -> int:
        """Return the number of a decision for evaluations; new ones may be added at any time."""
        if decision not in self._number:
            self._number[decision] = len(self.decisions)
            self.decisions.append(decision)
            for interval in decision.intervals.values():
                self._interval(interval)
            self._tables = None
        return self._number[decision]

    def actions(self, decisions: Iterable[Decision]) -> NDArray[np.int32]:
        """Return the numbers of decisions, one per group."""
        return np.array([self.action(decision) for decision in decisions], dtype=np.int32)

    # --- evaluation ------------------------------------------------------------------------

    def of(self, decisions: Sequence[Decision]) -> Outcome:
        """Evaluate one decision per group."""
        return self.outcome(self.many(self.actions(decisions)[None])[0])

    def many(self, chosen: NDArray[np.int32]) -> NDArray[np.int64]:
        """Evaluate strategies given by numbers of actions.

        Parameters
        ----------
        chosen : ndarray of int32, strategies × groups

        Returns
        -------
        ndarray of int64, strategies × 3
            Ticks, excess and status, which :meth:`outcome` translates.
        """
        outcomes = np.zeros((len(chosen), 3), dtype=np.int64)
        first = 0
        while first < len(chosen):
            done = evaluate(self.tables(), self._work, chosen[first:], outcomes[first:])
            first += done
            if first < len(chosen):
                self.add_pairs(chosen[first])
        return outcomes

    def outcome(self, row: NDArray[np.int64]) -> Outcome:
        """Translate ticks, excess and status."""
        ticks, excess, status = row.tolist()
        tick = self.problem.options.tick
        assert tick is not None
        return Outcome(
            ticks * tick if status == DONE else None, Fraction(excess, self._memory_scale)
        )

    def tables(self) -> Tables:
        """Return the tables for the kernel; they grow with actions and pairs."""
        if self._tables is None:
            self._tables = self._build()
        return self._tables

    @property
    def work(self) -> Work:
        """The memory that evaluations reuse."""
        return self._work

    def add_pairs(self, chosen: NDArray[np.int32]) -> None:
        """Add all pairs of classes that meet in a strategy."""
        action, group = chosen.tolist(), self.problem.group_of
        operations = self.problem.graph.operations
        for p, o in self._static.meetings:
            producer = 2 * action[group[p]]
            consumer = 2 * action[group[o]] + (not operations[o].splittable)
            self._pair(producer, consumer)
        self._tables = None

    # --- parts of the batch ----------------------------------------------------------------

    def _part(self, width: Fraction) -> int:
        if width not in self._parts:
            self._parts[width] = len(self._parts)
            self._part_tables.append(self._static.part(width))
        return self._parts[width]

    def _interval(self, interval: Interval) -> int:
        if interval not in self._samples:
            self._samples[interval] = len(self._samples)
            self._part(interval[1] - interval[0])
        return self._samples[interval]

    def _intervals(self, number: int) -> dict[int, Interval]:
        """Return the samples of a class by device."""
        decision = self.decisions[number >> 1]
        return dict.fromkeys(decision.devices, _ALL) if number & 1 else decision.intervals

    def _pair(self, producer: int, consumer: int) -> None:
        if (producer, consumer) in self._pairs:
            return
        k = len(self.problem.cluster)
        found = [[-1] * k for _ in range(k)]
        for d, one in self._intervals(producer).items():
            for e, two in self._intervals(consumer).items():
                common = max(one[0], two[0]), min(one[1], two[1])
                if common[0] < common[1]:
                    found[d][e] = self._interval(common)
        self._pairs[producer, consumer] = found

    # --- tables ----------------------------------------------------------------------------

    def _build(self) -> Tables:
        static, problem = self._static, self.problem
        k, actions = len(problem.cluster), len(self.decisions)
        table = np.full((actions, A_DEVICES + k), -1, dtype=np.int32)
        ring = np.full((len(static.sums), actions), -1, dtype=np.int64)
        classes = np.full((2 * actions, k, 2), -1, dtype=np.int32)
        for a, decision in enumerate(self.decisions):
            table[a, A_COUNT] = len(decision.devices)
            table[a, A_DEVICES : A_DEVICES + len(decision.devices)] = decision.devices
            if decision.sync == "allreduce":
                table[a, A_SYNC] = ALLREDUCE
                ring[:, a] = self._ring(decision.devices)
            elif decision.sync is not None:
                table[a, A_SYNC] = decision.sync
            for number in (2 * a, 2 * a + 1):
                for d, interval in self._intervals(number).items():
                    part = self._parts[interval[1] - interval[0]]
                    classes[number, d] = self._samples[interval], part
        pair = np.full((2 * actions, 2 * actions), -1, dtype=np.int32)
        for row, key in enumerate(self._pairs):
            pair[key] = row
        common = np.array([*self._pairs.values()], dtype=np.int32).reshape(-1, k, k)
        made = self._part_tables
        resident, sizes, capacity = self._memory()
        return Tables(
            order=static.order,
            operations=static.operations,
            resident=resident,
            kind=np.array(problem.kind, dtype=np.int32),
            tensors=static.tensors,
            inputs=static.inputs,
            link=static.link,
            lines=len(static.lines),
            transfer=np.concatenate([table.transfer for table in made]),
            soonest=np.concatenate([table.soonest for table in made]),
            copying=np.column_stack((np.concatenate([t.copying for t in made]), sizes.ravel())),
            time=np.stack([table.time for table in made]),
            actions=table,
            ring=ring,
            classes=classes,
            part_of=np.array(
                [self._parts[last - first] for first, last in self._samples], dtype=np.int32
            ),
            pair=pair,
            common=common,
            everything=self._everything,
            capacity=capacity,
            limited=static.limited,
        )

    def _ring(self, devices: tuple[int, ...]) -> list[int]:
        """Return the ticks of an AllReduce by row of sums; −1 where links are missing."""
        if devices not in self._rings:
            static = self._static
            try:
                self._rings[devices] = [
                    static.ticks(allreduce(self.problem.cluster, devices, size).time)
                    for size in static.sums
                ]
            except InputError:
                self._rings[devices] = [-1] * len(static.sums)
        return self._rings[devices]

    def _memory(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return resident bytes, bytes by part and line, and capacities, over one denominator."""
        static, made = self._static, self._part_tables
        limits = self.problem.cluster.cluster.memory
        sizes = np.zeros((len(made), len(static.lines)), dtype=np.int64)
        capacity = np.full(len(limits) + 1, UNLIMITED, dtype=np.int64)
        resident = np.zeros(len(static.resident), dtype=np.int64)
        self._memory_scale = 1
        if not static.limited:
            return resident, sizes, capacity
        exact = [size for table in made for size in table.sizes] + static.resident
        scale = math.lcm(*{size.denominator for size in exact})
        # Nothing that a device could ever hold may overflow.
        k = len(limits)
        most = sum(static.resident) + static.volume * (k + 4)
        most = max(most, *(limit for limit in limits if limit is not None))
        self.exact_memory = most * scale < UNLIMITED
        self._memory_scale = scale = scale if self.exact_memory else 1
        for p, table in enumerate(made):
            sizes[p] = [math.ceil(size * scale) for size in table.sizes]
        resident[:] = [math.ceil(size * scale) for size in static.resident]
        for d, limit in enumerate(limits):
            if limit is not None:
                capacity[d] = math.floor(limit * scale)
        return resident, sizes, capacity


def unsupported(problem: StrategyProblem) -> str:
    """Return the first option that :class:`Evaluator` does not know; empty if it knows all."""
    known: dict[str, Any] = {
        "replicas": "fused",
        "resharding": "overlap",
        "collectives": "queue",
        "topology": "pairs",
        "microbatches": 1,
    }
    for name, value in known.items():
        if getattr(problem.options, name) != value:
            return f"{name} {getattr(problem.options, name)}"
    return "tick none" if problem.options.tick is None else ""


class _PartTables(NamedTuple):
    """Times and sizes for one part of the batch."""

    time: NDArray[np.int64]  # operations × kinds
    transfer: NDArray[np.int64]  # lines × classes of links
    soonest: NDArray[np.int64]  # lines × classes of links
    copying: NDArray[np.int64]  # lines × devices
    sizes: list[Fraction]  # by line


class _Static:
    """The graph and the cluster in arrays."""

    def __init__(self, problem: StrategyProblem) -> None:
        self.problem = problem
        graph, cluster = problem.graph, problem.cluster
        k = len(cluster)
        assert problem.options.tick is not None
        self.tick = problem.options.tick
        self.order = np.array(graph.topological_order, dtype=np.int32)
        limits = cluster.cluster.memory
        self.limited = problem.options.memory == "refcount" and any(m is not None for m in limits)
        slots = problem.options.slots
        self.resident = [
            size * (1 + slots if operation.role is Role.APPLY else 1)
            for size, operation in zip(graph.resident, graph.operations, strict=True)
        ]
        self._tensors()
        # Classes of links: the first is that of nccl, where nothing takes time.
        self.classes: list[tuple[Fraction, Fraction | None]] = [(Fraction(0), None)]
        self.link = np.zeros((k + 1, k + 1), dtype=np.int32)
        for d in range(k):
            for e in range(k):
                if d == e:
                    continue
                if not cluster.linked(d, e):
                    self.link[d, e] = -1
                    continue
                kind = cluster.latency[d][e], cluster.rate[d][e]
                if kind not in self.classes[1:]:
                    self.classes.append(kind)
                self.link[d, e] = 1 + self.classes[1:].index(kind)

    def _tensors(self) -> None:
        graph = self.problem.graph
        start, layout, line, sums = [0], [], [], []
        self.lines: dict[Line, int] = {Line(): 0}
        self.sums: dict[Fraction, int] = {}
        for operation in graph.operations:
            for output in operation.outputs:
                layout.append(_LAYOUT[output.layout])
                line.append(self.lines.setdefault(output.size, len(self.lines)))
                summed = output.layout is Layout.SUMMED
                sums.append(
                    self.sums.setdefault(output.size.alpha, len(self.sums)) if summed else -1
                )
            layout.append(SIGNAL)
            line.append(0)
            sums.append(-1)
            start.append(len(layout))
        self.tensors = np.array([layout, line, sums], dtype=np.int32).T.copy()
        outputs = [out.size.at(self.problem.batch) for o in graph.operations for out in o.outputs]
        #: Bytes of all tensors.
        self.volume = sum(outputs, Fraction(0))
        edges = [edge for into in graph.in_edges for edge in into]
        ends = np.cumsum([0, *(len(into) for into in graph.in_edges)])
        self.operations = np.array(
            [
                [*self.problem.group_of, -1],
                [*(not o.splittable for o in graph.operations), 0],
                start,
                ends.tolist(),
            ],
            dtype=np.int32,
        ).T.copy()
        inputs = [
            start[e.producer + 1] - 1 if e.output == CONTROL else start[e.producer] + e.output
            for e in edges
        ]
        self.inputs = np.array(
            [(tensor, e.producer) for e, tensor in zip(edges, inputs, strict=True)], dtype=np.int32
        ).reshape(-1, 2)
        #: Producer and consumer of slices.
        self.meetings = {
            (e.producer, e.consumer)
            for e, tensor in zip(edges, inputs, strict=True)
            if layout[tensor] == BATCHED and graph.operations[e.producer].splittable
        }

    def work(self) -> Work:
        """Reserve memory for the largest strategies; what is not used is never touched."""
        k, n = len(self.problem.cluster), len(self.order)
        edges, tensors = len(self.inputs), len(self.tensors)
        resources = (k + 1) * (k + 2)
        tasks = n * k + edges * (k * k + 5 * k + 2) + 2
        copies = tasks + tensors * (k + 1) + edges * k * k
        links = edges * (4 * k * k + 8 * k) + 1
        most = max((len(into) for into in self.problem.graph.in_edges), default=0)
        return Work(
            tasks=np.empty((tasks, T_COLUMNS), dtype=np.int64),
            copies=np.empty((copies, C_COLUMNS), dtype=np.int64),
            edges=np.empty((links, E_COLUMNS), dtype=np.int32),
            entries=np.empty((edges * (k * k + k) + 1, L_COLUMNS), dtype=np.int32),
            n=np.zeros(8, dtype=np.int64),
            state=np.empty((tensors, k, S_COLUMNS), dtype=np.int32),
            summed=np.empty(tensors, dtype=np.int32),
            vertex=np.empty((n, k), dtype=np.int32),
            number=np.empty(n, dtype=np.int64),
            needs=np.empty((k, 1 + most * max(2, k)), dtype=np.int32),
            queue=np.empty(tasks, dtype=np.int32),
            resources=np.zeros((resources, R_COLUMNS), dtype=np.int64),
            events=np.zeros((resources + 1, 2), dtype=np.int64),
            pending=np.zeros(resources + 2, dtype=np.int32),
            use=np.zeros((2, k + 1), dtype=np.int64),
        )

    def ticks(self, time: Fraction) -> int:
        """Return a time in ticks, rounded up."""
        return math.ceil(time / self.tick)

    def part(self, width: Fraction) -> _PartTables:
        """Return times and sizes for a part of the batch."""
        problem, cluster = self.problem, self.problem.cluster
        samples = width * problem.batch
        times = [
            [self.ticks(line.at(samples)) for line in operation.times]
            for operation in problem.graph.operations
        ]
        sizes = [line.at(samples) for line in self.lines]
        exact = [
            [latency + (0 if rate is None else size / rate) for latency, rate in self.classes]
            for size in sizes
        ]
        free = problem.options.auxiliary == "free"
        copying = [
            [0 if free else self.ticks(cluster.copying(d, size)) for d in range(len(cluster))]
            for size in sizes
        ]
        return _PartTables(
            np.array(times, dtype=np.int64),
            np.array([[self.ticks(time) for time in row] for row in exact], dtype=np.int64),
            np.array([[sorted(row).index(time) for time in row] for row in exact], dtype=np.int64),
            np.array(copying, dtype=np.int64),
            sizes,
        )
