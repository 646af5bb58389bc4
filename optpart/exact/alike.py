"""Interchangeable devices: swapping two of them changes nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optpart.goal import Task
from optpart.instance import Instance


def alike_devices(instance: Instance) -> list[list[int]]:
    """Return the classes of two and more interchangeable devices, each ascending.

    Two devices are interchangeable if exchanging their names maps the instance to itself: the same
    memory, run times and admissible units, equal links to every third device and between each
    other, and no transfer times given per device pair.
    """
    if instance.graph.tensor_delay:
        return []
    classes: list[list[int]] = []
    for d in range(instance.devices):
        for members in classes:
            # Being interchangeable is an equivalence, so one member speaks for all.
            if _alike(instance, members[0], d):
                members.append(d)
                break
        else:
            classes.append([d])
    return [members for members in classes if len(members) > 1]


def _alike(instance: Instance, d: int, e: int) -> bool:
    cluster, given = instance.cluster, instance.given_durations
    if cluster.memory[d] != cluster.memory[e]:
        return False
    if not np.array_equal(instance.allowed[:, d], instance.allowed[:, e]):
        return False
    if given is None:
        if cluster.speed[d] != cluster.speed[e]:
            return False
    elif not np.array_equal(given.times.numerators[:, d], given.times.numerators[:, e]):
        return False
    swap = np.arange(instance.devices)
    swap[[d, e]] = e, d
    off = ~np.eye(instance.devices, dtype=np.bool_)
    for matrix in (cluster.bandwidth.numerators, cluster.infinite, cluster.latency.numerators):
        if not np.array_equal(matrix[off], matrix[np.ix_(swap, swap)][off]):
            return False
    return True


def unnamed(alike: list[list[int]], order: tuple[tuple[Task, Task], ...]) -> list[list[int]]:
    """Leave out devices that a given order of transfers names: they no longer are like others."""
    named = {task[1] for pair in order for task in pair if not isinstance(task, int)}
    left = [[d for d in members if d not in named] for members in alike]
    return [members for members in left if len(members) > 1]


def canonical(
    instance: Instance, placement: NDArray[np.int32], alike: list[list[int]]
) -> NDArray[np.int32]:
    """Rename interchangeable devices so that units of lower number use earlier ones."""
    name = np.arange(instance.devices, dtype=np.int32)
    for members in alike:
        used = [d for d in dict.fromkeys(_by_unit(instance, placement)) if d in members]
        rest = [d for d in members if d not in used]
        for old, new in zip([*used, *rest], members, strict=True):
            name[old] = new
    return name[placement]


def _by_unit(instance: Instance, placement: NDArray[np.int32]) -> list[int]:
    return [int(placement[members[0]]) for members in instance.units]
