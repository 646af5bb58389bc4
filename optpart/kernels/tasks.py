"""The tasks of a placement: vertices, and transfers if they queue.

Under ``delay`` the tasks are the vertices. Under ``sendrecv`` every crossing adds a send vertex on
the sender's device ([L] §2.4); under ``link`` and ``port`` every crossing is a task of the link
that it uses, so that links act as further devices ([G] §4.2).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from optpart.kernels.compiled import Arrays, arrays, crossing_time, run_time, short_kernel
from optpart.kernels.struct import Floats, Ints, Struct
from optpart.problem.graph import grouped
from optpart.problem.instance import Instance
from optpart.solution.schedule import crossings


class Tasks(Struct):
    """A task graph with fixed resources; times are doubles in the unit of :class:`Arrays`.

    Tasks ``0 … n−1`` are the vertices; task ``n + c`` is crossing ``c`` of
    :func:`~optpart.solution.schedule.crossings`.
    """

    resource: Ints
    duration: Floats
    out_start: Ints
    out_target: Ints
    out_delay: Floats
    missing: Ints  # number of predecessors
    order: Ints  # topological
    resources: int


def tasks(instance: Instance, placement: NDArray[np.int32]) -> Tasks:
    """Build the tasks of a placement."""
    a, placement = arrays(instance), np.require(placement, np.int32, ["C", "W"])
    if not instance.model.queues:
        duration, out_delay = _times(a, placement)
        return Tasks(
            placement,
            duration,
            a.out_start,
            a.out_target,
            out_delay,
            np.diff(a.in_start),
            a.order,
            instance.devices,
        )
    return _with_transfers(instance, placement, a)


@short_kernel
def _times(a: Arrays, placement: Ints) -> Any:
    n = placement.shape[0]
    duration = np.empty(n)
    delay = np.empty(a.out_target.shape[0])
    for v in range(n):
        d = placement[v]
        duration[v] = run_time(a, v, d)
        for e in range(a.out_start[v], a.out_start[v + 1]):
            delay[e] = max(0.0, crossing_time(a, a.out_tensor[e], d, placement[a.out_target[e]]))
    return duration, delay


def _with_transfers(instance: Instance, placement: NDArray[np.int32], a: Arrays) -> Tasks:
    n, k = instance.vertices, instance.devices
    graph = instance.graph
    moves = crossings(instance, placement)
    number = {move: n + c for c, move in enumerate(moves)}
    duration, _ = _times(a, placement)
    sending = instance.model.sends
    edges: set[tuple[int, int, float]] = set()
    resource, extra = [], []
    for tensor, target in moves:
        u = int(graph.tensor_vertex[tensor])
        sender = int(placement[u])
        edges.add((u, number[tensor, target], 0.0))
        if sending:
            resource.append(sender)
            extra.append(float(instance.send_duration(sender)) * a.scale)
        else:
            resource.append(k + sender * k + target)
            extra.append(max(0.0, crossing_time(a, tensor, sender, target)))
    for u, v, tensor in zip(graph.edge_source, graph.edge_target, graph.edge_tensor, strict=True):
        sender, target = int(placement[u]), int(placement[v])
        if sender == target:
            edges.add((int(u), int(v), 0.0))
        else:
            delay = max(0.0, crossing_time(a, tensor, sender, target)) if sending else 0.0
            edges.add((number[int(tensor), target], int(v), delay))
    listed = sorted(edges)
    source = np.array([u for u, _, _ in listed], dtype=np.int32)
    total = n + len(moves)
    out_start, _ = grouped(source, total)
    target_array = np.array([v for _, v, _ in listed], dtype=np.int32)
    by_producer: dict[int, list[int]] = {}
    for (tensor, _), task in zip(moves, range(n, total), strict=True):
        by_producer.setdefault(int(graph.tensor_vertex[tensor]), []).append(task)
    order = [
        task for v in graph.topological_order.tolist() for task in (v, *by_producer.get(v, ()))
    ]
    return Tasks(
        np.concatenate((placement, np.array(resource, dtype=np.int32))).astype(np.int32),
        np.concatenate((duration, np.array(extra, dtype=np.float64))),
        out_start,
        target_array,
        np.array([delay for _, _, delay in listed], dtype=np.float64),
        np.bincount(target_array, minlength=total).astype(np.int32),
        np.array(order, dtype=np.int32),
        k if sending else k + k * k,
    )
