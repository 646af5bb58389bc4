"""The compiled search for choices of devices for the vertices of one part."""

from __future__ import annotations

from typing import Any

import numpy as np

from optpart.exact.series.kernel import cell, cell_bits, grown, ordered
from optpart.exact.series.lattice import NEVER
from optpart.exact.series.sequencing import Body, Sequencing, decided, sequenced
from optpart.exact.series.weights import FEWER_STEPS, SCALE, STEPS, Steps, Tables, tabulate, weigh
from optpart.kernels.compiled import inner, long_kernel
from optpart.kernels.struct import LongCube, LongMatrix, Longs, Struct

#: Columns of the table of choices: device of the cut vertex after the part; lower bound of the time
#: to the end of that vertex, and the time of a schedule; lower bound of the value by the first
#: dual; cell. Then comes the device of each vertex, its start in the schedule, and the memory taken
#: of each device.
END, LOW, TIME, VALUE, _CELL, CHOSEN = range(6)

#: Nodes that take as long as one lower bound of all orders.
_BOUND = 8


class Setting(Struct):
    """The surroundings of a part.

    Attributes
    ----------
    direct : ndarray, length ends
        When the input of the cut vertex after the part from the one before it arrives.
    run, need : ndarray of length ends, int
        Ticks and memory of the cut vertex after the part. If there is none, one device with 0.
    idle : ndarray, ends × k
        Ticks that each device, if it runs any vertex of the part, waits at least from the end of
        the cut vertex before the part to the start of the one after it.
    room : ndarray, length k
        Memory that the part may take.
    cost, end_cost, after : ndarray
        Of every dual: cost of memory (duals × m × k and duals × ends), and what follows the part
        (duals × ends).
    limit : ndarray, length duals
        Of the *value*, which is the sum of both and the time. The first falls as choices are found.
    """

    direct: Longs
    run: Longs
    need: int
    idle: LongMatrix
    room: Longs
    cost: LongCube
    end_cost: LongMatrix
    after: LongMatrix
    limit: Longs


class Effort(Struct):
    """Limits on how far the search goes.

    Attributes
    ----------
    best_only : bool
        Whether the limit of the first dual falls to the best choice found.
    slack : int
        Choices that can be better than the limit by no more than this are given up.
    most, nodes, orders : int
        Choices to return at the same time; nodes to visit; and, for each choice, in the search for
        the best order.
    bits : int
        If not negative, a choice stands for all that take no less time, and whose memory is in the
        same cell of a grid of ``2**bits`` per device; it takes the least memory of any of them.
    """

    best_only: bool
    slack: int
    most: int
    nodes: int
    orders: int
    bits: int


class Trail(Struct):
    """The way down.

    Attributes
    ----------
    tries, score : ndarray, m × k
        Devices to try at each vertex, and their means, best first.
    width, at : ndarray, length m
        How many there are, −1 if that is not known yet; and how many have been tried.
    used, runs : ndarray, length k
        Memory taken, and how many vertices run there.
    base : ndarray, length means
        What the cut vertex after the part, and all that follows it, adds to each mean.
    made : ndarray, (m + 1) × means
        What so many vertices add.
    least : ndarray, length m
        Lower bound of the time by the vertices before each.
    """

    tries: LongMatrix
    score: LongMatrix
    width: Longs
    at: Longs
    used: Longs
    runs: Longs
    base: Longs
    made: LongMatrix
    least: Longs

    @classmethod
    def of(cls, vertices: int, devices: int, means: int) -> Trail:
        """Return the arrays for a part."""
        return cls(
            tries=np.zeros((vertices, devices), dtype=np.int64),
            score=np.zeros((vertices, devices), dtype=np.int64),
            width=np.zeros(vertices, dtype=np.int64),
            at=np.zeros(vertices, dtype=np.int64),
            used=np.zeros(devices, dtype=np.int64),
            runs=np.zeros(devices, dtype=np.int64),
            base=np.zeros(means, dtype=np.int64),
            made=np.zeros((vertices + 1, means), dtype=np.int64),
            least=np.zeros(vertices, dtype=np.int64),
        )


def means(chains: int, devices: int, duals: int) -> int:
    """Return the number of means that bound a choice.

    They are for the first dual: with the best weights, each kind alone, and, once a chain begins,
    with the best weights there. Then comes one for every other dual.
    """
    return _own(chains, chains + devices + 1) + duals - 1


@inner
def _own(chains: int, kinds: int) -> int:
    """Return the number of means for the first dual."""
    return kinds + chains


