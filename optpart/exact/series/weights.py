"""Weighted means of what bounds the time of a part: its chains, its devices, and the whole."""

from __future__ import annotations

from typing import Any

import numpy as np

from optpart.exact.series.lattice import NEVER
from optpart.kernels.compiled import inner
from optpart.kernels.struct import Bools, Floats, LongCube, LongMatrix, Longs, Struct

#: Weights add up to ``2**SCALE``.
SCALE = 10

#: Steps of the search for weights, from any and from good ones.
STEPS, FEWER_STEPS = 40, 10


class Steps(Struct):
    """The chains of a part, as sums see them.

    Attributes
    ----------
    chain : ndarray, length m
        The chain of each vertex.
    last : ndarray of bool, length m
        Whether it is the last of its chain.
    run : ndarray, m × k
        Ticks on each device.
    way : ndarray, m × k × k
        Ticks from the vertex before in the chain, on the device of the second index, to this one;
        from the cut vertex before for the first of a chain. ``NEVER`` where that cannot be.
    out : ndarray, ends × m × k
        Ticks from the last vertex of a chain to the cut vertex after the part, on each of its
        devices; 0 for others.
    """

    chain: Longs
    last: Bools
    run: LongMatrix
    way: LongCube
    out: LongCube


class Tables(Struct):
    """Weighted means, and the least that chains add to each of them.

    Attributes
    ----------
    weight : ndarray, means × kinds
        Of each chain, each device, and what the whole part takes at least.
    rest : ndarray, means × m × k
        What follows each vertex in its chain, including the way out.
    begin : ndarray, means × (chains + 1)
        What each chain and all after it add.
    fixed : ndarray, length kinds
        Ticks in each chain, on each device and of the crossing that are decided already.
    picked : ndarray, length m
        Devices that attain the least mean.
    here : ndarray, length k
        Scratch of one vertex.
    best : ndarray, length kinds
        Scratch of the search for weights: the best so far.
    share, amount : ndarray of float, length kinds
        Scratch of the same: weights, and the ticks that count with them.
    """

    weight: LongMatrix
    rest: LongCube
    begin: LongMatrix
    fixed: Longs
    picked: Longs
    here: Longs
    best: Longs
    share: Floats
    amount: Floats

    @classmethod
    def of(cls, means: int, chains: int, vertices: int, devices: int) -> Tables:
        """Return the tables of a part."""
        kinds = chains + devices + 1
        return cls(
            weight=np.zeros((means, kinds), dtype=np.int64),
            rest=np.empty((means, vertices, devices), dtype=np.int64),
            begin=np.empty((means, chains + 1), dtype=np.int64),
            fixed=np.zeros(kinds, dtype=np.int64),
            picked=np.zeros(vertices, dtype=np.int64),
            here=np.empty(devices, dtype=np.int64),
            best=np.empty(kinds, dtype=np.int64),
            share=np.empty(kinds, dtype=np.float64),
            amount=np.empty(kinds, dtype=np.float64),
        )


@inner
def tabulate(steps: Steps, tables: Tables, t: int, cost: Any, end: int, first: int) -> None:
    """Fill in the least that chains add to a mean, and devices that attain it.

    A vertex adds its way and its run, both times the weight of its chain, its run times the weight
    of its device, and its cost.

    Parameters
    ----------
    t : int
        The mean.
    cost : ndarray, m × k
    end : int
        The device of the cut vertex after the part.
    first : int
        The first vertex of a chain; those before are left out.
    """
    chain, last, run, way, out = steps.chain, steps.last, steps.run, steps.way, steps.out
    weight, rest, begin, here = tables.weight[t], tables.rest[t], tables.begin[t], tables.here
    m, k = run.shape
    chains = len(begin) - 1
    begin[chains] = 0
    for x in range(m - 1, first - 1, -1):
        c = chain[x]
        w = weight[c]
        if last[x]:
            for d in range(k):
                far = out[end, x, d]
                rest[x, d] = w * far if far < NEVER else NEVER
        for d in range(k):
            here[d] = NEVER
            if rest[x, d] < NEVER and run[x, d] < NEVER:
                here[d] = (w + weight[chains + d]) * run[x, d] + (cost[x, d] << SCALE) + rest[x, d]
        if x == first or last[x - 1]:
            least = _least(steps, tables, x, 0, w)
            begin[c] = min(np.int64(NEVER), least + begin[c + 1])
        else:
            for b in range(k):
                rest[x - 1, b] = _least(steps, tables, x, b, w)
    if begin[chain[first]] >= NEVER:
        return
    before = 0
    for x in range(first, m):
        w = weight[chain[x]]
        least = np.int64(NEVER)
        for d in range(k):
            if rest[x, d] >= NEVER or way[x, before, d] >= NEVER or run[x, d] >= NEVER:
                continue
            total = w * way[x, before, d] + (w + weight[chains + d]) * run[x, d]
            total += (cost[x, d] << SCALE) + rest[x, d]
            if total < least:
                least = total
                tables.picked[x] = d
        before = tables.picked[x]


