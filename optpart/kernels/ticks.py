"""Exact times as integers, for solvers and bounds (design §3)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optpart.problem.instance import Instance

#: The largest horizon, in ticks, that counts as an exact grid.
MAX_HORIZON = 2**40

#: Maximal entries of the table of delays; beyond, sizes are rounded down to fewer values.
_MAX_TABLE = 2**24

_LONGEST = 2**48


@dataclass(frozen=True, eq=False)
class Grid:
    """All times of an instance as whole ticks, exact or rounded down.

    Rounding every duration and delay down turns a schedule into one that is no longer, so what is
    proven on a rounded grid is a valid lower bound of the true problem: if ``σ`` is a schedule,
    ``⌊scale·σ⌋`` is one on the grid.

    Attributes
    ----------
    scale : Fraction
        Ticks per time unit.
    exact : bool
        Whether every time is a whole number of ticks.
    duration : ndarray of int64, n × k
        −1 where the vertex is not allowed.
    size_class : ndarray of int32, length t
        Row of ``delays`` for each tensor; values from ``len(delays)`` on stand for ``measured``.
    link_class : ndarray of int32, k × k
        Column of ``delays`` for each device pair.
    delays : ndarray of int64, size classes × link classes
        −1 where nothing can cross, 0 within a device.
    measured : ndarray of int64, m × k × k
        Delays of the tensors whose transfer times are given per device pair.
    send : ndarray of int64, length k
        Run time of a send vertex.
    """

    scale: Fraction
    exact: bool
    duration: NDArray[np.int64]
    size_class: NDArray[np.int32]
    link_class: NDArray[np.int32]
    delays: NDArray[np.int64]
    measured: NDArray[np.int64]
    send: NDArray[np.int64]

    def delay(self, tensor: int, sender: int, receiver: int) -> int:
        """Return the transfer time in ticks; −1 where the tensor cannot cross."""
        row = int(self.size_class[tensor])
        if row < len(self.delays):
            return int(self.delays[row, self.link_class[sender, receiver]])
        return int(self.measured[row - len(self.delays), sender, receiver])

    def time(self, ticks: int) -> Fraction:
        """Return ticks as exact time."""
        return Fraction(ticks) / self.scale

    def floor(self, time: Fraction) -> int:
        """Return exact time in ticks, rounded down.

        As an upper limit, this loses nothing: a schedule of at most a time has, with every start
        rounded down, at most these ticks, on an exact grid and on a rounded one. As a lower bound
        it is one of the true time only, and not of lengths on a rounded grid, so that it may limit
        what a solver reports but never exclude a solution.
        """
        return math.floor(time * self.scale)

    @cached_property
    def arrays(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
        """The arrays for compiled code: size classes, link classes, delays, measured."""
        return self.size_class, self.link_class, self.delays, self.measured

    @classmethod
    def of(cls, instance: Instance, makespan: Fraction | None = None, ticks: int = 2**40) -> Grid:
        """Build the coarsest exact grid or, if even that is too fine, a rounded one.

        Parameters
        ----------
        makespan : Fraction, optional
            A known upper bound of the makespan; by default, the length of the serial schedule.
        ticks : int
            Width of the rounded grid: ``makespan`` becomes about this many ticks.
        """
        horizon = makespan if makespan is not None else _serial(instance)
        step = quantum(instance, horizon)
        if step is not None:
            return cls.at(instance, 1 / step, exact=True)
        ratio = ticks / horizon
        power = ratio.numerator.bit_length() - ratio.denominator.bit_length()
        # A power of two, no larger than the ratio: the scale adds no denominators of its own.
        scale = Fraction(2) ** power
        if scale > ratio:
            scale /= 2
        return cls.at(instance, scale, exact=False)

    @classmethod
    def at(cls, instance: Instance, scale: Fraction, *, exact: bool) -> Grid:
        """Build the grid of a scale, which the caller knows to be exact or not."""
        return _tabulate(cls, instance, scale, exact)


def _serial(instance: Instance) -> Fraction:
    """Return the length of the serial schedule, with each vertex and transfer at its slowest.

    Where transfers queue, a tensor counts once per destination; otherwise once, since it crosses at
    most once on any path.
    """
    graph, cluster = instance.graph, instance.cluster
    turns = len(cluster) if instance.model.queues and not instance.model.sends else 1
    if instance.given_durations is not None:
        times = instance.given_durations.times
        worst = times.numerators.max(axis=1, initial=0).astype(object).sum()
        total = Fraction(int(worst), times.denominator)
    else:
        total = graph.ops.sum() / min(cluster.speed.fractions())
    slowest = [
        1 / cluster.bandwidth[d, e] for d, e in np.argwhere(cluster.bandwidth.numerators != 0)
    ]
    total += turns * graph.tensor_size.sum() * max(slowest, default=Fraction(0))
    total += turns * graph.tensors * max(cluster.latency.fractions(), default=Fraction(0))
    for matrix in graph.tensor_delay.values():
        longest = max((entry for row in matrix for entry in row if entry is not None), default=0)
        total += turns * longest
    senders = len(cluster) * graph.tensors
    return total + senders * instance.model.send_ops / min(cluster.speed.fractions())


class _Columns:
    """Arrays of rationals ``numerators / denominator``, with Python integers where needed."""

    def __init__(self, numerators: NDArray[Any], denominator: int) -> None:
        self.numerators = numerators
        self.denominator = denominator

    @classmethod
    def affine(cls, values: NDArray[Any], den: int, factor: Fraction, plus: Fraction) -> _Columns:
        """Build ``values/den · factor + plus``."""
        common = den * factor.denominator * plus.denominator
        multiply = factor.numerator * plus.denominator
        add = plus.numerator * den * factor.denominator
        values = _room(values, multiply, common, add)
        return cls(values * multiply + add, common)

    def floors(self, scale: Fraction) -> NDArray[np.int64]:
        """Return ``⌊scale · values⌋``."""
        bottom = self.denominator * scale.denominator
        values = _room(self.numerators, scale.numerator, bottom)
        ticks = values * scale.numerator // bottom
        # The cap is longer than any horizon, but safe to add up in 64 bits.
        return np.asarray(np.minimum(ticks, _LONGEST), dtype=np.int64)

    def quantum(self) -> tuple[int, int]:
        """Return the gcd of numerators and the lcm of denominators, in lowest terms."""
        if not self.numerators.any():
            return 0, 1
        numerators = _room(self.numerators, 1, self.denominator)
        common = np.gcd(numerators, self.denominator)
        top = np.gcd.reduce(numerators // common)
        dens = {self.denominator // int(g) for g in np.unique(common)}
        return int(top), math.lcm(*dens)


def _room(values: NDArray[Any], factor: int, *others: int) -> NDArray[Any]:
    """Return the values, as Python integers if arithmetic with these numbers could overflow."""
    largest = int(np.abs(values).max(initial=0))
    if max(largest, 1) * abs(factor) + sum(map(abs, others)) >= 2**62:
        return values.astype(object)
    return values


def _durations(instance: Instance) -> Iterator[tuple[NDArray[np.int32], _Columns]]:
    """Yield, per device, the vertices allowed there and their run times."""
    given, ops = instance.given_durations, instance.graph.ops
    for d in range(instance.devices):
        allowed = np.flatnonzero(instance.vertex_allowed[:, d]).astype(np.int32)
        if given is not None:
            times = given.times
            yield allowed, _Columns(times.numerators[allowed, d], times.denominator)
        else:
            factor = 1 / instance.cluster.speed[d]
            yield (
                allowed,
                _Columns.affine(ops.numerators[allowed], ops.denominator, factor, Fraction(0)),
            )


def _links(instance: Instance) -> tuple[NDArray[np.int32], list[tuple[Fraction, Fraction] | None]]:
    """Return the link class per device pair, and (1/bandwidth, latency) per class."""
    cluster = instance.cluster
    k = len(cluster)
    link_class = np.zeros((k, k), dtype=np.int32)
    classes: dict[tuple[int, bool, int] | None, int] = {(0, True, 0): 0}
    kinds: list[tuple[Fraction, Fraction] | None] = [(Fraction(0), Fraction(0))]
    for d in range(k):
        for e in range(k):
            if d == e:
                continue
            key: tuple[int, bool, int] | None = None
            if cluster.linked[d, e]:
                key = (
                    int(cluster.bandwidth.numerators[d, e]),
                    bool(cluster.infinite[d, e]),
                    int(cluster.latency.numerators[d, e]),
                )
            if key not in classes:
                classes[key] = len(kinds)
                free = bool(cluster.infinite[d, e])
                rate = Fraction(0) if free or key is None else 1 / cluster.bandwidth[d, e]
                kinds.append(None if key is None else (rate, cluster.latency[d, e]))
            link_class[d, e] = classes[key]
    return link_class, kinds


def _sizes(instance: Instance) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return the distinct numerators of tensor sizes, and the class of every tensor."""
    graph = instance.graph
    values, inverse = np.unique(graph.tensor_size.numerators, return_inverse=True)
    return values, inverse.astype(np.int32).reshape(-1)


