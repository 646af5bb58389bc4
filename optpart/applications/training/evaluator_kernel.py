"""The compiled loop of the evaluator: builds, ranks and executes one strategy.

It does what :func:`~optpart.applications.training.compiler.compile_strategy`, the rank of [G] §4.2
and the simulator do, in whole ticks, and with the same rules for ties: tasks of one device go by
the number of the vertex in the instance, and transfers of one link by the number of the tensor.

Records are rows of integers: a task (``T_*``: vertex or transfer), a copy of a tensor on a device
(``C_*``), the dependency of a task on a copy (``E_*``). What is read together lies side by side.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optpart.kernels.compiled import inlined, inner, kernel
from optpart.kernels.heap import heap_pop, heap_push
from optpart.kernels.struct import IntCube, IntMatrix, Ints, LongCube, LongMatrix, Longs, Struct

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


class Tables(Struct):
    """Tables that do not depend on the strategy.

    There are ``k`` devices, and ``nccl`` is device ``k``. A *class* says which samples each device
    computes. A *part* is a number of samples, *samples* are an interval of the batch, and a *row*
    is a part and a line.
    """

    order: Ints  # topological order of operations
    operations: IntMatrix  # operations × O_*; the last row is where the lists before it end
    resident: Longs  # bytes by operation
    kind: Ints  # by device
    tensors: IntMatrix  # tensors × V_*; by operation: its outputs in order, then its signal
    inputs: IntMatrix  # dependencies × 2: tensor and producer
    link: IntMatrix  # k + 1 × k + 1: class of link, −1 where there is none
    lines: int
    transfer: LongMatrix  # rows × classes of links, ticks
    soonest: LongMatrix  # rows × classes of links: the rank of the exact time
    copying: LongMatrix  # rows × devices and one: ticks of Split, Concat and AddN, then bytes
    time: LongCube  # parts × operations × kinds, ticks
    actions: IntMatrix  # actions × A_*
    ring: LongMatrix  # rows of sums × actions: ticks of an AllReduce, −1 where impossible
    classes: IntCube  # classes × devices × X_*; −1 without replica
    part_of: Ints  # by samples
    pair: IntMatrix  # classes × classes: which of ``common``, −1 if unknown
    common: IntCube  # pairs × k × k: samples that producer d and consumer e share, −1 if none
    span: IntCube  # pairs × k × 2: from which to which producer's device shares any with e
    everything: int  # the samples of the whole batch
    capacity: Longs  # k + 1
    limited: bool  # whether memory counts


class Work(Struct):
    """Reused memory of evaluations."""

    chosen: Ints  # action of each group: the strategy to evaluate
    outcome: Longs  # what it costs; see :func:`evaluate`
    tasks: LongMatrix  # records, as many as counted in ``n``, like copies, edges and entries
    copies: LongMatrix
    edges: IntMatrix
    entries: IntMatrix
    n: Longs  # counters, N_*
    state: IntCube  # tensors × k × S_*
    summed: Ints  # by tensor: the copy that applies wait for
    vertex: IntMatrix  # operations × k: the task of each replica
    number: Longs  # of the first vertex of each operation
    needs: IntMatrix  # k × most inputs and one: copies that a replica waits for, after their number
    pieces: Ints  # k: copies to be joined or summed
    queue: Ints  # the heaps of all resources
    resources: LongMatrix  # resources × R_*
    ends: Longs  # heap of times when tasks end
    ending_resource: Longs  # and of their resources
    pending: Ints  # resources that decide at this moment, after their number
    use: LongMatrix  # 2 × k + 1: bytes now, and at the peak


# --- building --------------------------------------------------------------------------------


@inner
def _task(w: Work, resource: Any, time: Any, tie: Any) -> Any:
    tasks, n = w.tasks, w.n
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
def _edge(w: Work, copy: Any, v: Any) -> None:
    tasks, copies, edges, n = w.tasks, w.copies, w.edges, w.n
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
def _copy(w: Work, v: Any, device: Any, size: Any, row: Any, tie: Any) -> Any:
    tasks, copies, n = w.tasks, w.copies, w.n
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


@inner
def _next_vertex(w: Work) -> Any:
    """Return the number of a new vertex of the compiled instance."""
    tie = w.n[N_VERTICES]
    w.n[N_VERTICES] = tie + 1
    return tie


@inner
def _fetch(t: Tables, w: Work, copy: Any, device: Any) -> Any:
    """Return the copy on a device, transferring it there once."""
    copies, link = w.copies, t.link
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
        w.n[N_STATUS] = NO_LINK
        return copy
    k1 = link.shape[0]
    row = copies[copy, C_ROW]
    v = _task(w, k1 + home * k1 + device, t.transfer[row, kind], copies[copy, C_TIE])
    _edge(w, copy, v)
    r = _copy(w, v, device, copies[copy, C_BYTES], row, 0)
    copies[r, C_REMOTE] = copies[copy, C_REMOTE]
    copies[copy, C_REMOTE] = r
    return r


@inner
def _signal(w: Work, v: Any) -> Any:
    """Return the copy of the signal of a vertex at its device."""
    tasks, copies = w.tasks, w.copies
    c = tasks[v, T_OWN]
    while c >= 0:
        if copies[c, C_TIE] >= _SIGNAL:
            return c
        c = copies[c, C_OWN]
    return _copy(w, v, tasks[v, T_RESOURCE], 0, 0, _SIGNAL + tasks[v, T_TIE])


@inner
def _entry(w: Work, head: Any, samples: Any, copy: Any) -> Any:
    entries, n = w.entries, w.n
    i = n[N_ENTRIES]
    n[N_ENTRIES] = i + 1
    entries[i, L_SAMPLES] = samples
    entries[i, L_COPY] = copy
    entries[i, L_NEXT] = head
    return i


@inner
def _found(w: Work, head: Any, samples: Any) -> Any:
    entries = w.entries
    while head >= 0 and entries[head, L_SAMPLES] != samples:
        head = entries[head, L_NEXT]
    return entries[head, L_COPY] if head >= 0 else -1


@inner
def _slice(t: Tables, w: Work, tensor: Any, d: Any, samples: Any, row: Any) -> Any:
    """Return some samples of device ``d``'s copy of a tensor, an output of its Split."""
    state, copying = w.state, t.copying
    found = _found(w, state[tensor, d, S_SLICES], samples)
    if found >= 0:
        return found
    v = np.int64(state[tensor, d, S_SPLIT])
    if v < 0:
        home = state[tensor, d, S_HOME]
        v = _task(w, d, copying[w.copies[home, C_ROW], d], _next_vertex(w))
        _edge(w, home, v)
        state[tensor, d, S_SPLIT] = v
        state[tensor, d, S_COUNT] = 0
    tie = (w.tasks[v, T_TIE] << _OUTPUT_BITS) + state[tensor, d, S_COUNT]
    state[tensor, d, S_COUNT] += 1
    c = _copy(w, v, d, copying[row, copying.shape[1] - 1], row, tie)
    state[tensor, d, S_SLICES] = _entry(w, state[tensor, d, S_SLICES], samples, c)
    return c


