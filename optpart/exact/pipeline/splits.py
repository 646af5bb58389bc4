"""The best split of a pipeline into stages, by dynamic programming over downsets.

``best[used, D]`` is the least bottleneck of stages that cover the downset ``D`` with the devices
``used``: of every smaller downset ``E``, the larger of ``best[used′, E]`` and the load of ``D − E``
on the devices of the last stage. Along a given order of devices, ``used`` is the number of devices
passed; otherwise it counts the devices taken of each class, so that equal devices multiply nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from optpart.base.errors import UnsupportedError
from optpart.exact.pipeline.clock import NEVER, TimeUpError, check, portions
from optpart.exact.pipeline.downsets import (
    Items,
    bits,
    downsets_of,
    items_of,
    packed,
    prefixes,
    total,
    unpacked,
)
from optpart.exact.pipeline.kernel import (
    Blocks,
    Moves,
    Splits,
    blocks_between,
    count_blocks,
    no_splits,
    split,
)
from optpart.exact.pipeline.problem import Pipeline
from optpart.exact.pipeline.whole import in_words, scale_of
from optpart.kernels.segments import NONE

#: Most blocks times moves, some seconds of work; to look at a block costs as much as many moves.
MOST_STEPS = 4 * 10**9
_BLOCK = 100
#: Most states times downsets, of sixteen bytes each.
MOST_ENTRIES = 4 * 10**7

_FORBIDDEN = 2**61
#: Most blocks to compare exactly, and rounds of that.
_MOST_NEAR, _MOST_ROUNDS = 20_000, 50
#: Downsets to expand into a table at a time.
_ROWS = 1000
_NOTHING = np.zeros((0, 3), np.int64)


@dataclass(frozen=True)
class Stage:
    """Vertices that run on a device, or all of them on each of several replicas."""

    vertices: tuple[int, ...]
    devices: tuple[int, ...]


@dataclass(frozen=True)
class Split:
    """The stages with the least bottleneck.

    Attributes
    ----------
    stages : tuple of Stage
        In order, without empty ones.
    bound : Fraction
        A proven lower bound of the bottleneck or makespan.
    bottleneck : Fraction
        The exact value, equal to the bound unless numbers had to be rounded, or time was up.
    time_up : bool
        Whether time was up before all splits were searched.
    """

    stages: tuple[Stage, ...]
    bound: Fraction
    bottleneck: Fraction
    time_up: bool = False


class _Option:
    """A class of devices, and how many of them replicate a stage."""

    def __init__(self, kind: int, replicas: int) -> None:
        self.kind, self.replicas = kind, replicas


def best_split(
    pipeline: Pipeline,
    *,
    order: Sequence[int] = (),
    replicas: int = 1,
    prefixes_only: bool = False,
    deadline: float = NEVER,
) -> Split | None:
    """Return the split with the least bottleneck of all, or ``None`` if there is none.

    Parameters
    ----------
    order : sequence of int
        The only devices to use: every device of a stage comes before those of later stages, and
        any may stay empty (design §2). By default, all devices in any order.
    replicas : int
        Most devices of a stage.
    prefixes_only : bool
        Whether to cut one topological order only, instead of all downsets.
    deadline : float
        On the clock of :func:`optpart.base.clock.now`. After it, the best split along one
        topological order is returned, with a bound of 0.

    Raises
    ------
    UnsupportedError
        If there are too many downsets, or devices of too many kinds.
    TimeUpError
        After the deadline, if no split has been found.
    """
    items = items_of(pipeline)
    if not items.members:
        return Split((), Fraction(0), Fraction(0))
    program = _Program(pipeline, items, tuple(order), replicas, deadline)
    along = _Table(program, prefixes(items), nested=True)
    first, limit = along.run(_FORBIDDEN - 1)
    if items.is_path or prefixes_only:
        return first and along.closed(first)
    try:
        table = _Table(program, downsets_of(items, deadline=deadline), nested=False)
        found, _ = table.run(limit)
    except TimeUpError:
        if first is None:
            raise
        return replace(first, bound=Fraction(0), time_up=True)
    return found and table.closed(found)


class _Program:
    def __init__(
        self,
        pipeline: Pipeline,
        items: Items,
        order: tuple[int, ...],
        replicas: int,
        deadline: float,
    ) -> None:
        self.deadline = deadline
        self.pipeline, self.items, self.order = pipeline, items, order
        self.classes = pipeline.classes
        self.sizes = [len(members) for members in self.classes]
        if order:
            self.sizes = [len(set(members) & set(order)) for members in self.classes]
        most = [min(size, max(1, replicas)) for size in self.sizes]
        self.options = [
            _Option(kind, r) for kind, count in enumerate(most) for r in range(1, count + 1)
        ]
        self.number = {(option.kind, option.replicas): o for o, option in enumerate(self.options)}
        self.moves, self.states = self._ordered() if order else self._counted()
        self._numbers()

    # --- devices ---------------------------------------------------------------------------

    def _ordered(self) -> tuple[Moves, int]:
        """Move from a place in the order to behind the last device of a stage.

        A stage has the device at the place and the next ones of its class; what lies between them
        stays empty. Later devices of the class would leave fewer for the stages that follow.
        """
        kinds = [self.pipeline.alike[d] for d in self.order]
        rows = []
        for at, kind in enumerate(kinds):
            alike = [i for i in range(at, len(kinds)) if kinds[i] == kind]
            for r, last in enumerate(alike, 1):
                if (option := self.number.get((kind, r))) is not None:
                    rows.append((at, last + 1, option))
        return _moves(rows, list(range(len(kinds) + 1))), len(kinds) + 1

    def _counted(self) -> tuple[Moves, int]:
        sizes = self.sizes
        states = math.prod(size + 1 for size in sizes)
        if states * len(self.options) > 2 * 10**6:
            raise UnsupportedError(
                "devices",
                f"{len(self.pipeline.devices)} devices of {len(sizes)} kinds can be used in too "
                "many ways",
                "give the order of the devices",
            )
        step = [math.prod(size + 1 for size in sizes[i + 1 :]) for i in range(len(sizes))]
        rows, taken = [], []
        for state, used in enumerate(product(*(range(size + 1) for size in sizes))):
            taken.append(sum(used))
            for o, option in enumerate(self.options):
                if used[option.kind] + option.replicas <= sizes[option.kind]:
                    rows.append((state, state + option.replicas * step[option.kind], o))
        return _moves(rows, taken), states

    # --- numbers ---------------------------------------------------------------------------

    def _numbers(self) -> None:
        pipeline, members = self.pipeline, self.items.members
        first = [own[0] for own in self.classes]
        times = [
            [
                None if any(pipeline.times[v][d] is None for v in item)
                else total([pipeline.times[v][d] or Fraction(0) for v in item])
                for d in first
            ]
            for item in members
        ]  # fmt: skip
        weights = [total([pipeline.weights[v] for v in item]) for item in members]
        common = math.lcm(1, *(option.replicas for option in self.options))
        cost: list[list[Fraction | None]] = []
        for row, weight in zip(times, weights, strict=True):
            entries: list[Fraction | None] = []
            for option in self.options:
                time = row[option.kind]
                ring = pipeline.rings[option.kind]
                if time is not None:
                    time /= option.replicas
                    if ring is not None and option.replicas > 1:
                        linear = replace(ring, latency=Fraction(0))
                        time += linear.time(weight, option.replicas)
                entries.append(time)
            cost.append(entries)
        fixed: list[Fraction | None] = []
        for option in self.options:
            ring = pipeline.rings[option.kind]
            if option.replicas == 1:
                fixed.append(Fraction(0))
            else:
                fixed.append(None if ring is None else 2 * (option.replicas - 1) * ring.latency)
        prices = [tensor.cost / common for tensor in pipeline.tensors]
        values = [entry for row in cost for entry in row if entry is not None]
        values += [entry for entry in fixed if entry is not None] + prices
        largest = [max((entry for entry in row if entry is not None), default=0) for row in cost]
        most = Fraction(sum(largest)) + common * total(prices)
        most += max((entry for entry in fixed if entry is not None), default=0)
        self.scale = scale_of(values, most)
        self.exact, self.exact_fixed = cost, fixed
        floor = self.scale.floor
        self.cost = np.array(
            [[0 if entry is None else floor(entry) for entry in row] for row in cost], np.int64
        )
        self.barred = np.array([[entry is None for entry in row] for row in cost], np.int64)
        self.fixed = np.array(
            [_FORBIDDEN if entry is None else floor(entry) for entry in fixed], np.int64
        )
        self.price = np.array([floor(price) for price in prices], np.int64)
        self.share = np.array(
            [
                common // option.replicas if pipeline.pays[first[option.kind]] else 0
                for option in self.options
            ],
            np.int64,
        )
        self.weighted = np.array([weight > 0 for weight in weights], np.int64)
        self._memory()

    def _memory(self) -> None:
        pipeline = self.pipeline
        needs = [total([pipeline.need[v] for v in item]) for item in self.items.members]
        everything = total(needs)
        limits = [pipeline.capacity[self.classes[option.kind][0]] for option in self.options]
        room = [everything if limit is None else min(limit, everything) for limit in limits]
        units = math.lcm(1, *(size.denominator for size in (*needs, *room)))
        self.need, self.capacity = (
            in_words([int(size * units) for size in sizes], int(everything * units))
            for sizes in (needs, room)
        )

    def load(self, block: int, option: int) -> Fraction:
        """Return the exact load of a block of items; it must be able to run there."""
        own = self.options[option]
        held = bits(block)
        load = total([self.exact[i][option] or Fraction(0) for i in held])
        if own.replicas > 1 and any(self.weighted[i] for i in held):
            load += self.exact_fixed[option] or Fraction(0)
        if self.pipeline.pays[self.classes[own.kind][0]]:
            item = self.items.item
            for tensor in self.pipeline.tensors:
                ends = {int(item[v]) for v in (tensor.producer, *tensor.consumers)}
                inside = [block >> i & 1 for i in ends]
                if any(inside) and not all(inside):
                    load += tensor.cost / own.replicas
        return load


class _Table:
    """The programme on a list of downsets."""

    def __init__(self, program: _Program, downsets: list[int], *, nested: bool) -> None:
        self.program, self.downsets = program, downsets
        m, words = len(downsets), max(1, len(program.items.members) // 64)
        if m * program.states > MOST_ENTRIES or m * m * (1 if nested else words) > 2 * MOST_STEPS:
            raise self._too_much()
        self.blocks = self._blocks(nested)

    def _blocks(self, nested: bool) -> Blocks:
        p, downsets = self.program, self.downsets
        n, item = len(p.items.members), p.items.item
        words = packed(downsets, n)
        possible = np.where(p.barred > 0, _FORBIDDEN, p.cost).min(axis=1)
        least = np.where(possible == _FORBIDDEN, 0, possible)
        single = [option.replicas == 1 for option in p.options]
        work = np.where(p.barred > 0, _FORBIDDEN, p.cost)[:, single].min(axis=1)
        work = np.where(work == _FORBIDDEN, 0, work)
        if not p.scale.exact:  # as a share of replicas, each time is rounded down again
            work = np.maximum(work - max(option.replicas for option in p.options), 0)
        columns = np.column_stack([least, work, p.weighted, p.cost, p.barred, p.need])
        sums = _sums(words, columns, nested)
        check(p.deadline)
        options = len(p.options)
        pairs = {tuple(sorted((int(item[u]), int(item[v])))) for u, v in p.pipeline.apart}
        tensors = []
        for t, tensor in enumerate(p.pipeline.tensors):
            producer = int(item[tensor.producer])
            consumers = {int(item[v]) for v in tensor.consumers} - {producer}
            if consumers and p.price[t]:
                tensors.append((t, producer, sum(1 << i for i in consumers)))
        span = packed([1 << producer | consumers for _, producer, consumers in tensors], n)
        start, crossing = _crossing(words, span, p.deadline)
        return Blocks(
            nested=nested,
            words=words,
            least=sums[:, 0].copy(),
            work=sums[:, 1].copy(),
            cost=sums[:, 3 : 3 + options].copy(),
            barred=sums[:, 3 + options : 3 + 2 * options].copy(),
            need=sums[:, 3 + 2 * options :].copy(),
            capacity=p.capacity,
            weighted=sums[:, 2].copy(),
            fixed=p.fixed,
            apart=np.array(sorted(pairs), np.int64).reshape(-1, 2),
            span=span,
            consumers=packed([consumers for _, _, consumers in tensors], n),
            producer=np.array([producer for _, producer, _ in tensors], np.int64),
            price=p.price[[t for t, _, _ in tensors]],
            crossing_start=start,
            crossing=crossing,
            share=p.share,
        )

    def _too_much(self) -> UnsupportedError:
        return UnsupportedError(
            "graph",
            f"has {len(self.downsets):,} downsets (sets of vertices closed under predecessors), "
            f"which with {self.program.states:,} sets of devices are too many",
            "colocate parallel branches, or give the order of the devices",
        )

    def run(self, limit: int, banned: NDArray[np.int64] = _NOTHING) -> tuple[Split | None, int]:
        """Return the best split within a limit, and its value in ticks (or else the limit)."""
        p, m = self.program, len(self.downsets)
        per_block = len(p.moves.source) + _BLOCK
        count = sum(
            count_blocks(self.blocks, limit, begin, end)
            for begin, end in portions(m, m * self.blocks.words.shape[1], p.deadline)
        )
        if count * per_block > MOST_STEPS:
            raise self._too_much()
        found = no_splits(m, p.states)
        for begin, end in portions(m, m * per_block, p.deadline):
            split(self.blocks, p.moves, limit, banned, found, begin, end)
        value = int(found.best[-1, -1])
        if value == NONE:
            return None, limit
        blocks = self._chosen(found)
        load = max(p.load(block, int(p.moves.option[move])) for block, move in blocks)
        return Split(self._stages(blocks), p.scale.value(value), load), value

    def closed(self, found: Split) -> Split:
        """Return a split whose bottleneck is its bound, if rounding can be made up for.

        Blocks whose cost, rounded down, could still be below the bottleneck are compared exactly,
        and left out if they are not. What remains is better, or there is nothing better.
        """
        p = self.program
        if p.scale.exact:
            return found
        blur = len(p.items.members) + int(p.share.max()) * len(p.price) + 2
        try:
            for _ in range(_MOST_ROUNDS):
                limit = p.scale.floor(found.bottleneck)
                near = self._near(limit - blur, limit)
                if len(near) > _MOST_NEAR:
                    return found
                keep = [
                    p.load(self.downsets[large] & ~self.downsets[small], o) >= found.bottleneck
                    for small, large, o in near.tolist()
                ]
                better, _ = self.run(limit, near[np.array(keep, np.bool_)])
                if better is None:
                    return replace(found, bound=found.bottleneck)
                found = better
        except TimeUpError:
            return replace(found, time_up=True)
        return found

    def _near(self, low: int, high: int) -> NDArray[np.int64]:
        """List the blocks of :func:`blocks_between`, or more than are to be compared."""
        m = len(self.downsets)
        steps = m * (self.program.cost.shape[1] + _BLOCK)
        near = _NOTHING
        for begin, end in portions(m, steps, self.program.deadline):
            left = _MOST_NEAR - len(near)
            near = np.concatenate([near, blocks_between(self.blocks, low, high, left, begin, end)])
            if len(near) > _MOST_NEAR:
                break
        return near

    def _chosen(self, found: Splits) -> list[tuple[int, int]]:
        """Return the items and the move of each stage that is not empty, in order."""
        p, downsets = self.program, self.downsets
        blocks = []
        state, at = p.states - 1, len(downsets) - 1
        while state or at:
            previous, move = int(found.before[at, state]), int(found.by[at, state])
            if previous != at:
                blocks.append((downsets[at] & ~downsets[previous], move))
            state, at = int(p.moves.source[move]), previous
        return blocks[::-1]

    def _stages(self, blocks: list[tuple[int, int]]) -> tuple[Stage, ...]:
        p = self.program
        free = [list(members) for members in p.classes]
        stages = []
        for block, move in blocks:
            option = p.options[p.moves.option[move]]
            if p.order:
                passed = p.order[p.moves.source[move] : p.moves.target[move]]
                devices = [d for d in passed if p.pipeline.alike[d] == option.kind]
            else:
                devices = [free[option.kind].pop(0) for _ in range(option.replicas)]
            vertices = sorted(v for i in bits(block) for v in p.items.members[i])
            stages.append(Stage(tuple(vertices), tuple(devices)))
        return tuple(stages)


def _sums(words: NDArray[np.uint64], columns: NDArray[np.int64], nested: bool) -> NDArray[np.int64]:
    """Return the sums of columns over the items of each downset."""
    n = len(columns)
    sums = np.zeros((len(words), columns.shape[1]), np.int64)
    if nested:
        sums[1:] = np.cumsum(columns, axis=0)
        return sums
    for at in range(0, len(words), _ROWS):
        sums[at : at + _ROWS] = unpacked(words[at : at + _ROWS], n).astype(np.int64) @ columns
    return sums


def _crossing(
    words: NDArray[np.uint64], span: NDArray[np.uint64], deadline: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the tensors that lie partly inside each downset, one after another."""
    counts, found = [np.zeros(1, np.int64)], []
    for at in range(0, len(words), _ROWS):
        check(deadline)
        rows = words[at : at + _ROWS, None, :]
        part = (rows & span).any(axis=2) & (~rows & span).any(axis=2)
        counts.append(part.sum(axis=1))
        found.append(np.nonzero(part)[1])
    return np.cumsum(np.concatenate(counts)), np.concatenate(found).astype(np.int64)


def _moves(rows: list[tuple[int, int, int]], taken: list[int]) -> Moves:
    table = np.array(sorted(rows), np.int64).reshape(-1, 3)
    source, target, option = (table[:, i].copy() for i in range(3))
    return Moves(source, target, option, np.array(taken, np.int64))
