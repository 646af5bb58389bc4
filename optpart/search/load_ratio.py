"""Whether the loads of devices decide how long a schedule is, or only its paths."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optpart.kernels.compiled import Arrays

#: An instance is load-bound if all devices together need at least this share of a longest path for
#: all of the work.
_LOAD_BOUND = 0.5

#: Numbers of vertices of large graphs; beyond them, nothing was measured.
_LARGE = range(1000, 10_000)

#: Numbers in the table of run times, at most.
_MAX_CELLS = 2**22


def is_large(vertices: int) -> bool:
    """Return whether a graph is one of those whose moves are drawn with shares of their own."""
    return vertices in _LARGE


def is_load_bound(a: Arrays) -> bool:
    """Return whether loads matter as much as paths; not beyond large graphs."""
    n, k = len(a.order), a.allowed.shape[1]
    return n < _LARGE.stop and n * k <= _MAX_CELLS and load_ratio(a) >= _LOAD_BOUND


def load_ratio(a: Arrays) -> float:
    """Return the time that all work takes on all devices together, as a share of a longest path.

    Both are estimates: work is divided among devices in any parts, and on a path every vertex is on
    its fastest device, so that nothing crosses.
    """
    run = run_times(a)
    with np.errstate(divide="ignore", invalid="ignore"):
        shared = 1.0 / (1.0 / run).sum(axis=1)
    work = float(np.nan_to_num(shared, posinf=0.0).sum())
    least = run.min(axis=1, initial=np.inf).tolist()
    end = [0.0] * len(least)
    starts, sources = a.in_start.tolist(), a.in_source.tolist()
    for v in a.order.tolist():
        inputs = sources[starts[v] : starts[v + 1]]
        end[v] = max((end[u] for u in inputs), default=0.0) + least[v]
    path = max(end, default=0.0)
    return work / path if path > 0.0 else 0.0


def run_times(a: Arrays) -> NDArray[np.float64]:
    """Return the run time of each vertex on each device, n × k; infinite where it may not be."""
    run = a.durations if len(a.durations) else a.ops[:, None] / a.speed
    return np.where(a.allowed[a.unit], run, np.inf)
