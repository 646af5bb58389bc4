"""The cost of a strategy, computed thousands of times per second, as if it were compiled.

The makespan is that of the instance which
:func:`~optpart.applications.training.compiler.compile_strategy` builds, executed by [G]'s rank;
memory is that of ``refcount``. Both are whole numbers, equal to those of simulator and verifier.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.applications.training.collectives import allreduce
from optpart.applications.training.compiled import STANDARD
from optpart.applications.training.evaluator_kernel import (
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
from optpart.applications.training.graph import CONTROL, Layout, Line
from optpart.applications.training.problem import StrategyProblem
from optpart.applications.training.strategy import ALL, Decision, Interval, overlap
from optpart.base.errors import InputError
from optpart.kernels.compiled import UNLIMITED

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

    Attributes
    ----------
    exact_memory : bool
        Whether bytes are exact. If their denominators are too large, sizes are rounded up and
        limits down: then a strategy may seem to lack a byte, but none seems to fit that does not.
    work : Work
        The memory that evaluations reuse.

    Raises
    ------
    InputError
        If it does not know an option: see :func:`unsupported`.
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
        #: A class: devices with the samples that they compute.
        self._classes: dict[tuple[tuple[int, Interval], ...], int] = {}
        self._pairs: dict[tuple[int, int], list[list[int]]] = {}
        self._rings: dict[tuple[int, ...], list[int]] = {}
        self._tables: Tables | None = None
        self._part(Fraction(0))
        self._everything = self._interval(ALL)
        self.work = self._static.work()

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

        Returns
        -------
        ndarray of int64, strategies × 3
            Ticks, excess and status, which :meth:`outcome` translates.
        """
        chosen = np.ascontiguousarray(chosen, dtype=np.int32)
        outcomes = np.zeros((len(chosen), 3), dtype=np.int64)
        first = 0
        while first < len(chosen):
            first += evaluate(self.tables(), self.work, chosen[first:], outcomes[first:])
            if first < len(chosen):
                self._add_pairs(chosen[first])
        return outcomes

    def outcome(self, row: NDArray[np.int64]) -> Outcome:
        """Translate ticks, excess and status."""
        ticks, excess, status = row.tolist()
        time = ticks * self._static.tick if status == DONE else None
        return Outcome(time, Fraction(excess, self._memory_scale))

    def tables(self) -> Tables:
        """Return the tables for the kernel; they grow with actions and pairs."""
        if self._tables is None:
            self._tables = self._build()
        return self._tables

    def add_all_pairs(self) -> None:
        """Prepare for any mixture of the actions added so far."""
        for producer in range(len(self._classes)):
            for consumer in range(len(self._classes)):
                self._pair(producer, consumer)

    def _add_pairs(self, chosen: NDArray[np.int32]) -> None:
        """Prepare for one strategy."""
        group, operations = self.problem.group_of, self.problem.graph.operations
        decisions = [self.decisions[a] for a in chosen.tolist()]
        for p, o in self._static.exchanges:
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
        samples = dict.fromkeys(decision.devices, ALL) if unsplit else decision.intervals
        key = tuple(samples.items())
        if key not in self._classes:
            self._classes[key] = len(self._classes)
            for interval in samples.values():
                self._interval(interval)
            self._tables = None
        return self._classes[key]

    def _pair(self, producer: int, consumer: int) -> None:
        """Find the samples that the devices of two classes share."""
        if (producer, consumer) in self._pairs:
            return
        k, classes = len(self.problem.cluster), list(self._classes)
        found = [[-1] * k for _ in range(k)]
        for d, one in classes[producer]:
            for e, two in classes[consumer]:
                common = overlap(one, two)
                if common:
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
        copying = np.concatenate([table.copying for table in made])
        parts = [self._parts[last - first] for first, last in self._samples]
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
            copying=in_rows(np.column_stack((copying, sizes.ravel()))),
            time=in_rows(np.stack([table.time for table in made])),
            actions=table,
            ring=ring,
            classes=classes,
            part_of=np.array(parts, dtype=np.int32),
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
        classes = list(self._classes)
        for row, ((producer, _), common) in enumerate(self._pairs.items()):
            for e in range(found.shape[1]):
                some = [i for i, (d, _) in enumerate(classes[producer]) if common[d][e] >= 0]
                if some:
                    found[row, e] = some[0], some[-1] + 1
        return found

    def _ring(self, devices: tuple[int, ...]) -> list[int]:
        """Return the ticks of an AllReduce by row of sums; −1 where links are missing."""
        if devices not in self._rings:
            static, cluster = self._static, self.problem.cluster
            try:
                times = [allreduce(cluster, devices, size).time for size in static.sums]
                self._rings[devices] = [math.ceil(time / static.tick) for time in times]
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
        most = sum(static.resident) + static.volume * (len(limits) + 4)
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
    for name, value in STANDARD.items():
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
        graph, cluster, options = problem.graph, problem.cluster, problem.options
        assert options.tick is not None
        self.tick = options.tick
        self.order = np.array(graph.topological_order, dtype=np.int32)
        self.resident = graph.held(options.slots)
        limits = cluster.cluster.memory
        self.limited = options.memory == "refcount" and any(m is not None for m in limits)
        self._tensors()
        times = [line for o in graph.operations for line in o.times]
        self._times = _Exact.of([x.alpha for x in times]), _Exact.of([x.beta for x in times])
        self._bytes = (
            _Exact.of([x.alpha for x in self.lines]),
            _Exact.of([x.beta for x in self.lines]),
        )
        # Classes of links: the first is that of nccl, where nothing takes time.
        k = len(cluster)
        self.link = np.zeros((k + 1, k + 1), dtype=np.int32)
        numbers: dict[tuple[Fraction, Fraction | None], int] = {}
        for d in range(k):
            for e in range(k):
                if d != e and not cluster.linked(d, e):
                    self.link[d, e] = -1
                elif d != e:
                    kind = cluster.latency[d][e], cluster.rate[d][e]
                    self.link[d, e] = numbers.setdefault(kind, 1 + len(numbers))
        self.classes = [(Fraction(0), None), *numbers]

    def _tensors(self) -> None:
        graph, operations = self.problem.graph, self.problem.graph.operations
        start, rows = [0], []
        self.lines: dict[Line, int] = {Line(): 0}
        self.sums: dict[Fraction, int] = {}
        for operation in operations:
            for output in operation.outputs:
                line, sums = self.lines.setdefault(output.size, len(self.lines)), -1
                if output.layout is Layout.SUMMED:
                    sums = self.sums.setdefault(output.size.alpha, len(self.sums))
                rows.append((_LAYOUT[output.layout], line, sums))
            rows.append((SIGNAL, 0, -1))
            start.append(len(rows))
        self.tensors = np.array(rows, dtype=np.int32)
        outputs = [out.size.at(self.problem.batch) for o in operations for out in o.outputs]
        #: Bytes of all tensors.
        self.volume = sum(outputs, Fraction(0))
        ends = np.cumsum([0, *(len(into) for into in graph.in_edges)]).tolist()
        group, unsplit = self.problem.group_of, [not o.splittable for o in operations]
        self.operations = np.array(
            [[*group, -1], [*unsplit, 0], start, ends], dtype=np.int32
        ).T.copy()
        inputs = []
        #: Pairs of producer and consumer that exchange slices of samples.
        self.exchanges = set()
        for edge in (edge for into in graph.in_edges for edge in into):
            p, signal = edge.producer, edge.output == CONTROL
            tensor = start[p + 1] - 1 if signal else start[p] + edge.output
            inputs.append((tensor, p))
            if rows[tensor][0] == BATCHED and operations[p].splittable:
                self.exchanges.add((p, edge.consumer))
        self.inputs = np.array(inputs, dtype=np.int32).reshape(-1, 2)

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
            ends=np.zeros(resources + 1, dtype=np.int64),
            ending_resource=np.zeros(resources + 1, dtype=np.int64),
            pending=np.zeros(resources + 2, dtype=np.int32),
            use=np.zeros((2, k + 1), dtype=np.int64),
        )

    def part(self, width: Fraction) -> _PartTables:
        """Return times and sizes for a part of the batch."""
        problem, cluster = self.problem, self.problem.cluster
        samples = width * problem.batch
        times, sizes = (alpha.plus(beta, samples) for alpha, beta in (self._times, self._bytes))
        soonest = [
            sizes.line(Fraction(0) if rate is None else 1 / rate, latency)
            for latency, rate in self.classes
        ]
        copying = []
        free = problem.options.auxiliary == "free"
        for rate in cluster.memory_bandwidth:
            time = sizes.line(Fraction(0) if rate is None or free else 2 / rate)
            copying.append(time.ceilings(self.tick))
        return _PartTables(
            times.ceilings(self.tick).reshape(len(problem.graph), -1),
            np.array([exact.ceilings(self.tick) for exact in soonest]).T,
            _ranks(soonest),
            np.array(copying).T,
            sizes,
        )


