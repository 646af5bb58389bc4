"""Frames: stretches of the order outside of which nothing changes for a while.

In a large graph, a change shifts everything that follows, and the tails of everything before it.
While only a stretch of the order changes, neither is needed: times before it and tails behind it
remain valid, and with the times within it, they give the length of the schedule exactly. So a move
costs what it changes within the frame, however large the graph is.

:func:`~optpart.search.incremental.settle` and :func:`~optpart.search.incremental.keep` stop at the
boundaries of the frame.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optpart.kernels.compiled import Arrays, inner
from optpart.search.incremental import Notes
from optpart.search.plan import Links, Plan


@inner
def longest_around(a: Arrays, g: Links, p: Plan, s: Notes, free: Any) -> Any:
    """Return the length of the longest path that avoids the frame.

    Every device counts as if it ran nothing within the frame: if it does, the path through that is
    no shorter.

    Parameters
    ----------
    free : ndarray of float64, one per device
        Overwritten.
    """
    low, high = s.frame[0], s.frame[1]
    length = 0.0
    free[:] = 0.0
    for i in range(low):
        v = p.order[i]
        length = max(length, p.end[v])
        free[p.device[v]] = p.end[v]
        for e in range(a.out_start[v], a.out_start[v + 1]):
            w = a.out_target[e]
            if p.position[w] >= high:
                length = max(length, p.end[v] + p.delay[g.in_of_out[e]] + p.run[w] + p.tail[w])
    for i in range(high, p.order.shape[0]):
        v = p.order[i]
        # Only the first vertex of a device follows directly; the bound of the others is lower.
        length = max(length, free[p.device[v]] + p.run[v] + p.tail[v])
    return length


@inner
def on_longest(p: Plan, s: Notes) -> Any:
    """Return a vertex of the frame that is on one of the longest paths through it."""
    best, length = np.int32(-1), -1.0
    for i in range(s.frame[0], s.frame[1]):
        v = p.order[i]
        if p.end[v] + p.tail[v] > length:
            best, length = v, p.end[v] + p.tail[v]
    return best