@long_kernel
def choices(
    body: Body,
    steps: Steps,
    setting: Setting,
    effort: Effort,
    tables: Tables,
    trail: Trail,
    best: Sequencing,
) -> Any:
    """Search for the choices of devices for a part whose value is below a limit.

    Let ``T`` be the time from the end of the cut vertex before the part to the start of the one
    after it. ``T`` is at least the length of each chain of the part, with its crossings; the load
    of each device, and how long it waits if it runs anything, since all vertices of the part run
    between the two; the crossing between the two; and what decided chains take in any order. So it
    is at least every weighted mean of these. For given weights, such a mean is a sum over the
    vertices and links of the chains, as is the cost of memory. So the least continuation of a
    partial choice is known exactly: for the chain in work, it depends on the device of its last
    vertex alone, and every other chain adds its least. A partial choice is left once the mean and
    the cost reach the limit for some weights and some dual. Where a chain begins, new weights suit
    what is decided by then.

    Invariant of the loop: the vertices before position ``x`` have devices, and the memory that they
    take counts as used.

    Returns
    -------
    found : ndarray
        A table of choices. With ``bits``, the devices are those of one of the choices merged.
    count : int
        The number of its rows that count.
    dropped : int
        The least value, by the first dual, of choices given up for ``most`` or ``nodes``.
    visited : int
        Nodes, and what took as long as these.
    """
    device, used, runs, need = best.device, trail.used, trail.runs, body.need
    limit = setting.limit
    m, k = len(device), len(used)
    memory, bits = CHOSEN + 2 * m, cell_bits(setting.room, effort.bits)
    found = np.empty((256, memory + k), dtype=np.int64)
    rows = _filed(found, 0, 256)
    count = visited = 0
    dropped = np.int64(NEVER)
    for e in _promising(steps, setting, tables):
        if not _open(steps, setting, tables, trail, e):
            continue
        for d in range(len(used)):
            used[d] = setting.need if d == e else 0
            runs[d] = 0
        x = 0
        trail.width[0] = -1
        while x >= 0:
            if x == m:
                first, spare = _spare(setting, device, e)
                at, place, code, shorter = count, -1, np.int64(0), spare
                if bits >= 0:
                    code = cell(e, used, setting.room, bits)
                    place = _place(rows, found, code)
                    if rows[place] >= 0:
                        at = rows[place]
                        shorter = min(spare, found[at, LOW] - setting.run[e])
                low, time, bounds = sequenced(
                    body, best, e, setting.direct[e], shorter, effort.orders
                )
                visited += _BOUND * bounds
                if at < count and low < spare:
                    row = found[at]
                    row[VALUE] = min(row[VALUE], limit[0] - first + low)
                    for d in range(k):
                        row[memory + d] = min(row[memory + d], used[d])
                elif time >= 0:
                    if at == len(found):
                        found = grown(found, 2 * count)
                    row = found[at]
                    row[END], row[VALUE], row[_CELL] = e, limit[0] - first + low, code
                    for d in range(k):
                        row[memory + d] = used[d]
                if time >= 0:
                    row = found[at]
                    row[LOW], row[TIME] = low + setting.run[e], time + setting.run[e]
                    for y in range(m):
                        row[CHOSEN + y], row[CHOSEN + m + y] = device[y], best.start[y]
                    if at == count:
                        count += 1
                        if place >= 0:
                            rows[place] = at
                            if 2 * count > len(rows):
                                rows = _filed(found, count, 4 * count)
                    if effort.best_only:
                        limit[0] = row[VALUE]
                    elif count == effort.most:
                        count = _halve(found, count, limit)
                        dropped = min(dropped, limit[0])
                        rows = _filed(found, count if bits >= 0 else 0, len(rows))
                x -= 1
                used[device[x]] -= need[x]
                runs[device[x]] -= 1
                continue
            if trail.width[x] < 0:
                visited += 1
                trail.least[x] = trail.least[x - 1] if x > 0 else setting.direct[e]
                if x > 0 and steps.last[x - 1]:
                    visited += _BOUND
                    trail.least[x] = max(trail.least[x], decided(body, best, e, x))
                    _renew(steps, setting, tables, trail, device, e, x)
                _rank(body, steps, setting, tables, trail, device, e, x)
            if trail.at[x] == trail.width[x]:
                x -= 1
                if x >= 0:
                    used[device[x]] -= need[x]
                    runs[device[x]] -= 1
                continue
            d, total = trail.tries[x, trail.at[x]], trail.score[x, trail.at[x]]
            trail.at[x] += 1
            if total >= limit[0] << SCALE:
                continue
            if visited >= effort.nodes or total >= (limit[0] - effort.slack) << SCALE:
                dropped = min(dropped, -((-total) >> SCALE))
                continue
            before = device[x - 1] if x > 0 else 0
            _add(steps, setting, tables, trail, e, x, before, d)
            device[x] = d
            used[d] += need[x]
            runs[d] += 1
            x += 1
            if x < m:
                trail.width[x] = -1
    return found, count, dropped, visited


