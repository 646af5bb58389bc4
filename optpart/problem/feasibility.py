"""Reasons why no schedule can exist, in words that a user can act on (design §3)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from optpart.problem.instance import Instance
from optpart.problem.rational import RationalArray

#: Maximal number of units that a reason names; of further ones it gives only the number.
_SHOWN = 12


def contradiction(instance: Instance) -> str:
    """Return a reason why the instance is infeasible; empty if no simple reason holds.

    Simple reasons: a unit without a device, a colocation group that contradicts a separation, a
    unit that fits into no device, and units that together need more memory than their devices have.
    """
    for unit, row in enumerate(instance.allowed):
        if not row.any():
            return f"{instance.unit_name(unit)} has no device that it may run on"
    for a, b in instance.graph.separation:
        if instance.unit_of[a] == instance.unit_of[b]:
            names = instance.graph.names
            return f"{names[a]} and {names[b]} are colocated and separated at once"
    return _memory(instance)


def excluded(instance: Instance, by: str, given: str = "") -> str:
    """Say that no schedule exists, where no smaller conflict is known.

    Parameters
    ----------
    by : str
        Who has proven it.
    given : str
        What must be kept besides the constraints of the instance.

    Returns
    -------
    str
        Names every kind of constraint that can rule a schedule out.
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
    return f"no schedule keeps {kept} (proven by {by})"


def _may_block(instance: Instance) -> bool:
    """Whether something cannot cross somewhere."""
    matrices = instance.graph.tensor_delay.values()
    barred = any(delay is None for matrix in matrices for row in matrix for delay in row)
    return barred or not instance.cluster.linked.all()


def _memory(instance: Instance) -> str:
    capacity = instance.cluster.memory
    need = instance.static_memory
    # Units that may only go to a set of devices must fit into that set together.
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
                f"{instance.unit_name(largest)} needs memory {need[largest]}, "
                f"and the largest device that it may use has {max(_known(limits))}"
            )
        inside = [
            unit for chosen, units in sets.items() if set(chosen) <= set(devices) for unit in units
        ]
        room = sum(_known(limits), Fraction(0))
        kept = _fewest(inside, need, room)
        if kept:
            total = sum((need[unit] for unit in kept), Fraction(0))
            return (
                f"{devices_named(instance, devices)} memory: units {units_named(instance, kept)} "
                f"need {total} of {room} and may go nowhere else"
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
    """Return a type if these are exactly the devices of that type, else their names."""
    names, types = instance.cluster.names, instance.cluster.types
    kind = types[devices[0]]
    if kind is not None and [d for d, t in enumerate(types) if t == kind] == list(devices):
        return kind
    return ", ".join(names[d] for d in devices)


def units_named(instance: Instance, units: Sequence[int]) -> str:
    """Return the names of units, at most a dozen."""
    shown = ", ".join(instance.unit_name(unit) for unit in units[:_SHOWN])
    return shown if len(units) <= _SHOWN else f"{shown} and {len(units) - _SHOWN} more"


def _known(limits: list[Fraction | None]) -> list[Fraction]:
    return [limit for limit in limits if limit is not None]