@inner
def _nearest(t: Tables, w: Work, tensor: Any, b: Any, row: Any, e: Any) -> Any:
    """Return the device whose whole copy of a tensor arrives soonest at ``e``."""
    if w.state[tensor, e, S_HOME] >= 0:
        return e
    actions = t.actions
    best, least = -1, 0
    for i in range(A_DEVICES, A_DEVICES + actions[b, A_COUNT]):
        d = actions[b, i]
        kind = t.link[d, e]
        if kind >= 0 and (best < 0 or t.soonest[row, kind] < least):
            best, least = d, t.soonest[row, kind]
    if best < 0:
        w.n[N_STATUS] = NO_LINK
        return actions[b, A_DEVICES]
    return best


@inner
def _join(t: Tables, w: Work, tensor: Any, b: Any, pair: Any, e: Any, row: Any) -> Any:
    """Return the slices that device ``e`` needs, joined if there are several.

    ``b`` is the action of the tensor's producer, whose operation can be split, and ``pair`` is that
    of its class and the consumer's.
    """
    actions, pieces = t.actions, w.pieces
    producer, line = actions[b, A_CLASS], t.tensors[tensor, V_LINE]
    count = 0
    for i in range(A_DEVICES + t.span[pair, e, 0], A_DEVICES + t.span[pair, e, 1]):
        d = actions[b, i]
        samples = t.common[pair, d, e]
        if samples == t.classes[producer, d, X_SAMPLES]:
            c = np.int64(w.state[tensor, d, S_HOME])
        else:
            c = np.int64(_slice(t, w, tensor, d, samples, t.part_of[samples] * t.lines + line))
        # The transfers come first, since the dependencies of a task are side by side.
        pieces[count] = _fetch(t, w, c, e)
        count += 1
    if count == 1:
        return np.int64(pieces[0])
    copying, tie = t.copying, _next_vertex(w)
    v = _task(w, e, copying[row, e], tie)
    for i in range(count):
        _edge(w, pieces[i], v)
    return _copy(w, v, e, copying[row, copying.shape[1] - 1], row, tie << _OUTPUT_BITS)


