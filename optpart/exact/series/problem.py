"""An instance as the series decomposition sees it: times in ticks, parts, memory as knapsacks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from optpart.base.clock import check_time
from optpart.exact.series.lattice import NEVER, Lattice, Links, build, touched
from optpart.exact.series.parts import Part, parts
from optpart.exact.symmetry import interchangeable_devices
from optpart.kernels.ticks import Grid
from optpart.problem.instance import Instance

#: Downsets of one part beyond which it is only bounded, not solved.
MOST_DOWNSETS = 20_000

#: The same for parts that the search over choices of devices suits.
_MOST_DOWNSETS_OF_CHAINS = 1_000

#: Steps that all bounds of what follows a choice in a part may take, about a second.
_MOST_STEPS = 500_000_000

#: Parts connected by edges that jump over a cut vertex are joined up to this many vertices.
MOST_MERGED = 40

#: New names of interchangeable devices to look at; of more, none is.
_MOST_EXCHANGES = 8

#: Memory in whole units beyond which it is rounded down, so that prices times memory fit 64 bits.
_MOST_MEMORY = 2**50


@dataclass(frozen=True)
class Chains:
    """The vertices of a part but its cut vertex, chain by chain; edges between chains may exist.

    Attributes
    ----------
    vertices : ndarray, length m
    link : ndarray, length m
        Row of the delays from the vertex before in the same chain; −1 where a chain begins.
    leave : ndarray, length m
        Row of the delays to the cut vertex; −1 without an edge.
    order : ndarray, length m
        Positions in topological order.
    pred_first, pred, pred_row : ndarray
        Positions of the predecessors inside, for each vertex, and the rows of their delays.
    """

    vertices: NDArray[np.int64]
    link: NDArray[np.int64]
    leave: NDArray[np.int64]
    order: NDArray[np.int64]
    pred_first: NDArray[np.int64]
    pred: NDArray[np.int64]
    pred_row: NDArray[np.int64]


@dataclass(frozen=True)
class Stretch:
    """One part, ready for the compiled loops.

    Attributes
    ----------
    lattice : Lattice or None
        ``None`` if the part has too many downsets.
    chains : Chains or None
        For the search over choices of devices. ``None`` if that does not suit the part.
    waiting : list of int
        The vertices about which something is known before the part begins.
    rest_need : ndarray, length nodes
        Memory of the units of which no member is placed yet, for each downset.
    later : int
        The same after the part.
    alone : bool
        Whether only the device and the end of the cut vertex before matter to it, and only those of
        its own cut vertex to what follows.
    """

    part: Part
    lattice: Lattice | None
    chains: Chains | None
    waiting: list[int]
    rest_need: NDArray[np.int64]
    later: int
    alone: bool


class Series:
    """The parts of an instance on a grid.

    Building it looks at the limit of :mod:`optpart.base.clock`, and raises ``OutOfTimeError``
    beyond it.

    Memory ``estimate`` is a knapsack per device. Under ``refcount`` only resident memory counts,
    and under ``edges`` none: relaxations, like ignoring that transfers take turns.

    Parameters
    ----------
    makespan : Fraction, optional
        A known upper bound, for the choice of the grid.
    """

    def __init__(self, instance: Instance, makespan: Fraction | None = None) -> None:
        self.instance = instance
        self.devices = instance.devices
        self.grid = Grid.of(instance, makespan)
        self.duration = self.grid.duration
        #: ``unit`` is the size that one of memory stands for.
        self.need, self.capacity, self.unit = _memory(instance)
        self.kind = np.arange(self.devices)
        for members in interchangeable_devices(instance):
            self.kind[members] = members[0]
        #: New names of the devices that change nothing; only as they are if there are too many.
        self.exchanges = _rotations(self.kind)
        self.charge = self._charge()
        self.links = Links(instance, self.grid, self.charge)
        self.parts = self._merged(parts(instance.graph))
        self.clean = self._clean(self.parts)
        #: The part of each vertex.
        self.part_of = np.zeros(instance.vertices, dtype=np.int64)
        for i, part in enumerate(self.parts):
            self.part_of[list(part.vertices)] = i
        self.stretches = list(self._stretches())

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def limited(self) -> bool:
        """True if any device has a memory limit that could bind."""
        return bool((self.capacity >= 0).any())

    @property
    def solvable(self) -> bool:
        """True if the ways to run every part can be enumerated."""
        return all(x.lattice is not None or x.chains is not None for x in self.stretches)

    def _charge(self) -> NDArray[np.int64]:
        """Return the need of each unit, at its first member in topological order, length n.

        Amounts in labels, prices, and what is still to come must all count a unit at one member:
        counted twice, it would make a bound too large.
        """
        seen: set[int] = set()
        charge = np.zeros(self.instance.vertices, dtype=np.int64)
        for v in self.instance.graph.topological_order.tolist():
            unit = int(self.instance.unit_of[v])
            if unit not in seen:
                seen.add(unit)
                charge[v] = self.need[unit]
        return charge

    def places(self, i: int) -> NDArray[np.int64]:
        """Return the position of each vertex in part ``i``, from 1; 0 outside.

        Not kept, because the arrays of all parts together grow with the square of the graph.
        """
        place = np.zeros(self.instance.vertices, dtype=np.int64)
        place[list(self.parts[i].vertices)] = 1 + np.arange(len(self.parts[i].vertices))
        return place

    def cut(self, i: int) -> int:
        """Return the cut vertex before part ``i``; −1 before the first."""
        return self.parts[i - 1].vertices[-1] if i else -1

    def allowed_before(self, i: int) -> list[int]:
        """Return the devices of the cut vertex before part ``i``; ``[0]`` before the first."""
        return np.flatnonzero(self.duration[self.cut(i)] >= 0).tolist() if i else [0]

    def arrivals(self, i: int, device: int, waiting: list[int]) -> NDArray[np.int64]:
        """Return when vertices can start, if the cut vertex before part ``i`` ends at 0.

        Returns
        -------
        ndarray, len(waiting) × k
            Other vertices before the part are ignored.
        """
        before = self.cut(i)
        sent = dict(self.links.after[before]) if i else {}
        times = np.zeros((len(waiting), self.devices), dtype=np.int64)
        for row, v in zip(times, waiting, strict=True):
            if v in sent:
                row[:] = self.links.delays[sent[v], device]
            if i and v in self.links.mates[before]:
                row[np.arange(self.devices) != device] = NEVER
            if i and v in self.links.apart[before]:
                row[device] = NEVER
            row[self.duration[v] < 0] = NEVER
        return times

    def first_label(self, i: int, device: int) -> NDArray[np.int64]:
        """Return the label before part ``i``, if the cut vertex before it ends at 0."""
        lattice = self.stretches[i].lattice
        assert lattice is not None
        times = self.arrivals(i, device, lattice.slots(0).tolist())
        return np.concatenate([np.zeros(1 + self.devices, dtype=np.int64), times.reshape(-1)])

    # --- building --------------------------------------------------------------------------

    def _stretches(self) -> Iterator[Stretch]:
        done: set[int] = set()
        waiting: set[int] = set()
        later = int(self.charge.sum())
        clean = self.clean
        for i, part in enumerate(self.parts):
            check_time()
            alone = clean[i] and clean[i + 1]
            split = None
            if self.limited and alone and len(part.vertices) > 1:
                split = self._chains(i)
            most = MOST_DOWNSETS if split is None else _MOST_DOWNSETS_OF_CHAINS
            lattice = build(part, done, waiting, self.links, most)
            vertices = list(part.vertices)
            later -= int(self.charge[vertices].sum())
            rest_need = np.zeros(0, dtype=np.int64)
            if lattice is not None:
                rest_need = later + lattice.rest @ self.charge[vertices]
            ready = {v for v in vertices if not self.links.before[v]}
            known = sorted((waiting | ready) - done)
            yield Stretch(part, lattice, split, known, rest_need, later, alone)
            done |= set(part.vertices)
            waiting = (waiting | touched(set(part.vertices), self.links)) - done

    def _chains(self, i: int) -> Chains | None:
        """Return the chains of a part, unless bounds of what follows a choice take too long."""
        part = self.parts[i]
        split = chains(part, self.cut(i), self.links)
        if split is None:
            return None
        ends = self.devices if part.closed else 1
        heads = int((split.link < 0).sum()) + self.devices
        steps = ends * 2 * heads * len(split.vertices) * self.devices**2
        return split if steps <= _MOST_STEPS else None

    def _merged(self, split: list[Part]) -> list[Part]:
        """Join parts that more than their cut vertex connects, up to a size."""
        clean, merged = self._clean(split), [split[0]] if split else []
        for i, part in enumerate(split[1:], 1):
            last = merged[-1]
            if not clean[i] and len(last.vertices) + len(part.vertices) <= MOST_MERGED:
                merged[-1] = Part(last.vertices + part.vertices, part.closed)
            else:
                merged.append(part)
        return merged

    def _clean(self, split: list[Part]) -> list[bool]:
        """Return, before each part and after the last, whether only the cut vertex matters there.

        It does not if another earlier vertex has a successor, a colocated or a separated vertex
        further on.
        """
        index = {v: i for i, part in enumerate(split) for v in part.vertices}
        clean, reached = [True], 0
        for i, part in enumerate(split):
            check_time()
            far = {
                v: max((index[w] for w in touched({v}, self.links)), default=0)
                for v in part.vertices
            }
            reached = max(reached, *(far[v] for v in part.vertices[:-1]), 0)
            clean.append(reached <= i)
            reached = max(reached, far[part.vertices[-1]])
        return clean


def _rotations(kind: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the names that devices have once those of each class are turned, as they are first."""
    classes = [np.flatnonzero(kind == d) for d in np.unique(kind)]
    if math.prod(map(len, classes)) > _MOST_EXCHANGES:
        return [np.arange(len(kind))]
    found = []
    for turns in product(*(range(len(members)) for members in classes)):
        name = np.arange(len(kind))
        for members, turn in zip(classes, turns, strict=True):
            name[members] = np.roll(members, turn)
        found.append(name)
    return found


