"""The compiled loops of the search: annealing and large neighbourhoods.

A strategy is a row of *slots*: a slot is one choice of the table, such as even replicas with
AllReduce, whose action may differ from group to group by its server.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optpart.applications.training.evaluator_kernel import DONE, Tables, Work, evaluate_chosen
from optpart.kernels.compiled import inner, long_kernel
from optpart.kernels.rng import below, uniform
from optpart.kernels.struct import Floats, IntMatrix, Ints, Struct, Words

#: Penalty for lack of memory: any strategy that fits is better than any that does not.
_PENALTY = 1e18


class Space(Struct):
    """The choices of the search; lists of slots or groups have the starts of each one's part."""

    slots: IntMatrix  # groups × slots: action of each choice, −1 where a group does not have it
    order: Ints  # groups along the forward pass
    near_start: Ints
    near: Ints  # groups that each group shares a tensor with
    related_start: Ints
    related: Ints  # slots with one replica more or less, or the same replicas
    same_start: Ints
    same: Ints  # slots with the same replicas as each slot, itself included


class Objective(Struct):
    """The cost of a strategy of a search space: all that it takes to evaluate one."""

    tables: Tables
    work: Work
    space: Space


class Walk(Struct):
    """The state of a walk through the search space."""

    row: Ints  # groups: the current strategy
    best: Ints  # groups
    old: Ints  # groups: reused memory, the strategy before the latest move
    costs: Floats  # 2: of the current and the best strategy


@inner
def _cost(f: Objective, row: Any) -> Any:
    """Return what is minimised: the lack of memory, then ticks; infinite if a link is missing."""
    tables, chosen, outcome = f.tables, f.work.chosen, f.work.outcome
    for g in range(row.shape[0]):
        chosen[g] = f.space.slots[g, row[g]]
    evaluate_chosen(tables, f.work)
    if outcome[2] != DONE:
        return math.inf
    ticks = float(outcome[0])
    if outcome[1] == 0:
        return ticks
    room = 1.0
    for d in range(tables.capacity.shape[0] - 1):
        room = max(room, min(float(tables.capacity[d]), 1e15))
    return ticks + _PENALTY * (1.0 + min(1.0, outcome[1] / room))


@inner
def _set(space: Space, row: Any, g: int, slot: int) -> None:
    if space.slots[g, slot] >= 0:
        row[g] = slot


@inner
def _move(space: Space, row: Any, state: Any) -> None:
    """Apply one random move to a strategy."""
    n, slots = space.slots.shape
    place = below(state, n)
    g = space.order[place]
    length = 1
    if uniform(state) < 0.5:
        while length < n and uniform(state) < 0.75:
            length += 1
        if uniform(state) < 0.1:
            length = 1 + below(state, n)
    end = min(n, place + length)
    kind = uniform(state)
    if kind < 0.25:  # any slot, for a run
        slot = below(state, slots)
        first, last = space.same_start[slot], space.same_start[slot + 1]
        # One server for all of a long run would be the bottleneck.
        spread = uniform(state) < 0.5
        for i in range(place, end):
            if spread:
                slot = space.same[first + below(state, last - first)]
            _set(space, row, space.order[i], slot)
    elif kind < 0.45:  # a border moves: a run takes the slot before or after it
        slot = row[g]
        if uniform(state) < 0.5 and place > 0:
            slot = row[space.order[place - 1]]
        elif end < n:
            slot = row[space.order[end]]
        for i in range(place, end):
            _set(space, row, space.order[i], slot)
    elif kind < 0.6:  # the slot of a neighbour
        first, last = space.near_start[g], space.near_start[g + 1]
        if last > first:
            _set(space, row, g, row[space.near[first + below(state, last - first)]])
    elif kind < 0.85:  # the same replicas otherwise synchronised, or one replica more or less
        slot = row[g]
        first, last = space.related_start[slot], space.related_start[slot + 1]
        if last > first:
            other = space.related[first + below(state, last - first)]
            for i in range(place, end):
                if row[space.order[i]] == slot:
                    _set(space, row, space.order[i], other)
    else:  # everything of one slot in a run
        old, slot = row[g], below(state, slots)
        for i in range(place, n):
            if row[space.order[i]] == old:
                _set(space, row, space.order[i], slot)


@long_kernel
def cost_of(f: Objective, row: Ints) -> float:
    """Return the cost of one strategy."""
    return float(_cost(f, row))


@inner
def _assign(target: Any, source: Any) -> None:
    for g in range(target.shape[0]):
        target[g] = source[g]


@long_kernel
def anneal(f: Objective, w: Walk, moves: int, hot: float, cold: float, state: Words) -> None:
    """Anneal for a number of moves, from temperature ``hot`` to ``cold``; changes the walk."""
    row, old, best, costs = w.row, w.old, w.best, w.costs
    n = row.shape[0]
    for move in range(moves):
        _assign(old, row)
        _move(f.space, row, state)
        same = True
        for g in range(n):
            if row[g] != old[g]:
                same = False
                break
        if same:
            continue
        cost = _cost(f, row)
        heat = hot * (cold / hot) ** (move / max(1, moves - 1))
        if cost <= costs[0] or uniform(state) < math.exp((costs[0] - cost) / heat):
            costs[0] = cost
            if cost < costs[1]:
                costs[1] = cost
                _assign(best, row)
        else:
            _assign(row, old)


@long_kernel
def rebuild(f: Objective, row: Ints, costs: Floats, free: Ints, moves: int) -> int:
    """Set groups, one after another and twice, to their best slots with all others fixed.

    Changes ``row`` and ``costs``, its cost, where it becomes better. Returns the evaluations, at
    most ``moves``.
    """
    slots = f.space.slots
    done = 0
    for _ in range(2):
        changed = False
        for i in range(free.shape[0]):
            g = free[i]
            kept, tried = row[g], np.int32(-1)
            for slot in range(slots.shape[1]):
                action = slots[g, slot]
                if action < 0 or action == slots[g, kept] or action == tried:
                    continue
                tried = action  # slots of the same action are side by side
                if done >= moves:
                    row[g] = kept
                    return done
                row[g] = slot
                cost = _cost(f, row)
                done += 1
                if cost < costs[0]:
                    costs[0] = cost
                    kept = slot
                    changed = True
            row[g] = kept
        if not changed:
            break
    return done
