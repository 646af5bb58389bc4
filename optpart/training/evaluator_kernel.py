"""The compiled loop of the evaluator: builds, ranks and executes one strategy.

It does what :func:`~optpart.training.compiler.compile_strategy`, the rank of [G] §4.2 and the
simulator do, in whole ticks, and with the same rules for ties: tasks of one device go by the number
of the vertex in the instance, and transfers of one link by the number of the tensor.

Records are rows of integers: a task (``T_*``: vertex or transfer), a copy of a tensor on a device
(``C_*``) and the dependency of a task on a copy (``E_*``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.kernels.compiled import inner, kernel

# Columns of tasks. IN is the first of its dependencies, which end where the next task's begin; OUT
# heads the list of dependencies on it; OWN the list of copies that it makes.
T_TIME, T_RESOURCE, T_RANK, T_TIE, T_WAITING, T_IN, T_OUT, T_OWN = range(8)
T_COLUMNS = 8

# Columns of copies. LINE is the row of the tables that know its bytes and transfer times; REMOTE
# heads (at the producer) or continues (elsewhere) the list of copies on other devices; OWN
# continues the list of the task; USERS counts the tasks that still hold it.
C_TASK, C_DEVICE, C_BYTES, C_LINE, C_TIE, C_REMOTE, C_OWN, C_USERS = range(8)
C_COLUMNS = 8

E_COPY, E_TASK, E_NEXT = range(3)
E_COLUMNS = 3

# Entries of lists of conversions: the samples, the copy that holds them, the next entry.
L_SAMPLES, L_COPY, L_NEXT = range(3)
L_COLUMNS = 3

# Counters.
N_TASKS, N_COPIES, N_EDGES, N_ENTRIES, N_VERTICES, N_STATUS = range(6)

#: A signal queues behind all tensors of equal rank.
_SIGNAL = 1 << 60

#: Outputs of a vertex are told apart by so many bits.
_OUTPUT_BITS = 20

# Status of an evaluation.
DONE, NO_LINK, NO_PAIR, NO_RING = range(4)

# Layouts of tensors.
BATCHED, SUMMED, WHOLE, SIGNAL = range(4)

ALLREDUCE = -2


class Tables(NamedTuple):
    """What does not depend on the strategy.

    ``k`` devices and then ``nccl``; a *class* is an action with the samples it computes: ``2·a``,
    or ``2·a + 1`` for operations that cannot be split; a *part* is a number of samples; *samples*
    are an interval of the batch.
    """

    order: NDArray[np.int32]  # topological order of operations
    group: NDArray[np.int32]  # by operation
    unsplit: NDArray[np.int32]  # by operation: 0 or 1
    resident: NDArray[np.int64]  # by operation
    kind: NDArray[np.int32]  # by device
    tensor_start: NDArray[np.int32]  # by operation; outputs in order, then its signal
    layout: NDArray[np.int32]  # by tensor
    line: NDArray[np.int32]  # by tensor
    sum_row: NDArray[np.int32]  # by tensor; row of the tables of collectives
    in_start: NDArray[np.int32]  # by operation
    in_tensor: NDArray[np.int32]
    in_producer: NDArray[np.int32]
    link: NDArray[np.int32]  # (k+1) × (k+1): class of link, −1 where none
    lines: int
    # By part, then line:
    transfer: NDArray[np.int64]  # × class of link: ticks
    soonest: NDArray[np.int32]  # × class of link: rank of the exact transfer time
    bytes: NDArray[np.int64]
    copying: NDArray[np.int64]  # × device: ticks of Split, Concat, AddN
    # By part, operation and kind:
    time: NDArray[np.int64]
    # By action:
    devices: NDArray[np.int32]  # × k, −1 at the end
    count: NDArray[np.int32]
    sync: NDArray[np.int32]  # server, ALLREDUCE, or −1
    ring: NDArray[np.int64]  # rows of sums × action: ticks of an AllReduce, −1 where impossible
    # By class and device:
    samples: NDArray[np.int32]  # −1 without replica
    part: NDArray[np.int32]
    # By samples:
    part_of: NDArray[np.int32]
    # By pair of classes: rows of samples that producer d and consumer e share, −1 where none.
    pair: NDArray[np.int32]
    common: NDArray[np.int32]  # rows × k × k
    everything: int  # the samples of the whole batch
    capacity: NDArray[np.int64]  # k + 1
    limited: bool


class Work(NamedTuple):
    """Reused memory of evaluations."""

    tasks: NDArray[np.int64]
    copies: NDArray[np.int64]
    edges: NDArray[np.int32]
    entries: NDArray[np.int32]
    n: NDArray[np.int64]
    home: NDArray[np.int32]  # tensors × k: the copy at its producer
    joined: NDArray[np.int32]  # tensors × k: list of samples made for consumers there
    split: NDArray[np.int32]  # tensors × k: the Split of a replica's output
    slices: NDArray[np.int32]  # tensors × k: list of its outputs
    slice_count: NDArray[np.int32]  # tensors × k
    summed: NDArray[np.int32]  # tensors: the copy that applies wait for
    vertex: NDArray[np.int32]  # operations × k
    number: NDArray[np.int64]  # operations: of the first vertex
    inputs: NDArray[np.int32]  # k × most inputs
    filled: NDArray[np.int32]  # k
    queue: NDArray[np.int32]
    queue_start: NDArray[np.int32]  # resources + 1
    queue_size: NDArray[np.int32]
    running: NDArray[np.int32]
    event_time: NDArray[np.int64]
    event: NDArray[np.int32]
    pending: NDArray[np.int32]
    is_pending: NDArray[np.bool_]
    use: NDArray[np.int64]  # k + 1
    peak: NDArray[np.int64]  # k + 1


@inner
def _task(tasks: Any, n: Any, resource: int, time: int, tie: int) -> Any:
    v = n[N_TASKS]
    n[N_TASKS] = v + 1
    tasks[v, T_TIME] = time
    tasks[v, T_RESOURCE] = resource
    tasks[v, T_RANK] = 0
    tasks[v, T_TIE] = tie
    tasks[v, T_WAITING] = 0
    tasks[v, T_IN] = n[N_EDGES]
    tasks[v, T_OUT] = -1
    tasks[v, T_OWN] = -1
    return v


@inner
def _edge(tasks: Any, copies: Any, edges: Any, n: Any, copy: int, v: int) -> None:
    i = n[N_EDGES]
    n[N_EDGES] = i + 1
    producer = copies[copy, C_TASK]
    edges[i, E_COPY] = copy
    edges[i, E_TASK] = v
    edges[i, E_NEXT] = tasks[producer, T_OUT]
    tasks[producer, T_OUT] = i
    tasks[v, T_WAITING] += 1
    copies[copy, C_USERS] += 1


@inner
def _copy(
    tasks: Any, copies: Any, n: Any, v: int, device: int, size: int, line: int, tie: int
) -> Any:
    c = n[N_COPIES]
    n[N_COPIES] = c + 1
    copies[c, C_TASK] = v
    copies[c, C_DEVICE] = device
    copies[c, C_BYTES] = size
    copies[c, C_LINE] = line
    copies[c, C_TIE] = tie
    copies[c, C_REMOTE] = -1
    copies[c, C_OWN] = tasks[v, T_OWN]
    copies[c, C_USERS] = 1
    tasks[v, T_OWN] = c
    return c


@inner
def _fetch(tables: Tables, work: Work, copy: int, device: int) -> Any:
    """Return the copy on a device, transferring it there once."""
    tasks, copies, n = work.tasks, work.copies, work.n
    home = copies[copy, C_DEVICE]
    if home == device:
        return copy
    r = copies[copy, C_REMOTE]
    while r >= 0:
        if copies[r, C_DEVICE] == device:
            return r
        r = copies[r, C_REMOTE]
    link = tables.link[home, device]
    if link < 0:
        n[N_STATUS] = NO_LINK
        return copy
    k1 = tables.link.shape[0]
    line = copies[copy, C_LINE]
    lines = tables.lines
    time = tables.transfer[line // lines, line % lines, link]
    v = _task(tasks, n, k1 + home * k1 + device, time, copies[copy, C_TIE])
    _edge(tasks, copies, work.edges, n, copy, v)
    r = _copy(tasks, copies, n, v, device, copies[copy, C_BYTES], line, 0)
    copies[r, C_REMOTE] = copies[copy, C_REMOTE]
    copies[copy, C_REMOTE] = r
    return r


@inner
def _signal(work: Work, v: int) -> Any:
    """Return the copy of the signal of a vertex at its device."""
    tasks, copies = work.tasks, work.copies
    c = tasks[v, T_OWN]
    while c >= 0:
        if copies[c, C_TIE] >= _SIGNAL:
            return c
        c = copies[c, C_OWN]
    return _copy(tasks, copies, work.n, v, tasks[v, T_RESOURCE], 0, 0, _SIGNAL + tasks[v, T_TIE])


@inner
def _entry(work: Work, head: int, samples: int, copy: int) -> Any:
    i = work.n[N_ENTRIES]
    work.n[N_ENTRIES] = i + 1
    work.entries[i, L_SAMPLES] = samples
    work.entries[i, L_COPY] = copy
    work.entries[i, L_NEXT] = head
    return i


@inner
def _found(work: Work, head: int, samples: int) -> Any:
    while head >= 0:
        if work.entries[head, L_SAMPLES] == samples:
            return work.entries[head, L_COPY]
        head = work.entries[head, L_NEXT]
    return -1


@inner
def _slice(tables: Tables, work: Work, tensor: int, d: int, samples: int) -> Any:
    """Return an output of the Split of what device ``d`` holds of a tensor."""
    tasks, copies, n = work.tasks, work.copies, work.n
    found = _found(work, work.slices[tensor, d], samples)
    if found >= 0:
        return found
    lines = tables.lines
    v = work.split[tensor, d]
    if v < 0:
        home = work.home[tensor, d]
        line = copies[home, C_LINE]
        v = _task(tasks, n, d, tables.copying[line // lines, line % lines, d], n[N_VERTICES])
        n[N_VERTICES] += 1
        _edge(tasks, copies, work.edges, n, home, v)
        work.split[tensor, d] = v
        work.slice_count[tensor, d] = 0
    part, line = tables.part_of[samples], tables.line[tensor]
    tie = (tasks[v, T_TIE] << _OUTPUT_BITS) + work.slice_count[tensor, d]
    work.slice_count[tensor, d] += 1
    c = _copy(tasks, copies, n, v, d, tables.bytes[part, line], part * lines + line, tie)
    work.slices[tensor, d] = _entry(work, work.slices[tensor, d], samples, c)
    return c


@inner
def _nearest(tables: Tables, work: Work, tensor: int, action: int, part: int, e: int) -> Any:
    """Return the device whose whole copy arrives soonest at ``e``; −1 if there is no link."""
    if work.home[tensor, e] >= 0:
        return e
    best, least = -1, 0
    for i in range(tables.count[action]):
        d = tables.devices[action, i]
        link = tables.link[d, e]
        if link < 0:
            continue
        rank = tables.soonest[part, tables.line[tensor], link]
        if best < 0 or rank < least:
            best, least = d, rank
    if best < 0:
        work.n[N_STATUS] = NO_LINK
        return tables.devices[action, 0]
    return best


@inner
def _overlap(tables: Tables, work: Work, tensor: int, producer: int, consumer: int, e: int) -> Any:
    """Return the copy of the samples that a consumer of a class needs on device ``e``."""
    tasks, copies, n = work.tasks, work.copies, work.n
    samples = tables.samples[consumer, e]
    found = _found(work, work.joined[tensor, e], samples)
    if found >= 0:
        return found
    action = producer >> 1
    part, lines, line = tables.part_of[samples], tables.lines, tables.line[tensor]
    if producer & 1:
        d = _nearest(tables, work, tensor, action, part, e)
        if samples == tables.everything:
            c = work.home[tensor, d]
        else:
            c = _slice(tables, work, tensor, d, samples)
        c = _fetch(tables, work, c, e)
    else:
        row = tables.pair[producer, consumer]
        pieces, last = 0, -1
        for i in range(tables.count[action]):
            d = tables.devices[action, i]
            common = tables.common[row, d, e]
            if common < 0:
                continue
            pieces += 1
            if common == tables.samples[producer, d]:
                last = work.home[tensor, d]
            else:
                last = _slice(tables, work, tensor, d, common)
        if pieces == 1:
            c = _fetch(tables, work, last, e)
        else:
            tie = n[N_VERTICES]
            n[N_VERTICES] += 1
            for i in range(tables.count[action]):  # transfers before the task that needs them
                d = tables.devices[action, i]
                common = tables.common[row, d, e]
                if common >= 0:
                    if common == tables.samples[producer, d]:
                        last = work.home[tensor, d]
                    else:
                        last = _found(work, work.slices[tensor, d], common)
                    _fetch(tables, work, last, e)
            v = _task(tasks, n, e, tables.copying[part, line, e], tie)
            for i in range(tables.count[action]):
                d = tables.devices[action, i]
                common = tables.common[row, d, e]
                if common >= 0:
                    if common == tables.samples[producer, d]:
                        last = work.home[tensor, d]
                    else:
                        last = _found(work, work.slices[tensor, d], common)
                    _edge(tasks, copies, work.edges, n, _fetch(tables, work, last, e), v)
            c = _copy(
                tasks, copies, n, v, e, tables.bytes[part, line], part * lines + line,
                tie << _OUTPUT_BITS,
            )  # fmt: skip
    work.joined[tensor, e] = _entry(work, work.joined[tensor, e], samples, c)
    return c


@inner
def _synchronise(tables: Tables, work: Work, o: int, tensor: int, action: int) -> Any:
    """Return the copy that every apply waits for: the signal of an AllReduce, or the sum."""
    tasks, copies, edges, n = work.tasks, work.copies, work.edges, work.n
    k = tables.kind.shape[0]
    server = tables.sync[action]
    tie = n[N_VERTICES]
    n[N_VERTICES] += 1
    target = k if server == ALLREDUCE else server
    for i in range(tables.count[action]):
        d = tables.devices[action, i]
        c = _signal(work, work.vertex[o, d]) if server == ALLREDUCE else work.home[tensor, d]
        _fetch(tables, work, c, target)
    if server == ALLREDUCE:
        time = tables.ring[tables.sum_row[tensor], action]
        if time < 0:
            n[N_STATUS] = NO_RING
    else:
        line = copies[work.home[tensor, server], C_LINE]
        time = tables.copying[line // tables.lines, line % tables.lines, server]
    v = _task(tasks, n, target, time, tie)
    for i in range(tables.count[action]):
        d = tables.devices[action, i]
        c = _signal(work, work.vertex[o, d]) if server == ALLREDUCE else work.home[tensor, d]
        _edge(tasks, copies, edges, n, _fetch(tables, work, c, target), v)
    if server == ALLREDUCE:
        return _signal(work, v)
    home = work.home[tensor, server]
    return _copy(
        tasks, copies, n, v, server, copies[home, C_BYTES], copies[home, C_LINE],
        tie << _OUTPUT_BITS,
    )  # fmt: skip


@inner
def _need(work: Work, e: int, copy: int) -> None:
    work.inputs[e, work.filled[e]] = copy
    work.filled[e] += 1


@inner
def _connect(tables: Tables, work: Work, o: int, j: int, chosen: Any) -> None:
    """Find what the replicas of ``o`` read through dependency ``j``."""
    tensor, p = tables.in_tensor[j], tables.in_producer[j]
    action, source = chosen[tables.group[o]], chosen[tables.group[p]]
    layout = tables.layout[tensor]
    consumer = 2 * action + tables.unsplit[o]
    producer = 2 * source + tables.unsplit[p]
    devices, count = tables.devices[action], tables.count[action]
    if layout == SIGNAL:
        for i in range(tables.count[source]):
            c = _signal(work, work.vertex[p, tables.devices[source, i]])
            for x in range(count):
                _need(work, devices[x], _fetch(tables, work, c, devices[x]))
        return
    if layout == SUMMED:
        alone = tables.count[source] == 1 or tables.unsplit[p] == 1
        if not alone and work.summed[tensor] < 0:
            work.summed[tensor] = _synchronise(tables, work, p, tensor, source)
        for x in range(count):
            e = devices[x]
            if alone or tables.sync[source] == ALLREDUCE:
                _need(work, e, work.home[tensor, e])
            if not alone:
                _need(work, e, _fetch(tables, work, work.summed[tensor], e))
        return
    if layout == BATCHED and not producer & 1 and tables.pair[producer, consumer] < 0:
        work.n[N_STATUS] = NO_PAIR
        work.n[0], work.n[1] = producer, consumer
        return
    for x in range(count):
        e = devices[x]
        if layout == WHOLE:
            part = tables.part_of[tables.everything]
            d = _nearest(tables, work, tensor, source, part, e)
            c = _fetch(tables, work, work.home[tensor, d], e)
        else:
            c = _overlap(tables, work, tensor, producer, consumer, e)
        _need(work, e, c)


@inner
def _build(tables: Tables, work: Work, chosen: Any) -> None:
    """Make all tasks, copies and dependencies; producers come before consumers."""
    tasks, copies, edges, n = work.tasks, work.copies, work.edges, work.n
    operations, k = tables.group.shape[0], tables.kind.shape[0]
    n[:] = 0
    for o in range(operations):
        work.number[o] = n[N_VERTICES]
        n[N_VERTICES] += tables.count[chosen[tables.group[o]]]
    for d in range(k + 1):
        work.use[d] = 0
    lines = tables.lines
    for i in range(operations):
        o = tables.order[i]
        action = chosen[tables.group[o]]
        own = 2 * action + tables.unsplit[o]
        count = tables.count[action]
        for x in range(count):
            work.filled[tables.devices[action, x]] = 0
        for j in range(tables.in_start[o], tables.in_start[o + 1]):
            _connect(tables, work, o, j, chosen)
            if n[N_STATUS] != DONE:
                return
        first, last = tables.tensor_start[o], tables.tensor_start[o + 1]
        for tensor in range(first, last):
            work.summed[tensor] = -1
            for d in range(k):
                work.home[tensor, d] = -1
        for x in range(count):
            d = tables.devices[action, x]
            part = tables.part[own, d]
            tie = work.number[o] + x
            v = _task(tasks, n, d, tables.time[part, o, tables.kind[d]], tie)
            work.vertex[o, d] = v
            work.use[d] += tables.resident[o]
            for j in range(work.filled[d]):
                _edge(tasks, copies, edges, n, work.inputs[d, j], v)
            for tensor in range(first, last - 1):
                line = tables.line[tensor]
                work.home[tensor, d] = _copy(
                    tasks, copies, n, v, d, tables.bytes[part, line], part * lines + line,
                    (tie << _OUTPUT_BITS) + tensor - first,
                )  # fmt: skip
        for tensor in range(first, last - 1):
            for d in range(k):
                work.joined[tensor, d] = -1
                work.split[tensor, d] = -1
                work.slices[tensor, d] = -1


@inner
def _rank(work: Work) -> None:
    """Set the rank of [G]: a task's time and the largest rank of those that depend on it."""
    tasks, copies, edges, n = work.tasks, work.copies, work.edges, work.n
    end = n[N_EDGES]
    for v in range(n[N_TASKS] - 1, -1, -1):
        tasks[v, T_RANK] += tasks[v, T_TIME]
        rank = tasks[v, T_RANK]
        for j in range(tasks[v, T_IN], end):
            u = copies[edges[j, E_COPY], C_TASK]
            if tasks[u, T_RANK] < rank:
                tasks[u, T_RANK] = rank
        end = tasks[v, T_IN]


