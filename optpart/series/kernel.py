"""The compiled loop: labels of one downset after the other, with dominance and bounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from optpart.kernels.compiled import inner, kernel
from optpart.series.lattice import APART, NEVER, SAME

#: Kept labels of the same downset with which a label is compared.
_MOST_COMPARED = 4000

#: Labels kept of all downsets of one size, which limits the memory taken.
_MOST_KEPT = 150_000


@inner
def paid(price: Any, dual: int, memory: Any, capacity: Any, shift: int) -> Any:
    """Return what memory costs less what all that there is would cost, rounded down."""
    total = np.int64(0)
    for d in range(len(capacity)):
        if capacity[d] >= 0:
            total += price[dual, d] * (memory[d] - capacity[d])
    return total >> shift


@inner
def _bound(
    time: Any,
    cost: int,
    memory: Any,
    node: int,
    devices: int,
    slot_first: Any,
    slot_vertex: Any,
    inside: Any,
    remain: Any,
    rest_cost: Any,
    slack: Any,
    price: Any,
    shift: int,
    capacity: Any,
    open_end: bool,
    after: Any,
    ended: int,
) -> int:
    """Return the largest completion bound over all price vectors."""
    best = np.int64(-NEVER)
    first, last = slot_first[node], slot_first[node + 1]
    for j in range(len(price)):
        longest = time[0] if open_end else np.int64(0)
        if ended >= 0:
            longest = time[0] + after[j, ended]
        for s in range(first, last):
            v = slot_vertex[s]
            if inside[v] == 0:
                continue
            least = np.int64(NEVER)
            for d in range(devices):
                at = time[1 + devices + (s - first) * devices + d]
                if at < NEVER:
                    least = min(least, at + remain[j, v, d])
            longest = max(longest, least)
        total = longest + rest_cost[j, node] + cost
        if slack:
            total += paid(price, j, memory, capacity, shift)
        best = max(best, total)
    return int(best)


@kernel
def advance(
    devices: int,
    level: Any,
    slot_first: Any,
    slot_vertex: Any,
    step_first: Any,
    step_vertex: Any,
    step_slot: Any,
    step_to: Any,
    step_need: Any,
    move_first: Any,
    move_from: Any,
    move_delay: Any,
    move_rule: Any,
    delays: Any,
    duration: Any,
    inside: Any,
    remain: Any,
    rest_cost: Any,
    price: Any,
    shift: int,
    capacity: Any,
    rest_need: Any,
    place_cost: Any,
    after: Any,
    time0: Any,
    cost0: Any,
    memory0: Any,
    order_of: Any,
    rest: Any,
    arc_first: Any,
    arc_to: Any,
    arc_delay: Any,
    upper: int,
    beam: int,
    most: int,
    pareto: bool,
    whole: bool,
    open_end: bool,
    by_end: bool,
) -> Any:
    """Extend labels through all downsets of a part.

    Returns
    -------
    time, cost, memory, bound : ndarray
        The labels of the whole part.
    last : ndarray
        Their entries in the history below.
    history : ndarray, entries × 3
        For every label made: the entry before (−1 − i for label i of the start), vertex, device.
    dropped : int
        The least bound of a label that was given up because there were too many, or more than
        ``most`` had been made.
    made : int
        The number of labels.
    """
    nodes = len(slot_first) - 1
    width = 1 + devices
    for node in range(nodes):
        width = max(width, 1 + devices + (slot_first[node + 1] - slot_first[node]) * devices)
    count0 = len(time0)
    time = np.zeros((count0, width), dtype=np.int64)
    time[:, : time0.shape[1]] = time0
    cost = cost0.copy()
    memory = memory0.copy()
    bound = np.zeros(count0, dtype=np.int64)
    where = np.zeros(count0, dtype=np.int64)
    entry = -1 - np.arange(count0)
    history = np.zeros((1024, 3), dtype=np.int64)
    written = 0
    dropped = np.int64(NEVER)
    made = 0
    steps = len(level) - 2
    head = np.zeros((len(order_of), devices), dtype=np.int64)
    load = np.zeros(1 << devices, dtype=np.int64)
    for size in range(steps):
        keep = max(1, min(beam, _MOST_KEPT // max(1, level[size + 2] - level[size + 1])))
        # Extend every label of this size.
        room = max(64, 4 * len(time))
        n_time = np.empty((room, width), dtype=np.int64)
        n_cost = np.empty(room, dtype=np.int64)
        n_memory = np.empty((room, devices), dtype=np.int64)
        n_bound = np.empty(room, dtype=np.int64)
        n_where = np.empty(room, dtype=np.int64)
        n_from = np.empty(room, dtype=np.int64)
        n_vertex = np.empty(room, dtype=np.int64)
        n_device = np.empty(room, dtype=np.int64)
        count = 0
        final = size == steps - 1
        for i in range(len(time)):
            if made >= most:
                dropped = min(dropped, bound[i])
                continue
            node = where[i]
            for step in range(step_first[node], step_first[node + 1]):
                v = step_vertex[step]
                slot = step_slot[step]
                to = step_to[step]
                for d in range(devices):
                    begin = time[i, 1 + devices + slot * devices + d]
                    if begin >= NEVER or duration[v, d] < 0:
                        continue
                    begin = max(begin, time[i, 1 + d])
                    if (
                        pareto
                        and capacity[d] >= 0
                        and (memory[i, d] + step_need[step] > capacity[d])
                    ):
                        continue
                    if count == room:
                        room *= 2
                        n_time = grown(n_time, room)
                        n_memory = grown(n_memory, room)
                        n_cost = longer(n_cost, room)
                        n_bound = longer(n_bound, room)
                        n_where = longer(n_where, room)
                        n_from = longer(n_from, room)
                        n_vertex = longer(n_vertex, room)
                        n_device = longer(n_device, room)
                    end = begin + duration[v, d]
                    row = n_time[count]
                    # In a closed part nothing outlasts the last vertex.
                    row[0] = max(time[i, 0], end) if open_end else (end if final else 0)
                    for e in range(devices):
                        row[1 + e] = time[i, 1 + e]
                    row[1 + d] = end
                    used = 1 + devices
                    alive = True
                    for m in range(move_first[step], move_first[step + 1]):
                        source = move_from[m]
                        sent = move_delay[m]
                        rule = move_rule[m]
                        w = slot_vertex[slot_first[to] + m - move_first[step]]
                        possible = False
                        for e in range(devices):
                            at = (
                                time[i, 1 + devices + source * devices + e]
                                if source >= 0
                                else np.int64(0)
                            )
                            if duration[w, e] < 0:
                                at = np.int64(NEVER)
                            if sent >= 0 and at < NEVER:
                                delay = delays[sent, d, e]
                                at = max(at, end + delay) if delay < NEVER else np.int64(NEVER)
                            if (rule == SAME and e != d) or (rule == APART and e == d):
                                at = np.int64(NEVER)
                            if at < NEVER:
                                possible = True
                            row[used + e] = at
                        used += devices
                        if not possible:
                            alive = False
                            break
                    if not alive:
                        continue
                    for x in range(used, width):
                        row[x] = 0
                    _lift(row, devices, slot_first[to + 1] - slot_first[to], begin)
                    n_cost[count] = cost[i] + place_cost[v, d]
                    fits = True
                    total_free = np.int64(0)
                    unlimited = False
                    for e in range(devices):
                        taken = memory[i, e] + (step_need[step] if e == d else 0)
                        if pareto and whole:
                            if capacity[e] < 0:
                                taken = np.int64(0)
                                unlimited = True
                            else:
                                total_free += capacity[e] - taken
                                # More room than all that is left to place is no advantage.
                                taken = max(taken, capacity[e] - rest_need[to])
                        n_memory[count, e] = taken
                    if pareto and whole and not unlimited and total_free < rest_need[to]:
                        fits = False
                    if not fits:
                        continue
                    made += 1
                    value = _bound(
                        row,
                        n_cost[count],
                        n_memory[count],
                        to,
                        devices,
                        slot_first,
                        slot_vertex,
                        inside,
                        remain,
                        rest_cost,
                        pareto,
                        price,
                        shift,
                        capacity,
                        open_end,
                        after,
                        d if final and not open_end else -1,
                    )
                    if value >= upper:
                        continue
                    if not final and _refuted(
                        row,
                        n_cost[count],
                        n_memory[count],
                        to,
                        devices,
                        slot_first,
                        slot_vertex,
                        inside,
                        remain,
                        rest_cost,
                        pareto,
                        price,
                        shift,
                        capacity,
                        upper,
                        order_of,
                        rest,
                        arc_first,
                        arc_to,
                        arc_delay,
                        delays,
                        duration,
                        head,
                        load,
                    ):
                        continue
                    n_bound[count] = value
                    n_where[count] = to
                    n_from[count] = entry[i]
                    n_vertex[count] = v
                    n_device[count] = d
                    count += 1
        # Keep the best of every node that no other dominates.
        order = np.argsort(n_bound[:count], kind="mergesort")
        order = order[np.argsort(n_where[:count][order], kind="mergesort")]
        kept = np.empty(count, dtype=np.int64)
        total = 0
        begin_node = 0
        current = np.int64(-1)
        for x in range(count):
            c = order[x]
            if n_where[c] != current:
                current = n_where[c]
                begin_node = total
            if total - begin_node >= keep:
                dropped = min(dropped, n_bound[c])
                continue
            dominated = False
            for y in range(begin_node, min(total, begin_node + _MOST_COMPARED)):
                k = kept[y]
                if final and by_end and n_device[k] != n_device[c]:
                    continue
                if _dominates(n_time, n_cost, n_memory, k, c, width, devices, pareto):
                    dominated = True
                    break
            if not dominated:
                kept[total] = c
                total += 1
        kept = kept[:total]
        if written + total > len(history):
            history = grown(history, 2 * (written + total))
        entry = np.empty(total, dtype=np.int64)
        for y in range(total):
            c = kept[y]
            history[written, 0] = n_from[c]
            history[written, 1] = n_vertex[c]
            history[written, 2] = n_device[c]
            entry[y] = written
            written += 1
        time = n_time[kept]
        cost = n_cost[kept]
        memory = n_memory[kept]
        bound = n_bound[kept]
        where = n_where[kept]
    return time, cost, memory, bound, entry, history[:written].copy(), dropped, made


@inner
def _refuted(
    time: Any,
    cost: int,
    memory: Any,
    node: int,
    devices: int,
    slot_first: Any,
    slot_vertex: Any,
    inside: Any,
    remain: Any,
    rest_cost: Any,
    slack: Any,
    price: Any,
    shift: int,
    capacity: Any,
    upper: int,
    order_of: Any,
    rest: Any,
    arc_first: Any,
    arc_to: Any,
    arc_delay: Any,
    delays: Any,
    duration: Any,
    head: Any,
    load: Any,
) -> bool:
    """Return whether the rest of the part cannot end below ``upper`` on any choice of devices."""
    count = len(order_of)
    first, last = slot_first[node], slot_first[node + 1]
    for x in range(count):
        v = order_of[x]
        for d in range(devices):
            head[x, d] = time[1 + d]
            if duration[v, d] < 0:
                head[x, d] = NEVER
    for s in range(first, last):
        v = slot_vertex[s]
        if inside[v]:
            x = inside[v] - 1
            for d in range(devices):
                head[x, d] = max(head[x, d], time[1 + devices + (s - first) * devices + d])
    for x in range(count):
        if not rest[node, x]:
            continue
        v = order_of[x]
        for a in range(arc_first[x], arc_first[x + 1]):
            y = arc_to[a]
            for e in range(devices):
                least = np.int64(NEVER)
                for d in range(devices):
                    if head[x, d] < NEVER and delays[arc_delay[a], d, e] < NEVER:
                        least = min(least, head[x, d] + duration[v, d] + delays[arc_delay[a], d, e])
                head[y, e] = max(head[y, e], least)
    for j in range(len(price)):
        limit = upper - cost - rest_cost[j, node]
        if slack:
            limit -= paid(price, j, memory, capacity, shift)
        load[:] = 0
        begin = np.full(devices, NEVER)
        tail = np.full(devices, NEVER)
        for x in range(count):
            if not rest[node, x]:
                continue
            v = order_of[x]
            mask = 0
            least = np.int64(NEVER)
            for d in range(devices):
                if head[x, d] < NEVER and head[x, d] + remain[j, v, d] < limit:
                    mask |= 1 << d
                    least = min(least, duration[v, d])
                    begin[d] = min(begin[d], head[x, d])
                    tail[d] = min(tail[d], remain[j, v, d] - duration[v, d])
            if mask == 0:
                return True
            load[mask] += least
        for chosen in range(1, 1 << devices):
            room = np.int64(0)
            for d in range(devices):
                if chosen >> d & 1 and begin[d] < NEVER:
                    room += max(0, limit - begin[d] - tail[d] - 1)
            total = np.int64(0)
            part = chosen
            while part:
                total += load[part]
                part = (part - 1) & chosen
            if total > room:
                return True
    return False


@inner
def _lift(row: Any, devices: int, slots: int, begin: int) -> None:
    """Raise times that cannot matter to the least value that can, so that labels compare."""
    if slots == 0:
        for d in range(devices):
            row[1 + d] = row[0]
        return
    # Vertices are placed in the order of their starts.
    for x in range(1, 1 + devices + slots * devices):
        row[x] = max(row[x], begin)
    earliest = np.int64(NEVER)
    for s in range(slots):
        for d in range(devices):
            at = row[1 + devices + s * devices + d]
            if at < NEVER:
                earliest = min(earliest, max(at, row[1 + d]))
    for d in range(devices):
        low = earliest
        for s in range(slots):
            low = min(low, row[1 + devices + s * devices + d])
        row[1 + d] = max(row[1 + d], low)
        for s in range(slots):
            x = 1 + devices + s * devices + d
            row[x] = max(row[x], row[1 + d])


@inner
def _dominates(
    time: Any, cost: Any, memory: Any, one: int, other: int, width: int, devices: int, pareto: bool
) -> bool:
    if pareto:
        for d in range(devices):
            if memory[one, d] > memory[other, d]:
                return False
        for x in range(width):  # noqa: SIM110 - generators do not compile
            if time[one, x] > time[other, x]:
                return False
        return True
    # What is late by some time can be made up by as much less cost.
    spare = cost[other] - cost[one]
    if spare < 0:
        return False
    for x in range(width):  # noqa: SIM110
        if time[one, x] - time[other, x] > spare:
            return False
    return True


@inner
def grown(array: Any, rows: int) -> Any:
    """Return a copy of a table with room for more rows."""
    more = np.empty((rows, array.shape[1]), dtype=array.dtype)
    more[: len(array)] = array
    return more


@inner
def longer(array: Any, rows: int) -> Any:
    """Return a copy of a vector with room for more entries."""
    more = np.empty(rows, dtype=array.dtype)
    more[: len(array)] = array
    return more
