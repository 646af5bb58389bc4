"""Small random sources of every reduction, and their answers by brute force.

The brute force knows the source problems alone: no schedule, no device, nothing of the package but
the classes that hold a source.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, permutations, product
from typing import Any

import numpy as np

from optpart.applications.reductions.bin_packing import Items
from optpart.applications.reductions.clique import Network
from optpart.applications.reductions.communication import Placed, Tasks
from optpart.applications.reductions.job_shop import Operation, Shop
from optpart.applications.reductions.partition import Numbers
from optpart.applications.reductions.single_execution_time import Jobs
from optpart.applications.reductions.three_partition import Threes

Order = tuple[tuple[int, int], ...]


def draw(name: str, rng: np.random.Generator, *, larger: bool = False) -> Any:
    """Draw a source that brute force answers quickly; with ``larger``, a few parts more."""
    more = 2 if larger else 0
    match name:
        case "scheduling":
            n = int(rng.integers(1, 7)) + more
            processors, limit = int(rng.integers(1, 4)), int(rng.integers(1, 6))
            return Jobs(_names(n), _order(n, rng), processors, limit)
        case "communication":
            n = int(rng.integers(1, 6)) + more
            return Tasks(_names(n), _order(n, rng), int(rng.integers(1, 7)))
        case "clique":
            n = int(rng.integers(1, 4)) + more
            edges = tuple(pair for pair in combinations(range(n), 2) if rng.random() < 0.5)
            return Network(_names(n), edges, int(rng.integers(1, n + 1)))
        case "three-partition":
            return _threes(int(rng.integers(1, 3)) + more // 2, int(rng.integers(20, 60)), rng)
        case "job-shop":
            jobs = int(rng.integers(1, 3)) + more // 2
            drawn = tuple(
                tuple(
                    Operation(f"m{rng.integers(2)}", Fraction(int(rng.integers(1, 9)), 2))
                    for _ in range(rng.integers(1, 4))
                )
                for _ in range(jobs)
            )
            total = sum(step.time for job in drawn for step in job)
            return Shop(drawn, Fraction(int(rng.integers(4, 11)), 10) * total)
        case "partition":
            return Numbers(_numbers(int(rng.integers(1, 9)) + more, 12, rng))
        case "bin-packing":
            sizes = _numbers(int(rng.integers(1, 7)) + more, 9, rng)
            return Items(sizes, int(rng.integers(6, 14)), int(rng.integers(1, 4)))
    raise AssertionError(name)


def _names(n: int) -> tuple[str, ...]:
    return tuple(f"x{v}" for v in range(n))


def _numbers(n: int, most: int, rng: np.random.Generator) -> tuple[int, ...]:
    return tuple(int(x) for x in rng.integers(1, most, size=n, endpoint=True))


def _order(n: int, rng: np.random.Generator) -> Order:
    """Draw pairs, some of them transitive, numbered along the order or against it."""
    label = rng.permutation(n).tolist()
    chance = rng.random()
    return tuple((label[u], label[v]) for v in range(n) for u in range(v) if rng.random() < chance)


def _threes(triples: int, bound: int, rng: np.random.Generator) -> Threes:
    low, high = bound // 4 + 1, (bound - 1) // 2
    while True:
        numbers = rng.integers(low, high, size=3 * triples, endpoint=True).tolist()
        if low <= (numbers[-1] + triples * bound - sum(numbers)) <= high:
            numbers[-1] += triples * bound - sum(numbers)
            return Threes(tuple(numbers))


def answer(name: str, source: Any) -> bool:
    """Return whether a source has a solution."""
    return any(True for _ in solutions(name, source))


def solutions(name: str, source: Any) -> Iterator[Any]:
    """Yield solutions in the form that the reductions use, at least the first of each kind."""
    match name:
        case "scheduling":
            for slots in _slots(len(source.names), source.order, source.limit):
                if max(map(slots.count, slots)) <= source.processors:
                    yield tuple(slots)
        case "communication":
            yield from _places(source)
        case "clique":
            joined = set(map(frozenset, source.edges))
            for nodes in combinations(range(len(source.names)), source.size):
                if all(frozenset(pair) in joined for pair in combinations(nodes, 2)):
                    yield frozenset(nodes)
        case "three-partition":
            yield from _triples(list(range(len(source.numbers))), source)
        case "job-shop":
            yield from _starts(source)
        case "partition":
            n = len(source.numbers)
            for chosen in product((False, True), repeat=n):
                one = sum(x for x, here in zip(source.numbers, chosen, strict=True) if here)
                if 2 * one == sum(source.numbers):
                    yield frozenset(i for i in range(n) if chosen[i])
        case "bin-packing":
            for bins in product(range(source.bins), repeat=len(source.sizes)):
                held = [0] * source.bins
                for size, b in zip(source.sizes, bins, strict=True):
                    held[b] += size
                if max(held) <= source.capacity:
                    yield bins


def _slots(n: int, order: Order, limit: int) -> Iterator[list[int]]:
    for slots in product(range(limit), repeat=n):
        if all(slots[u] < slots[v] for u, v in order):
            yield list(slots)


def _places(source: Tasks) -> Iterator[tuple[Placed, ...]]:
    """Try all slots; tasks in neighbouring slots that are ordered must share a processor.

    The others need not, so each chain of such tasks gets a processor of its own; two of one chain
    in one slot mean that a task would have to be on two processors.
    """
    n = len(source.names)
    for slots in _slots(n, source.order, source.limit):
        chain = list(range(n))
        for u, v in source.order:
            if slots[v] == slots[u] + 1:
                old, new = chain[v], chain[u]
                chain = [new if c == old else c for c in chain]
        places = tuple(Placed(c, slot) for c, slot in zip(chain, slots, strict=True))
        if len(set(places)) == n:
            yield places


def _triples(left: list[int], source: Threes) -> Iterator[tuple[tuple[int, ...], ...]]:
    if not left:
        yield ()
        return
    first, *rest = left
    for pair in combinations(rest, 2):
        if source.numbers[first] + sum(source.numbers[i] for i in pair) == source.bound:
            for others in _triples([i for i in rest if i not in pair], source):
                yield ((first, *pair), *others)


def _starts(source: Shop) -> Iterator[tuple[tuple[Fraction, ...], ...]]:
    """Yield the starts for every order of the operations, each as early as possible."""
    turns = [j for j, job in enumerate(source.jobs) for _ in job]
    for order in set(permutations(turns)):
        free: dict[str, Fraction] = {}
        starts: list[list[Fraction]] = [[] for _ in source.jobs]
        ready = [Fraction(0)] * len(source.jobs)
        for j in order:
            step = source.jobs[j][len(starts[j])]
            begin = max(ready[j], free.get(step.machine, Fraction(0)))
            starts[j].append(begin)
            ready[j] = free[step.machine] = begin + step.time
        if max(ready) <= source.limit:
            yield tuple(map(tuple, starts))
