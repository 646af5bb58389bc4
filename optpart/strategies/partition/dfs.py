"""Depth first search: neighbours one after another, by traffic and execution time ([L] §4.8)."""

from __future__ import annotations

from typing import Any

import numpy as np

from optpart.kernels.compiled import Arrays, arrays, kernel
from optpart.kernels.struct import Ints
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition
from optpart.strategies.partition.common import Variant, is_paper, total_rank
from optpart.strategies.partition.mite import by_score
from optpart.strategies.partition.ranks import operations_rank


def depth_first(
    instance: Instance, rng: np.random.Generator, *, variant: Variant = "thesis"
) -> Partition:
    """Visit vertices depth first; assign each where its traffic × execution time is least.

    The search starts at the sources, by falling rank, and follows edges forward, successors in
    the order of their numbers. A visited vertex takes its whole unit along.

    Parameters
    ----------
    variant : {"thesis", "paper"}
        ``thesis`` ([L] §4.8) ranks sources by operations rank and uses the factors of
        :func:`~optpart.strategies.partition.mite.mite` of [L]; ``paper`` ([M] §3.3.2, eq. 11)
        ranks them by total rank and uses those of [M].
    """
    a, paper = arrays(instance), is_paper(variant)
    rank = total_rank(instance) if paper else np.add(*operations_rank(instance))
    sources = np.flatnonzero(a.in_start[1:] == a.in_start[:-1]).astype(np.int32)
    visit = _preorder(a, sources[np.argsort(-rank[sources], kind="stable")])
    return by_score(instance, instance.unit_of[visit], paper, all_factors=False)


@kernel
def _preorder(a: Arrays, sources: Ints) -> Any:
    """Return the vertices in the order of their first visit."""
    n = a.order.shape[0]
    visit, stack = np.empty(n, np.int32), np.empty(n, np.int32)
    seen = np.zeros(n, np.bool_)
    edge = np.empty(n, np.int32)
    for v in range(n):
        edge[v] = a.out_start[v]
    visited = 0
    for source in sources:
        v, depth = source, 0
        while depth >= 0:
            if not seen[v]:
                seen[v] = True
                visit[visited] = v
                visited += 1
            if edge[v] < a.out_start[v + 1]:
                w = a.out_target[edge[v]]
                edge[v] += 1
                if not seen[w]:
                    stack[depth] = v
                    depth += 1
                    v = w
            else:
                depth -= 1
                v = stack[depth]
    return visit
