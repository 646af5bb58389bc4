"""Reasons for infeasibility, in words on which a user can act (design §3)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from optpart.base.escaping import listed
from optpart.problem.instance import Instance
from optpart.problem.rational import RationalArray, rounded

#: Maximum number of units named in a reason; further ones are only counted.
SHOWN = 12


def contradiction(instance: Instance) -> str:
    """Return a simple reason why the instance is infeasible; empty if there is none.

    Simple reasons are a unit without an allowed device, a colocation group that contradicts a
    separation, a unit too large for every device, and units that together need more memory than
    their devices have.
    """
    possible = instance.allowed.any(axis=1)
    if not possible.all():
        unit = int(possible.argmin())
        return f"{instance.unit_name(unit)} has no device that it may run on"
    for a, b in instance.graph.separation:
        if instance.unit_of[a] == instance.unit_of[b]:
            names = instance.graph.names
            return f"{names[a]} and {names[b]} are both colocated and separated"
    return _memory(instance)


def excluded(instance: Instance, by: str, given: str = "") -> str:
    """Return the reason for infeasibility if no smaller conflict is known.

    Parameters
    ----------
    by : str
        The part of the program that has proven it.
    given : str
        Fixed decisions and limits besides the constraints of the instance.

    Returns
    -------
    str
        Names every kind of constraint that can exclude a schedule.
    """
    kinds = {
        "allowed devices": not instance.allowed.all(),
        "colocation": len(instance.units) < instance.vertices,
        "separation": bool(instance.graph.separation),
        "missing links": _may_block(instance),
        "memory": instance.model.memory != "none",
        given: bool(given),
    }
    *most, last = [kind for kind, there in kinds.items() if there] or ["the rules of the model"]
    kept = f"{', '.join(most)} and {last}" if most else last
    return f"no schedule satisfies {kept} (proven by {by})"


def _may_block(instance: Instance) -> bool:
    """Return whether a tensor cannot cross between some pair of devices."""
    matrices = instance.graph.tensor_delay.values()
    barred = any(delay is None for matrix in matrices for row in matrix for delay in row)
    return barred or not instance.cluster.linked.all()


def _memory(instance: Instance) -> str:
    capacity = instance.cluster.memory
    need = instance.static_memory
    # Units whose allowed devices are within a set must fit into the memory of that set together.
    sets = _by_devices(instance.allowed)
    for devices, own in sets.items():
        limits = [capacity[d] for d in devices]
        if None in limits:
            continue
        largest = int(own[need.numerators[own].argmax()])
        if need[largest] > max(_known(limits)):
            return (
                f"{instance.unit_name(largest)} needs memory "
                f"{rounded(need[largest], up=True)}, but "
                f"the largest device that it may use has {rounded(max(_known(limits)), up=False)}"
            )
        within = [units for chosen, units in sets.items() if set(chosen) <= set(devices)]
        inside = np.concatenate(within)
        room = sum(_known(limits), Fraction(0))
        if need.sum(inside) > room:
            kept = _fewest(inside.tolist(), need, room)
            total = sum((need[unit] for unit in kept), Fraction(0))
            return (
                f"not enough memory on {devices_named(instance, devices)}: units "
                f"{units_named(instance, kept)} may run only there and need "
                f"{rounded(total, up=True)}, but {rounded(room, up=False)} is available"
            )
    return ""


def _by_devices(allowed: NDArray[np.bool_]) -> dict[tuple[int, ...], NDArray[np.int64]]:
    """Return the units that may use exactly a set of devices, for each set in use."""
    rows, of = np.unique(np.packbits(allowed, axis=1), axis=0, return_inverse=True)
    units = np.argsort(of.reshape(-1), kind="stable")
    ends = np.cumsum(np.bincount(of.reshape(-1), minlength=len(rows)))
    groups = sorted(np.split(units, ends[:-1]), key=lambda own: int(own[0])) if len(rows) else []
    return {tuple(allowed[own[0]].nonzero()[0].tolist()): own for own in groups}


def _fewest(units: list[int], need: RationalArray, room: Fraction) -> list[int]:
    """Return a smallest set of units that exceeds the capacity."""
    total, number = Fraction(0), 0
    largest_first = sorted(units, key=lambda unit: (-need[unit], unit))
    while total <= room:
        total += need[largest_first[number]]
        number += 1
    return sorted(largest_first[:number])


def devices_named(instance: Instance, devices: Sequence[int]) -> str:
    """Return the type of the devices if they are all devices of that type, else their names."""
    names, types = instance.cluster.names, instance.cluster.types
    kind = types[devices[0]]
    if kind is not None and [d for d, t in enumerate(types) if t == kind] == list(devices):
        return kind
    return ", ".join(names[d] for d in devices)


def units_named(instance: Instance, units: Sequence[int]) -> str:
    """Return the names of at most twelve units, and the number of further ones."""
    return listed([instance.unit_name(unit) for unit in units], SHOWN)


def _known(limits: list[Fraction | None]) -> list[Fraction]:
    return [limit for limit in limits if limit is not None]