@inner
def _filed(found: Any, count: int, size: int) -> Any:
    """Return a hash table of some places with the rows of all choices; −1 where there is none."""
    rows = np.full(size, -1, dtype=np.int64)
    for i in range(count):
        rows[_place(rows, found, found[i, _CELL])] = i
    return rows


@inner
def _place(rows: Any, found: Any, code: int) -> Any:
    """Return the place of the choice in a cell, or one that is free."""
    place = (code ^ (code >> 9) ^ (code >> 23)) % len(rows)
    while rows[place] >= 0 and found[rows[place], _CELL] != code:
        place = (place + 1) % len(rows)
    return place


@inner
def _promising(steps: Steps, setting: Setting, tables: Tables) -> Any:
    """Return the devices of the cut vertex after the part, those with the best prospects first."""
    k = steps.run.shape[1]
    chains, kinds = tables.begin.shape[1] - 1, tables.weight.shape[1]
    ends = len(setting.run)
    order, prospects = np.empty(ends, dtype=np.int64), np.empty(ends, dtype=np.int64)
    count = 0
    for e in range(ends):
        after = setting.after[0, e]
        if max(setting.run[e], setting.direct[e], after) >= NEVER or setting.need > setting.room[e]:
            continue
        for y in range(kinds):
            tables.weight[0, y] = 0 if y < chains else (1 << SCALE) // (k + 1)
        tabulate(steps, tables, 0, setting.cost[0], e, 0)
        known = (setting.run[e] + setting.end_cost[0, e] + after) << SCALE
        prospects[e] = tables.begin[0, 0] + known
        if prospects[e] >= NEVER:
            continue
        place = count
        count += 1
        while place > 0 and prospects[order[place - 1]] > prospects[e]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = e
    return order[:count]


@inner
def _open(steps: Steps, setting: Setting, tables: Tables, trail: Trail, e: int) -> Any:
    """Fill in the tables for a device of the cut vertex; return whether there is any hope."""
    weight, limit = tables.weight, setting.limit
    kinds = weight.shape[1]
    own = _own(tables.begin.shape[1] - 1, kinds)
    for y in range(kinds):
        tables.fixed[y] = 0
    tables.fixed[kinds - 1] = setting.direct[e]
    for t in range(len(weight)):
        j = max(0, t - own + 1)
        if setting.after[j, e] >= NEVER:
            return False
        known = setting.run[e] + setting.end_cost[j, e] + setting.after[j, e]
        trail.base[t] = known << SCALE
        if kinds < t < own:
            continue
        best = t == 0 or t >= own
        for y in range(kinds):
            weight[t, y] = (1 << SCALE) // kinds if best else 0
        if best:
            weight[t, 0] += (1 << SCALE) % kinds
            weigh(steps, tables, t, setting.cost[j], e, 0, STEPS)
        else:
            weight[t, t - 1] = 1 << SCALE
            tabulate(steps, tables, t, setting.cost[j], e, 0)
        trail.made[0, t] = 0
        crossing = weight[t, kinds - 1] * setting.direct[e]
        if trail.base[t] + crossing + tables.begin[t, 0] >= limit[j] << SCALE:
            return False
    return True


@inner
def _spare(setting: Setting, device: Any, e: int) -> Any:
    """Return what the limits leave to the time of a choice, by the first dual and by any."""
    first = least = np.int64(NEVER)
    for j in range(len(setting.limit)):
        left = setting.limit[j] - setting.run[e] - setting.end_cost[j, e] - setting.after[j, e]
        for y in range(len(device)):
            left -= setting.cost[j, y, device[y]]
        if j == 0:
            first = left
        least = min(least, left)
    return first, least


