"""The ending of a schedule: everything after devices begin to idle.

In a large graph, devices may be busy from the beginning until shortly before the end. The ending
then decides how long the schedule is, and moves there cost little, however large the graph is,
because little comes after them.
"""

from __future__ import annotations

import numpy as np

from optpart.search.plan import Plan

#: The least vertices of a graph of which only the ending is searched.
_LARGE = 10_000

#: Share of all idle time that may be before the ending.
_BEFORE = 0.01

#: The ending has this many times the vertices that come after the devices begin to idle, and at
#: least so many: what runs late can change only together with what runs before it.
_WIDER, _FEWEST = 2.0, 500


def ending(p: Plan) -> int:
    """Return how many vertices of the order come before the ending; none if the graph is small.

    The times of the plan are up to date.
    """
    n = len(p.order)
    if n < _LARGE:
        return 0
    makespan = float(p.end.max())
    idle = p.start - np.where(p.before < 0, 0.0, p.end[p.before])
    used = p.last[p.last >= 0]
    idle[used] += makespan - p.end[used]
    spent = np.cumsum(idle[p.order])
    if not spent[-1] > 0.0:
        return 0
    since = int(np.searchsorted(spent, _BEFORE * spent[-1]))
    return max(0, n - max(_FEWEST, int(_WIDER * (n - since))))
