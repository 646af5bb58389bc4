"""Weighted means of what bounds the time of a part: its chains, its devices, and a crossing."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.kernels.compiled import inner
from optpart.series.lattice import NEVER

#: Weights add up to ``2**SCALE``.
SCALE = 10

#: Steps of the search for weights, from any and from good ones.
STEPS, FEWER_STEPS = 40, 10


class Steps(NamedTuple):
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

    chain: NDArray[np.int64]
    last: NDArray[np.bool_]
    run: NDArray[np.int64]
    way: NDArray[np.int64]
    out: NDArray[np.int64]


@inner
def tabulate(
    weight: Any, steps: Steps, cost: Any, end: int, first: int, picked: Any, rest: Any, begin: Any
) -> None:
    """Fill in the least that chains add to a mean, and devices that attain it.

    A vertex adds its way and its run, both times the weight of its chain, its run times the weight
    of its device, and its cost.

    Parameters
    ----------
    weight : ndarray
        Of each chain, each device, and the crossing between the cut vertices.
    cost : ndarray, m × k
    end : int
        The device of the cut vertex after the part.
    first : int
        The first vertex of a chain; those before are left out.
    picked : ndarray, length m
        To be filled with the devices.
    rest : ndarray, m × k
        To be filled with what follows each vertex in its chain, including the way out.
    begin : ndarray, one for each chain and one
        To be filled with what the chain and all after it add.
    """
    chain, last, run, way, out = steps
    m, k = run.shape
    chains = len(begin) - 1
    begin[chains] = 0
    here = np.empty(k, dtype=np.int64)
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
            least = np.int64(NEVER)
            for d in range(k):
                if here[d] < NEVER and way[x, 0, d] < NEVER:
                    least = min(least, w * way[x, 0, d] + here[d])
            begin[c] = min(np.int64(NEVER), least + begin[c + 1])
        else:
            for b in range(k):
                least = np.int64(NEVER)
                for d in range(k):
                    if here[d] < NEVER and way[x, b, d] < NEVER:
                        least = min(least, w * way[x, b, d] + here[d])
                rest[x - 1, b] = least
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
                picked[x] = d
        before = picked[x]


@inner
def weigh(
    weight: Any,
    steps: Steps,
    cost: Any,
    end: int,
    first: int,
    fixed: Any,
    number: int,
    picked: Any,
    rest: Any,
    begin: Any,
) -> None:
    """Choose weights whose least mean is large, and fill in the tables for them.

    The mean is concave in the weights; the devices that attain it say how it grows. Any weights
    that add up to ``2**SCALE`` are valid, so the search may compute with doubles.

    Parameters
    ----------
    weight : ndarray
        To begin with, and to be filled.
    fixed : ndarray, like ``weight``
        Ticks in each chain, on each device and of the crossing that are decided already.
    number : int
        Steps of the search.
    """
    chain, last, run, way, out = steps
    m = len(run)
    kinds, chains = len(weight), len(begin) - 1
    share = weight / (1 << SCALE)
    best_weight = np.zeros(kinds, dtype=np.int64)
    best = np.int64(-NEVER)
    amount = np.empty(kinds, dtype=np.float64)
    for turn in range(number + 1):
        if turn == number:
            weight[:] = best_weight
        elif turn > 0:
            largest = 0
            left = np.int64(1 << SCALE)
            for y in range(kinds):
                weight[y] = np.int64(share[y] * (1 << SCALE))
                left -= weight[y]
                if weight[y] > weight[largest]:
                    largest = y
            weight[largest] += left
        tabulate(weight, steps, cost, end, first, picked, rest, begin)
        mean = begin[chain[first]]
        if mean >= NEVER or turn == number:
            return
        for y in range(kinds):
            mean += weight[y] * fixed[y]
            amount[y] = fixed[y]
        if mean > best:
            best = mean
            best_weight[:] = weight
        before = 0
        for x in range(first, m):
            d, c = picked[x], chain[x]
            amount[c] += way[x, before, d] + run[x, d] + (out[end, x, d] if last[x] else 0)
            amount[chains + d] += run[x, d]
            before = d
        top = amount.max()
        if top <= 0.0:
            continue
        rate = 2.0 / np.sqrt(1.0 + turn)
        total = 0.0
        for y in range(kinds):
            share[y] = max(1e-4, share[y]) * np.exp(rate * (amount[y] - top) / top)
            total += share[y]
        for y in range(kinds):
            share[y] /= total
