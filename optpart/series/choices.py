"""The compiled search for choices of devices for the vertices of one part."""

from __future__ import annotations

from typing import Any

import numpy as np

from optpart.kernels.compiled import kernel
from optpart.series.kernel import grown, longer
from optpart.series.lattice import NEVER
from optpart.series.sequencing import Body, sequenced
from optpart.series.weights import FEWER_STEPS, SCALE, STEPS, Steps, tabulate, weigh


@kernel
def choices(
    body: Body,
    steps: Steps,
    direct: Any,
    join_run: Any,
    join_need: int,
    room: Any,
    cost: Any,
    join_cost: Any,
    after: Any,
    limit0: Any,
    best_only: bool,
    slack: int,
    most: int,
    nodes: int,
    orders: int,
) -> Any:
    """Search for the choices of devices for a part whose value is below a limit.

    Let ``T`` be the time from the end of the cut vertex before the part to the start of the one
    after it. ``T`` is at least the length of each chain of the part, with its crossings; the load
    of each device, since all vertices of the part run between the two; and the crossing between
    the two. So it is at least every weighted mean of these. For given weights, such a mean is a sum
    over the vertices and links of the chains, as is the cost of memory. So the least
    continuation of a partial choice is known exactly: for the chain in work, it depends on the
    device of its last vertex alone, and every other chain adds its least. A partial choice is left
    once the mean and the cost reach the limit for some weights and some dual. Where a chain begins,
    new weights suit what is decided by then.

    Parameters
    ----------
    direct : ndarray, length k
        When the input of the cut vertex after the part from the one before it arrives.
    join_run, join_need : ndarray of length k, int
        Ticks and memory of the cut vertex after the part. If there is none, one device with 0.
    room : ndarray, length k
        Memory that the part may take.
    cost, join_cost, after, limit0 : ndarray
        Of every dual: cost of memory (duals × m × k and duals × k), what follows the part
        (duals × k), and the limit of the *value*, which is the sum of both and the time.
    best_only : bool
        Whether the limit of the first dual falls to the best choice found.
    slack : int
        Choices that can be better than the limit by no more than this are given up.
    most, nodes, orders : int
        Choices to return at the same time; nodes to visit; and, for each choice, in the search for
        the best order.

    Returns
    -------
    device, start : ndarray, choices × m
        Device of each vertex, and starts in a schedule.
    end : ndarray
        Device of the cut vertex after the part.
    low, time : ndarray
        A lower bound of the time to the end of that vertex, and the time of the schedule.
    value : ndarray
        Lower bound of the value by the first dual.
    dropped : int
        The least value, by the first dual, of choices given up for ``most`` or ``nodes``.
    """
    chain, last, run, way, away = steps
    need = body.need
    m, k = run.shape
    duals, ends = len(cost), len(join_run)
    chains = chain[m - 1] + 1
    kinds = chains + k + 1
    limit = limit0.copy()
    # Tables for the first dual: with the best weights, each kind alone, and, once a chain begins,
    # with the best weights there. Then one for every other dual.
    own = kinds + chains
    tables = own + duals - 1
    weight = np.zeros((tables, kinds), dtype=np.int64)
    rest = np.empty((tables, m, k), dtype=np.int64)
    begin = np.empty((tables, chains + 1), dtype=np.int64)
    base = np.empty(tables, dtype=np.int64)
    fixed = np.zeros(kinds, dtype=np.int64)
    picked = np.zeros(m, dtype=np.int64)
    made = np.zeros((m + 1, tables), dtype=np.int64)
    # The way down: devices to try at each vertex, best first, and what has been chosen.
    tries = np.empty((m, k), dtype=np.int64)
    score = np.empty((m, k), dtype=np.int64)
    width = np.empty(m, dtype=np.int64)
    at = np.empty(m, dtype=np.int64)
    device = np.zeros(m, dtype=np.int64)
    start = np.empty(m, dtype=np.int64)
    used = np.zeros(k, dtype=np.int64)
    out = 256
    o_device = np.empty((out, m), dtype=np.int64)
    o_start = np.empty((out, m), dtype=np.int64)
    o_end = np.empty(out, dtype=np.int64)
    o_low = np.empty(out, dtype=np.int64)
    o_time = np.empty(out, dtype=np.int64)
    o_value = np.empty(out, dtype=np.int64)
    count = visited = 0
    dropped = np.int64(NEVER)
    # The device of the cut vertex with the best prospects goes first.
    order: Any = np.empty(ends, dtype=np.int64)
    prospects = np.full(ends, NEVER)
    for e in range(ends):
        place: Any = e
        if max(join_run[e], direct[e], after[0, e]) < NEVER and join_need <= room[e]:
            weight[0] = 0
            weight[0, chains:] = (1 << SCALE) // (k + 1)
            tabulate(weight[0], steps, cost[0], e, 0, picked, rest[0], begin[0])
            prospects[e] = begin[0, 0] + ((join_run[e] + join_cost[0, e] + after[0, e]) << SCALE)
        while place > 0 and prospects[order[place - 1]] > prospects[e]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = e
    for e in order:
        if prospects[e] >= NEVER:
            continue
        fixed[:] = 0
        fixed[kinds - 1] = direct[e]
        hopeless = False
        for t in range(tables):
            j = max(0, t - own + 1)
            if after[j, e] >= NEVER:
                hopeless = True
                break
            base[t] = (join_run[e] + join_cost[j, e] + after[j, e]) << SCALE
            if kinds < t < own:
                continue
            if t == 0 or t >= own:
                weight[t] = (1 << SCALE) // kinds
                weight[t, 0] += (1 << SCALE) % kinds
                weigh(weight[t], steps, cost[j], e, 0, fixed, STEPS, picked, rest[t], begin[t])
            else:
                weight[t] = 0
                weight[t, t - 1] = 1 << SCALE
                tabulate(weight[t], steps, cost[j], e, 0, picked, rest[t], begin[t])
            made[0, t] = weight[t, kinds - 1] * direct[e]
            if base[t] + made[0, t] + begin[t, 0] >= limit[j] << SCALE:
                hopeless = True
                break
        if hopeless:
            continue
        used[:] = 0
        used[e] += join_need
        x = 0
        width[0] = -1
        while x >= 0:
            if x == m:
                spare = np.int64(NEVER)
                for j in range(duals):
                    left = limit[j] - join_run[e] - join_cost[j, e] - after[j, e]
                    for y in range(m):
                        left -= cost[j, y, device[y]]
                    if j == 0:
                        first_spare = left
                    spare = min(spare, left)
                low, time = sequenced(body, device, e, direct[e], spare, orders, start)
                if time >= 0:
                    if count == out:
                        out *= 2
                        o_device = grown(o_device, out)
                        o_start = grown(o_start, out)
                        o_end = longer(o_end, out)
                        o_low = longer(o_low, out)
                        o_time = longer(o_time, out)
                        o_value = longer(o_value, out)
                    o_device[count] = device
                    o_start[count] = start
                    o_end[count] = e
                    o_low[count] = low + join_run[e]
                    o_time[count] = time + join_run[e]
                    o_value[count] = limit[0] - first_spare + low
                    count += 1
                    if best_only:
                        limit[0] = o_value[count - 1]
                    elif count == most:
                        # Only the better half goes on.
                        limit[0] = np.sort(o_value[:count])[count // 2]
                        dropped = min(dropped, limit[0])
                        better = np.flatnonzero(o_value[:count] < limit[0])
                        count = len(better)
                        o_device[:count] = o_device[better]
                        o_start[:count] = o_start[better]
                        o_end[:count] = o_end[better]
                        o_low[:count] = o_low[better]
                        o_time[:count] = o_time[better]
                        o_value[:count] = o_value[better]
                x -= 1
                used[device[x]] -= need[x]
                continue
            c = chain[x]
            before = device[x - 1] if x > 0 else 0
            if width[x] < 0:
                visited += 1
                width[x] = at[x] = 0
                if x > 0 and last[x - 1]:
                    t = kinds + c
                    fixed[:] = 0
                    fixed[kinds - 1] = direct[e]
                    paid = np.int64(0)
                    b = 0
                    for y in range(x):
                        d = device[y]
                        fixed[chain[y]] += way[y, b, d] + run[y, d]
                        fixed[chain[y]] += away[e, y, d] if last[y] else 0
                        fixed[chains + d] += run[y, d]
                        paid += cost[0, y, d]
                        b = d
                    weight[t] = weight[t - 1 if c > 1 else 0]
                    weigh(
                        weight[t], steps, cost[0], e, x, fixed, FEWER_STEPS, picked, rest[t],
                        begin[t],
                    )  # fmt: skip
                    made[x, t] = paid << SCALE
                    for y in range(kinds):
                        made[x, t] += weight[t, y] * fixed[y]
                for d in range(k):
                    if used[d] + need[x] > room[d]:
                        continue
                    if run[x, d] >= NEVER or way[x, before, d] >= NEVER or rest[0, x, d] >= NEVER:
                        continue
                    most_likely = np.int64(-NEVER)
                    for t in range(tables):
                        if kinds + c < t < own:
                            continue
                        j, w = max(0, t - own + 1), weight[t, c]
                        total = (
                            base[t]
                            + made[x, t]
                            + w * way[x, before, d]
                            + (w + weight[t, chains + d]) * run[x, d]
                            + (cost[j, x, d] << SCALE)
                            + rest[t, x, d]
                            + begin[t, c + 1]
                        )
                        if total >= limit[j] << SCALE:
                            most_likely = np.int64(NEVER)
                            break
                        if j == 0:
                            most_likely = max(most_likely, total)
                    total = most_likely
                    if total >= NEVER:
                        continue
                    z = width[x]
                    while z > 0 and score[x, z - 1] > total:
                        score[x, z] = score[x, z - 1]
                        tries[x, z] = tries[x, z - 1]
                        z -= 1
                    score[x, z] = total
                    tries[x, z] = d
                    width[x] += 1
            if at[x] == width[x]:
                x -= 1
                if x >= 0:
                    used[device[x]] -= need[x]
                continue
            d, total = tries[x, at[x]], score[x, at[x]]
            at[x] += 1
            if total >= limit[0] << SCALE:
                continue
            if visited >= nodes or total >= (limit[0] - slack) << SCALE:
                dropped = min(dropped, -((-total) >> SCALE))
                continue
            far = away[e, x, d] if last[x] else np.int64(0)
            for t in range(tables):
                if kinds + c < t < own:
                    continue
                w = weight[t, c]
                made[x + 1, t] = (
                    made[x, t]
                    + w * (way[x, before, d] + far)
                    + (w + weight[t, chains + d]) * run[x, d]
                    + (cost[max(0, t - own + 1), x, d] << SCALE)
                )
            device[x] = d
            used[d] += need[x]
            x += 1
            if x < m:
                width[x] = -1
    return (
        o_device[:count].copy(),
        o_start[:count].copy(),
        o_end[:count].copy(),
        o_low[:count].copy(),
        o_time[:count].copy(),
        o_value[:count].copy(),
        dropped,
    )
