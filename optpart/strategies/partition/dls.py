"""Dynamic level scheduling (Sih and Lee 1993)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optpart.kernels.compiled import arrays
from optpart.problem.instance import Instance
from optpart.strategies.base import Partition
from optpart.strategies.partition.ranks import upward
from optpart.strategies.partition.ready_list import schedule_ready


def dls(instance: Instance, rng: np.random.Generator) -> Partition:
    """Run next the pair of a ready vertex and a device of highest dynamic level.

    The dynamic level of ``v`` on ``d`` is ``SL(v) − start(v, d) + (E(v) − p[v, d])``, where ``E``
    is the median run time over the devices that may run the vertex, by itself and with its
    colocation group, and the static level ``SL`` is the largest sum of medians on a path that
    starts with ``v``. Transfers do not count in it. Since ``start + p`` is the finish time, the
    best device of a vertex is the one where it finishes first.

    Source: G. Sih and E. Lee, A compile-time scheduling heuristic for interconnection-constrained
    heterogeneous processor architectures, IEEE TPDS 4 (1993), equations 2 and 5. Their further
    terms for descendants and for scarce resources, and their routing of transfers, are left out.
    See :func:`~optpart.strategies.partition.ready_list.schedule_ready`.
    """
    median = median_run(instance)
    level = upward(instance, median, np.zeros(instance.graph.tensors))
    return schedule_ready(instance, finish=-1.0, base=level + median)


def median_run(instance: Instance) -> NDArray[np.float64]:
    """Return the median run time of each vertex over its devices, in units of ``Arrays``."""
    a = arrays(instance)
    times = a.durations if len(a.durations) else a.ops[:, None] / a.speed
    allowed = instance.allowed[instance.unit_of]
    ascending = np.sort(np.where(allowed, times, np.inf), axis=1)
    count, rows = allowed.sum(axis=1), np.arange(instance.vertices)
    low, high = ascending[rows, (count - 1) // 2], ascending[rows, count // 2]
    return np.where(count > 0, (low + high) / 2, 0.0)
