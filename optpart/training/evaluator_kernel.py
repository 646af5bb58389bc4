"""The compiled loop of the evaluator: builds, ranks and executes one strategy.

It does what :func:`~optpart.training.compiler.compile_strategy`, the rank of [G] §4.2 and the
simulator do, in whole ticks, and with the same rules for ties: tasks of one device go by the number
of the vertex in the instance, and transfers of one link by the number of the tensor.

Records are rows of integers: a task (``T_*``: vertex or transfer), a copy of a tensor on a device
(``C_*``), the dependency of a task on a copy (``E_*``). There are few arrays with many columns,
since every array that a compiled function is given costs time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.extending import intrinsic, register_jitable
from numpy.typing import NDArray

from optpart.kernels.compiled import inner, kernel

#: Like :func:`~optpart.kernels.compiled.inner`, for what is too small to be called.
_inline = register_jitable(forceinline=True, error_model="numpy")


@intrinsic
def _borrowed(context: Any, array: Any) -> Any:
    """Return the same array without an owner, for use while its owner lives.

    numba counts references to arrays at every call, also in inner loops, by atomic operations that
    take longer than what these loops do. It does not count those to arrays without an owner.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        view = context.make_array(array)(context, builder, args[0])
        for owner in ("meminfo", "parent"):
            setattr(view, owner, getattr(view, owner).type(None))
        return view._getvalue()

    return array(array), generate


# Columns of tasks. IN is the first of its dependencies, which end where the next task's begin; OUT
# heads the list of dependencies on it; OWN the list of copies that it makes.
T_TIME, T_RESOURCE, T_RANK, T_TIE, T_WAITING, T_IN, T_OUT, T_OWN = range(8)
T_COLUMNS = 8

# Columns of copies. ROW is that of the table of sizes; REMOTE heads (at the producer) or continues
# (elsewhere) the list of copies on other devices; OWN continues the list of the task; USERS counts
# the tasks that still hold it.
C_TASK, C_DEVICE, C_BYTES, C_ROW, C_TIE, C_REMOTE, C_OWN, C_USERS = range(8)
C_COLUMNS = 8

E_COPY, E_TASK, E_NEXT = range(3)
E_COLUMNS = 3

# Entries of lists of conversions: the samples, the copy that holds them, the next entry.
L_SAMPLES, L_COPY, L_NEXT = range(3)
L_COLUMNS = 3

# State of a tensor on a device: the copy at its producer, the list of samples made for consumers,
# the Split, the list of its outputs and their number.
S_HOME, S_JOINED, S_SPLIT, S_SLICES, S_COUNT = range(5)
S_COLUMNS = 5

# State of a device or link: its queue in the array of queues, and its task, −1 when idle.
R_START, R_SIZE, R_TASK, R_PENDING = range(4)
R_COLUMNS = 4

# Columns of tensors: layout, line (bytes by samples), row of the table of collectives.
V_LAYOUT, V_LINE, V_SUM = range(3)

# Columns of operations.
O_GROUP, O_UNSPLIT, O_TENSOR, O_IN = range(4)

# Columns of actions, before those of its devices: their number, the synchronisation, the class of
# operations that can be split and that of those that cannot.
A_COUNT, A_SYNC, A_CLASS, A_WHOLE, A_DEVICES = range(5)

