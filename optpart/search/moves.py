"""Moves of local search: small changes of a plan around one vertex.

Each returns whether it changed anything. ``least`` is the longest schedule that would still be
accepted; a move is not even made if heads and tails alone prove it longer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.kernels.compiled import Arrays, crossing_time, inner, run_time
from optpart.kernels.rng import below, uniform
from optpart.search.incremental import FLIPPED, MOVED, Notes, last_before, move
from optpart.search.load_ratio import is_large
from optpart.search.plan import Links, Plan
from optpart.search.runs import (
    block,
    boundary,
    exchange_blocks,
    exchange_stretches,
    part,
    stretch,
)
from optpart.search.units import may_go, move_unit, neighbour, target


class Move(NamedTuple):
    """A row of the table of moves.

    Attributes
    ----------
    name : str
    share : int
        Weight with which it is drawn.
    order_share : int
        The same if every unit has one device and only orders can change.
    wide_share : int, optional
        The same if the graph is wide; ``share`` by default.
    large_share : float, optional
        The same if the graph is wide and large; ``wide_share`` by default.
    """

    name: str
    share: int
    order_share: int
    wide_share: int | None = None
    large_share: float | None = None


#: Every move. Its number in compiled code is its position here; only :func:`change` uses that.
TABLE = (
    Move("any-device", 30, 0),
    Move("neighbour-device", 24, 0),
    Move("chain", 6, 0, 6, 2),
    Move("before-previous", 16, 50),
    Move("anywhere", 4, 5),
    Move("past-block", 6, 4),
    Move("exchange", 3, 0, 3, 0.3),
    Move("block-end", 10, 40),
    Move("transfer", 1, 1),
    Move("stretch", 4, 0, 1),
    Move("block", 2, 0, 1),
    Move("boundary", 4, 0, 1),
    Move("part", 3, 0, 0),
    Move("exchange-stretches", 4, 0, 1, 0.1),
    Move("exchange-blocks", 1, 0, 0),
)

#: Names of the moves, by number.
MOVES = tuple(row.name for row in TABLE)

# Compiled code compares numbers, not strings.
_ANY_DEVICE = MOVES.index("any-device")
_NEIGHBOUR_DEVICE = MOVES.index("neighbour-device")
_CHAIN_MOVE = MOVES.index("chain")
_BEFORE_PREVIOUS = MOVES.index("before-previous")
_ANYWHERE = MOVES.index("anywhere")
_PAST_BLOCK = MOVES.index("past-block")
_EXCHANGE = MOVES.index("exchange")
_BLOCK_END = MOVES.index("block-end")
_TRANSFER = MOVES.index("transfer")
_STRETCH = MOVES.index("stretch")
_BLOCK_MOVE = MOVES.index("block")
_BOUNDARY = MOVES.index("boundary")
_PART = MOVES.index("part")
_EXCHANGE_STRETCHES = MOVES.index("exchange-stretches")
_EXCHANGE_BLOCKS = MOVES.index("exchange-blocks")

#: Maximal number of positions that a vertex passes, so that moves in large graphs stay cheap.
_REACH = 2000

#: Maximal vertices on a chain that moves together, and in a block that is passed.
_CHAIN, _BLOCK = 5, 8


#: A graph is narrow if at least one of this many vertices is a cut vertex; others are wide. In
#: large wide ones, exchanges and chains touch positions far apart, and almost all that is in
#: between gets new times before they are rejected. Job shops of some hundred operations need them.
_NARROW = 50


def is_narrow(g: Links) -> bool:
    """Return whether a graph is narrow, so that whole stretches of it should move."""
    return 0 < len(g.cut_vertex) <= _NARROW * g.cut_vertices


def cumulative_shares(
    *, placed: bool, transfers: bool, narrow: bool = False, vertices: int = 0
) -> NDArray[np.float64]:
    """Return the cumulative probability of each move, by number.

    Parameters
    ----------
    placed : bool
        Whether every unit has one device, so that only orders can change.
    transfers : bool
        Whether it matters when transfers start.
    narrow : bool
        Whether the graph is narrow.
    vertices : int
        Size of the graph.
    """
    large = is_large(vertices)
    shares = np.array(
        [_share(row, placed=placed, narrow=narrow, large=large) for row in TABLE], np.float64
    )
    if not transfers:
        shares[_TRANSFER] = 0.0
    return np.cumsum(shares / shares.sum())


def _share(row: Move, *, placed: bool, narrow: bool, large: bool) -> float:
    if placed:
        return row.order_share
    if large and not narrow and row.large_share is not None:
        return row.large_share
    return row.share if narrow or row.wide_share is None else row.wide_share


@inner
def change(
    a: Arrays, g: Links, p: Plan, s: Notes, state: Any, kind: Any, v: Any, least: float
) -> Any:
    """Make the move of a given number around ``v``; return whether it changed anything.

    :func:`release` and then :func:`~optpart.search.incremental.take_back` undo every move.
    """
    if kind == _ANY_DEVICE:
        return to_device(a, g, p, s, state, v, target(g, state), least)
    if kind == _NEIGHBOUR_DEVICE:
        d = np.int64(p.device[neighbour(a, v, state)])
        return to_device(a, g, p, s, state, v, d, least)
    if kind == _CHAIN_MOVE:
        return chain(a, g, p, s, state, v, target(g, state))
    if kind == _BEFORE_PREVIOUS:
        return before_previous(a, g, p, s, v, least)
    if kind == _ANYWHERE:
        return anywhere(a, g, p, s, state, v, _REACH)
    if kind == _PAST_BLOCK:
        return past_block(a, g, p, s, state, v)
    if kind == _EXCHANGE:
        return exchange(a, g, p, s, v, drawn(p, s, state))
    if kind == _BLOCK_END:
        return block_end(a, g, p, s, state, v)
    if kind == _TRANSFER:
        return transfer(g, p, s, state, v)
    if kind == _STRETCH:
        return stretch(a, g, p, s, state, v, least)
    if kind == _BLOCK_MOVE:
        return block(a, g, p, s, state, v, least)
    if kind == _BOUNDARY:
        return boundary(a, g, p, s, state, v, least)
    if kind == _PART:
        return part(a, g, p, s, state, v, least)
    if kind == _EXCHANGE_STRETCHES:
        return exchange_stretches(a, g, p, s, state, v, drawn(p, s, state))
    if kind == _EXCHANGE_BLOCKS:
        return exchange_blocks(a, g, p, s, v, drawn(p, s, state))
    return False


@inner
def drawn(p: Plan, s: Notes, state: Any) -> Any:
    """Draw a vertex of the frame."""
    return np.int64(p.order[s.frame[0] + below(state, s.frame[1] - s.frame[0])])


@inner
def window(a: Arrays, p: Plan, v: Any, reach: Any) -> Any:
    """Return the first and last position that a vertex may have, given the others."""
    i = np.int64(p.position[v])
    low, high = max(0, i - reach), min(np.int64(p.device.shape[0]) - 1, i + reach)
    for e in range(a.in_start[v], a.in_start[v + 1]):
        low = max(low, np.int64(p.position[a.in_source[e]]) + 1)
    for e in range(a.out_start[v], a.out_start[v + 1]):
        high = min(high, np.int64(p.position[a.out_target[e]]) - 1)
    return low, high


@inner
def position_at(p: Plan, v: Any, low: Any, high: Any, ready: float) -> Any:
    """Return the position of a window from which on others start when ``v`` is ready, or later."""
    i = np.int64(p.position[v])
    while low < high:
        middle = (low + high) >> 1
        w = p.order[middle if middle < i else middle + 1]
        if p.start[w] >= ready:
            high = middle
        else:
            low = middle + 1
    return low


@inner
def to_device(
    a: Arrays, g: Links, p: Plan, s: Notes, state: Any, v: Any, d: Any, least: float
) -> Any:
    """Put the unit of ``v`` on ``d``.

    A single vertex keeps its position or, as often, moves to where its inputs have arrived:
    insertion on an alternative machine after Mastrolilli and Gambardella (2000). A share of the
    moves goes as late as its tail allows: where devices are crowded early and idle later, what need
    not be early makes room. Its head and tail there bound the result from below, because no vertex
    before it changes its head and none after it its tail.
    """
    unit = a.unit[v]
    home = np.int64(p.device[v])
    if d == home or not may_go(a, p, unit, d):
        return False
    if a.unit_start[unit + 1] - a.unit_start[unit] > 1:
        move_unit(a, g, p, s, unit, d)
        return True
    head, tail = 0.0, 0.0
    for e in range(a.in_start[v], a.in_start[v + 1]):
        u = a.in_source[e]
        head = max(head, p.end[u] + max(0.0, crossing_time(a, a.in_tensor[e], p.device[u], d)))
    for e in range(a.out_start[v], a.out_start[v + 1]):
        w = a.out_target[e]
        crossing = max(0.0, crossing_time(a, a.out_tensor[e], d, p.device[w]))
        tail = max(tail, crossing + p.run[w] + p.tail[w])
    to = i = np.int64(p.position[v])
    draw = uniform(state)
    if draw < 0.5 * (1.0 + g.later):
        low, high = window(a, p, v, _REACH)
        latest = least - tail - run_time(a, v, d)
        to = position_at(p, v, low, high, max(head, latest) if draw < g.later else head)
    x = last_before(p, d, to if to <= i else to + 1)
    y = p.after[x] if x >= 0 else p.first[d]
    if x >= 0:
        head = max(head, p.end[x])
    if y >= 0:
        tail = max(tail, p.run[y] + p.tail[y])
    if head + run_time(a, v, d) + tail > least:
        return False
    p.used[home] -= a.need[unit]
    p.used[d] += a.need[unit]
    move(a, g, p, s, v, d, to)
    return True


@inner
def chain(a: Arrays, g: Links, p: Plan, s: Notes, state: Any, v: Any, d: Any) -> Any:
    """Put the units along a random walk from ``v`` on ``d`` together."""
    for _ in range(2 + below(state, _CHAIN - 1)):
        unit = a.unit[v]
        if p.device[v] != d:
            if not may_go(a, p, unit, d):
                break
            move_unit(a, g, p, s, unit, d)
        v = neighbour(a, v, state)
    return s.counts[MOVED] > 0


@inner
def _swapped(a: Arrays, g: Links, p: Plan, w: Any, v: Any) -> Any:
    """Return the longest path through either of two neighbours on a device if ``v`` precedes ``w``.

    Nothing before both or after both changes (Balas and Vazacopoulos 1998), so the heads of their
    predecessors and the tails of their successors remain valid.
    """
    x, y = p.before[w], p.after[v]
    head, tail = (p.end[x] if x >= 0 else 0.0), (p.run[y] + p.tail[y] if y >= 0 else 0.0)
    later, rest = 0.0, 0.0
    for e in range(a.in_start[v], a.in_start[v + 1]):
        head = max(head, p.end[a.in_source[e]] + p.delay[e])
    for e in range(a.in_start[w], a.in_start[w + 1]):
        later = max(later, p.end[a.in_source[e]] + p.delay[e])
    for e in range(a.out_start[w], a.out_start[w + 1]):
        z = a.out_target[e]
        tail = max(tail, p.delay[g.in_of_out[e]] + p.run[z] + p.tail[z])
    for e in range(a.out_start[v], a.out_start[v + 1]):
        z = a.out_target[e]
        rest = max(rest, p.delay[g.in_of_out[e]] + p.run[z] + p.tail[z])
    later = max(later, head + p.run[v])
    rest = max(rest, p.run[w] + tail)
    return max(head + p.run[v] + rest, later + p.run[w] + tail)


@inner
def before_previous(a: Arrays, g: Links, p: Plan, s: Notes, v: Any, least: float) -> Any:
    """Swap a vertex with its predecessor on the device (N5 on a critical block)."""
    w = p.before[v]
    if w < 0:
        return False
    n = p.device.shape[0]
    low, _ = window(a, p, v, n)
    if low <= p.position[w]:
        if _swapped(a, g, p, w, v) > least:
            return False
        move(a, g, p, s, v, np.int64(p.device[v]), np.int64(p.position[w]))
        return True
    _, high = window(a, p, w, n)
    if high < p.position[v] or _swapped(a, g, p, w, v) > least:
        return False
    move(a, g, p, s, w, np.int64(p.device[v]), np.int64(p.position[v]))
    return True


@inner
def past_block(a: Arrays, g: Links, p: Plan, s: Notes, state: Any, v: Any) -> Any:
    """Move a vertex before or after several neighbours on its device (N6 on a block)."""
    earlier = uniform(state) < 0.5
    return _past(a, g, p, s, v, earlier, 1 + below(state, _BLOCK), False)


@inner
def block_end(a: Arrays, g: Links, p: Plan, s: Notes, state: Any, v: Any) -> Any:
    """Move a vertex to the start or end of its block, which its device runs without a pause (N6).

    If it cannot go there, it goes as far as possible.
    """
    return _past(a, g, p, s, v, uniform(state) < 0.5, p.device.shape[0], True)


@inner
def _past(
    a: Arrays, g: Links, p: Plan, s: Notes, v: Any, earlier: Any, most: Any, joined: Any
) -> Any:
    """Move a vertex past a number of neighbours, optionally only up to a pause."""
    low, high = window(a, p, v, p.device.shape[0])
    w = v
    for _ in range(most):
        x = p.before[w] if earlier else p.after[w]
        if x < 0 or p.position[x] < low or p.position[x] > high:
            break
        pause = p.start[w] - p.end[x] if earlier else p.start[x] - p.end[w]
        if joined and pause > 0.0:
            break
        w = x
    if w == v:
        return False
    move(a, g, p, s, v, np.int64(p.device[v]), np.int64(p.position[w]))
    return True


@inner
def anywhere(a: Arrays, g: Links, p: Plan, s: Notes, state: Any, v: Any, reach: Any) -> Any:
    """Give a vertex any position between its predecessors and successors."""
    low, high = window(a, p, v, reach)
    if high <= low:
        return False
    to = low + below(state, high - low + 1)
    if to == p.position[v]:
        return False
    move(a, g, p, s, v, np.int64(p.device[v]), to)
    return True


@inner
def exchange(a: Arrays, g: Links, p: Plan, s: Notes, v: Any, w: Any) -> Any:
    """Exchange the devices of two units."""
    one, other = a.unit[v], a.unit[w]
    d, e = np.int64(p.device[v]), np.int64(p.device[w])
    if d == e:
        return False
    p.used[d] -= a.need[one]
    p.used[e] -= a.need[other]
    allowed = may_go(a, p, one, e) and may_go(a, p, other, d)
    p.used[d] += a.need[one]
    p.used[e] += a.need[other]
    # Each was checked as if the other had not moved.
    if not allowed or (a.may_block and _joined(a, one, other)):
        return False
    move_unit(a, g, p, s, one, e)
    move_unit(a, g, p, s, other, d)
    return True


@inner
def transfer(g: Links, p: Plan, s: Notes, state: Any, v: Any) -> Any:
    """Toggle whether a tensor of a vertex is sent eagerly."""
    made = g.made_start[v + 1] - g.made_start[v]
    if made == 0:
        return False
    tensor = g.made[g.made_start[v] + below(state, made)]
    p.eager[tensor] = not p.eager[tensor]
    s.counts[FLIPPED] = tensor
    return True


@inner
def _joined(a: Arrays, one: Any, other: Any) -> Any:
    """Return whether an edge joins two units."""
    for i in range(a.unit_start[one], a.unit_start[one + 1]):
        v = a.unit_vertex[i]
        for e in range(a.in_start[v], a.in_start[v + 1]):
            if a.unit[a.in_source[e]] == other:
                return True
        for e in range(a.out_start[v], a.out_start[v + 1]):
            if a.unit[a.out_target[e]] == other:
                return True
    return False