class _Exact(NamedTuple):
    """Exact numbers: Python integers over one denominator, so that nothing overflows."""

    numerators: NDArray[Any]
    denominator: int

    @classmethod
    def of(cls, values: Sequence[Fraction]) -> _Exact:
        common = math.lcm(1, *{value.denominator for value in values})
        numerators = [value.numerator * (common // value.denominator) for value in values]
        return cls(np.array(numerators, dtype=object), common)

    def line(self, factor: Fraction | int, term: Fraction | int = 0) -> _Exact:
        """Return multiples plus a term."""
        numerators = self.numerators * (factor.numerator * term.denominator)
        denominator = self.denominator * factor.denominator
        return _Exact(numerators + term.numerator * denominator, denominator * term.denominator)

    def plus(self, other: _Exact, factor: Fraction) -> _Exact:
        """Return the sums with multiples of others."""
        two = other.line(factor)
        return _Exact(
            self.numerators * two.denominator + two.numerators * self.denominator,
            self.denominator * two.denominator,
        )

    def ceilings(self, unit: Fraction) -> NDArray[np.int64]:
        """Return the least multiples of a unit that are no less."""
        up = -self.numerators * unit.denominator // (self.denominator * unit.numerator)
        return -up.astype(np.int64)

    def step(self) -> int:
        """Return the least number whose product with all of them is whole."""
        return self.denominator // math.gcd(self.denominator, *self.numerators.tolist())


def _ranks(columns: Sequence[_Exact]) -> NDArray[np.int64]:
    """Return how many columns are smaller, by row and column."""
    common = math.lcm(*(column.denominator for column in columns))
    exact = [column.numerators * (common // column.denominator) for column in columns]
    ranks = [sum((other < one).astype(np.int64) for other in exact) for one in exact]
    return np.array(ranks, dtype=np.int64).T.copy()
