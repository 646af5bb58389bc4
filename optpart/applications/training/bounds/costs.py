"""Costs of the parts of a compiled strategy, per action and per pair of adjacent actions.

A compiled strategy decomposes: the vertices of an operation depend on its own action only, and the
Splits, transfers and Concats of a tensor on the actions of its producer and of one consumer. So
every load, and every step of a path, is a sum of functions of one action or of two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.applications.training.collectives import allreduce
from optpart.applications.training.graph import CONTROL, Edge, Layout, Line
from optpart.applications.training.problem import Choices
from optpart.applications.training.strategy import ALL, Decision, Interval, overlap
from optpart.base.errors import InputError

#: Ticks per nanosecond where times are not rounded up to a tick: they are rounded down.
FINE = 1000

Ints = NDArray[np.int64]


class Conversion(NamedTuple):
    """One tensor from one operation to another, by the layouts of both; ticks.

    Attributes
    ----------
    delay : ndarray, layouts × layouts × k × k
        From the end of the producer on one device to the start of the consumer on another (Split,
        transfer, Concat); −1 where that consumer does not read that producer.
    transfer : ndarray, layouts × layouts × k × k
        On the link.
    copying : ndarray, layouts × layouts × k
        Of Split and Concat on each device.
    missing : ndarray of bool, layouts × layouts
        Whether a link is missing, so that the two layouts cannot be combined.
    """

    delay: Ints
    transfer: Ints
    copying: Ints
    missing: NDArray[np.bool_]


class Synchronisation(NamedTuple):
    """The way of a gradient to the applies of its group, by action of the group; ticks.

    ``delay``, ``transfer`` and ``missing`` are as in :class:`Conversion`, ``copying`` is that of
    AddN, actions × k, and ``collective`` that of the AllReduce, by action.
    """

    delay: Ints
    transfer: Ints
    copying: Ints
    collective: Ints
    missing: NDArray[np.bool_]


class Slice(NamedTuple):
    """The part that a consumer on ``target`` reads from the producer on ``source``."""

    source: int
    target: int
    interval: Interval
    size: Fraction
    split: bool  # whether it is a part of what the producer holds
    concatenated: bool  # whether the consumer reads other slices as well


class Costs:
    """Costs, in whole ticks, of all parts that strategies of some choices may have.

    Attributes
    ----------
    scale : Fraction
        Ticks per nanosecond.
    layouts : list of tuple of Fraction
        The distinct shares per device of all actions.
    intervals : list of dict
        Samples of each device, by layout.
    layout_of : list of ndarray
        Number of the layout of each action, by group.
    samples : list of Fraction
        Samples of the batch, in [0, 1), that are on different devices in some layout.
    resident : list of Fraction
        Bytes that a replica of each operation holds for the whole run.
    """

    def __init__(self, choices: Choices) -> None:
        problem = choices.problem
        self.problem, self.actions = problem, choices.actions
        self.graph, self.cluster, self.options = problem.graph, problem.cluster, problem.options
        self.k, self.batch, self.group_of = len(problem.cluster), problem.batch, problem.group_of
        tick = problem.options.tick
        self.scale = Fraction(FINE) if tick is None else 1 / tick
        numbers: dict[tuple[Fraction, ...], int] = {}
        self.intervals: list[dict[int, Interval]] = []
        self.layout_of: list[Ints] = []
        for actions in choices.actions:
            row = []
            for action in actions:
                if action.shares not in numbers:
                    numbers[action.shares] = len(numbers)
                    self.intervals.append(action.intervals)
                row.append(numbers[action.shares])
            self.layout_of.append(np.array(row, dtype=np.int64))
        self.layouts = list(numbers)
        self.present = np.array([[x > 0 for x in shares] for shares in self.layouts])
        self.resident = problem.graph.held(problem.options.slots)
        self.samples = self._distinct_samples()
        self._at: dict[Fraction, Ints] = {}
        self._times: dict[tuple[Line, Fraction], int] = {}
        self._transfers: dict[tuple[int, int, Fraction], int | None] = {}
        self._conversions: dict[object, Conversion] = {}
        self._synchronisations: dict[object, Synchronisation] = {}

    # --- ticks -----------------------------------------------------------------------------

    def ticks(self, time: Fraction) -> int:
        """Return a time in ticks: up if times are rounded to ticks, otherwise down.

        With a tick, the compiler rounds every time up to a multiple of it, so that this is exact.
        Without, a schedule remains one with all times and starts rounded down. In both cases the
        lengths that are bounded are whole numbers of ticks.
        """
        whole = time * self.scale
        if self.options.tick is None:
            return whole.numerator // whole.denominator
        return -(-whole.numerator // whole.denominator)

    def time(self, ticks: int) -> Fraction:
        """Return ticks as nanoseconds."""
        return ticks / self.scale

    def transfer(self, source: int, target: int, size: Fraction) -> int | None:
        """Return the ticks of a transfer over an idle link; ``None`` without a link."""
        key = source, target, size
        if key not in self._transfers:
            linked = self.cluster.linked(source, target)
            self._transfers[key] = (
                self.ticks(self.cluster.transfer(source, target, size)) if linked else None
            )
        return self._transfers[key]

    def copy(self, device: int, size: Fraction) -> int:
        """Return the ticks that a device copies bytes in its own memory."""
        free = self.options.auxiliary == "free"
        return 0 if free else self.ticks(self.cluster.copying(device, size))

    @cached_property
    def duration(self) -> Ints:
        """Ticks of each operation on each device, operations × layouts × k; 0 without replica."""
        found = np.zeros((len(self.graph), len(self.layouts), self.k), dtype=np.int64)
        for o, operation in enumerate(self.graph.operations):
            for layout in np.unique(self.layout_of[self.group_of[o]]).tolist():
                for d, (first, last) in self.intervals[layout].items():
                    share = last - first if operation.splittable else Fraction(1)
                    key = operation.times[self.problem.kind[d]], share
                    if key not in self._times:
                        self._times[key] = self.ticks(key[0].at(share * self.batch))
                    found[o, layout, d] = self._times[key]
        return found

    # --- tensors ---------------------------------------------------------------------------

    def conversion(self, edge: Edge) -> Conversion:
        """Return what it takes for the consumer of an edge to read it."""
        producer, consumer = (self.graph.operations[o] for o in (edge.producer, edge.consumer))
        output = None if edge.output == CONTROL else producer.outputs[edge.output]
        g, h = self.group_of[edge.producer], self.group_of[edge.consumer]
        one, two = (tuple(np.unique(self.layout_of[group]).tolist()) for group in (g, h))
        key = output, producer.splittable, consumer.splittable, one, two, g == h
        if key not in self._conversions:
            pairs = [(a, b) for a in one for b in two if g != h or a == b]
            self._conversions[key] = self._converted(edge, pairs)
        return self._conversions[key]

    def _converted(self, edge: Edge, pairs: list[tuple[int, int]]) -> Conversion:
        n, k = len(self.layouts), self.k
        delay = np.full((n, n, k, k), -1, dtype=np.int64)
        transfer = np.zeros((n, n, k, k), dtype=np.int64)
        copying = np.zeros((n, n, k), dtype=np.int64)
        missing = np.zeros((n, n), dtype=np.bool_)
        for a, b in pairs:
            splitting: dict[int, int] = {}
            concatenating: dict[int, int] = {}
            for piece in self.slices(edge, a, b):
                f, e = piece.source, piece.target
                time = 0 if f == e else self.transfer(f, e, piece.size)
                if time is None:
                    missing[a, b] = True
                    continue
                transfer[a, b, f, e] = time
                if piece.split and f not in splitting:
                    splitting[f] = self.copy(f, self.bytes_of(edge, edge.producer, a, f))
                if piece.concatenated and e not in concatenating:
                    concatenating[e] = self.copy(e, self.bytes_of(edge, edge.consumer, b, e))
                delay[a, b, f, e] = (
                    time
                    + (splitting[f] if piece.split else 0)
                    + (concatenating[e] if piece.concatenated else 0)
                )
            if missing[a, b]:
                transfer[a, b] = 0
                continue
            for where in (splitting, concatenating):
                for d, time in where.items():
                    copying[a, b, d] += time
        return Conversion(delay, transfer, copying, missing)

    def read_by(self, reader: int, layout: int, device: int) -> Interval:
        """Return the samples that an operation computes on a device."""
        splittable = self.graph.operations[reader].splittable
        return self.intervals[layout][device] if splittable else ALL

    def bytes_of(self, edge: Edge, reader: int, layout: int, device: int) -> Fraction:
        """Return the bytes of an edge's tensor that the producer holds or the consumer reads."""
        first, last = self.read_by(reader, layout, device)
        size = self.graph.operations[edge.producer].outputs[edge.output].size
        return size.at((last - first) * self.batch)

    def slices(self, edge: Edge, a: int, b: int) -> Iterator[Slice]:
        """Yield what the replicas of a consumer read, with the producer in layout ``a``.

        A batched tensor is read in slices, by overlap of intervals. Of copies (a producer that
        cannot split, or a ``WHOLE`` output), a consumer reads its own, or the one that arrives
        first over an idle link. A control dependency waits for every replica.
        """
        producer, consumer = (self.graph.operations[o] for o in (edge.producer, edge.consumer))
        holders, readers = self.intervals[a], self.intervals[b]
        if edge.output == CONTROL:
            for e in readers:
                for f in holders:
                    yield Slice(f, e, ALL, Fraction(0), False, False)
            return
        output = producer.outputs[edge.output]
        batched = output.layout is Layout.BATCHED
        for e, interval in readers.items():
            wanted = interval if consumer.splittable and batched else ALL
            if not batched or not producer.splittable:
                size = output.size.at((wanted[1] - wanted[0]) * self.batch)
                f = self._nearest(tuple(holders), e, size)
                yield Slice(f, e, wanted, size, wanted != ALL, False)
                continue
            found = [
                (f, piece, piece != held)
                for f, held in holders.items()
                if (piece := overlap(held, wanted))
            ]
            for f, piece, split in found:
                size = output.size.at((piece[1] - piece[0]) * self.batch)
                yield Slice(f, e, piece, size, split, len(found) > 1)

    def _nearest(self, holders: Sequence[int], e: int, size: Fraction) -> int:
        if e in holders:
            return e
        linked = [f for f in holders if self.cluster.linked(f, e)]
        if not linked:
            return holders[0]  # its link is missing, too
        return min(linked, key=lambda f: (self.cluster.transfer(f, e, size), f))

    # --- gradients -------------------------------------------------------------------------

    def synchronisation(self, edge: Edge) -> Synchronisation:
        """Return what it takes for an apply to read a gradient, by action of their group."""
        producer = self.graph.operations[edge.producer]
        key = (
            self.group_of[edge.producer],
            producer.outputs[edge.output].size.alpha,
            producer.splittable,
        )
        if key not in self._synchronisations:
            self._synchronisations[key] = self._synchronised(*key)
        return self._synchronisations[key]

    def _synchronised(self, group: int, size: Fraction, splittable: bool) -> Synchronisation:
        actions, k = self.actions[group], self.k
        n = len(actions)
        delay = np.full((n, k, k), -1, dtype=np.int64)
        transfer = np.zeros((n, k, k), dtype=np.int64)
        copying = np.zeros((n, k), dtype=np.int64)
        collective = np.zeros(n, dtype=np.int64)
        missing = np.zeros(n, dtype=np.bool_)
        for i, action in enumerate(actions):
            devices = list(action.devices)
            if len(devices) == 1 or not splittable:
                delay[i, devices, devices] = 0
            elif action.sync == "allreduce":
                try:
                    collective[i] = self.ticks(allreduce(self.cluster, devices, size).time)
                except InputError:
                    missing[i] = True
                delay[i][np.ix_(devices, devices)] = collective[i]
            else:
                missing[i] = not self._serve(action, size, delay[i], transfer[i], copying[i])
        return Synchronisation(delay, transfer, copying, collective, missing)

    def _serve(
        self, action: Decision, size: Fraction, delay: Ints, transfer: Ints, copying: Ints
    ) -> bool:
        """Fill in a parameter server; return whether all links exist."""
        server = action.sync
        assert isinstance(server, int)
        copying[server] = self.copy(server, size)
        for d in action.devices:
            if d != server:
                to, fro = self.transfer(d, server, size), self.transfer(server, d, size)
                if to is None or fro is None:
                    return False
                transfer[d, server], transfer[server, d] = to, fro
        there, back = transfer[:, server], transfer[server]
        at = np.ix_(action.devices, action.devices)
        delay[at] = (there[:, None] + copying[server] + back)[at]
        return True

    # --- samples ---------------------------------------------------------------------------

    def _distinct_samples(self) -> list[Fraction]:
        """Return one sample of each set that is on the same devices in all layouts."""
        borders = sorted({first for row in self.intervals for first, _ in row.values()})
        samples: dict[tuple[int, ...], Fraction] = {}
        for sample in borders:
            samples.setdefault(self._devices_of(sample), sample)
        return list(samples.values())

    def _devices_of(self, sample: Fraction) -> tuple[int, ...]:
        return tuple(
            next(d for d, (first, last) in row.items() if first <= sample < last)
            for row in self.intervals
        )

    def at_sample(self, sample: Fraction | None) -> Ints:
        """Return the device of a sample in every layout."""
        assert sample is not None
        if sample not in self._at:
            self._at[sample] = np.array(self._devices_of(sample), dtype=np.int64)
        return self._at[sample]
