"""Destroy operators of large-neighbourhood search: plain functions ``(state, rng) → state``.

Each frees whole assignment units, of about ``state.size`` vertices together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optpart.search.state import State

#: Ratio of candidate transfers to freed ones.
_HEAVIEST = 4

#: Maximal number of boundaries that are freed together.
_BOUNDARIES = 3

Ints = NDArray[np.integer]


def time_window(state: State, rng: np.random.Generator) -> State:
    """Free the units that start within a time window."""
    return state.freeing(_window(state, rng, state.size))


def critical_path(state: State, rng: np.random.Generator) -> State:
    """Free a stretch of the critical vertices, on one critical path or several."""
    critical = _critical(state)
    first = int(rng.integers(0, max(1, len(critical) - state.size + 1)))
    return state.freeing(critical[first : first + state.size])


def device_pair(state: State, rng: np.random.Generator) -> State:
    """Free the units that two devices run within a time window."""
    device = state.layout.device
    used = np.unique(device)
    if len(used) < 2:
        return time_window(state, rng)
    last = int(device[np.argmax(state.end)])
    one = last if rng.random() < 0.5 else int(rng.choice(used))
    other = int(rng.choice(used[used != one]))
    both = state.layout.order[np.isin(device[state.layout.order], (one, other))]
    first = int(rng.integers(0, max(1, len(both) - state.size + 1)))
    return state.freeing(both[first : first + state.size])


def boundaries(state: State, rng: np.random.Generator) -> State:
    """Free units around a few places where the work goes from one device to another.

    Boundaries far apart are freed together, because under tight memory what one gains, another must
    give.
    """
    order = state.layout.order
    device = state.layout.device[order]
    changes = np.flatnonzero(device[1:] != device[:-1]) + 1
    if len(changes) == 0:
        return time_window(state, rng)
    most = min(len(changes), _BOUNDARIES, max(1, state.size // 2))
    count = int(rng.integers(1, most + 1))
    places = rng.choice(changes, size=count, replace=False)
    reach = max(1, state.size // (2 * count))
    near = np.abs(np.arange(len(order)) + 0.5 - places[:, None]) < reach
    return state.freeing(order[near.any(axis=0)])


def parts(state: State, rng: np.random.Generator) -> State:
    """Free consecutive parts of the graph, each between two cut vertices, as far as they fit."""
    order = state.layout.order
    ends = np.flatnonzero(state.at.links.cut_vertex[order]) + 1
    if len(ends) == 0:
        return time_window(state, rng)
    first = int(rng.choice(np.r_[0, ends[ends < len(order)]]))
    fitting = ends[(ends > first) & (ends <= first + state.size)]
    last = int(fitting[-1]) if len(fitting) else first + state.size
    return state.freeing(order[first:last])


def subgraph(state: State, rng: np.random.Generator) -> State:
    """Free a unit and its nearest neighbours in the graph."""
    a = state.at.arrays
    first = int(rng.integers(0, len(a.unit)))
    found, seen = [first], {first}
    for v in found:
        near = np.concatenate((
            a.in_source[a.in_start[v] : a.in_start[v + 1]],
            a.out_target[a.out_start[v] : a.out_start[v + 1]],
        ))  # fmt: skip
        rng.shuffle(near)
        for w in near.tolist():
            if w not in seen:
                seen.add(w)
                found.append(w)
        if len(found) >= state.size:
            break
    return state.freeing(np.array(found[: state.size]))


def colocation_groups(state: State, rng: np.random.Generator) -> State:
    """Free consecutively starting colocation groups, and nothing else."""
    a = state.at.arrays
    length = np.diff(a.unit_start)
    groups = np.flatnonzero(length > 1)
    if len(groups) == 0:
        return subgraph(state, rng)
    begin = state.start[a.unit_vertex[a.unit_start[groups]]]
    near = begin[int(rng.integers(0, len(groups)))]
    nearest = groups[np.argsort(np.abs(begin - near), kind="stable")]
    count = int(np.searchsorted(np.cumsum(length[nearest]), state.size)) + 1
    return state.freeing(a.unit_vertex[a.unit_start[nearest[:count]]])


def heaviest_traffic(state: State, rng: np.random.Generator) -> State:
    """Free both ends of some of the longest transfers."""
    a = state.at.arrays
    delay = state.delay
    crossing = np.flatnonzero(delay > 0.0)
    if len(crossing) == 0:
        return random_units(state, rng)
    most = min(len(crossing), _HEAVIEST * state.size)
    heaviest = crossing[np.argpartition(-delay[crossing], most - 1)[:most]]
    chosen = rng.choice(heaviest, size=min(most, max(1, state.size // 2)), replace=False)
    target = np.searchsorted(a.in_start, chosen, side="right") - 1
    return state.freeing(np.concatenate((a.in_source[chosen], target)))


def idle_time(state: State, rng: np.random.Generator) -> State:
    """Free the units around a time at which a device is idle, and critical ones at any time.

    Where the load of the devices decides the makespan, a better schedule fills idle times with work
    of critical devices. Longer idle times are chosen more often; what a device leaves of the
    makespan after its last vertex is one, too.
    """
    order = state.layout.order
    by_device = order[np.argsort(state.layout.device[order], kind="stable")]
    device = state.layout.device[by_device]
    last = np.r_[device[1:] != device[:-1], True]
    until = np.where(last, state.end.max(), np.roll(state.start[by_device], -1))
    # Where transfers take turns, the order of the plan need not be that of the starts.
    idle = np.maximum(0.0, until - state.end[by_device])
    if not idle.any():
        return random_units(state, rng)
    place = int(rng.choice(len(idle), p=idle / idle.sum()))
    here = by_device[device == device[place]]
    apart = np.abs(state.start[here] - state.end[by_device[place]])
    around = here[np.argsort(apart, kind="stable")[: max(1, state.size // 2)]]
    critical = _critical(state)
    count = min(len(critical), max(1, state.size - len(around)))
    return state.freeing(np.concatenate((around, rng.choice(critical, size=count, replace=False))))


def random_units(state: State, rng: np.random.Generator) -> State:
    """Free vertices drawn from a wide window of time."""
    window = _window(state, rng, 8 * state.size)
    return state.freeing(rng.choice(window, size=min(len(window), state.size), replace=False))


def _critical(state: State) -> Ints:
    """Return the vertices on longest paths, in the order of the plan."""
    through = state.end + state.tail
    order = state.layout.order
    critical: Ints = order[through[order] >= through.max() * (1.0 - 1e-9)]
    return critical


def _window(state: State, rng: np.random.Generator, size: int) -> Ints:
    order = state.layout.order
    first = int(rng.integers(-(size // 2), max(1, len(order) - size // 2)))
    return order[max(0, first) : max(1, first + size)]


#: All destroy operators.
FREEING = (
    time_window,
    critical_path,
    device_pair,
    subgraph,
    colocation_groups,
    heaviest_traffic,
    random_units,
    boundaries,
    parts,
    idle_time,
)