def quantum(
    instance: Instance, makespan: Fraction | None = None, most: int | None = None
) -> Fraction | None:
    """Return the largest time that divides all times of an instance.

    Parameters
    ----------
    makespan : Fraction, optional
        A known upper bound of the makespan; by default, the length of the serial schedule.
    most : int, optional
        By default :data:`MAX_HORIZON`.

    Returns
    -------
    Fraction or None
        ``None`` if the makespan would exceed ``most`` such units; 1 if all times are 0.
    """
    horizon = makespan if makespan is not None else _serial(instance)
    top, bottom = 0, 1

    def too_fine(columns: _Columns) -> bool:
        nonlocal top, bottom
        numerator, denominator = columns.quantum()
        top, bottom = math.gcd(top, numerator), math.lcm(bottom, denominator)
        # The numerators count too, so only an absurd denominator decides before the end.
        return bottom.bit_length() > 400

    for _, columns in _durations(instance):
        if too_fine(columns):
            return None
    graph = instance.graph
    consumed = np.unique(graph.edge_tensor)
    plain = np.array([t for t in consumed if t not in graph.tensor_delay], dtype=np.int64)
    sizes = np.unique(graph.tensor_size.numerators[plain])
    if len(sizes):
        for kind in _links(instance)[1]:
            if kind is not None and too_fine(
                _Columns.affine(sizes, graph.tensor_size.denominator, *kind)
            ):
                return None
    others = [f for m in graph.tensor_delay.values() for row in m for f in row if f is not None]
    if instance.model.sends:
        others += [instance.send_duration(d) for d in range(instance.devices)]
    for number in others:
        top, bottom = math.gcd(top, number.numerator), math.lcm(bottom, number.denominator)
    step = Fraction(top, bottom) or Fraction(1)
    return step if horizon / step <= (most or MAX_HORIZON) else None