# Columns of classes by device.
X_SAMPLES, X_PART = range(2)

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

    There are ``k`` devices, and ``nccl`` is device ``k``. A *class* says which samples each device
    computes. A *part* is a number of samples, *samples* are an interval of the batch, and a *row*
    is a part and a line.
    """

    order: NDArray[np.int32]  # topological order of operations
    operations: NDArray[np.int32]  # and one more, where the last one's lists end
    resident: NDArray[np.int64]  # by operation
    kind: NDArray[np.int32]  # by device
    tensors: NDArray[np.int32]  # by operation: its outputs in order, then its signal
    inputs: NDArray[np.int32]  # dependencies: tensor, producer
    link: NDArray[np.int32]  # (k+1) × (k+1): class of link, −1 where none
    lines: int
    transfer: NDArray[np.int64]  # rows × classes of links: ticks
    soonest: NDArray[np.int64]  # rows × classes of links: rank of the exact transfer time
    copying: NDArray[np.int64]  # rows × devices, then bytes: ticks of Split, Concat, AddN
    time: NDArray[np.int64]  # parts × operations × kinds: ticks
    actions: NDArray[np.int32]
    ring: NDArray[np.int64]  # rows of sums × actions: ticks of an AllReduce, −1 where impossible
    classes: NDArray[np.int32]  # classes × devices; −1 without replica
    part_of: NDArray[np.int32]  # by samples
    pair: NDArray[np.int32]  # classes × classes: which of ``common``, −1 if unknown
    common: NDArray[np.int32]  # × k × k: samples that producer d and consumer e share, −1 if none
    span: NDArray[np.int32]  # × k × 2: which of the producer's devices share any with consumer e
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
    state: NDArray[np.int32]  # tensors × k
    summed: NDArray[np.int32]  # tensors: the copy that applies wait for
    vertex: NDArray[np.int32]  # operations × k
    number: NDArray[np.int64]  # operations: of the first vertex
    needs: NDArray[np.int32]  # k × most inputs, the first counts them
    pieces: NDArray[np.int32]  # k
    queue: NDArray[np.int32]
    resources: NDArray[np.int64]
    events: NDArray[np.int64]
    pending: NDArray[np.int32]
    use: NDArray[np.int64]  # 2 × (k + 1): now, and the peak


@_inline
def _task(tasks: Any, n: Any, resource: Any, time: Any, tie: Any) -> Any:
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


@_inline
def _edge(tasks: Any, copies: Any, edges: Any, n: Any, copy: Any, v: Any) -> None:
    i = n[N_EDGES]
    n[N_EDGES] = i + 1
    producer = copies[copy, C_TASK]
    edges[i, E_COPY] = copy
    edges[i, E_TASK] = v
    edges[i, E_NEXT] = tasks[producer, T_OUT]
    tasks[producer, T_OUT] = i
    tasks[v, T_WAITING] += 1
    copies[copy, C_USERS] += 1


@_inline
def _copy(
    tasks: Any, copies: Any, n: Any, v: Any, device: Any, size: Any, row: Any, tie: Any
) -> Any:
    c = n[N_COPIES]
    n[N_COPIES] = c + 1
    copies[c, C_TASK] = v
    copies[c, C_DEVICE] = device
    copies[c, C_BYTES] = size
    copies[c, C_ROW] = row
    copies[c, C_TIE] = tie
    copies[c, C_REMOTE] = -1
    copies[c, C_OWN] = tasks[v, T_OWN]
    copies[c, C_USERS] = 1
    tasks[v, T_OWN] = c
    return c


@_inline
def _fetch(
    tasks: Any, copies: Any, edges: Any, n: Any, link: Any, transfer: Any, copy: Any, device: Any
) -> Any:
    """Return the copy on a device, transferring it there once."""
    home = copies[copy, C_DEVICE]
    if home == device:
        return copy
    r = copies[copy, C_REMOTE]
    while r >= 0:
        if copies[r, C_DEVICE] == device:
            return r
        r = copies[r, C_REMOTE]
    kind = link[home, device]
    if kind < 0:
        n[N_STATUS] = NO_LINK
        return copy
    k1 = link.shape[0]
    row = copies[copy, C_ROW]
    v = _task(tasks, n, k1 + home * k1 + device, transfer[row, kind], copies[copy, C_TIE])
    _edge(tasks, copies, edges, n, copy, v)
    r = _copy(tasks, copies, n, v, device, copies[copy, C_BYTES], row, 0)
    copies[r, C_REMOTE] = copies[copy, C_REMOTE]
    copies[copy, C_REMOTE] = r
    return r


@_inline
def _signal(tasks: Any, copies: Any, n: Any, v: Any) -> Any:
    """Return the copy of the signal of a vertex at its device."""
    c = tasks[v, T_OWN]
    while c >= 0:
        if copies[c, C_TIE] >= _SIGNAL:
            return c
        c = copies[c, C_OWN]
    return _copy(tasks, copies, n, v, tasks[v, T_RESOURCE], 0, 0, _SIGNAL + tasks[v, T_TIE])


@_inline
def _entry(entries: Any, n: Any, head: Any, samples: Any, copy: Any) -> Any:
    i = n[N_ENTRIES]
    n[N_ENTRIES] = i + 1
    entries[i, L_SAMPLES] = samples
    entries[i, L_COPY] = copy
    entries[i, L_NEXT] = head
    return i


@_inline
def _found(entries: Any, head: Any, samples: Any) -> Any:
    while head >= 0 and entries[head, L_SAMPLES] != samples:
        head = entries[head, L_NEXT]
    return entries[head, L_COPY] if head >= 0 else -1


@inner
def _slice(
    tasks: Any, copies: Any, edges: Any, entries: Any, n: Any, state: Any, copying: Any,
    tensor: Any, d: Any, samples: Any, row: Any,
) -> Any:  # fmt: skip
    """Return an output of the Split of what device ``d`` holds of a tensor."""
    found = _found(entries, state[tensor, d, S_SLICES], samples)
    if found >= 0:
        return found
    v = np.int64(state[tensor, d, S_SPLIT])
    if v < 0:
        home = state[tensor, d, S_HOME]
        v = _task(tasks, n, d, copying[copies[home, C_ROW], d], n[N_VERTICES])
        n[N_VERTICES] += 1
        _edge(tasks, copies, edges, n, home, v)
        state[tensor, d, S_SPLIT] = v
        state[tensor, d, S_COUNT] = 0
    tie = (tasks[v, T_TIE] << _OUTPUT_BITS) + state[tensor, d, S_COUNT]
    state[tensor, d, S_COUNT] += 1
    size = copying[row, copying.shape[1] - 1]
    c = _copy(tasks, copies, n, v, d, size, row, tie)
    state[tensor, d, S_SLICES] = _entry(entries, n, state[tensor, d, S_SLICES], samples, c)
    return c


@inner
def _nearest(
    n: Any, state: Any, actions: Any, link: Any, soonest: Any, tensor: Any, b: Any, row: Any, e: Any
) -> Any:
    """Return the device whose whole copy of a tensor arrives soonest at ``e``."""
    if state[tensor, e, S_HOME] >= 0:
        return e
    best, least = -1, 0
    for i in range(A_DEVICES, A_DEVICES + actions[b, A_COUNT]):
        d = actions[b, i]
        kind = link[d, e]
        if kind >= 0 and (best < 0 or soonest[row, kind] < least):
            best, least = d, soonest[row, kind]
    if best < 0:
        n[N_STATUS] = NO_LINK
        return actions[b, A_DEVICES]
    return best


@inner
def _join(
    tasks: Any, copies: Any, edges: Any, entries: Any, n: Any, state: Any, actions: Any,
    classes: Any, common: Any, span: Any, part_of: Any, link: Any, transfer: Any, copying: Any,
    pieces: Any, tensor: Any, b: Any, producer: Any, pair: Any, line: Any, lines: Any, e: Any,
    row: Any,
) -> Any:  # fmt: skip
    """Return the slices that device ``e`` needs, joined if there are several.

    ``b`` and ``producer`` are the action and the class of the tensor's producer, and ``pair`` is
    that of this class and the consumer's.
    """
    count = 0
    for i in range(A_DEVICES + span[pair, e, 0], A_DEVICES + span[pair, e, 1]):
        d = actions[b, i]
        samples = common[pair, d, e]
        if samples == classes[producer, d, X_SAMPLES]:
            c = np.int64(state[tensor, d, S_HOME])
        else:
            piece = part_of[samples] * lines + line
            c = np.int64(
                _slice(tasks, copies, edges, entries, n, state, copying, tensor, d, samples, piece)
            )
        # The transfers come first, since the dependencies of a task are side by side.
        pieces[count] = _fetch(tasks, copies, edges, n, link, transfer, c, e)
        count += 1
    if count == 1:
        return np.int64(pieces[0])
    tie = n[N_VERTICES]
    n[N_VERTICES] += 1
    v = _task(tasks, n, e, copying[row, e], tie)
    for i in range(count):
        _edge(tasks, copies, edges, n, pieces[i], v)
    size = copying[row, copying.shape[1] - 1]
    return np.int64(_copy(tasks, copies, n, v, e, size, row, tie << _OUTPUT_BITS))


@inner
def _synchronise(
    tasks: Any, copies: Any, edges: Any, n: Any, state: Any, vertex: Any, actions: Any, link: Any,
    transfer: Any, copying: Any, pieces: Any, tensor: Any, p: Any, b: Any, time: Any,
) -> Any:  # fmt: skip
    """Return the copy that every apply waits for: the signal of an AllReduce, or the sum.

    ``p`` and ``b`` are the producer and its action, ``time`` the ticks of an AllReduce.
    """
    server, count = actions[b, A_SYNC], actions[b, A_COUNT]
    queued = server == ALLREDUCE
    tie = n[N_VERTICES]
    n[N_VERTICES] += 1
    target = link.shape[0] - 1 if queued else server
    row = np.int64(0)
    for i in range(count):
        d = actions[b, A_DEVICES + i]
        if queued:
            c = np.int64(_signal(tasks, copies, n, vertex[p, d]))
        else:
            c = np.int64(state[tensor, d, S_HOME])
            row = copies[c, C_ROW]
        pieces[i] = _fetch(tasks, copies, edges, n, link, transfer, c, target)
    v = _task(tasks, n, target, time if queued else copying[row, target], tie)
    for i in range(count):
        _edge(tasks, copies, edges, n, pieces[i], v)
    if queued:
        return np.int64(_signal(tasks, copies, n, v))
    size = copying[row, copying.shape[1] - 1]
    return np.int64(_copy(tasks, copies, n, v, server, size, row, tie << _OUTPUT_BITS))


@_inline
def _need(needs: Any, e: Any, copy: Any) -> None:
    needs[e, 0] += 1
    needs[e, needs[e, 0]] = copy


@inner
def _build(tables: Tables, work: Work, chosen: Any) -> None:
    """Make all tasks, copies and dependencies; producers come before consumers."""
    tasks, copies, edges = _borrowed(work.tasks), _borrowed(work.copies), _borrowed(work.edges)
    entries, n, state = _borrowed(work.entries), _borrowed(work.n), _borrowed(work.state)
    summed, vertex, number = _borrowed(work.summed), _borrowed(work.vertex), _borrowed(work.number)
    needs, use, pieces = _borrowed(work.needs), _borrowed(work.use), _borrowed(work.pieces)
    operations, tensors = _borrowed(tables.operations), _borrowed(tables.tensors)
    inputs, resident, order = (
        _borrowed(tables.inputs), _borrowed(tables.resident), _borrowed(tables.order),
    )  # fmt: skip
    kind, link, transfer = (
        _borrowed(tables.kind), _borrowed(tables.link), _borrowed(tables.transfer),
    )  # fmt: skip
    soonest, copying, times = (
        _borrowed(tables.soonest), _borrowed(tables.copying), _borrowed(tables.time),
    )  # fmt: skip
    actions, ring, classes = (
        _borrowed(tables.actions), _borrowed(tables.ring), _borrowed(tables.classes),
    )  # fmt: skip
    part_of, pair = _borrowed(tables.part_of), _borrowed(tables.pair)
    common, span = _borrowed(tables.common), _borrowed(tables.span)
    lines, everything = tables.lines, tables.everything
    whole = part_of[everything] * lines
    total, k = order.shape[0], kind.shape[0]
    last_column = copying.shape[1] - 1
    n[:] = 0
    for o in range(total):
        number[o] = n[N_VERTICES]
        n[N_VERTICES] += actions[chosen[operations[o, O_GROUP]], A_COUNT]
    for d in range(k + 1):
        use[0, d] = 0
    for place in range(total):
        o = order[place]
        a = chosen[operations[o, O_GROUP]]
        own = actions[a, A_CLASS + operations[o, O_UNSPLIT]]
        end = A_DEVICES + actions[a, A_COUNT]
        for x in range(A_DEVICES, end):
            needs[actions[a, x], 0] = 0
        for j in range(operations[o, O_IN], operations[o + 1, O_IN]):
            tensor, p = inputs[j, 0], inputs[j, 1]
            b = chosen[operations[p, O_GROUP]]
            unsplit = operations[p, O_UNSPLIT]
            producer = actions[b, A_CLASS + unsplit]
            layout, line = tensors[tensor, V_LAYOUT], tensors[tensor, V_LINE]
            if layout == BATCHED and (producer == own):
                for x in range(A_DEVICES, end):
                    e = actions[a, x]
                    _need(needs, e, state[tensor, e, S_HOME])
            elif layout == BATCHED and not unsplit and pair[producer, own] < 0:
                n[N_STATUS] = NO_PAIR
                return
            elif layout == BATCHED:
                row = np.int64(pair[producer, own])
                for x in range(A_DEVICES, end):
                    e = actions[a, x]
                    samples = classes[own, e, X_SAMPLES]
                    if samples == classes[producer, e, X_SAMPLES]:
                        _need(needs, e, state[tensor, e, S_HOME])
                        continue
                    c = np.int64(_found(entries, state[tensor, e, S_JOINED], samples))
                    if c < 0:
                        part_row = part_of[samples] * lines + line
                        if unsplit:
                            d = _nearest(n, state, actions, link, soonest, tensor, b, part_row, e)
                            c = np.int64(state[tensor, d, S_HOME])
                            if samples != everything:
                                c = np.int64(
                                    _slice(
                                        tasks, copies, edges, entries, n, state, copying,
                                        tensor, d, samples, part_row,
                                    )
                                )  # fmt: skip
                            c = _fetch(tasks, copies, edges, n, link, transfer, c, e)
                        else:
                            c = _join(
                                tasks, copies, edges, entries, n, state, actions,
                                classes, common, span, part_of, link, transfer,
                                copying, pieces, tensor, b, producer, row, line, lines, e, part_row,
                            )  # fmt: skip
                        state[tensor, e, S_JOINED] = _entry(
                            entries, n, state[tensor, e, S_JOINED], samples, c
                        )
                    _need(needs, e, c)
            elif layout == WHOLE:
                for x in range(A_DEVICES, end):
                    e = actions[a, x]
                    d = _nearest(n, state, actions, link, soonest, tensor, b, whole + line, e)
                    c = np.int64(state[tensor, d, S_HOME])
                    _need(needs, e, _fetch(tasks, copies, edges, n, link, transfer, c, e))
            elif layout == SUMMED:
                alone = actions[b, A_COUNT] == 1 or unsplit == 1
                c = np.int64(summed[tensor])
                if not alone and c < 0:
                    time = np.int64(0)
                    if actions[b, A_SYNC] == ALLREDUCE:
                        time = ring[tensors[tensor, V_SUM], b]
                        if time < 0:
                            n[N_STATUS] = NO_RING
                    c = _synchronise(
                        tasks, copies, edges, n, state, vertex, actions, link,
                        transfer, copying, pieces, tensor, p, b, time,
                    )  # fmt: skip
                    summed[tensor] = c
                for x in range(A_DEVICES, end):
                    e = actions[a, x]
                    if alone or actions[b, A_SYNC] == ALLREDUCE:
                        _need(needs, e, state[tensor, e, S_HOME])
                    if not alone:
                        _need(needs, e, _fetch(tasks, copies, edges, n, link, transfer, c, e))
            else:
                for y in range(A_DEVICES, A_DEVICES + actions[b, A_COUNT]):
                    c = _signal(tasks, copies, n, vertex[p, actions[b, y]])
                    for x in range(A_DEVICES, end):
                        e = actions[a, x]
                        _need(needs, e, _fetch(tasks, copies, edges, n, link, transfer, c, e))
            if n[N_STATUS] != DONE:
                return
        first, last = operations[o, O_TENSOR], operations[o + 1, O_TENSOR] - 1
        for tensor in range(first, last):
            summed[tensor] = -1
            for d in range(k):
                for s in range(S_COUNT):
                    state[tensor, d, s] = -1
        for x in range(A_DEVICES, end):
            d = actions[a, x]
            part = classes[own, d, X_PART]
            tie = number[o] + x - A_DEVICES
            v = _task(tasks, n, d, times[part, o, kind[d]], tie)
            vertex[o, d] = v
            use[0, d] += resident[o]
            for j in range(1, needs[d, 0] + 1):
                _edge(tasks, copies, edges, n, needs[d, j], v)
            for tensor in range(first, last):
                row = part * np.int64(lines) + tensors[tensor, V_LINE]
                state[tensor, d, S_HOME] = _copy(
                    tasks, copies, n, v, d, copying[row, last_column], row,
                    (tie << _OUTPUT_BITS) + tensor - first,
                )  # fmt: skip


@_inline
def _rank(tasks: Any, copies: Any, edges: Any, n: Any) -> None:
    """Set the rank of [G]: a task's time and the largest rank of those that depend on it."""
    end = n[N_EDGES]
    for v in range(n[N_TASKS] - 1, -1, -1):
        rank = tasks[v, T_RANK] + tasks[v, T_TIME]
        tasks[v, T_RANK] = rank
        begin = tasks[v, T_IN]
        for j in range(begin, end):
            u = copies[edges[j, E_COPY], C_TASK]
            if tasks[u, T_RANK] < rank:
                tasks[u, T_RANK] = rank
        end = begin