@inner
def _synchronise(t: Tables, w: Work, tensor: Any, p: Any, b: Any, time: Any) -> Any:
    """Return the copy that every apply waits for: the signal of an AllReduce, or the sum.

    ``p`` and ``b`` are the producer and its action, ``time`` the ticks of an AllReduce.
    """
    actions, copying, pieces = t.actions, t.copying, w.pieces
    server, count = np.int64(actions[b, A_SYNC]), actions[b, A_COUNT]
    queued = server == ALLREDUCE
    tie = _next_vertex(w)
    target = t.link.shape[0] - 1 if queued else server
    row = np.int64(0)
    for i in range(count):
        d = actions[b, A_DEVICES + i]
        if queued:
            c = np.int64(_signal(w, w.vertex[p, d]))
        else:
            c = np.int64(w.state[tensor, d, S_HOME])
            row = w.copies[c, C_ROW]
        pieces[i] = _fetch(t, w, c, target)
    v = _task(w, target, time if queued else copying[row, target], tie)
    for i in range(count):
        _edge(w, pieces[i], v)
    if queued:
        return _signal(w, v)
    return _copy(w, v, server, copying[row, copying.shape[1] - 1], row, tie << _OUTPUT_BITS)


@inner
def _need(w: Work, e: Any, copy: Any) -> None:
    needs = w.needs
    needs[e, 0] += 1
    needs[e, needs[e, 0]] = copy


@inner
def _need_home(t: Tables, w: Work, tensor: Any, a: Any) -> None:
    """Make each replica of action ``a`` depend on its own device's copy of a tensor."""
    for x in range(A_DEVICES, A_DEVICES + t.actions[a, A_COUNT]):
        e = t.actions[a, x]
        _need(w, e, w.state[tensor, e, S_HOME])


@inner
def _need_samples(t: Tables, w: Work, j: Any, a: Any, own: Any) -> None:
    """Make each replica depend on its samples of the tensor of dependency ``j``.

    ``a`` and ``own`` are the consumer's action and class.
    """
    tensor, p = t.inputs[j, 0], t.inputs[j, 1]
    b, unsplit = w.chosen[t.operations[p, O_GROUP]], t.operations[p, O_UNSPLIT]
    producer = t.actions[b, A_CLASS + unsplit]
    pair = t.pair[producer, own]
    if producer == own:
        _need_home(t, w, tensor, a)
        return
    if not unsplit and pair < 0:
        w.n[N_STATUS] = NO_PAIR
        return
    state, line = w.state, t.tensors[tensor, V_LINE]
    for x in range(A_DEVICES, A_DEVICES + t.actions[a, A_COUNT]):
        e = t.actions[a, x]
        samples = t.classes[own, e, X_SAMPLES]
        if samples == t.classes[producer, e, X_SAMPLES]:
            _need(w, e, state[tensor, e, S_HOME])
            continue
        c = np.int64(_found(w, state[tensor, e, S_JOINED], samples))
        if c < 0:
            row = t.part_of[samples] * t.lines + line
            if unsplit:
                d = _nearest(t, w, tensor, b, row, e)
                c = np.int64(state[tensor, d, S_HOME])
                if samples != t.everything:
                    c = np.int64(_slice(t, w, tensor, d, samples, row))
                c = _fetch(t, w, c, e)
            else:
                c = _join(t, w, tensor, b, pair, e, row)
            state[tensor, e, S_JOINED] = _entry(w, state[tensor, e, S_JOINED], samples, c)
        _need(w, e, c)


