"""Execute a plan from the beginning, under any communication and memory model.

Transfers are included: a copy of a tensor queues right after the tensor is produced, or right
before its first consumer at the destination, as the plan says for each tensor. It queues for its
link under ``link`` ([G] §4.2), for its ports under ``port`` ([H] §2.1), for its sender under
``sendrecv`` ([L] §2.4).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from optpart.kernels.compiled import Arrays, arrays, crossing_time, inner
from optpart.kernels.struct import FloatCube, FloatMatrix, Floats, Ints, LongMatrix, Longs, Struct
from optpart.problem.instance import Instance
from optpart.search.plan import Links, Plan

_COMMUNICATION = ("delay", "sendrecv", "link", "port")
_MEMORY = ("none", "estimate", "edges", "refcount")
SENDRECV, LINK, PORT = 1, 2, 3
EDGES, REFCOUNT = 2, 3


class Rules(Struct):
    """The models of an instance as numbers.

    Attributes
    ----------
    whole : bool
        Whether a change may affect everything, so that plans are executed from the beginning.
    communication, memory : int
        Position in the list of models.
    send : ndarray of float64, length k
        Run time of a send.
    channels : int
    at_start : bool
        Whether a tensor is freed when its last consumer starts.
    size, resident, capacity : ndarray of float64, lengths t, n, k
        Memory.
    """

    whole: bool
    communication: int
    memory: int
    send: Floats
    channels: int
    at_start: bool
    size: Floats
    resident: Floats
    capacity: Floats


def rules(instance: Instance) -> Rules:
    """Read the models of an instance."""
    model, scale = instance.model, arrays(instance).scale
    limits = [np.inf if m is None else float(m) for m in instance.cluster.memory]
    return Rules(
        whole=model.queues or model.timed_memory,
        communication=_COMMUNICATION.index(model.communication),
        memory=_MEMORY.index(model.memory),
        send=np.array([float(instance.send_duration(d)) * scale for d in range(instance.devices)]),
        channels=min(model.channels, max(1, instance.graph.tensors)),
        at_start=model.release == "start",
        size=instance.graph.tensor_size.floats.copy(),
        resident=instance.graph.memory.floats.copy(),
        capacity=np.array(limits),
    )


class Execution(Struct):
    """Times of all vertices and transfers, and the order in which they were executed.

    Attributes
    ----------
    run : ndarray of int64
        Number of this execution, and number of items.
    start, end : ndarray of float64, length n
    sent : ndarray of int64, t × k
        The execution in which a tensor was last sent to a device.
    begin, arrival, freed : ndarray of float64, t × k
    items : ndarray of int64
        A vertex as its number, a transfer as ``n + tensor · k + destination``.
    link : ndarray of float64, k × k
        Time until which each link is occupied.
    ports : ndarray of float64, 2 × k × channels
        Time until which each channel out of and into a device is occupied.
    """

    run: Longs
    start: Floats
    end: Floats
    sent: LongMatrix
    begin: FloatMatrix
    arrival: FloatMatrix
    freed: FloatMatrix
    items: Longs
    link: FloatMatrix
    ports: FloatCube


def execution(instance: Instance, r: Rules) -> Execution:
    """Allocate an execution; next to nothing if plans are never executed as a whole."""
    n, k = instance.vertices, instance.devices
    t, m = (instance.graph.tensors, len(instance.graph.edge_source)) if r.whole else (0, 0)
    return Execution(
        np.zeros(2, dtype=np.int64),
        np.zeros(n),
        np.zeros(n),
        np.zeros((t, k), dtype=np.int64),
        np.zeros((t, k)),
        np.zeros((t, k)),
        np.zeros((t, k)),
        np.zeros(n + m, dtype=np.int64),
        np.zeros((k, k)),
        np.zeros((2, k, r.channels)),
    )


@inner
def execute(a: Arrays, g: Links, r: Rules, p: Plan, x: Execution, free: Any) -> Any:
    """Execute a plan and return the makespan; ``free`` is scratch with one entry per device."""
    n = p.device.shape[0]
    x.run[0] += 1
    x.run[1] = 0
    free[:] = 0.0
    x.link[:] = 0.0
    x.ports[:] = 0.0
    makespan = 0.0
    for i in range(n):
        v = p.order[i]
        d = p.device[v]
        at = 0.0
        for e in range(a.in_start[v], a.in_start[v + 1]):
            u = a.in_source[e]
            tensor = a.in_tensor[e]
            if p.device[u] == d:
                at = max(at, x.end[u])
                continue
            if x.sent[tensor, d] != x.run[0]:
                _send(a, r, x, tensor, u, p.device[u], d, free)
            at = max(at, x.arrival[tensor, d])
        at = max(at, free[d])
        x.start[v] = at
        x.end[v] = free[d] = at + p.run[v]
        makespan = max(makespan, x.end[v])
        x.items[x.run[1]] = v
        x.run[1] += 1
        for j in range(g.made_start[v], g.made_start[v + 1]):
            tensor = g.made[j]
            if not p.eager[tensor]:
                continue
            for c in range(g.used_start[tensor], g.used_start[tensor + 1]):
                e = p.device[g.used_by[c]]
                if e != d and x.sent[tensor, e] != x.run[0]:
                    _send(a, r, x, tensor, v, d, e, free)
    return makespan


@inner
def _send(
    a: Arrays, r: Rules, x: Execution, tensor: Any, u: Any, d: Any, e: Any, free: Any
) -> None:
    made = x.end[u]
    time = max(0.0, crossing_time(a, tensor, d, e))
    begin, arrival = made, made + time
    if r.communication == SENDRECV:
        begin = max(made, free[d])
        free[d] = begin + r.send[d]
        arrival = free[d] + time
    elif r.communication == LINK:
        begin = max(made, x.link[d, e])
        arrival = x.link[d, e] = begin + time
    elif r.communication == PORT:
        begin = max(made, x.ports[0, d].min(), x.ports[1, e].min())
        arrival = begin + time
        _take_channel(x.ports[0, d], begin, arrival)
        _take_channel(x.ports[1, e], begin, arrival)
    x.sent[tensor, e] = x.run[0]
    x.begin[tensor, e] = begin
    x.freed[tensor, e] = 0.0
    x.arrival[tensor, e] = arrival
    x.items[x.run[1]] = x.start.shape[0] + tensor * x.link.shape[0] + e
    x.run[1] += 1


@inner
def _take_channel(port: Any, begin: float, until: float) -> None:
    """Take the free channel that became free last, as exact retiming does."""
    best = 0
    for c in range(port.shape[0]):
        if port[c] <= begin and (port[best] > begin or port[c] > port[best]):
            best = c
    port[best] = until


@inner
def excess(a: Arrays, g: Links, r: Rules, p: Plan, x: Execution) -> Any:
    """Return the sum of relative amounts by which peaks of memory exceed the capacities."""
    peak = peaks(a, g, r, p, x)
    over = 0.0
    for d in range(peak.shape[0]):
        if peak[d] > r.capacity[d] * (1.0 + 1e-12):
            over += (peak[d] - r.capacity[d]) / max(r.capacity[d], 1e-9)
    return over


@inner
def peaks(a: Arrays, g: Links, r: Rules, p: Plan, x: Execution) -> Any:
    """Return the most that each device holds at a time, where that changes with time."""
    k = p.last.shape[0]
    room = a.in_source.shape[0] + g.used_start.shape[0] + x.run[1]
    held = Held(np.empty(room), np.empty(room), np.empty(room), np.empty(room, np.int32))
    since, until, amount, where = held
    level = np.zeros(k)
    if r.memory == EDGES:
        c = _active_edges(a, r, p, x, held)
    else:
        c = _copies(a, g, r, p, x, held)
        for v in range(p.device.shape[0]):
            level[p.device[v]] += r.resident[v]
    peak = level.copy()
    # Among equal times, releases come first: they are listed first, and the sort is stable.
    order = np.argsort(np.concatenate((until[:c], since[:c])), kind="mergesort")
    for j in order:
        i = j if j < c else j - c
        if until[i] > since[i]:
            d = where[i]
            level[d] += -amount[i] if j < c else amount[i]
            peak[d] = max(peak[d], level[d])
    return peak


class Held(NamedTuple):
    """Amounts of memory: from when, until when, how much, and on which device."""

    since: Floats
    until: Floats
    amount: Floats
    where: Ints


@inner
def _active_edges(a: Arrays, r: Rules, p: Plan, x: Execution, held: Held) -> Any:
    """An in-edge is active from its arrival until its target starts ([M] eq. 2)."""
    since, until, amount, where = held
    c = 0
    for v in range(p.device.shape[0]):
        d = p.device[v]
        for e in range(a.in_start[v], a.in_start[v + 1]):
            u, tensor = a.in_source[e], a.in_tensor[e]
            since[c] = x.end[u] if p.device[u] == d else x.arrival[tensor, d]
            until[c], amount[c], where[c] = x.start[v], r.size[tensor], d
            c += 1
    return c


@inner
def _copies(a: Arrays, g: Links, r: Rules, p: Plan, x: Execution, held: Held) -> Any:
    """A tensor is held at home from its making, elsewhere from the start of its transfer."""
    n, k = p.device.shape[0], p.last.shape[0]
    since, until, amount, where = held
    c = 0
    for tensor in range(g.used_start.shape[0] - 1):
        u = a.tensor_vertex[tensor]
        home, kept = p.device[u], x.end[u]
        for j in range(g.used_start[tensor], g.used_start[tensor + 1]):
            w = g.used_by[j]
            freed = x.start[w] if r.at_start else x.end[w]
            d = p.device[w]
            if d == home:
                kept = max(kept, freed)
            else:
                kept = max(kept, x.arrival[tensor, d])
                x.freed[tensor, d] = max(x.freed[tensor, d], freed)
        since[c], until[c], amount[c], where[c] = x.start[u], kept, r.size[tensor], home
        c += 1
    for i in range(x.run[1]):
        if x.items[i] >= n:
            tensor, d = divmod(x.items[i] - n, k)
            since[c], until[c] = x.begin[tensor, d], x.freed[tensor, d]
            amount[c], where[c] = r.size[tensor], d
            c += 1
    return c
