"""Reasons that no schedule can exist, in words that a person can act on (design §3)."""

from __future__ import annotations

from fractions import Fraction

from optpart.instance import Instance


def contradiction(instance: Instance) -> str:
    """Return a reason that the instance is infeasible; empty if none of the simple ones holds.

    Looked for: a unit without a device, a colocation group that contradicts a separation, a unit
    that fits into no device, and units that together need more memory than their devices have.
    """
    for unit, row in enumerate(instance.allowed):
        if not row.any():
            return f"{instance.unit_name(unit)} has no device that it may run on"
    for a, b in instance.graph.separation:
        if instance.unit_of[a] == instance.unit_of[b]:
            names = instance.graph.names
            return f"{names[a]} and {names[b]} are colocated and separated at once"
    return _memory(instance)


def _memory(instance: Instance) -> str:
    capacity = instance.cluster.memory
    need = instance.static_memory
    for unit, row in enumerate(instance.allowed):
        limits = [capacity[d] for d in row.nonzero()[0]]
        if None not in limits and need[unit] > max(_known(limits)):
            return (
                f"{instance.unit_name(unit)} needs memory {need[unit]}, "
                f"and the largest device that it may use has {max(_known(limits))}"
            )
    # Units that may only go to a set of devices must fit into that set together.
    sets: dict[tuple[int, ...], list[int]] = {}
    for unit, row in enumerate(instance.allowed):
        sets.setdefault(tuple(row.nonzero()[0].tolist()), []).append(unit)
    for devices in sets:
        limits = [capacity[d] for d in devices]
        if None in limits:
            continue
        inside = [
            unit for chosen, units in sets.items() if set(chosen) <= set(devices) for unit in units
        ]
        total = sum((need[unit] for unit in inside), Fraction(0))
        if total > sum(_known(limits)):
            names = ", ".join(instance.cluster.names[d] for d in devices)
            return (
                f"memory of {names}: {len(inside)} units that may go nowhere else need {total} "
                f"of {sum(_known(limits))}"
            )
    return ""


def _known(limits: list[Fraction | None]) -> list[Fraction]:
    return [limit for limit in limits if limit is not None]
