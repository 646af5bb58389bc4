"""The cost of a strategy, computed thousands of times per second, as if it were compiled.

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
    A_CLASS,
    A_COUNT,
    A_DEVICES,
    A_SYNC,
    A_WHOLE,
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

#: Devices with the samples that they compute.
Class = tuple[tuple[int, Interval], ...]

_ALL: Interval = (Fraction(0), Fraction(1))

_LAYOUT = {Layout.BATCHED: BATCHED, Layout.SUMMED: SUMMED, Layout.WHOLE: WHOLE}


class Outcome(NamedTuple):
    """The cost of one strategy.

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
        """True if links and memory allow the strategy."""
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
        self._classes: dict[Class, int] = {}
        self._class_list: list[Class] = []
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
            if decision.total > self.problem.batch:
                raise InputError(
                    "replicas",
                    f"{decision.total} for a batch of {self.problem.batch}",
                    "give fewer replicas or a larger batch",
                )
            self._number[decision] = len(self.decisions)
            self.decisions.append(decision)
            self._class(decision, unsplit=False)
            self._class(decision, unsplit=True)
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
        chosen = np.ascontiguousarray(chosen, dtype=np.int32)
        outcomes = np.zeros((len(chosen), 3), dtype=np.int64)
        first = 0
        while first < len(chosen):
            done = evaluate(self.tables(), self._work, chosen[first:], outcomes[first:])
            first += done
            if first < len(chosen):
                self._add_pairs(chosen[first])
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

    def add_all_pairs(self) -> None:
        """Prepare for any mixture of the actions added so far."""
        for producer in range(len(self._classes)):
            for consumer in range(len(self._classes)):
                self._pair(producer, consumer)

    def _add_pairs(self, chosen: NDArray[np.int32]) -> None:
        """Prepare for one strategy."""
        group, operations = self.problem.group_of, self.problem.graph.operations
        decisions = [self.decisions[a] for a in chosen.tolist()]
        for p, o in self._static.meetings:
            self._pair(
                self._class(decisions[group[p]], unsplit=False),
                self._class(decisions[group[o]], unsplit=not operations[o].splittable),
            )

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

    def _class(self, decision: Decision, *, unsplit: bool) -> int:
        """Return the class of operations under a decision."""
        samples = dict.fromkeys(decision.devices, _ALL) if unsplit else decision.intervals
        key = tuple(samples.items())
        if key not in self._classes:
            self._classes[key] = len(self._classes)
            self._class_list.append(key)
            for interval in samples.values():
                self._interval(interval)
            self._tables = None
        return self._classes[key]

    def _pair(self, producer: int, consumer: int) -> None:
        """Find the samples that the devices of two classes share."""
        if (producer, consumer) in self._pairs:
            return
        k, classes = len(self.problem.cluster), self._class_list
        found = [[-1] * k for _ in range(k)]
        for d, one in classes[producer]:
            for e, two in classes[consumer]:
                common = max(one[0], two[0]), min(one[1], two[1])
                if common[0] < common[1]:
                    found[d][e] = self._interval(common)
        self._pairs[producer, consumer] = found
        self._tables = None

    # --- tables ----------------------------------------------------------------------------

    def _build(self) -> Tables:
        static, problem = self._static, self.problem
        k, actions = len(problem.cluster), len(self.decisions)
        table = np.full((actions, A_DEVICES + k), -1, dtype=np.int32)
        ring = np.full((len(static.sums), actions), -1, dtype=np.int64)
        for a, decision in enumerate(self.decisions):
            table[a, A_COUNT] = len(decision.devices)
            table[a, A_DEVICES : A_DEVICES + len(decision.devices)] = decision.devices
            table[a, A_CLASS] = self._class(decision, unsplit=False)
            table[a, A_WHOLE] = self._class(decision, unsplit=True)
            if decision.sync == "allreduce":
                table[a, A_SYNC] = ALLREDUCE
                ring[:, a] = self._ring(decision.devices)
            elif decision.sync is not None:
                table[a, A_SYNC] = decision.sync
        classes = np.full((len(self._classes), k, 2), -1, dtype=np.int32)
        for key, number in self._classes.items():
            for d, interval in key:
                part = self._parts[interval[1] - interval[0]]
                classes[number, d] = self._samples[interval], part
        pair = np.full((len(classes), len(classes)), -1, dtype=np.int32)
        for row, both in enumerate(self._pairs):
            pair[both] = row
        common = np.array([*self._pairs.values()], dtype=np.int32).reshape(-1, k, k)
        made, in_rows = self._part_tables, np.ascontiguousarray
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
            transfer=in_rows(np.concatenate([table.transfer for table in made])),
            soonest=in_rows(np.concatenate([table.soonest for table in made])),
            copying=in_rows(
                np.column_stack((np.concatenate([t.copying for t in made]), sizes.ravel()))
            ),
            time=in_rows(np.stack([table.time for table in made])),
            actions=table,
            ring=ring,
            classes=classes,
            part_of=np.array(
                [self._parts[last - first] for first, last in self._samples], dtype=np.int32
            ),
            pair=pair,
            common=common,
            span=self._spans(),
            everything=self._everything,
            capacity=capacity,
            limited=static.limited,
        )

    def _spans(self) -> NDArray[np.int32]:
        """Return, by pair and consumer's device, from which to which producer samples overlap.

        Those are side by side, since intervals ascend with the devices.
        """
        found = np.zeros((len(self._pairs), len(self.problem.cluster), 2), dtype=np.int32)
        for row, ((producer, _), common) in enumerate(self._pairs.items()):
            devices = [d for d, _ in self._class_list[producer]]
            for e in range(found.shape[1]):
                some = [i for i, d in enumerate(devices) if common[d][e] >= 0]
                if some:
                    found[row, e] = some[0], some[-1] + 1
        return found

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
        steps = [table.sizes.step() for table in made]
        scale = math.lcm(*steps, *{size.denominator for size in static.resident})
        # Nothing that a device could ever hold may overflow.
        k = len(limits)
        most = sum(static.resident) + static.volume * (k + 4)
        most = max(most, *(limit for limit in limits if limit is not None))
        self.exact_memory = most * scale < UNLIMITED
        self._memory_scale = scale = scale if self.exact_memory else 1
        for p, table in enumerate(made):
            sizes[p] = table.sizes.ceilings(Fraction(1, scale))
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
    sizes: _Exact  # by line


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
        self._times = _Lines.of(line for o in graph.operations for line in o.times)
        self._bytes = _Lines.of(self.lines)
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
            chosen=np.zeros(len(self.problem.groups), dtype=np.int32),
            outcome=np.zeros(3, dtype=np.int64),
            tasks=np.empty((tasks, T_COLUMNS), dtype=np.int64),
            copies=np.empty((copies, C_COLUMNS), dtype=np.int64),
            edges=np.empty((links, E_COLUMNS), dtype=np.int32),
            entries=np.empty((edges * (k * k + k) + 1, L_COLUMNS), dtype=np.int32),
            n=np.zeros(8, dtype=np.int64),
            state=np.empty((tensors, k, S_COLUMNS), dtype=np.int32),
            summed=np.empty(tensors, dtype=np.int32),
            vertex=np.empty((n, k), dtype=np.int32),
            number=np.empty(n, dtype=np.int64),
            pieces=np.empty(k, dtype=np.int32),
            needs=np.empty((k, 1 + most * max(2, k)), dtype=np.int32),
            queue=np.empty(tasks, dtype=np.int32),
            resources=np.zeros((resources, R_COLUMNS), dtype=np.int64),
            events=np.zeros((resources + 1, 2), dtype=np.int64),
            pending=np.zeros(resources + 2, dtype=np.int32),
            use=np.zeros((2, k + 1), dtype=np.int64),
        )

    def ticks(self, time: Fraction) -> int:
        """Return a time in ticks, rounded up, as the compiler does."""
        return math.ceil(time / self.tick)

    def part(self, width: Fraction) -> _PartTables:
        """Return times and sizes for a part of the batch."""
        problem, cluster = self.problem, self.problem.cluster
        samples = width * problem.batch
        sizes = self._bytes.at(samples)
        transfer, soonest = [], []
        for latency, rate in self.classes:
            exact = sizes.times(Fraction(0) if rate is None else 1 / rate).plus(latency)
            transfer.append(exact.ceilings(self.tick))
            soonest.append(exact)
        return _PartTables(
            self._times.at(samples).ceilings(self.tick).reshape(len(problem.graph), -1),
            np.array(transfer, dtype=np.int64).T,
            _ranks(soonest),
            np.array([self._copying(d, sizes) for d in range(len(cluster))]).T,
            sizes,
        )

    def _copying(self, device: int, sizes: _Exact) -> NDArray[np.int64]:
        rate = self.problem.cluster.memory_bandwidth[device]
        if rate is None or self.problem.options.auxiliary == "free":
            return np.zeros(len(sizes.numerators), dtype=np.int64)
        return sizes.times(2 / rate).ceilings(self.tick)