@inner
def _need_whole(t: Tables, w: Work, tensor: Any, a: Any, b: Any) -> None:
    """Make each replica of action ``a`` depend on a whole copy of a tensor that ``b`` produces."""
    row = t.part_of[t.everything] * t.lines + t.tensors[tensor, V_LINE]
    for x in range(A_DEVICES, A_DEVICES + t.actions[a, A_COUNT]):
        e = t.actions[a, x]
        d = _nearest(t, w, tensor, b, row, e)
        _need(w, e, _fetch(t, w, w.state[tensor, d, S_HOME], e))


@inner
def _need_copy(t: Tables, w: Work, copy: Any, a: Any) -> None:
    """Make each replica of action ``a`` depend on a copy, transferred where necessary."""
    for x in range(A_DEVICES, A_DEVICES + t.actions[a, A_COUNT]):
        e = t.actions[a, x]
        _need(w, e, _fetch(t, w, copy, e))


@inner
def _need_sum(t: Tables, w: Work, tensor: Any, p: Any, a: Any, b: Any) -> None:
    """Make each replica of action ``a`` depend on the sum of ``p``'s outputs under ``b``."""
    alone = t.actions[b, A_COUNT] == 1 or t.operations[p, O_UNSPLIT] == 1
    queued = t.actions[b, A_SYNC] == ALLREDUCE
    c = np.int64(w.summed[tensor])
    if not alone and c < 0:
        time = np.int64(0)
        if queued:
            time = t.ring[t.tensors[tensor, V_SUM], b]
            if time < 0:
                w.n[N_STATUS] = NO_RING
        c = _synchronise(t, w, tensor, p, b, time)
        w.summed[tensor] = c
    for x in range(A_DEVICES, A_DEVICES + t.actions[a, A_COUNT]):
        e = t.actions[a, x]
        if alone or queued:
            _need(w, e, w.state[tensor, e, S_HOME])
        if not alone:
            _need(w, e, _fetch(t, w, c, e))


@inner
def _need_inputs(t: Tables, w: Work, o: Any, a: Any, own: Any) -> None:
    """Collect the inputs of an operation's replicas, until a link, ring or pair is missing."""
    for x in range(A_DEVICES, A_DEVICES + t.actions[a, A_COUNT]):
        w.needs[t.actions[a, x], 0] = 0
    for j in range(t.operations[o, O_IN], t.operations[o + 1, O_IN]):
        tensor, p = t.inputs[j, 0], t.inputs[j, 1]
        b = w.chosen[t.operations[p, O_GROUP]]
        layout = t.tensors[tensor, V_LAYOUT]
        if layout == BATCHED:
            _need_samples(t, w, j, a, own)
        elif layout == WHOLE:
            _need_whole(t, w, tensor, a, b)
        elif layout == SUMMED:
            _need_sum(t, w, tensor, p, a, b)
        else:
            for y in range(A_DEVICES, A_DEVICES + t.actions[b, A_COUNT]):
                _need_copy(t, w, _signal(w, w.vertex[p, t.actions[b, y]]), a)
        if w.n[N_STATUS] != DONE:
            return


@inner
def _replicate(t: Tables, w: Work, o: Any, a: Any, own: Any) -> None:
    """Make the tasks of an operation, one per device of its action, and their outputs."""
    copying, state = t.copying, w.state
    last_column = copying.shape[1] - 1
    first, last = t.operations[o, O_TENSOR], t.operations[o + 1, O_TENSOR] - 1
    for tensor in range(first, last):
        w.summed[tensor] = -1
        for d in range(t.kind.shape[0]):
            for s in range(S_COUNT):
                state[tensor, d, s] = -1
    for i in range(t.actions[a, A_COUNT]):
        d = t.actions[a, A_DEVICES + i]
        part = t.classes[own, d, X_PART]
        tie = w.number[o] + i
        v = _task(w, d, t.time[part, o, t.kind[d]], tie)
        w.vertex[o, d] = v
        w.use[0, d] += t.resident[o]
        for j in range(1, w.needs[d, 0] + 1):
            _edge(w, w.needs[d, j], v)
        for tensor in range(first, last):
            row = part * t.lines + t.tensors[tensor, V_LINE]
            output = (tie << _OUTPUT_BITS) + tensor - first
            state[tensor, d, S_HOME] = _copy(w, v, d, copying[row, last_column], row, output)