def _memory(instance: Instance) -> tuple[NDArray[np.int64], NDArray[np.int64], Fraction]:
    """Return the need of each unit, the capacity of each device, and the size of one of both.

    A capacity that cannot bind is −1. If whole numbers would be too large, both are rounded down:
    what fits still does.
    """
    static, limits = instance.static_memory, instance.cluster.memory
    common = math.lcm(static.denominator, *(m.denominator for m in limits if m is not None))
    need = [int(x) * (common // static.denominator) for x in static.numerators.tolist()]
    unit = max(1, math.gcd(*need)) if need else 1
    total = sum(need)
    divide = unit * max(1, -(-(total // unit) // _MOST_MEMORY))
    capacity = [
        -1 if m is None or m * common >= total else int(m * common) // divide for m in limits
    ]
    return (
        np.array([x // divide for x in need], dtype=np.int64),
        np.array(capacity, dtype=np.int64),
        Fraction(divide, common),
    )


def chains(part: Part, before: int, links: Links) -> Chains | None:
    """Split a part into chains; ``None`` if groups or separations restrict its vertices.

    Parameters
    ----------
    before : int
        The cut vertex before the part, or −1.
    """
    concerned = part.vertices if before < 0 else (before, *part.vertices)
    if any(links.mates[v] or links.apart[v] for v in concerned):
        return None
    body = part.vertices[:-1] if part.closed else part.vertices
    inside = set(body)
    row = {(u, v): r for u in body for v, r in links.after[u]}
    last: dict[int, list[int]] = {}
    for v in body:
        for u in links.before[v]:
            if u in last:
                last[v] = [*last.pop(u), v]
                break
        else:
            last[v] = [v]
    found = sorted(last.values(), key=lambda chain: -len(chain))
    vertices = [v for chain in found for v in chain]
    place = {v: x for x, v in enumerate(vertices)}
    link = [row[chain[y - 1], chain[y]] if y else -1 for chain in found for y in range(len(chain))]
    join = part.vertices[-1] if part.closed else -1
    preds = [[(place[u], row[u, v]) for u in links.before[v] if u in inside] for v in vertices]
    return Chains(
        np.array(vertices, dtype=np.int64),
        np.array(link, dtype=np.int64),
        np.array([row.get((v, join), -1) for v in vertices], dtype=np.int64),
        np.array([place[v] for v in body], dtype=np.int64),
        np.cumsum([0, *(len(p) for p in preds)]),
        np.array([u for p in preds for u, _ in p], dtype=np.int64),
        np.array([r for p in preds for _, r in p], dtype=np.int64),
    )
