"""Interchangeable devices: exchanging two of them maps the instance, and the goal, to themselves.

Breaking a symmetry that does not exist loses optima, so nothing is left to memory: :data:`_KEPT`
gives, for *every* field of every class that makes up a problem, the condition under which an
exchange leaves that field unchanged. If a field is added to one of these classes without an entry
here, the import of this module fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.problem.cluster import Cluster
from optpart.problem.durations import Durations
from optpart.problem.graph import Graph
from optpart.problem.instance import Instance
from optpart.problem.model import Model
from optpart.solution.goal import Goal, Task


class _Exchange(NamedTuple):
    """The exchange of devices ``d`` and ``e`` of a problem."""

    instance: Instance
    goal: Goal
    d: int
    e: int

    def of(self, device: int) -> int:
        """Return the device to which a device is mapped."""
        return {self.d: self.e, self.e: self.d}.get(device, device)

    def vector(self, values: Any) -> bool:
        """Return whether values, one per device, stay unchanged."""
        return bool(values[self.d] == values[self.e])

    def columns(self, table: NDArray[Any]) -> bool:
        """Return whether a table with one column per device stays unchanged."""
        return np.array_equal(table[:, self.d], table[:, self.e])

    def matrix(self, values: NDArray[Any]) -> bool:
        """Return whether values per pair of devices stay unchanged; the diagonal is ignored."""
        swap = np.arange(self.instance.devices)
        swap[[self.d, self.e]] = self.e, self.d
        off = ~np.eye(len(swap), dtype=np.bool_)
        return np.array_equal(values[off], values[np.ix_(swap, swap)][off])


def _speed(x: _Exchange) -> bool:
    """Speed tells devices apart unless run times are given and nothing is sent at that speed."""
    model = x.instance.model
    sends = model.sends and model.send_ops > 0
    if x.instance.given_durations is not None and not sends:
        return True
    return x.vector(x.instance.cluster.speed)


def _allowed(x: _Exchange) -> bool:
    """Types, lists of devices and missing run times tell apart only where some unit is barred."""
    return x.columns(x.instance.allowed)


def _times(x: _Exchange) -> bool:
    given = x.instance.given_durations
    return given is None or x.columns(given.times.numerators)


def _memory(x: _Exchange) -> bool:
    return x.vector(x.instance.cluster.memory)


def _bandwidth(x: _Exchange) -> bool:
    return x.matrix(x.instance.cluster.bandwidth.numerators)


def _infinite(x: _Exchange) -> bool:
    return x.matrix(x.instance.cluster.infinite)


def _latency(x: _Exchange) -> bool:
    return x.matrix(x.instance.cluster.latency.numerators)


def _tensor_delay(x: _Exchange) -> bool:
    devices = range(x.instance.devices)
    return all(
        matrix[i][j] == matrix[x.of(i)][x.of(j)]
        for matrix in x.instance.graph.tensor_delay.values()
        for i in devices
        for j in (devices if i in (x.d, x.e) else (x.d, x.e))
        if i != j
    )


def _given_placement(x: _Exchange) -> bool:
    return all(x.of(device) == device for device in x.goal.placement.values())


def _given_order(x: _Exchange) -> bool:
    """Pairs of vertices name no device, so an exchange leaves them unchanged."""

    def renamed(task: Task) -> Task:
        return task if isinstance(task, int) else (task[0], x.of(task[1]))

    pairs = set(x.goal.order)
    return {(renamed(a), renamed(b)) for a, b in pairs} == pairs


def _device_order(x: _Exchange) -> bool:
    """Devices that are not in the order stay empty; any two of the others have different places."""
    return not {x.d, x.e} & set(x.goal.device_order)


def _nowhere(_: _Exchange) -> bool:
    """No device occurs in the field."""
    return True


#: A condition for each field, the fastest ones first; names are only labels.
_KEPT: Mapping[type, Mapping[str, Callable[[_Exchange], bool]]] = {
    Cluster: {
        "names": _nowhere,
        "types": _allowed,
        "speed": _speed,
        "memory": _memory,
        "bandwidth": _bandwidth,
        "infinite": _infinite,
        "latency": _latency,
    },
    Durations: {"times": _times, "possible": _allowed},
    Graph: {
        "names": _nowhere,
        "ops": _nowhere,
        "memory": _nowhere,
        "device_types": _allowed,
        "allowed_devices": _allowed,
        "tensor_vertex": _nowhere,
        "tensor_output": _nowhere,
        "tensor_size": _nowhere,
        "tensor_delay": _tensor_delay,
        "edge_source": _nowhere,
        "edge_target": _nowhere,
        "edge_tensor": _nowhere,
        "colocation": _nowhere,
        "separation": _nowhere,
        "topological_order": _nowhere,
    },
    Model: {
        "communication": _nowhere,
        "memory": _nowhere,
        "send_ops": _nowhere,
        "channels": _nowhere,
        "release": _nowhere,
    },
    Goal: {
        "objective": _nowhere,
        "placement": _given_placement,
        "order": _given_order,
        "makespan": _nowhere,
        "traffic": _nowhere,
        "contiguous": _nowhere,
        "device_order": _device_order,
    },
    # The parts of the instance have entries of their own.
    Instance: dict.fromkeys(
        ("graph", "cluster", "model", "durations", "name", "source", "time_unit"), _nowhere
    ),
}


def require_every_field(kept: Mapping[type, Mapping[str, object]]) -> None:
    """Raise ``TypeError`` unless there is an entry for each field of each class, and no other."""
    for kind, conditions in kept.items():
        names = {field.name for field in fields(kind)}
        if names != conditions.keys():
            raise TypeError(
                f"{kind.__name__}: say how exchanging devices affects "
                f"{', '.join(sorted(names ^ conditions.keys()))}"
            )


require_every_field(_KEPT)

_CONDITIONS = tuple(
    dict.fromkeys(condition for conditions in _KEPT.values() for condition in conditions.values())
)

_MAKESPAN = Goal()


def interchangeable_devices(instance: Instance, goal: Goal = _MAKESPAN) -> list[list[int]]:
    """Return the classes of at least two interchangeable devices, each ascending.

    Two devices are interchangeable if exchanging them leaves the instance and the goal unchanged
    except for the devices' names. Every solution then has a counterpart in which they have changed
    places, with the same makespan and traffic.
    """
    classes: list[list[int]] = []
    for d in range(instance.devices):
        for members in classes:
            # Exchanges compose, so one member speaks for all.
            exchange = _Exchange(instance, goal, members[0], d)
            if all(condition(exchange) for condition in _CONDITIONS):
                members.append(d)
                break
        else:
            classes.append([d])
    return [members for members in classes if len(members) > 1]


def talkers_first(instance: Instance) -> NDArray[np.int64]:
    """Return the units by the amount of data exchanged with others, largest first.

    Their placement is the most informative: it decides which others must wait for data.
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