@inner
def _build(t: Tables, w: Work) -> None:
    """Make all tasks, copies and dependencies; producers come before consumers."""
    n, total = w.n, t.order.shape[0]
    for i in range(n.shape[0]):
        n[i] = 0
    for o in range(total):
        w.number[o] = n[N_VERTICES]
        n[N_VERTICES] += t.actions[w.chosen[t.operations[o, O_GROUP]], A_COUNT]
    for d in range(w.use.shape[1]):
        w.use[0, d] = 0
    for place in range(total):
        o = t.order[place]
        a = w.chosen[t.operations[o, O_GROUP]]
        own = t.actions[a, A_CLASS + t.operations[o, O_UNSPLIT]]
        _need_inputs(t, w, o, a, own)
        if n[N_STATUS] != DONE:
            return
        _replicate(t, w, o, a, own)


@inner
def _rank(w: Work) -> None:
    """Set the rank of [G]: a task's time and the largest rank of those that depend on it."""
    tasks, copies, edges = w.tasks, w.copies, w.edges
    end = w.n[N_EDGES]
    for v in range(w.n[N_TASKS] - 1, -1, -1):
        rank = tasks[v, T_RANK] + tasks[v, T_TIME]
        tasks[v, T_RANK] = rank
        begin = tasks[v, T_IN]
        for j in range(begin, end):
            u = copies[edges[j, E_COPY], C_TASK]
            if tasks[u, T_RANK] < rank:
                tasks[u, T_RANK] = rank
        end = begin


# --- executing -------------------------------------------------------------------------------


@inner
def _before(w: Work, u: Any, v: Any) -> Any:
    """Return whether task ``u`` goes before ``v``."""
    tasks = w.tasks
    one, two = tasks[u, T_RANK], tasks[v, T_RANK]
    return one > two or (one == two and tasks[u, T_TIE] < tasks[v, T_TIE])


@inlined
def _wake(w: Work, r: Any) -> None:
    """Make a resource dispatch at this moment, in the order of resources."""
    resources, pending = w.resources, w.pending
    if resources[r, R_PENDING] == 0:
        resources[r, R_PENDING] = 1
        i = pending[0]
        pending[0] = i + 1
        # Descending, so that the next one is last.
        while i > 0 and pending[i] < r:
            pending[i + 1] = pending[i]
            i -= 1
        pending[i + 1] = r


@inlined
def _enqueue(w: Work, v: Any) -> None:
    """Add an executable task to the heap of its resource, and wake the resource if it is idle."""
    queue, resources = w.queue, w.resources
    r = w.tasks[v, T_RESOURCE]
    base, i = resources[r, R_START], resources[r, R_SIZE]
    resources[r, R_SIZE] = i + 1
    while i > 0:
        parent = (i - 1) >> 1
        if _before(w, queue[base + parent], v):
            break
        queue[base + i] = queue[base + parent]
        i = parent
    queue[base + i] = v
    if resources[r, R_TASK] < 0:
        _wake(w, r)


@inlined
def _dequeue(w: Work, r: Any) -> Any:
    """Take the first task from the heap of a resource."""
    queue, resources = w.queue, w.resources
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
            if child + 1 < size and _before(w, queue[base + child + 1], queue[base + child]):
                child += 1
            if _before(w, v, queue[base + child]):
                break
            queue[base + i] = queue[base + child]
            i = child
        queue[base + i] = v
    return np.int64(first)


@inner
def _release(w: Work, c: Any) -> None:
    copies = w.copies
    copies[c, C_USERS] -= 1
    if copies[c, C_USERS] == 0:
        w.use[0, copies[c, C_DEVICE]] -= copies[c, C_BYTES]


@inlined
def _complete(w: Work, v: Any, counted: Any) -> None:
    """Free copies without users, and enqueue tasks of which this was the last dependency."""
    tasks, copies, edges = w.tasks, w.copies, w.edges
    if counted:
        for j in range(tasks[v, T_IN], tasks[v + 1, T_IN]):
            _release(w, edges[j, E_COPY])
        c = tasks[v, T_OWN]
        while c >= 0:
            _release(w, c)
            c = copies[c, C_OWN]
    j = tasks[v, T_OUT]
    while j >= 0:
        u = edges[j, E_TASK]
        tasks[u, T_WAITING] -= 1
        if tasks[u, T_WAITING] == 0:
            _enqueue(w, u)
        j = edges[j, E_NEXT]


