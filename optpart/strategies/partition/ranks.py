"""Ranks of vertices and devices, and the average costs that they use."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.kernels.compiled import arrays
from optpart.kernels.longest_paths import longest_before, longest_from
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


def speed_share(instance: Instance) -> NDArray[np.float64]:
    """Return the share of each device in the total speed of all that some unit may use.

    The shares add up to 1. If run times are given, the speed of a device is the inverse of its mean
    run time, relative to the mean of each vertex over its devices.
    """
    given = instance.given_durations
    if given is None:
        speed = instance.cluster.speed.floats
    else:
        possible, mean = given.possible, np.where(work(instance) > 0, work(instance), 1.0)
        relative = np.where(possible, given.times.floats, 0.0) / mean[:, None]
        slowness = relative.sum(axis=0) / np.maximum(possible.sum(axis=0), 1)
        # A device on which nothing takes time would get all: speeds are limited to a thousand.
        speed = 1 / np.maximum(slowness, 1e-3)
    speed = np.where(instance.allowed.any(axis=0), speed, 0.0)
    total = speed.sum()
    return np.asarray(speed / total if total else np.full_like(speed, 1 / len(speed)))


def mean_run(instance: Instance) -> NDArray[np.float64]:
    """Return the run time of each vertex at the mean speed of all devices, in units of ``Arrays``.

    If run times are given, it is their mean over the devices that can run the vertex.
    """
    a = arrays(instance)
    if instance.given_durations is None:
        return np.asarray(a.ops / a.speed.mean(), dtype=np.float64)
    return work(instance) * a.scale


def mean_transfer(instance: Instance) -> NDArray[np.float64]:
    """Return the mean transfer time of each tensor between two devices, in units of ``Arrays``.

    That is the time at the mean of the finite bandwidths, times the share of device pairs that have
    one (the others take no time), plus the mean latency; if transfer times are given, their mean.
    """
    a = arrays(instance)
    cluster, k = instance.cluster, instance.devices
    others = ~np.eye(k, dtype=np.bool_)
    finite = cluster.linked & ~cluster.infinite & others
    linked = int(cluster.linked.sum()) - k
    transfer = np.zeros(instance.graph.tensors)
    if finite.any():
        transfer += a.size / a.bandwidth[finite].mean() * (int(finite.sum()) / linked)
    if linked:
        transfer += a.latency[cluster.linked & others].mean()
    for tensor in np.flatnonzero(a.measured_row >= 0).tolist():
        matrix = a.measured[a.measured_row[tensor]]
        between = matrix[(matrix >= 0) & others]
        transfer[tensor] = between.mean() if len(between) else 0.0
    return transfer


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
    nothing, ops = np.zeros(instance.graph.tensors), work(instance)
    return OperationsRank(downward(instance, ops, nothing), upward(instance, ops, nothing))


def upward_rank(instance: Instance) -> NDArray[np.float64]:
    """Return the upward rank with mean run times and mean transfer times ([L] eq. 4.1, 4.2)."""
    return upward(instance, mean_run(instance), mean_transfer(instance))


def upward(
    instance: Instance, run: NDArray[np.float64], transfer: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the longest path that starts with each vertex, with a transfer time per tensor."""
    a = arrays(instance)
    delay = transfer[a.out_tensor]
    rank: NDArray[np.float64] = longest_from(a.order, a.out_start, a.out_target, delay, run)
    return rank


def downward(
    instance: Instance, run: NDArray[np.float64], transfer: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the longest path that ends before each vertex, with a transfer time per tensor."""
    a = arrays(instance)
    delay = transfer[a.in_tensor]
    rank: NDArray[np.float64] = longest_before(a.order, a.in_start, a.in_source, delay, run)
    return rank