@inner
def _before(tasks: Any, v: int, w: int) -> Any:
    one, two = tasks[v, T_RANK], tasks[w, T_RANK]
    return one > two or (one == two and tasks[v, T_TIE] < tasks[w, T_TIE])


@inner
def _enqueue(work: Work, v: int) -> None:
    """Add an executable task to the heap of its resource, and wake the resource if it is idle."""
    tasks, queue = work.tasks, work.queue
    r = tasks[v, T_RESOURCE]
    base, i = work.queue_start[r], work.queue_size[r]
    work.queue_size[r] = i + 1
    while i > 0:
        parent = (i - 1) >> 1
        if _before(tasks, queue[base + parent], v):
            break
        queue[base + i] = queue[base + parent]
        i = parent
    queue[base + i] = v
    if work.running[r] < 0:
        _wake(work, r)


@inner
def _dequeue(work: Work, r: int) -> Any:
    tasks, queue, base = work.tasks, work.queue, work.queue_start[r]
    first = queue[base]
    size = work.queue_size[r] - 1
    work.queue_size[r] = size
    if size:
        v = queue[base + size]
        i = 0
        while True:
            child = 2 * i + 1
            if child >= size:
                break
            if child + 1 < size and _before(tasks, queue[base + child + 1], queue[base + child]):
                child += 1
            if _before(tasks, v, queue[base + child]):
                break
            queue[base + i] = queue[base + child]
            i = child
        queue[base + i] = v
    return first


