"""The goal of an exact method: objective, fixed decisions and limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal

import numpy as np

from optpart.base.arguments import checked
from optpart.base.choices import Objective as Objective
from optpart.base.errors import ArgumentError, InputError, UnsupportedError
from optpart.base.escaping import brief
from optpart.problem.instance import Instance
from optpart.problem.model import Resource
from optpart.problem.rational import Number, rational
from optpart.solution.contiguity import first_violation
from optpart.solution.gap import gap
from optpart.solution.metrics import bottleneck, traffic
from optpart.solution.names import (
    NamedOrder,
    NamedPlacement,
    device_list,
    order_pairs,
    part_placement,
)
from optpart.solution.schedule import Schedule

#: What the values and bounds of a schedule measure.
Measure = Literal["makespan", "traffic", "bottleneck"]

#: The key of the bound of each measure in files.
BOUND_KEYS: dict[Measure, str] = {
    "makespan": "lower_bound", "traffic": "traffic_bound", "bottleneck": "bottleneck_bound",
}  # fmt: skip


def bound_of(measure: Measure) -> str:
    """Return the name of the bound of a measure, for people."""
    return BOUND_KEYS[measure].replace("_", " ")


#: The measures that an objective minimises, the first of them first.
MINIMISED: dict[Objective, tuple[Measure, ...]] = {
    "makespan": ("makespan",),
    "traffic": ("traffic",),
    "lexicographic": ("makespan", "traffic"),
    "bottleneck": ("bottleneck",),
}

#: A vertex, or the transfer of a tensor to a device.
Task = int | tuple[int, int]


@checked
@dataclass(frozen=True)
class Goal:
    """Objective, fixed decisions and limits of an exact method (design §2).

    Attributes
    ----------
    objective : {"makespan", "traffic", "lexicographic", "bottleneck"}
        ``lexicographic``: least makespan, then least traffic among schedules of that makespan.
        ``bottleneck``: least :func:`~optpart.solution.metrics.bottleneck` of the placement.
    placement : mapping from vertex to device
        Devices on which these vertices must run; others are free.
    order : tuple of pairs of tasks
        In each pair, the first task must end before the second starts if both occupy the same
        device (vertices) or the same link or port (transfers, as ``(tensor, destination)``).
        Otherwise the pair has no effect. Under ``sendrecv`` a transfer occupies its sender while
        it is being sent.
    makespan, traffic : Fraction, optional
        Upper limits: with ``makespan`` alone, this is the decision problem.
    contiguous : bool
        Whether no path may leave a device and come back to it.
    device_order : tuple of int
        If not empty, only these devices may be used, and no edge may go from a later one back to an
        earlier one; any of them may stay empty. This implies ``contiguous``.
    """

    objective: Objective = "makespan"
    placement: Mapping[int, int] = field(default_factory=dict)
    order: tuple[tuple[Task, Task], ...] = ()
    makespan: Fraction | None = None
    traffic: Fraction | None = None
    contiguous: bool = False
    device_order: tuple[int, ...] = ()

    @classmethod
    def of(
        cls,
        instance: Instance,
        *,
        objective: Objective = "makespan",
        placement: NamedPlacement | None = None,
        order: NamedOrder | None = None,
        makespan: Number | None = None,
        traffic: Number | None = None,
        contiguous: bool = False,
        device_order: Sequence[str] | None = None,
    ) -> Goal:
        """Build a goal from names.

        Parameters
        ----------
        placement : mapping from vertex names to device names, optional
            Devices of some or all vertices.
        order : sequence of vertex names, or mapping from device names to such, optional
            If two vertices of a sequence share a device, the earlier one runs first. The sequence
            of a device may only contain vertices that the placement assigns to it.
        makespan, traffic : number, optional
            Upper limits.
        contiguous : bool
            Whether no path may leave a device and come back to it.
        device_order : sequence of device names, optional
            The devices that may be used, in the order in which the graph runs through them.

        Raises
        ------
        InputError
            If a name is unknown, a device is repeated, or a limit is not a number.
        """
        where = part_placement(instance, placement or {})
        return cls(
            objective,
            where,
            order_pairs(instance, order or (), where),
            None if makespan is None else rational(makespan, "makespan"),
            None if traffic is None else rational(traffic, "traffic"),
            contiguous,
            () if device_order is None else device_list(instance, device_order),
        )

    def __repr__(self) -> str:
        return f"<Goal: {self.objective}{f', given {brief(self.given, 80)}' if self.given else ''}>"

    @property
    def decides(self) -> bool:
        """True if the goal is a decision problem: any schedule within the makespan will do."""
        return self.objective == "makespan" and self.makespan is not None

    @property
    def given(self) -> str:
        """Fixed decisions and limits in words; empty if there are none."""
        parts = []
        if self.placement:
            parts.append(f"the placement of {len(self.placement)} vertices")
        if self.order:
            parts.append(f"the order of {len(self.order)} pairs")
        if self.makespan is not None:
            parts.append(f"makespan at most {self.makespan}")
        if self.traffic is not None:
            parts.append(f"traffic at most {self.traffic}")
        if self.device_order:
            parts.append(f"blocks along an order of {len(self.device_order)} devices")
        elif self.contiguous:
            parts.append("contiguous blocks")
        return ", ".join(parts)

    @property
    def blocks(self) -> bool:
        """True if blocks must be contiguous, with or without an order of devices."""
        return self.contiguous or bool(self.device_order)

    def better(
        self, values: Mapping[Measure, Fraction], others: Mapping[Measure, Fraction]
    ) -> bool:
        """Return whether the first values are better.

        For the makespan, traffic is ignored; of equal traffic, and of equal bottlenecks, the
        shorter schedule is better.
        """
        compared = dict.fromkeys((*MINIMISED[self.objective], "makespan"))
        return [values[measure] for measure in compared] < [others[measure] for measure in compared]

    def values(self, instance: Instance, schedule: Schedule) -> dict[Measure, Fraction]:
        """Return makespan and traffic of a schedule, and its bottleneck if that is minimised."""
        found: dict[Measure, Fraction] = {
            "makespan": schedule.makespan(instance),
            "traffic": traffic(instance, schedule.placement),
        }
        if self.objective == "bottleneck":
            found["bottleneck"] = bottleneck(instance, schedule.placement)
        return found

    def check(self, instance: Instance) -> None:
        """Raise :class:`InputError` if the goal does not fit the instance.

        It does not if it names something that the instance lacks, or if its objective is not
        defined there.
        """
        if self.objective == "bottleneck" and (problem := undefined_bottleneck(instance)):
            raise ArgumentError("objective", problem, "use memory none or estimate")
        n, k, t = instance.vertices, instance.devices, instance.graph.tensors
        for v, d in self.placement.items():
            if not (0 <= v < n and 0 <= d < k):
                raise InputError(
                    "goal.placement",
                    f"no vertex {v} or no device {d}",
                    f"use vertices below {n} and devices below {k}",
                )
        order = self.device_order
        if len(set(order)) < len(order) or not all(0 <= d < k for d in order):
            raise InputError(
                "goal.device_order",
                f"{list(order)} repeats a device or names one that does not exist",
                f"use devices below {k}, each once",
            )
        for task in (task for pair in self.order for task in pair):
            inside = 0 <= task < n if isinstance(task, int) else _inside(task, t, k)
            if not inside:
                raise InputError(
                    "goal.order",
                    f"no task {task}",
                    f"use vertices below {n} and pairs of a tensor below {t} and a device "
                    f"below {k}",
                )

    def require_no_blocks(self, method: str) -> None:
        """Raise :class:`UnsupportedError` if the goal asks for blocks or the bottleneck.

        For methods that support neither.
        """
        if self.blocks or self.objective == "bottleneck":
            what = "the bottleneck" if self.objective == "bottleneck" else "contiguous blocks"
            raise UnsupportedError("goal", f"{method} does not support {what}", "leave it out")

    def contradiction(self, instance: Instance) -> str:
        """Return a reason why no schedule has what is given; empty if none is found."""
        if self.traffic is not None and self.traffic < 0:
            return "no schedule has less traffic than 0"
        names, devices = instance.graph.names, instance.cluster.names
        first: dict[int, int] = {}
        for v, d in sorted(self.placement.items()):
            unit = int(instance.unit_of[v])
            if not instance.allowed[unit, d]:
                return f"{names[v]} is fixed to {devices[d]}, where it may not run"
            if self.device_order and d not in self.device_order:
                return f"{names[v]} is fixed to {devices[d]}, which is not in the order of devices"
            u = first.setdefault(unit, v)
            if self.placement[u] != d:
                return f"{names[u]} and {names[v]} are colocated but fixed to different devices"
        if self.device_order:
            for unit, row in enumerate(instance.allowed[:, list(self.device_order)]):
                if not row.any():
                    shown = ", ".join(devices[d] for d in self.device_order)
                    return f"{instance.unit_name(unit)} may run on none of {shown}"
        if self.blocks and len(self.placement) == instance.vertices:
            given = [self.placement[v] for v in range(instance.vertices)]
            return first_violation(instance, np.array(given, dtype=np.int32), self.device_order)
        return ""

    def narrowed(self, instance: Instance) -> Instance:
        """Return the instance restricted to the given placement and order of devices."""
        graph, names = instance.graph, instance.cluster.names
        allowed = {**graph.allowed_devices, **{v: (names[d],) for v, d in self.placement.items()}}
        if 0 < len(self.device_order) < instance.devices:
            used = [names[d] for d in sorted(self.device_order)]
            for v in range(instance.vertices):
                allowed[v] = tuple(name for name in used if name in allowed.get(v, used))
        if allowed == graph.allowed_devices:
            return instance
        return replace(instance, graph=replace(graph, allowed_devices=allowed))

    def require_kept(self, instance: Instance, start: Schedule) -> None:
        """Raise :class:`InputError` if a start contradicts the given placement or order.

        It may exceed the limits, and its blocks need not be contiguous; then it is only a starting
        point, not an answer.
        """
        fixed = Goal(placement=self.placement, order=self.order)
        broken = fixed.broken(instance, start)
        if broken:
            raise InputError(
                "start",
                f"contradicts the given placement or order: {broken}",
                "start from a schedule that keeps both, or relax them",
            )

    def broken(self, instance: Instance, schedule: Schedule) -> str:
        """Return a violation of the goal by a valid schedule, in words; empty if there is none."""
        names, devices = instance.graph.names, instance.cluster.names
        for v, d in self.placement.items():
            if int(schedule.placement[v]) != d:
                return f"{names[v]} is not on {devices[d]}"
        if self.blocks and (
            returning := first_violation(instance, schedule.placement, self.device_order)
        ):
            return returning
        if self.makespan is not None and schedule.makespan(instance) > self.makespan:
            return f"its makespan is above {self.makespan}"
        if self.traffic is not None and traffic(instance, schedule.placement) > self.traffic:
            return f"its traffic is above {self.traffic}"
        if self.order:
            taken = dict(occupied(instance, schedule))
            for first, second in self.order:
                if first in taken and second in taken:
                    one, other = taken[first], taken[second]
                    if one.what & other.what and one.end > other.start:
                        return f"{first} does not end before {second} starts"
        return ""


def objective_gap(
    objective: Objective, values: Mapping[Measure, Fraction], bounds: Mapping[Measure, Fraction]
) -> float | None:
    """Return the gap of the first measure that an objective minimises and that is not closed."""
    for measure in MINIMISED[objective]:
        found = gap(values.get(measure), bounds.get(measure))
        if found != 0.0:
            return found
    return 0.0


def exceeded(
    objective: Objective, bounds: Mapping[Measure, Fraction], values: Mapping[Measure, Fraction]
) -> Measure | None:
    """Return the measure whose lower bound the values of a valid schedule contradict, if any.

    Under ``lexicographic``, the bound of the traffic is that of the shortest schedules only.
    """
    shortest = objective != "lexicographic" or values["makespan"] == bounds.get("makespan")
    for measure, value in values.items():
        if measure in bounds and bounds[measure] > value and (shortest or measure != "traffic"):
            return measure
    return None


def undefined_bottleneck(instance: Instance) -> str:
    """Return why the bottleneck is not defined for an instance; empty if it is.

    A pipeline overlaps several items, so that memory in use over time is not that of one schedule.
    """
    model = instance.model
    if model.timed_memory and any(capacity is not None for capacity in instance.cluster.memory):
        return f"the bottleneck is not defined where memory depends on time ({model.memory})"
    return ""


def _inside(task: tuple[int, int], tensors: int, devices: int) -> bool:
    return 0 <= task[0] < tensors and 0 <= task[1] < devices


@dataclass(frozen=True)
class Occupied:
    """The resources that a task occupies, and for which time."""

    what: frozenset[Resource]
    start: Fraction
    end: Fraction


def occupied(instance: Instance, schedule: Schedule) -> Iterator[tuple[Task, Occupied]]:
    """Yield the resource use of every task; under ``delay``, transfers occupy nothing."""
    for v, d in enumerate(schedule.placement.tolist()):
        yield (
            v,
            Occupied(frozenset({("device", d, d)}), schedule.start[v], schedule.end(instance, v)),
        )
    moves = schedule.transfers
    for i, (tensor, target) in enumerate(
        zip(moves.tensor.tolist(), moves.target.tolist(), strict=True)
    ):
        sender = int(schedule.placement[instance.graph.tensor_vertex[tensor]])
        start, end = moves.start[i], moves.end[i]
        if instance.model.sends:
            end = start + instance.send_duration(sender)
        what = instance.model.occupied(sender, target)
        yield (tensor, target), Occupied(frozenset(what), start, end)
