"""Batch split: the vertices on the heaviest paths to the fastest devices ([L] §4.4, [M] §3.2.1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from optpart.kernels.compiled import Arrays, arrays, assign, fits, kernel, nothing_placed
from optpart.kernels.struct import Ints
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition, partition_of
from optpart.strategies.partition.common import Variant, is_paper, total_rank
from optpart.strategies.partition.ranks import devices_by_speed, operations_rank


def batch_split(
    instance: Instance, rng: np.random.Generator, *, variant: Variant = "thesis"
) -> Partition:
    """Take vertices by falling rank, ties by number, and place their units.

    Parameters
    ----------
    variant : {"thesis", "paper"}
        ``thesis`` ([L] §4.4) ranks by operations rank and cuts the vertices into as many ranges of
        equal length (±1) as there are devices. A vertex of the first range goes to the
        fastest device, one of the second to the second, and so on; if that is not feasible, to
        the next slower one, after the slowest to the fastest. ``paper`` ([M] §3.2.1) ranks by total
        rank and places every vertex by itself on the fastest device that is feasible, so that a
        slower device is used only if types, memory and the like require it.
    """
    if is_paper(variant):
        rank, ranges = total_rank(instance), 1
    else:
        source, sink = operations_rank(instance)
        rank, ranges = source + sink, instance.devices
    turn = instance.unit_of[np.argsort(-rank, kind="stable")]
    state = _split(arrays(instance), turn, ranges, devices_by_speed(instance))
    return partition_of(instance, state)


@kernel
def _split(a: Arrays, turn: Ints, ranges: int, by_speed: Ints) -> Any:
    n, k = turn.shape[0], by_speed.shape[0]
    state = nothing_placed(a)
    for i in range(n):
        if state.device[turn[i]] >= 0:
            continue
        first = i * ranges // n
        for step in range(k):
            d = by_speed[(first + step) % k]
            if fits(a, turn[i], d, state):
                assign(a, turn[i], d, state)
                break
        else:
            return state
    return state