@_inline
def _before(tasks: Any, v: Any, w: Any) -> Any:
    one, two = tasks[v, T_RANK], tasks[w, T_RANK]
    return one > two or (one == two and tasks[v, T_TIE] < tasks[w, T_TIE])


@_inline
def _wake(resources: Any, pending: Any, r: Any) -> None:
    """Let a resource decide at this moment, in the order of resources."""
    if resources[r, R_PENDING] == 0:
        resources[r, R_PENDING] = 1
        i = pending[0]
        pending[0] = i + 1
        # Descending, so that the next one is last.
        while i > 0 and pending[i] < r:
            pending[i + 1] = pending[i]
            i -= 1
        pending[i + 1] = r


@_inline
def _enqueue(tasks: Any, queue: Any, resources: Any, pending: Any, v: Any) -> None:
    """Add an executable task to the heap of its resource, and wake the resource if it is idle."""
    r = tasks[v, T_RESOURCE]
    base, i = resources[r, R_START], resources[r, R_SIZE]
    resources[r, R_SIZE] = i + 1
    while i > 0:
        parent = (i - 1) >> 1
        if _before(tasks, queue[base + parent], v):
            break
        queue[base + i] = queue[base + parent]
        i = parent
    queue[base + i] = v
    if resources[r, R_TASK] < 0:
        _wake(resources, pending, r)