@inner
def _halve(found: Any, count: int, limit: Any) -> Any:
    """Lower the limit to the median, and keep what is below; return how many choices are."""
    limit[0] = found[ordered(found, count, VALUE, VALUE)[count // 2], VALUE]
    kept = 0
    for i in range(count):
        if found[i, VALUE] < limit[0]:
            for x in range(found.shape[1]):
                found[kept, x] = found[i, x]
            kept += 1
    return kept


@inner
def _renew(
    steps: Steps, setting: Setting, tables: Tables, trail: Trail, device: Any, e: int, x: int
) -> None:
    """Find the best weights where a chain begins, for what has been chosen before it."""
    fixed, weight = tables.fixed, tables.weight
    chains, kinds = tables.begin.shape[1] - 1, len(fixed)
    c = steps.chain[x]
    t = kinds + c
    for y in range(kinds):
        fixed[y] = 0
    fixed[kinds - 1] = trail.least[x]
    for d in range(len(trail.runs)):
        if trail.runs[d] > 0:
            fixed[chains + d] = setting.idle[e, d]
    cost = np.int64(0)
    before = 0
    for y in range(x):
        d = device[y]
        far = steps.out[e, y, d] if steps.last[y] else 0
        fixed[steps.chain[y]] += steps.way[y, before, d] + steps.run[y, d] + far
        fixed[chains + d] += steps.run[y, d]
        cost += setting.cost[0, y, d]
        before = d
    for y in range(kinds):
        weight[t, y] = weight[t - 1 if c > 1 else 0, y]
    weigh(steps, tables, t, setting.cost[0], e, x, FEWER_STEPS)
    trail.made[x, t] = cost << SCALE
    for y in range(kinds - 1):
        trail.made[x, t] += weight[t, y] * fixed[y]


@inner
def _rank(
    body: Body,
    steps: Steps,
    setting: Setting,
    tables: Tables,
    trail: Trail,
    device: Any,
    e: int,
    x: int,
) -> None:
    """Fill in the devices that a vertex can be on, those with the least mean first."""
    before = device[x - 1] if x > 0 else 0
    trail.width[x] = trail.at[x] = 0
    for d in range(len(trail.used)):
        if trail.used[d] + body.need[x] > setting.room[d]:
            continue
        if steps.run[x, d] >= NEVER or steps.way[x, before, d] >= NEVER:
            continue
        if tables.rest[0, x, d] >= NEVER:
            continue
        total = _mean(steps, setting, tables, trail, e, x, before, d)
        if total >= NEVER:
            continue
        z = trail.width[x]
        while z > 0 and trail.score[x, z - 1] > total:
            trail.score[x, z] = trail.score[x, z - 1]
            trail.tries[x, z] = trail.tries[x, z - 1]
            z -= 1
        trail.score[x, z] = total
        trail.tries[x, z] = d
        trail.width[x] += 1


@inner
def _mean(
    steps: Steps,
    setting: Setting,
    tables: Tables,
    trail: Trail,
    e: int,
    x: int,
    before: int,
    d: int,
) -> Any:
    """Return the largest mean by the first dual; ``NEVER`` if any reaches its limit."""
    weight = tables.weight
    chains, kinds = tables.begin.shape[1] - 1, weight.shape[1]
    own = _own(chains, kinds)
    c = steps.chain[x]
    busy = _busy(steps, setting, trail, e, x, d)
    largest = np.int64(-NEVER)
    for t in range(len(weight)):
        if kinds + c < t < own:
            continue
        j, w = max(0, t - own + 1), weight[t, c]
        total = (
            trail.base[t]
            + trail.made[x, t]
            + weight[t, kinds - 1] * trail.least[x]
            + w * (steps.way[x, before, d] + steps.run[x, d])
            + weight[t, chains + d] * busy
            + (setting.cost[j, x, d] << SCALE)
            + tables.rest[t, x, d]
            + tables.begin[t, c + 1]
        )
        if total >= setting.limit[j] << SCALE:
            return np.int64(NEVER)
        if j == 0:
            largest = max(largest, total)
    return largest


@inner
def _busy(steps: Steps, setting: Setting, trail: Trail, e: int, x: int, d: int) -> Any:
    """Return what a vertex adds to its device: its run and, if it is the first, the waiting."""
    return steps.run[x, d] + (setting.idle[e, d] if trail.runs[d] == 0 else 0)


@inner
def _add(
    steps: Steps,
    setting: Setting,
    tables: Tables,
    trail: Trail,
    e: int,
    x: int,
    before: int,
    d: int,
) -> None:
    """Add a vertex on a device to all means."""
    weight = tables.weight
    chains, kinds = tables.begin.shape[1] - 1, weight.shape[1]
    own = _own(chains, kinds)
    c = steps.chain[x]
    far = steps.way[x, before, d] + (steps.out[e, x, d] if steps.last[x] else 0)
    busy = _busy(steps, setting, trail, e, x, d)
    for t in range(len(weight)):
        if kinds + c < t < own:
            continue
        w = weight[t, c]
        trail.made[x + 1, t] = (
            trail.made[x, t]
            + w * (far + steps.run[x, d])
            + weight[t, chains + d] * busy
            + (setting.cost[max(0, t - own + 1), x, d] << SCALE)
        )