@inner
def _prepare(w: Work) -> None:
    """Make all resources idle, and queue the tasks that wait for none."""
    tasks, resources = w.tasks, w.resources
    total, count = w.n[N_TASKS], resources.shape[0]
    tasks[total, T_IN] = w.n[N_EDGES]
    for r in range(count):
        resources[r, R_START] = 0
        resources[r, R_SIZE] = 0
        resources[r, R_TASK] = -1
        resources[r, R_PENDING] = 0
    w.pending[0] = 0
    for v in range(total):
        resources[tasks[v, T_RESOURCE], R_START] += 1
    start = 0
    for r in range(count):
        start += resources[r, R_START]
        resources[r, R_START] = start - resources[r, R_START]
    for v in range(total):
        if tasks[v, T_WAITING] == 0:
            _enqueue(w, v)


@inner
def _execute(w: Work, counted: Any) -> Any:
    """Run all tasks, by rank, and return the time when the last one ends."""
    tasks, copies, resources = w.tasks, w.copies, w.resources
    pending, ends, ending_resource, use = w.pending, w.ends, w.ending_resource, w.use
    _prepare(w)
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
            v = _dequeue(w, r)
            if counted:
                c = tasks[v, T_OWN]
                while c >= 0:
                    use[0, copies[c, C_DEVICE]] += copies[c, C_BYTES]
                    c = copies[c, C_OWN]
            time = tasks[v, T_TIME]
            if time == 0:
                _complete(w, v, counted)
                _wake(w, r)
                continue
            resources[r, R_TASK] = v
            size = heap_push(ends, ending_resource, size, now + time, r)
        if counted:
            for d in range(devices):
                if use[0, d] > use[1, d]:
                    use[1, d] = use[0, d]
        if size == 0:
            return now
        now = ends[0]
        while size and ends[0] == now:
            r = ending_resource[0]
            size = heap_pop(ends, ending_resource, size)
            v = resources[r, R_TASK]
            resources[r, R_TASK] = -1
            _wake(w, r)
            _complete(w, v, counted)


@inner
def _may_overflow(t: Tables, w: Work) -> Any:
    """Return whether memory could be exceeded if no copy were ever freed."""
    copies, use = w.copies, w.use
    for d in range(use.shape[1]):
        use[1, d] = use[0, d]
    for c in range(w.n[N_COPIES]):
        use[1, copies[c, C_DEVICE]] += copies[c, C_BYTES]
    over = 0
    for d in range(use.shape[1]):
        over += use[1, d] > t.capacity[d]
    return over > 0


@inner
def evaluate_chosen(t: Tables, w: Work) -> None:
    """Evaluate the strategy ``w.chosen``, and write what it costs to ``w.outcome``."""
    outcome, use = w.outcome, w.use
    outcome[0] = outcome[1] = 0
    _build(t, w)
    outcome[2] = w.n[N_STATUS]
    if outcome[2] != DONE:
        return
    _rank(w)
    counted = t.limited and _may_overflow(t, w)
    outcome[0] = _execute(w, counted)
    if counted:
        for d in range(use.shape[1]):
            outcome[1] = max(outcome[1], use[1, d] - t.capacity[d])


@kernel
def evaluate(t: Tables, w: Work, chosen: IntMatrix, outcomes: LongMatrix) -> int:
    """Evaluate strategies up to the first that needs an unknown pair; return how many.

    Parameters
    ----------
    chosen : ndarray of int32, strategies × groups
        Actions.
    outcomes : ndarray of int64, strategies × 3
        Ticks until the last task ends; bytes beyond the capacity, of the worst device; status.
    """
    for i in range(chosen.shape[0]):
        for g in range(chosen.shape[1]):
            w.chosen[g] = chosen[i, g]
        evaluate_chosen(t, w)
        for x in range(w.outcome.shape[0]):
            outcomes[i, x] = w.outcome[x]
        if outcomes[i, 2] == NO_PAIR:
            return i
    return len(chosen)
