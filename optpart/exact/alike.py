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


def talkers_first(instance: Instance) -> NDArray[np.int64]:
    """Return the units by the data that they exchange with others, most first.

    Where these are is worth most to know: it tells who else must wait for data.
    """
    graph, unit = instance.graph, instance.unit_of
    source, target = unit[graph.edge_source], unit[graph.edge_target]
    size = np.where(source != target, graph.tensor_size.floats[graph.edge_tensor], 0.0)
    total = np.zeros(len(instance.units))
    np.add.at(total, source, size)
    np.add.at(total, target, size)
    return np.argsort(-total, kind="stable")


def possible_first(
    instance: Instance, alike: list[list[int]], turn: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return where units may run if earlier ones in ``turn`` use earlier interchangeable devices.

    Of a class, the first unit in turn that may use it uses only its first device, if any, the
    second only the first two, and so on.
    """
    possible = instance.allowed.copy()
    for members in alike:
        users = turn[instance.allowed[turn, members[0]]]
        for place, unit in enumerate(users[: len(members) - 1].tolist()):
            possible[unit, members[place + 1 :]] = False
    return possible


def canonical(
    instance: Instance,
    placement: NDArray[np.int32],
    alike: list[list[int]],
    turn: NDArray[np.int64] | None = None,
) -> NDArray[np.int32]:
    """Rename interchangeable devices so that earlier units in ``turn`` use earlier ones.

    Without a ``turn``, units of lower number do.
    """
    name = np.arange(instance.devices, dtype=np.int32)
    by_unit = [int(placement[members[0]]) for members in instance.units]
    if turn is not None:
        by_unit = [by_unit[unit] for unit in turn.tolist()]
    for members in alike:
        used = [d for d in dict.fromkeys(by_unit) if d in members]
        rest = [d for d in members if d not in used]
        for old, new in zip([*used, *rest], members, strict=True):
            name[old] = new
    return name[placement]
