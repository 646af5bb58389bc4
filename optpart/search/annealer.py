"""Simulated annealing on plans, compiled: draw a move, propagate it, commit or roll back.

A *frame* is a stretch of the order outside of which nothing changes for a while. In a large graph,
a change shifts everything that follows, and the tails of everything before it. While only a stretch
of the order changes, neither is needed: times before it and tails behind it remain valid, and with
the times within it, they give the length of the schedule exactly. So a move costs what it changes
within the frame, however large the graph is.

:func:`~optpart.search.incremental.settle` and :func:`~optpart.search.incremental.keep` stop at the
boundaries of the frame.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optpart.kernels.compiled import Arrays, inner, kernel
from optpart.kernels.rng import below, uniform
from optpart.kernels.struct import Bools, Floats, Ints, LongMatrix, Struct, Words
from optpart.search.execute import EDGES, Execution, Rules, excess, execute
from optpart.search.incremental import OUTSIDE, Notes, forget, keep, settle, take_back
from optpart.search.moves import change, drawn
from optpart.search.plan import Links, Plan
from optpart.search.traffic import Crossed, count_moved, uncount
from optpart.search.units import release

#: Share of moves around a vertex of a critical path; the others are around any vertex.
_CRITICAL = 0.8

#: A critical path is recomputed after a number of accepted moves that is this share of its length:
#: it seldom changes much at once, and tracing it costs as much as many moves.
_REFRESH = 20.0


class Heat(Struct):
    """The cost function and its temperatures.

    Attributes
    ----------
    makespan, traffic, excess : float
        Weights of makespan, traffic and excess memory.
    hot, cold : float
        Temperature at the first and last move.
    """

    makespan: float
    traffic: float
    excess: float
    hot: float
    cold: float


class Best(Struct):
    """The best plan found so far.

    Attributes
    ----------
    value : ndarray of float64
        Excess memory, primary and secondary objective.
    device, order, eager : ndarray
    """

    value: Floats
    device: Ints
    order: Ints
    eager: Bools


class Work(Struct):
    """All that annealing works on."""

    arrays: Arrays
    links: Links
    rules: Rules
    plan: Plan
    notes: Notes
    execution: Execution
    crossed: Crossed


@inner
def latest(p: Plan) -> Any:
    """Return the makespan of a plan whose times are up to date."""
    end = 0.0
    for d in range(p.last.shape[0]):
        if p.last[d] >= 0:
            end = max(end, p.end[p.last[d]])
    return end


@inner
def critical_path(a: Arrays, g: Links, p: Plan, s: Notes, path: Any, state: Any) -> Any:
    """Trace a longest path through the frame, as far as it is in it; return its length."""
    low, high = s.frame[0], s.frame[1]
    if high < p.order.shape[0]:
        middle = on_longest(p, s)
    else:
        middle, end = np.int32(-1), -1.0
        for d in range(p.last.shape[0]):
            if p.last[d] >= 0 and p.end[p.last[d]] > end:
                middle = p.last[d]
                end = p.end[middle]
    v = middle
    length = 0
    while v >= 0 and p.position[v] >= low:
        path[length] = v
        length += 1
        if p.start[v] <= 0.0:
            break
        # Queues may delay a vertex beyond all of these; then the path follows the latest of them.
        best = p.before[v]
        latest_end = p.end[best] if best >= 0 else -1.0
        for e in range(a.in_start[v], a.in_start[v + 1]):
            u = a.in_source[e]
            at = p.end[u] + p.delay[e]
            if at > latest_end or (at == latest_end and uniform(state) < 0.5):
                best, latest_end = u, at
        v = best
    v = middle
    while high < p.order.shape[0] and p.tail[v] > 0.0:
        best = p.after[v]
        rest = p.run[best] + p.tail[best] if best >= 0 else -1.0
        for e in range(a.out_start[v], a.out_start[v + 1]):
            w = a.out_target[e]
            there = p.delay[g.in_of_out[e]] + p.run[w] + p.tail[w]
            if there > rest or (there == rest and uniform(state) < 0.5):
                best, rest = w, there
        if p.position[best] >= high:
            break
        v = best
        path[length] = v
        length += 1
    return length


@kernel
def anneal(
    w: Work, h: Heat, best: Best, state: Words, shares: Floats, tried: LongMatrix, moves: int
) -> float:
    """Make a number of moves; return the cost of the resulting plan.

    Invariant of the loop: the plan, its times and tails, and ``cost`` belong together, the undo log
    is empty, and ``path`` is a longest path of the plan unless ``stale``. A move that is refused is
    taken back within its round.

    Parameters
    ----------
    w : Work
        The times of its plan are up to date, before and after.
    state : ndarray of uint64
        State of the random numbers.
    shares : ndarray of float64, one per move
        Cumulative probabilities of the moves.
    tried : ndarray of int64, moves × 3
        Incremented: how often each was evaluated, accepted, and led to a new best plan.
    """
    a, g, r, p, s, x, c = w.arrays, w.links, w.rules, w.plan, w.notes, w.execution, w.crossed
    n, last = p.device.shape[0], shares.shape[0] - 1
    path = np.empty(n, np.int32)
    free = np.zeros(p.last.shape[0])
    makespan = latest(p)
    over = 0.0
    dynamic = r.memory >= EDGES
    if r.whole:
        makespan = execute(a, g, r, p, x, free)
        if dynamic:
            over = excess(a, g, r, p, x)
        p.start[:] = x.start
        p.end[:] = x.end
    cost = h.makespan * makespan + h.excess * over
    if c.counts:
        cost += h.traffic * c.total[0]
    within = s.frame[1] < n
    around = longest_around(a, g, p, s, free) if within else 0.0
    forget(p, s)
    length = critical_path(a, g, p, s, path, state)
    stale = False
    temperature = h.hot
    cooling = (h.cold / h.hot) ** (1.0 / max(1, moves)) if h.hot > 0.0 else 1.0
    for _ in range(moves):
        temperature *= cooling
        allowance = cost - temperature * math.log(1.0 - uniform(state))
        draw = uniform(state)
        kind = 0
        while kind < last and draw >= shares[kind]:
            kind += 1
        critical = uniform(state) < _CRITICAL
        if critical and stale:
            length = critical_path(a, g, p, s, path, state)
            stale = False
        # All of the critical path may be before the frame.
        traced = critical and length > 0
        v = np.int64(path[below(state, length)]) if traced else drawn(p, s, state)
        quick = not (r.whole or c.counts)
        least = allowance / h.makespan if quick else np.inf
        if not change(a, g, p, s, state, kind, v, least):
            continue
        if s.counts[OUTSIDE]:
            release(a, p, s)
            take_back(p, s)
            continue
        tried[kind, 0] += 1
        left = allowance
        if c.counts:
            count_moved(a, g, p, s, c)
            left -= h.traffic * c.total[0]
        accepted = left >= 0.0
        length_now, over_now = 0.0, 0.0
        if accepted and r.whole:
            length_now = execute(a, g, r, p, x, free)
            left -= h.makespan * length_now
            if left >= 0.0 and dynamic:
                over_now = excess(a, g, r, p, x)
                left -= h.excess * over_now
            accepted = left >= 0.0
        elif accepted:
            accepted = settle(a, g, p, s, left / h.makespan)
        if not accepted:
            release(a, p, s)
            take_back(p, s)
            if c.counts:
                uncount(c)
            continue
        if r.whole:
            p.start[:] = x.start
            p.end[:] = x.end
            forget(p, s)
        else:
            keep(a, g, p, s)
            if within:
                v = on_longest(p, s)
                length_now = max(around, p.end[v] + p.tail[v])
            else:
                length_now = latest(p)
        makespan, over = length_now, over_now
        cost = h.makespan * makespan + h.excess * over
        if c.counts:
            cost += h.traffic * c.total[0]
        stale = stale or uniform(state) * length < _REFRESH
        tried[kind, 1] += 1
        if _record(p, c, best, makespan, over):
            tried[kind, 2] += 1
    return float(cost)


@inner
def _record(p: Plan, c: Crossed, best: Best, makespan: float, over: float) -> Any:
    """Keep the plan if it is the best so far."""
    first, second = makespan, 0.0
    if c.counts:
        second = c.total[0]
        if c.first:
            first, second = second, first
    value = best.value
    if over > value[0]:
        return False
    if over == value[0]:
        if first > value[1]:
            return False
        # Sums of doubles differ in their last digits.
        if first == value[1] and second >= value[2] * (1.0 - 1e-12):
            return False
    value[0], value[1], value[2] = over, first, second
    best.device[:] = p.device
    best.order[:] = p.order
    best.eager[:] = p.eager
    return True


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