@_inline
def _dequeue(tasks: Any, queue: Any, resources: Any, r: Any) -> Any:
    base = resources[r, R_START]
    first = queue[base]
    size = resources[r, R_SIZE] - 1
    resources[r, R_SIZE] = size
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


@_inline
def _release(copies: Any, use: Any, c: Any) -> None:
    copies[c, C_USERS] -= 1
    if copies[c, C_USERS] == 0:
        use[0, copies[c, C_DEVICE]] -= copies[c, C_BYTES]


@_inline
def _complete(
    tasks: Any, copies: Any, edges: Any, queue: Any, resources: Any, pending: Any, use: Any,
    v: Any, counted: Any,
) -> None:  # fmt: skip
    """Free what nobody holds any more, and queue the tasks that waited for this one only."""
    if counted:
        for j in range(tasks[v, T_IN], tasks[v + 1, T_IN]):
            _release(copies, use, edges[j, E_COPY])
        c = tasks[v, T_OWN]
        while c >= 0:
            _release(copies, use, c)
            c = copies[c, C_OWN]
    j = tasks[v, T_OUT]
    while j >= 0:
        w = edges[j, E_TASK]
        tasks[w, T_WAITING] -= 1
        if tasks[w, T_WAITING] == 0:
            _enqueue(tasks, queue, resources, pending, w)
        j = edges[j, E_NEXT]