@inner
def _wake(work: Work, r: int) -> None:
    """Let a resource decide at this moment, in the order of resources."""
    if work.is_pending[r]:
        return
    work.is_pending[r] = True
    pending = work.pending
    i = pending[0]
    pending[0] = i + 1
    # Descending, so that the next one is last.
    while i > 0 and pending[i] < r:
        pending[i + 1] = pending[i]
        i -= 1
    pending[i + 1] = r


@inner
def _begin(work: Work, v: int) -> None:
    """Take memory for the copies that a task makes."""
    tasks, copies = work.tasks, work.copies
    c = tasks[v, T_OWN]
    while c >= 0:
        work.use[copies[c, C_DEVICE]] += copies[c, C_BYTES]
        c = copies[c, C_OWN]


@inner
def _release(work: Work, c: int) -> None:
    copies = work.copies
    copies[c, C_USERS] -= 1
    if copies[c, C_USERS] == 0:
        work.use[copies[c, C_DEVICE]] -= copies[c, C_BYTES]


@inner
def _complete(work: Work, v: int, limited: bool) -> None:
    """Free what nobody holds any more, and queue the tasks that waited for this one only."""
    tasks, edges = work.tasks, work.edges
    if limited:
        for j in range(tasks[v, T_IN], tasks[v + 1, T_IN]):
            _release(work, edges[j, E_COPY])
        c = tasks[v, T_OWN]
        while c >= 0:
            following = work.copies[c, C_OWN]
            _release(work, c)
            c = following
    j = tasks[v, T_OUT]
    while j >= 0:
        w = edges[j, E_TASK]
        tasks[w, T_WAITING] -= 1
        if tasks[w, T_WAITING] == 0:
            _enqueue(work, w)
        j = edges[j, E_NEXT]


