"""The dynamic programmes over downsets, compiled; all numbers are whole."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from optpart.exact.pipeline.whole import WORD
from optpart.kernels.compiled import inner, kernel
from optpart.kernels.segments import NONE, States, Tables, append_segments
from optpart.kernels.struct import (
    Bools,
    IntMatrix,
    LongCube,
    LongMatrix,
    Longs,
    Struct,
    WordMatrix,
)


class Blocks(Struct):
    """Differences of downsets, and what they cost as stages.

    There are ``m`` downsets, by size, and ``o`` options: a class of devices and a number of
    replicas each. Sums are over the items of a downset, so that a difference of two is a sum over
    the block between them.
    """

    nested: bool  # whether each downset is within the next
    words: WordMatrix  # m × w: the items of each downset
    least: Longs  # m: sums of the least time of any option
    work: Longs  # m: sums of the least time on one device
    cost: LongMatrix  # m × o: sums of times
    barred: LongMatrix  # m × o: items that the option cannot run
    need: LongMatrix  # m × words: sums of memory, word by word, the lowest first
    capacity: LongMatrix  # o × words
    weighted: Longs  # m: items with weights to synchronise
    fixed: Longs  # o: time for stages with such items
    apart: LongMatrix  # pairs of items that cannot share a stage
    span: WordMatrix  # t × w: producer and consumers of each tensor
    consumers: WordMatrix  # t × w: consumers outside the producer's item
    producer: Longs  # t: the producer's item
    price: Longs  # t: cost of a transfer
    crossing_start: Longs  # m + 1
    crossing: Longs  # per downset, the tensors with a part inside and a part outside
    share: Longs  # o: how often the price of a transfer counts


class Moves(Struct):
    """Ways to take devices: from a state to another, by an option; ascending by state."""

    source: Longs
    target: Longs
    option: Longs
    taken: Longs  # per state, the number of devices used


class Splits(Struct):
    """The best stages that cover each downset, by state."""

    best: LongMatrix  # m × states: the least bottleneck
    before: IntMatrix  # m × states: the downset before the last stage, which may be empty
    by: IntMatrix  # m × states: the move that takes the devices of the last stage
    reached: Bools  # m: whether there are any


def no_splits(downsets: int, states: int) -> Splits:
    """Return a table of splits in which only the empty downset is covered, by no stage."""
    best = np.full((downsets, states), NONE, np.int64)
    best[0, 0] = 0
    before, by = (np.full((downsets, states), -1, np.int32) for _ in range(2))
    return Splits(best, before, by, np.zeros(downsets, np.bool_))


@inner
def _within(words: Any, small: int, large: int) -> Any:
    for w in range(words.shape[1]):  # noqa: SIM110 - compiled
        if words[small, w] & ~words[large, w]:
            return False
    return True


@inner
def _separates(words: Any, apart: Any, small: int, large: int) -> Any:
    """Return whether a block holds no pair of items that must be apart."""
    for i in range(apart.shape[0]):
        both = True
        for item in apart[i]:
            w, one = item >> 6, np.uint64(1) << np.uint64(item & 63)
            if not words[large, w] & ~words[small, w] & one:
                both = False
        if both:
            return False
    return True


@inner
def _transfers(b: Any, small: int, large: int) -> Any:
    """Return what a block pays to send and receive tensors.

    These are among the tensors that cross the border of either downset. Calls would cost more than
    what they do, so there are none.
    """
    words, span, consumers, crossing = b.words, b.span, b.consumers, b.crossing
    producer, price = b.producer, b.price
    transfers = 0
    for side in range(2):
        row = large if side else small
        for i in range(b.crossing_start[row], b.crossing_start[row + 1]):
            t = crossing[i]
            if side:  # those that also cross the smaller downset have been counted
                inside = outside = False
                for w in range(words.shape[1]):
                    inside |= span[t, w] & words[small, w] != 0
                    outside |= span[t, w] & ~words[small, w] != 0
                if inside and outside:
                    continue
            item = producer[t]
            at, one = item >> 6, np.uint64(1) << np.uint64(item & 63)
            sends = words[large, at] & ~words[small, at] & one != 0
            for w in range(words.shape[1]):
                block = words[large, w] & ~words[small, w]
                if consumers[t, w] & (~block if sends else block):
                    transfers += price[t]
                    break
    return transfers


@inner
def _priced(b: Any, small: int, large: int, limit: int, cost: Any) -> Any:
    """Compute what a block costs by each option, ``NONE`` if that is above the limit.

    A call costs more than to see that a block is none, or too long, so that is seen before.

    Returns
    -------
    bool
        Whether any option is within the limit.
    """
    some = False
    for o in range(cost.shape[0]):
        cost[o] = NONE
        if b.barred[large, o] > b.barred[small, o]:
            continue
        fits, carry = True, 0
        for w in range(b.need.shape[1]):
            held = b.need[large, w] - b.need[small, w] + carry
            carry = held >> WORD
            held &= (1 << WORD) - 1
            if held != b.capacity[o, w]:  # a higher word outweighs those below it
                fits = held < b.capacity[o, w]
        if not fits:
            continue
        time = b.cost[large, o] - b.cost[small, o]
        if b.weighted[large] > b.weighted[small]:
            time += b.fixed[o]
        if time <= limit:
            cost[o] = time
            some = True
    if not some or not _separates(b.words, b.apart, small, large):
        return False
    if b.price.shape[0]:
        transfers = _transfers(b, small, large)
        some = False
        for o in range(cost.shape[0]):
            if cost[o] + transfers * b.share[o] <= limit:
                cost[o] += transfers * b.share[o]
                some = True
            else:
                cost[o] = NONE
    return some


@kernel
def count_blocks(b: Blocks, limit: int, begin: int, end: int) -> int:
    """Return the number of pairs of downsets whose block may take at most ``limit``.

    The larger downset of a pair is from ``begin`` to ``end``, here and below.
    """
    found = 0
    least, nested, words = b.least, b.nested, b.words
    for large in range(begin, end):
        for small in range(large):
            if least[large] - least[small] <= limit and (nested or _within(words, small, large)):
                found += 1
    return found


@kernel
def blocks_between(
    b: Blocks, low: int, high: int, most: int, begin: int, end: int
) -> NDArray[np.int64]:
    """List the blocks that cost from ``low`` to ``high``: the two downsets, and the option.

    The list ends early with one row more than ``most``.
    """
    found = np.empty((most + 1, 3), np.int64)
    count = 0
    cost = np.empty(b.cost.shape[1], np.int64)
    least, nested, words = b.least, b.nested, b.words
    for large in range(begin, end):
        for small in range(large):
            if least[large] - least[small] > high or not (nested or _within(words, small, large)):
                continue
            if not _priced(b, small, large, high, cost):
                continue
            for o in range(cost.shape[0]):
                if low <= cost[o] <= high:
                    found[count, 0], found[count, 1], found[count, 2] = small, large, o
                    count += 1
                    if count > most:
                        return found
    return found[:count]


@kernel
def split(
    b: Blocks,
    moves: Moves,
    limit: int,
    banned: LongMatrix,
    found: Splits,
    begin: int,
    end: int,
) -> None:
    """Find, for each state and downset, the least bottleneck of stages that cover the downset.

    Parameters
    ----------
    limit : int
        Blocks that cost more are left out.
    banned : ndarray of int64, b × 3
        Blocks that are left out as well, as :func:`blocks_between` lists them.
    found : Splits
        Those of the downsets before ``begin``, to which these are added.

    Notes
    -----
    What is left to do takes at least its work divided by the devices that are left.
    """
    m, states = b.cost.shape[0], moves.taken.shape[0]
    best, before, by, reached = found.best, found.before, found.by, found.reached
    cost = np.empty(b.cost.shape[1], np.int64)
    everyone = moves.taken[states - 1]
    least, nested, words = b.least, b.nested, b.words
    ban = 0
    while ban < banned.shape[0] and banned[ban, 1] < begin:
        ban += 1
    for large in range(begin, end):
        left = b.work[m - 1] - b.work[large]
        for small in range(large):
            some = (
                reached[small]
                and least[large] - least[small] <= limit
                and (nested or _within(words, small, large))
                and _priced(b, small, large, limit, cost)
            )
            while ban < banned.shape[0] and banned[ban, 1] == large and banned[ban, 0] == small:
                cost[banned[ban, 2]] = NONE
                ban += 1
            if not some:
                continue
            for i in range(moves.source.shape[0]):
                time = max(best[small, moves.source[i]], cost[moves.option[i]])
                to = moves.target[i]
                if time < best[large, to]:
                    free = everyone - moves.taken[to]
                    if left == 0 or (free > 0 and (left + free - 1) // free <= limit):
                        best[large, to], before[large, to], by[large, to] = time, small, i
        for i in range(moves.source.shape[0]):
            time, to = best[large, moves.source[i]], moves.target[i]
            if time < best[large, to]:
                best[large, to], before[large, to], by[large, to] = time, large, i
        for state in range(states):
            if best[large, state] < NONE:
                reached[large] = True


class Path(Struct):
    """Items in a total order, between which only neighbours exchange tensors.

    There are ``n`` items and ``o`` options (devices, or classes of them). The first three are those
    of :func:`optpart.kernels.segments.append_segments`.
    """

    first: LongMatrix  # o × (n + 1)
    run: LongMatrix  # o × (n + 1): sums of times
    until: LongMatrix  # o × (n + 1): and what a stage that ends here sends
    cut: LongCube  # (n + 1) × o × o: time of the transfers; NONE without a link


@inner
def _cut(path: Path, i: int, s: int, d: int) -> Any:
    return path.cut[i, s, d]


@kernel
def split_path(states: States, path: Path, add: bool, tables: Tables, low: int, high: int) -> None:
    """Find the best stages that end before each item, for the states from ``low`` to ``high``."""
    append_segments(states, path, _cut, add, False, tables, low, high)