@_inline
def _execute(
    tasks: Any, copies: Any, edges: Any, n: Any, queue: Any, resources: Any, pending: Any,
    events: Any, use: Any, counted: Any,
) -> Any:  # fmt: skip
    """Run all tasks, by rank, and return the time when the last one ends."""
    total = n[N_TASKS]
    tasks[total, T_IN] = n[N_EDGES]
    count = resources.shape[0]
    for r in range(count):
        resources[r, R_START] = 0
        resources[r, R_SIZE] = 0
        resources[r, R_TASK] = -1
        resources[r, R_PENDING] = 0
    pending[0] = 0
    for v in range(total):
        resources[tasks[v, T_RESOURCE], R_START] += 1
    start = 0
    for r in range(count):
        start += resources[r, R_START]
        resources[r, R_START] = start - resources[r, R_START]
    for v in range(total):
        if tasks[v, T_WAITING] == 0:
            _enqueue(tasks, queue, resources, pending, v)
    now, size = np.int64(0), 0
    devices = use.shape[1]
    for d in range(devices):
        use[1, d] = 0
    while True:
        while pending[0]:
            r = pending[pending[0]]
            pending[0] -= 1
            resources[r, R_PENDING] = 0
            if resources[r, R_SIZE] == 0:
                continue
            v = _dequeue(tasks, queue, resources, r)
            if counted:
                c = tasks[v, T_OWN]
                while c >= 0:
                    use[0, copies[c, C_DEVICE]] += copies[c, C_BYTES]
                    c = copies[c, C_OWN]
            time = tasks[v, T_TIME]
            if time == 0:
                _complete(tasks, copies, edges, queue, resources, pending, use, v, counted)
                _wake(resources, pending, r)
                continue
            resources[r, R_TASK] = v
            at = now + time
            i = size
            size += 1
            while i > 0:
                parent = (i - 1) >> 1
                if events[parent, 0] <= at:
                    break
                events[i, 0], events[i, 1] = events[parent, 0], events[parent, 1]
                i = parent
            events[i, 0], events[i, 1] = at, r
        if counted:
            for d in range(devices):
                if use[0, d] > use[1, d]:
                    use[1, d] = use[0, d]
        if size == 0:
            return now
        now = events[0, 0]
        while size and events[0, 0] == now:
            r = events[0, 1]
            size -= 1
            at, other = events[size, 0], events[size, 1]
            i = 0
            while True:
                child = 2 * i + 1
                if child >= size:
                    break
                if child + 1 < size and events[child + 1, 0] < events[child, 0]:
                    child += 1
                if at <= events[child, 0]:
                    break
                events[i, 0], events[i, 1] = events[child, 0], events[child, 1]
                i = child
            events[i, 0], events[i, 1] = at, other
            v = resources[r, R_TASK]
            resources[r, R_TASK] = -1
            _wake(resources, pending, r)
            _complete(tasks, copies, edges, queue, resources, pending, use, v, counted)