@inner
def _execute(tables: Tables, work: Work) -> Any:
    """Run all tasks, by rank, and return the time when the last one ends."""
    tasks, n = work.tasks, work.n
    total = n[N_TASKS]
    tasks[total, T_IN] = n[N_EDGES]
    resources = work.running.shape[0]
    start, size, pending = work.queue_start, work.queue_size, work.pending
    for r in range(resources):
        size[r] = 0
        work.running[r] = -1
        work.is_pending[r] = False
        start[r + 1] = 0
    pending[0] = 0
    for v in range(total):
        start[tasks[v, T_RESOURCE] + 1] += 1
    for r in range(resources):
        start[r + 1] += start[r]
    for v in range(total):
        if tasks[v, T_WAITING] == 0:
            _enqueue(work, v)
    limited = tables.limited
    now, events = 0, 0
    times, event = work.event_time, work.event
    for d in range(work.use.shape[0]):
        work.peak[d] = 0
    while True:
        while pending[0]:
            r = pending[pending[0]]
            pending[0] -= 1
            work.is_pending[r] = False
            if size[r] == 0:
                continue
            v = _dequeue(work, r)
            if limited:
                _begin(work, v)
            time = tasks[v, T_TIME]
            if time == 0:
                _complete(work, v, limited)
                _wake(work, r)
                continue
            work.running[r] = v
            at = now + time
            i = events
            events += 1
            while i > 0:
                parent = (i - 1) >> 1
                if times[parent] <= at:
                    break
                times[i], event[i] = times[parent], event[parent]
                i = parent
            times[i], event[i] = at, r
        if limited:
            for d in range(work.use.shape[0]):
                if work.use[d] > work.peak[d]:
                    work.peak[d] = work.use[d]
        if events == 0:
            return now
        now = times[0]
        while events and times[0] == now:
            r = event[0]
            events -= 1
            at, last = times[events], event[events]
            i = 0
            while True:
                child = 2 * i + 1
                if child >= events:
                    break
                if child + 1 < events and times[child + 1] < times[child]:
                    child += 1
                if at <= times[child]:
                    break
                times[i], event[i] = times[child], event[child]
                i = child
            times[i], event[i] = at, last
            v = work.running[r]
            work.running[r] = -1
            _wake(work, r)
            _complete(work, v, limited)