def _tabulate(cls: type[Grid], instance: Instance, scale: Fraction, exact: bool) -> Grid:
    graph = instance.graph
    duration = np.full((instance.vertices, instance.devices), -1, dtype=np.int64)
    for d, (allowed, columns) in enumerate(_durations(instance)):
        duration[allowed, d] = columns.floors(scale)
    link_class, kinds = _links(instance)
    sizes, size_class = _sizes(instance)
    if len(sizes) * len(kinds) > _MAX_TABLE:
        rows = max(2, _MAX_TABLE // len(kinds))
        picked = np.unique(np.linspace(0, len(sizes) - 1, rows).astype(np.int64))
        size_class = (np.searchsorted(picked, size_class, side="right") - 1).astype(np.int32)
        sizes, exact = sizes[picked], False
    delays = np.full((len(sizes), len(kinds)), -1, dtype=np.int64)
    for column, kind in enumerate(kinds):
        if kind is not None:
            delays[:, column] = _Columns.affine(sizes, graph.tensor_size.denominator, *kind).floors(
                scale
            )
    measured = np.full(
        (len(graph.tensor_delay), instance.devices, instance.devices), -1, dtype=np.int64
    )
    for m, tensor in enumerate(graph.tensor_delay):
        size_class[tensor] = len(sizes) + m
        for d in range(instance.devices):
            for e in range(instance.devices):
                delay = instance.delay(tensor, d, e)
                if delay is not None:
                    measured[m, d, e] = min(math.floor(delay * scale), _LONGEST)
    send = np.array(
        [
            min(math.floor(instance.send_duration(d) * scale), _LONGEST)
            for d in range(instance.devices)
        ],
        dtype=np.int64,
    )
    return cls(scale, exact, duration, size_class, link_class, delays, measured, send)
