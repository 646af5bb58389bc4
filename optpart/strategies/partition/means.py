"""Average costs of vertices, transfers and devices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optpart.kernels.compiled import arrays
from optpart.problem.instance import Instance
from optpart.strategies.partition.ranks import work


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