@inner
def _least(steps: Steps, tables: Tables, x: int, b: int, weight: int) -> Any:
    """Return the least that a vertex and what follows it in its chain add, after device ``b``."""
    here = tables.here
    least = np.int64(NEVER)
    for d in range(len(here)):
        if here[d] < NEVER and steps.way[x, b, d] < NEVER:
            least = min(least, weight * steps.way[x, b, d] + here[d])
    return least


@inner
def weigh(
    steps: Steps, tables: Tables, t: int, cost: Any, end: int, first: int, number: int
) -> None:
    """Choose weights whose least mean is large, and fill in the tables for them.

    The mean is concave in the weights; the devices that attain it say how it grows. Any weights
    that add up to ``2**SCALE`` are valid, so the search may compute with doubles.

    Parameters
    ----------
    t : int
        The mean, with the weights to begin with.
    number : int
        Steps of the search.
    """
    weight, fixed, share, amount = tables.weight[t], tables.fixed, tables.share, tables.amount
    kinds = len(weight)
    best = np.int64(-NEVER)
    for y in range(kinds):
        share[y] = weight[y] / (1 << SCALE)
        tables.best[y] = 0
    for turn in range(number + 1):
        if turn == number:
            for y in range(kinds):
                weight[y] = tables.best[y]
        elif turn > 0:
            _round(share, weight)
        tabulate(steps, tables, t, cost, end, first)
        mean = tables.begin[t, steps.chain[first]]
        if mean >= NEVER or turn == number:
            return
        for y in range(kinds):
            mean += weight[y] * fixed[y]
            amount[y] = fixed[y]
        if mean > best:
            best = mean
            for y in range(kinds):
                tables.best[y] = weight[y]
        _add_picked(steps, tables, end, first)
        top = amount[0]
        for y in range(1, kinds):
            top = max(top, amount[y])
        if top <= 0.0:
            continue
        rate = 2.0 / np.sqrt(1.0 + turn)
        total = 0.0
        for y in range(kinds):
            share[y] = max(1e-4, share[y]) * np.exp(rate * (amount[y] - top) / top)
            total += share[y]
        for y in range(kinds):
            share[y] /= total


@inner
def _round(share: Any, weight: Any) -> None:
    """Round shares to weights; the largest gets what is left."""
    largest = 0
    left = np.int64(1 << SCALE)
    for y in range(len(weight)):
        weight[y] = np.int64(share[y] * (1 << SCALE))
        left -= weight[y]
        if weight[y] > weight[largest]:
            largest = y
    weight[largest] += left


@inner
def _add_picked(steps: Steps, tables: Tables, end: int, first: int) -> None:
    """Add the ticks of the devices that attain the least mean."""
    amount, picked = tables.amount, tables.picked
    chains = tables.begin.shape[1] - 1
    before = 0
    for x in range(first, len(picked)):
        d, c = picked[x], steps.chain[x]
        far = steps.out[end, x, d] if steps.last[x] else 0
        amount[c] += steps.way[x, before, d] + steps.run[x, d] + far
        amount[chains + d] += steps.run[x, d]
        before = d