@_inline
def _may_overflow(copies: Any, n: Any, use: Any, capacity: Any) -> Any:
    """Whether a device could lack memory even if it frees nothing."""
    for d in range(use.shape[1]):
        use[1, d] = use[0, d]
    for c in range(n[N_COPIES]):
        use[1, copies[c, C_DEVICE]] += copies[c, C_BYTES]
    over = 0
    for d in range(use.shape[1]):
        over += use[1, d] > capacity[d]
    return over > 0


@inner
def outcome_of(tables: Tables, work: Work, chosen: Any, outcome: Any) -> None:
    """Evaluate one strategy; see :func:`evaluate`."""
    tasks, copies, edges = _borrowed(work.tasks), _borrowed(work.copies), _borrowed(work.edges)
    n, use, queue = _borrowed(work.n), _borrowed(work.use), _borrowed(work.queue)
    resources, pending = _borrowed(work.resources), _borrowed(work.pending)
    events, capacity = _borrowed(work.events), _borrowed(tables.capacity)
    _build(tables, work, chosen)
    outcome[2] = n[N_STATUS]
    if outcome[2] != DONE:
        return
    _rank(tasks, copies, edges, n)
    counted = tables.limited and _may_overflow(copies, n, use, capacity)
    outcome[0] = _execute(tasks, copies, edges, n, queue, resources, pending, events, use, counted)
    outcome[1] = 0
    if counted:
        for d in range(use.shape[1]):
            outcome[1] = max(outcome[1], use[1, d] - capacity[d])


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
        Number of strategies evaluated.
    """
    for i in range(chosen.shape[0]):
        outcome_of(tables, work, chosen[i], outcomes[i])
        if outcomes[i, 2] == NO_PAIR:
            return i
    return chosen.shape[0]
