"""Ranks of vertices and devices, shared by several strategies."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.kernels.compiled import Arrays, arrays, short_kernel
from optpart.kernels.struct import Floats
from optpart.problem.instance import Instance


def devices_by_speed(instance: Instance) -> NDArray[np.int32]:
    """Return the devices, fastest first.

    If run times are given, devices are compared by their mean run time, relative to the mean of
    each vertex over its devices.
    """
    given = instance.given_durations
    if given is None:
        return np.argsort(-instance.cluster.speed.floats, kind="stable").astype(np.int32)
    possible = given.possible
    times = np.where(possible, given.times.floats, np.nan)
    count = possible.sum(axis=1)
    total = np.where(possible, given.times.floats, 0.0).sum(axis=1)
    mean = np.where((count > 0) & (total > 0), total / np.maximum(count, 1), 1.0)
    relative = np.where(possible, times / mean[:, None], 0.0).sum(axis=0)
    slowness = relative / np.maximum(possible.sum(axis=0), 1)
    slowness[~possible.any(axis=0)] = np.inf
    return np.argsort(slowness, kind="stable").astype(np.int32)


def work(instance: Instance) -> NDArray[np.float64]:
    """Return the operations of each vertex; if run times are given, their mean over its devices."""
    given = instance.given_durations
    if given is None:
        return instance.graph.ops.floats
    count = np.maximum(given.possible.sum(axis=1), 1)
    total = np.where(given.possible, given.times.floats, 0.0).sum(axis=1)
    return np.asarray(total / count, dtype=np.float64)


class OperationsRank(NamedTuple):
    """[L] §4.4.1: operations on the heaviest path that ends before, or starts with, a vertex.

    Attributes
    ----------
    source, sink : ndarray of float64, length n
        Equations 4.3 and 4.4; the operations rank is their sum.
    """

    source: NDArray[np.float64]
    sink: NDArray[np.float64]


def operations_rank(instance: Instance) -> OperationsRank:
    """Compute both operations ranks of every vertex."""
    return OperationsRank(*_operations_rank(arrays(instance), work(instance)))


@short_kernel
def _operations_rank(a: Arrays, ops: Floats) -> Any:
    n = ops.shape[0]
    source, sink = np.zeros(n), np.zeros(n)
    for i in range(n):
        v = a.order[i]
        for e in range(a.in_start[v], a.in_start[v + 1]):
            u = a.in_source[e]
            source[v] = max(source[v], source[u] + ops[u])
    for i in range(n - 1, -1, -1):
        v = a.order[i]
        for e in range(a.out_start[v], a.out_start[v + 1]):
            sink[v] = max(sink[v], sink[a.out_target[e]])
        sink[v] += ops[v]
    return source, sink


def upward_rank(instance: Instance) -> NDArray[np.float64]:
    """Return the upward rank with mean run times and mean transfer times ([L] eq. 4.1, 4.2).

    See :func:`~optpart.strategies.partition.means.mean_run` and
    :func:`~optpart.strategies.partition.means.mean_transfer` for these means.
    """
    a = arrays(instance)
    cluster, k = instance.cluster, instance.devices
    given = instance.given_durations
    run = a.ops / a.speed.mean() if given is None else work(instance) * a.scale
    finite = cluster.linked & ~cluster.infinite & ~np.eye(k, dtype=np.bool_)
    linked = int(cluster.linked.sum()) - k
    transfer = np.zeros(instance.graph.tensors)
    if finite.any():
        transfer += a.size / a.bandwidth[finite].mean() * (int(finite.sum()) / linked)
    if linked:
        transfer += a.latency[cluster.linked & ~np.eye(k, dtype=np.bool_)].mean()
    for tensor, row in zip(*_measured(a), strict=True):
        matrix = a.measured[row]
        between = matrix[(matrix >= 0) & ~np.eye(k, dtype=np.bool_)]
        transfer[tensor] = between.mean() if len(between) else 0.0
    rank: NDArray[np.float64] = upward(a, run, transfer)
    return rank


def _measured(a: Arrays) -> tuple[list[int], list[int]]:
    tensors = np.flatnonzero(a.measured_row >= 0)
    return tensors.tolist(), a.measured_row[tensors].tolist()


@short_kernel
def upward(a: Arrays, run: Floats, transfer: Floats) -> Any:
    """Return the largest sum of times on a path from each vertex ([L] eq. 4.2).

    Parameters
    ----------
    run : ndarray of float64, length n
    transfer : ndarray of float64, length t
    """
    n = run.shape[0]
    rank = np.empty(n)
    for i in range(n - 1, -1, -1):
        v = a.order[i]
        best = 0.0
        for e in range(a.out_start[v], a.out_start[v + 1]):
            best = max(best, transfer[a.out_tensor[e]] + rank[a.out_target[e]])
        rank[v] = run[v] + best
    return rank
