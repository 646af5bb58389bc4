"""Records of the tier ``one-machine``: vertices that must share a device and take too long."""

from __future__ import annotations

from itertools import product

from optpart.certify.arithmetic import Record, some
from optpart.certify.check import Windows

#: Largest number of distinct heads, and of tails, to try; of more, an even selection.
_MAX_THRESHOLDS = 100


def one_machine_record(windows: Windows) -> Record | None:
    """Return the record if some vertices refute the horizon on their only possible device.

    Notes
    -----
    For a pair of thresholds, the largest set consists of all vertices with at least this head and
    tail; it proves the sum of its least head, run times and least tail. The greatest of these sums
    is the length of Jackson's preemptive schedule (Carlier 1982), so no other set proves more.
    """
    problem = windows.grid.problem
    for d in range(len(problem.devices)):
        there = [v for v, unit in enumerate(problem.unit) if windows.possible[unit] == [d]]
        heads = some((windows.head[v][d] for v in there), _MAX_THRESHOLDS)
        tails = some((windows.tail[v][d] for v in there), _MAX_THRESHOLDS)
        for head, tail in product(heads, tails):
            chosen = [v for v in there if windows.head[v][d] >= head and windows.tail[v][d] >= tail]
            total = head + sum(windows.time(v, d) for v in chosen) + tail
            if chosen and total > windows.grid.horizon:
                return {"device": d, "vertices": chosen}
    return None
