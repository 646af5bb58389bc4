"""Reasons for infeasibility, in words on which a user can act (design §3)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from optpart.problem.instance import Instance
from optpart.problem.rational import RationalArray, rounded

#: Maximum number of units named in a reason; further ones are only counted.
_SHOWN = 12


def contradiction(instance: Instance) -> str:
    """Return a simple reason why the instance is infeasible; empty if there is none.

    Simple reasons are a unit without an allowed device, a colocation group that contradicts a
    separation, a unit too large for every device, and units that together need more memory than
    their devices have.
    """
    for unit, row in enumerate(instance.allowed):
        if not row.any():
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
    sets: dict[tuple[int, ...], list[int]] = {}
    for unit, row in enumerate(instance.allowed):
        sets.setdefault(tuple(row.nonzero()[0].tolist()), []).append(unit)
    for devices, own in sets.items():
        limits = [capacity[d] for d in devices]
        if None in limits:
            continue
        largest = max(own, key=lambda unit: need[unit])
        if need[largest] > max(_known(limits)):
            return (
                f"{instance.unit_name(largest)} needs memory "
                f"{rounded(need[largest], up=True)}, but "
                f"the largest device that it may use has {rounded(max(_known(limits)), up=False)}"
            )
        inside = [
            unit for chosen, units in sets.items() if set(chosen) <= set(devices) for unit in units
        ]
        room = sum(_known(limits), Fraction(0))
        kept = _fewest(inside, need, room)
        if kept:
            total = sum((need[unit] for unit in kept), Fraction(0))
            return (
                f"not enough memory on {devices_named(instance, devices)}: units "
                f"{units_named(instance, kept)} may run only there and need "
                f"{rounded(total, up=True)}, but {rounded(room, up=False)} is available"
            )
    return ""


def _fewest(units: list[int], need: RationalArray, room: Fraction) -> list[int]:
    """Return a smallest set of units that exceeds the capacity; empty if all units fit."""
    largest_first = sorted(units, key=lambda unit: (-need[unit], unit))
    total = Fraction(0)
    for number, unit in enumerate(largest_first, 1):
        total += need[unit]
        if total > room:
            return sorted(largest_first[:number])
    return []


def devices_named(instance: Instance, devices: Sequence[int]) -> str:
    """Return the type of the devices if they are all devices of that type, else their names."""
    names, types = instance.cluster.names, instance.cluster.types
    kind = types[devices[0]]
    if kind is not None and [d for d, t in enumerate(types) if t == kind] == list(devices):
        return kind
    return ", ".join(names[d] for d in devices)


def units_named(instance: Instance, units: Sequence[int]) -> str:
    """Return the names of at most twelve units, and the number of further ones."""
    shown = ", ".join(instance.unit_name(unit) for unit in units[:_SHOWN])
    return shown if len(units) <= _SHOWN else f"{shown} and {len(units) - _SHOWN} more"


def _known(limits: list[Fraction | None]) -> list[Fraction]:
    return [limit for limit in limits if limit is not None]
