"""Greedy repair: freed units are placed again one by one, where they finish earliest.

Until it is placed, a unit takes no time and its tensors cross without delay, so that the times of
all others are lower bounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optpart.kernels.compiled import Arrays, crossing_time, inner, kernel, run_time
from optpart.kernels.rng import source, uniform
from optpart.kernels.struct import Ints, Words
from optpart.search.incremental import Notes, forget, keep, last_before, move, settle, wait
from optpart.search.moves import position_at, window
from optpart.search.plan import Links, Plan, load
from optpart.search.state import State, valued
from optpart.search.units import may_go

#: Maximal number of positions that a vertex passes.
_REACH = 2000

#: Relative noise on the finish time of a unit, for diversity.
_NOISE = 0.02

#: Limit on the freed units up to which repair is by regret, which considers all waiting units.
_REGRETTED = 64


def earliest_finish(state: State, rng: np.random.Generator) -> State:
    """Place freed units in order of time."""
    return _repaired(state, rng, regret=False)


def regret(state: State, rng: np.random.Generator) -> State:
    """Place freed units by regret, the largest first."""
    return _repaired(state, rng, regret=len(state.freed) <= _REGRETTED)


def _repaired(state: State, rng: np.random.Generator, *, regret: bool) -> State:
    at = state.at
    load(at.plan, state.layout)
    at.refresh()
    place = at.plan.position[at.arrays.unit_vertex[at.arrays.unit_start[state.freed]]]
    freed = state.freed[np.argsort(place, kind="stable")]
    if not _reinsert(at.arrays, at.links, at.plan, at.notes, freed, regret, source(rng)):
        return state
    return valued(at, state.weights, state.size)


@kernel
def _reinsert(
    a: Arrays, g: Links, p: Plan, s: Notes, freed: Ints, by_regret: bool, draws: Words
) -> Any:
    """Place the freed units; return whether all of them got a device."""
    count = freed.shape[0]
    absent = np.zeros(p.device.shape[0], np.uint8)
    waits = np.ones(count, np.bool_)
    for unit in freed:
        p.used[p.device[a.unit_vertex[a.unit_start[unit]]]] -= a.need[unit]
        for i in range(a.unit_start[unit], a.unit_start[unit + 1]):
            _take_out(a, g, p, absent, a.unit_vertex[i])
    _times(a, g, p)
    forget(p, s)
    for step in range(count):
        chosen, device, most = -1, -1, -1.0
        for i in range(count) if by_regret else range(step, step + 1):
            if not waits[i]:
                continue
            best, second, there = np.inf, np.inf, -1
            for d in range(p.last.shape[0]):
                if may_go(a, p, freed[i], d):
                    length = _length(a, p, absent, freed[i], d)
                    length *= 1.0 + _NOISE * uniform(draws)
                    if length < best:
                        best, second, there = length, best, d
                    elif length < second:
                        second = length
            if there < 0:
                return False
            if second - best > most:
                chosen, device, most = i, there, second - best
        waits[chosen] = False
        _put_in(a, g, p, s, absent, freed[chosen], device)
    return True


@inner
def _take_out(a: Arrays, g: Links, p: Plan, absent: Any, v: Any) -> None:
    absent[v] = 1
    p.run[v] = 0.0
    for e in range(a.in_start[v], a.in_start[v + 1]):
        p.delay[e] = 0.0
    for e in range(a.out_start[v], a.out_start[v + 1]):
        p.delay[g.in_of_out[e]] = 0.0


@inner
def _times(a: Arrays, g: Links, p: Plan) -> None:
    """Compute heads and tails from the current run times and delays."""
    n = p.device.shape[0]
    for i in range(n):
        v = p.order[i]
        at = p.end[p.before[v]] if p.before[v] >= 0 else 0.0
        for e in range(a.in_start[v], a.in_start[v + 1]):
            at = max(at, p.end[a.in_source[e]] + p.delay[e])
        p.start[v] = at
        p.end[v] = at + p.run[v]
    for i in range(n - 1, -1, -1):
        v = p.order[i]
        y = p.after[v]
        rest = p.run[y] + p.tail[y] if y >= 0 else 0.0
        for e in range(a.out_start[v], a.out_start[v + 1]):
            w = a.out_target[e]
            rest = max(rest, p.delay[g.in_of_out[e]] + p.run[w] + p.tail[w])
        p.tail[v] = rest


@inner
def _place(a: Arrays, p: Plan, v: Any, head: float, alone: Any) -> Any:
    """Return the position of a vertex whose inputs arrive at ``head``."""
    if not alone:
        return np.int64(p.position[v])
    low, high = window(a, p, v, _REACH)
    return position_at(p, v, low, high, head)


@inner
def _head(a: Arrays, p: Plan, absent: Any, v: Any, d: Any) -> Any:
    head = 0.0
    for e in range(a.in_start[v], a.in_start[v + 1]):
        u = a.in_source[e]
        there = p.end[u]
        if absent[u] == 0:
            there += max(0.0, crossing_time(a, a.in_tensor[e], p.device[u], d))
        head = max(head, there)
    return head


@inner
def _length(a: Arrays, p: Plan, absent: Any, unit: Any, d: Any) -> Any:
    """Return the longest path through a unit if it is on ``d``."""
    longest = 0.0
    alone = a.unit_start[unit + 1] - a.unit_start[unit] == 1
    for j in range(a.unit_start[unit], a.unit_start[unit + 1]):
        v = a.unit_vertex[j]
        head, tail = _head(a, p, absent, v, d), 0.0
        for e in range(a.out_start[v], a.out_start[v + 1]):
            w = a.out_target[e]
            there = p.run[w] + p.tail[w]
            if absent[w] == 0:
                there += max(0.0, crossing_time(a, a.out_tensor[e], d, p.device[w]))
            tail = max(tail, there)
        i, to = np.int64(p.position[v]), _place(a, p, v, head, alone)
        x = last_before(p, d, to if to <= i else to + 1)
        if x == v:
            x = p.before[v]
        y = p.after[x] if x >= 0 else p.first[d]
        if y == v:
            y = p.after[v]
        if x >= 0:
            head = max(head, p.end[x])
        if y >= 0:
            tail = max(tail, p.run[y] + p.tail[y])
        longest = max(longest, head + run_time(a, v, d) + tail)
    return longest


@inner
def _put_in(a: Arrays, g: Links, p: Plan, s: Notes, absent: Any, unit: Any, d: Any) -> None:
    """Place a unit and propagate its times."""
    alone = a.unit_start[unit + 1] - a.unit_start[unit] == 1
    p.used[d] += a.need[unit]
    for j in range(a.unit_start[unit], a.unit_start[unit + 1]):
        v = a.unit_vertex[j]
        to = _place(a, p, v, _head(a, p, absent, v, d), alone)
        absent[v] = 0
        move(a, g, p, s, v, d, to)
        p.run[v] = run_time(a, v, d)
        for e in range(a.in_start[v], a.in_start[v + 1]):
            u = a.in_source[e]
            p.delay[e] = 0.0
            if absent[u] == 0:
                p.delay[e] = max(0.0, crossing_time(a, a.in_tensor[e], p.device[u], d))
        for e in range(a.out_start[v], a.out_start[v + 1]):
            w = a.out_target[e]
            there = 0.0
            if absent[w] == 0:
                there = max(0.0, crossing_time(a, a.out_tensor[e], d, p.device[w]))
            p.delay[g.in_of_out[e]] = there
            wait(s, p.position[w])
    settle(a, g, p, s, np.inf)
    keep(a, g, p, s)
