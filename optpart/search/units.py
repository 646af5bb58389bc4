"""Whole units in a plan: where they may go, and how they get there and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from optpart.kernels.compiled import Arrays, crossing_time, inner
from optpart.kernels.rng import below
from optpart.search.incremental import MOVED, Notes, move
from optpart.search.plan import Links, Plan


@inner
def may_go(a: Arrays, p: Plan, unit: Any, d: Any) -> Any:
    """Return whether a unit may be on ``d``, given where the others are."""
    if not a.allowed[unit, d] or p.used[d] + a.need[unit] > a.capacity[d]:
        return False
    return is_compatible(a, p, unit, d)


@inner
def is_compatible(a: Arrays, p: Plan, unit: Any, d: Any) -> Any:
    """Return whether separation and links let a unit be on ``d``, given where the others are."""
    for i in range(a.apart_start[unit], a.apart_start[unit + 1]):
        if p.device[a.unit_vertex[a.unit_start[a.apart[i]]]] == d:
            return False
    if not a.may_block:
        return True
    for i in range(a.unit_start[unit], a.unit_start[unit + 1]):
        v = a.unit_vertex[i]
        for e in range(a.in_start[v], a.in_start[v + 1]):
            u = a.in_source[e]
            if a.unit[u] != unit and crossing_time(a, a.in_tensor[e], p.device[u], d) < 0.0:
                return False
        for e in range(a.out_start[v], a.out_start[v + 1]):
            w = a.out_target[e]
            if a.unit[w] != unit and crossing_time(a, a.out_tensor[e], d, p.device[w]) < 0.0:
                return False
    return True


@inner
def move_unit(a: Arrays, g: Links, p: Plan, s: Notes, unit: Any, d: Any) -> None:
    """Put a whole unit on ``d``; its vertices keep their positions."""
    first = a.unit_vertex[a.unit_start[unit]]
    p.used[p.device[first]] -= a.need[unit]
    p.used[d] += a.need[unit]
    for i in range(a.unit_start[unit], a.unit_start[unit + 1]):
        v = a.unit_vertex[i]
        move(a, g, p, s, v, d, np.int64(p.position[v]))


@inner
def release(a: Arrays, p: Plan, s: Notes) -> None:
    """Undo the effect of a change on used memory; call this before undoing the change itself."""
    for m in range(s.counts[MOVED] - 1, -1, -1):
        v = s.moved[m]
        unit = a.unit[v]
        if a.unit_vertex[a.unit_start[unit]] == v:
            p.used[p.device[v]] -= a.need[unit]
            p.used[s.home[m]] += a.need[unit]


@inner
def neighbour(a: Arrays, v: Any, state: Any) -> Any:
    """Draw a predecessor or successor; the vertex itself if it has none."""
    before = a.in_start[v + 1] - a.in_start[v]
    both = before + a.out_start[v + 1] - a.out_start[v]
    if both == 0:
        return np.int64(v)
    j = below(state, both)
    if j < before:
        return np.int64(a.in_source[a.in_start[v] + j])
    return np.int64(a.out_target[a.out_start[v] + j - before])


@inner
def target(g: Links, state: Any) -> Any:
    """Draw a device, a fast one more often."""
    return np.int64(g.targets[below(state, g.targets.shape[0])])