class _Exact(NamedTuple):
    """Exact numbers: Python integers over one denominator, so that nothing overflows."""

    numerators: NDArray[Any]
    denominator: int

    @classmethod
    def of(cls, values: Sequence[Fraction]) -> _Exact:
        common = math.lcm(1, *{value.denominator for value in values})
        numerators = [value.numerator * (common // value.denominator) for value in values]
        return cls(np.array(numerators, dtype=object), common)

    def times(self, factor: Fraction) -> _Exact:
        return _Exact(self.numerators * factor.numerator, self.denominator * factor.denominator)

    def plus(self, term: Fraction) -> _Exact:
        own, other = term.denominator, term.numerator * self.denominator
        return _Exact(self.numerators * own + other, self.denominator * own)

    def ceilings(self, unit: Fraction) -> NDArray[np.int64]:
        """Return the least multiples of a unit that are no less."""
        up = -self.numerators * unit.denominator // (self.denominator * unit.numerator)
        return -up.astype(np.int64)

    def step(self) -> int:
        """Return the least number whose product with all of them is whole."""
        return self.denominator // math.gcd(self.denominator, *self.numerators.tolist())


class _Lines(NamedTuple):
    """Lines with their numbers over one denominator each."""

    alpha: _Exact
    beta: _Exact

    @classmethod
    def of(cls, lines: Iterable[Line]) -> _Lines:
        listed = [*lines]
        return cls(
            _Exact.of([line.alpha for line in listed]), _Exact.of([line.beta for line in listed])
        )

    def at(self, samples: Fraction) -> _Exact:
        one, two = self.alpha, self.beta.times(samples)
        return _Exact(
            one.numerators * two.denominator + two.numerators * one.denominator,
            one.denominator * two.denominator,
        )


def _ranks(columns: Sequence[_Exact]) -> NDArray[np.int64]:
    """Return how many columns are smaller, by row and column."""
    common = math.lcm(*(column.denominator for column in columns))
    exact = [column.numerators * (common // column.denominator) for column in columns]
    return np.array(
        [sum((other < one).astype(np.int64) for other in exact) for one in exact], dtype=np.int64
    ).T.copy()