@inner
def outcome_of(tables: Tables, work: Work, chosen: Any, outcome: Any) -> Any:
    """Evaluate one strategy; see :func:`evaluate`."""
    _build(tables, work, chosen)
    if work.n[N_STATUS] != DONE:
        return work.n[N_STATUS]
    _rank(work)
    outcome[0] = _execute(tables, work)
    excess = 0
    if tables.limited:
        for d in range(work.peak.shape[0]):
            excess = max(excess, work.peak[d] - tables.capacity[d])
    outcome[1] = excess
    return DONE


@kernel
def evaluate(tables: Tables, work: Work, chosen: Any, outcomes: Any) -> Any:
    """Evaluate strategies, one after another, until one cannot be for want of a pair.

    Parameters
    ----------
    chosen : ndarray of int32, strategies × groups
        Actions.
    outcomes : ndarray of int64, strategies × 3
        Ticks until the last task ends; bytes beyond the capacity, of the worst device; status.

    Returns
    -------
    int
        Number of strategies evaluated. If there are more, the first two counters are the classes
        of a pair that is not in the tables.
    """
    for i in range(chosen.shape[0]):
        outcomes[i, 2] = outcome_of(tables, work, chosen[i], outcomes[i])
        if outcomes[i, 2] == NO_PAIR:
            return i
    return chosen.shape[0]
