"""A result as targets need it, and what they make of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from optpart.base.choices import choice
from optpart.base.errors import FaultsOf, InputError
from optpart.base.languages import to_shell
from optpart.interop.devices import library
from optpart.interop.formats.json import keys
from optpart.interop.formats.result import read_document, read_schedule
from optpart.problem.instance import Instance
from optpart.problem.rational import rational
from optpart.solution.result import Result
from optpart.study.report.verification import check_result

#: A remark for runtimes that order operations by themselves.
NO_ORDER = "{} schedules batches by itself: the start times of the plan are not kept."


class Text(NamedTuple):
    """A text for a runtime, and the parts of the plan that it loses."""

    text: str
    remarks: list[str]


@dataclass(frozen=True)
class Plan:
    """A placement with start times, by name.

    Attributes
    ----------
    instance, method : str
    device : mapping from str to str
        Device of each vertex.
    start : mapping from str to Fraction
        Start of each vertex.
    types : mapping from str to (str or None)
        Type of each device of the cluster, used or not; empty if the instance is not known.
    """

    instance: str
    method: str
    device: Mapping[str, str]
    start: Mapping[str, Fraction]
    types: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def devices(self) -> tuple[str, ...]:
        """Devices that are used, by their first start."""
        return tuple(dict.fromkeys(self.device[name] for name in self.in_order(self.device)))

    def in_order(self, names: Iterable[str]) -> list[str]:
        """Sort vertices by start; those that start together stay as they are."""
        return sorted(names, key=self.start.__getitem__)

    def check_names(self, names: Sequence[str], what: str, remedy: str) -> None:
        """Refuse a plan whose vertices are not those of a model.

        Parameters
        ----------
        names : sequence of str
            Vertices that the model has.
        what : str
            What they are in the model, such as ``"node"``.
        remedy : str
        """
        there = set(names)
        for name in self.device:
            if name not in there:
                raise InputError(f"vertex {name!r}", f"is no {what} of the model", remedy)
        for name in names:
            if name not in self.device:
                raise InputError(f"{what} {name!r}", "is not in the plan", remedy)


def plan_of(result: Result) -> Plan:
    """Take the plan out of a result.

    Raises
    ------
    InputError
        If it has no schedule.
    """
    schedule = result.schedule
    if schedule is None:
        raise InputError("schedule", "missing", "give a result that holds a schedule")
    names, devices = result.instance.graph.names, result.instance.cluster.names
    return Plan(
        result.instance.name,
        result.method,
        {name: devices[d] for name, d in zip(names, schedule.placement.tolist(), strict=True)},
        dict(zip(names, schedule.start.fractions(), strict=True)),
        _types(result.instance),
    )


def _types(instance: Instance) -> dict[str, str | None]:
    return dict(zip(instance.cluster.names, instance.cluster.types, strict=True))


def read_plan(path: str | Path, instance: Instance | None = None) -> Plan:
    """Read the plan of a result file.

    Parameters
    ----------
    instance : Instance, optional
        Verify the schedule for it.

    Raises
    ------
    InputError
        If there is no schedule, or it is not valid for the instance.
    """
    document = read_document(path)
    with FaultsOf(path):
        if document.get("schedule") is None:
            raise InputError("schedule", "missing", "give a result that holds a schedule")
        if instance is not None:
            read_schedule(path, instance)
            violations = check_result(instance, path).violations
            if violations:
                problem = f"not valid for {instance.name} ({violations[0]})"
                raise InputError("schedule", problem, "name its instance with --instance")
        schedule = keys(document["schedule"], {"placement", "start", "transfers"}, "schedule")
        placement, start = schedule.get("placement"), schedule.get("start")
        if not isinstance(placement, dict) or not isinstance(start, dict):
            raise InputError("schedule", "no placement or no start", "give one entry per vertex")
        for name, device in placement.items():
            if not isinstance(device, str):
                raise InputError(f"schedule.placement.{name}", "no text", "name a device")
        if placement.keys() != start.keys():
            name = min(placement.keys() ^ start.keys())
            problem = f"{name!r} is in one of placement and start only"
            raise InputError("schedule", problem, "give one entry per vertex in each")
        return Plan(
            str(document.get("instance", "")),
            str(document.get("method", "")),
            dict(placement),
            {name: rational(time, f"schedule.start.{name}") for name, time in start.items()},
            {} if instance is None else _types(instance),
        )


def named(
    plan: Plan,
    names: Mapping[str, str],
    *,
    valid: str,
    example: str,
    processor: str | None = None,
    shared: bool = False,
) -> dict[str, str]:
    """Return what the target calls each device of a plan.

    Names of other devices are ignored; :func:`unused` tells them, and refuses what is no device.

    Parameters
    ----------
    names : mapping from str to str
        Names at the target by device; a device without keeps its own.
    valid : str
        Regular expression that the target's names match as a whole, with ASCII's letters only.
    example : str
        Such a name of an accelerator, for the error.
    processor : str, optional
        Such a name of a processor.
    shared : bool
        Whether several devices may have the same name.

    Raises
    ------
    InputError
        If a name is not valid, or two devices have the same.
    """
    found = {device: names.get(device, device) for device in plan.devices}
    of_name: dict[str, str] = {}
    for device, name in found.items():
        if not re.fullmatch(valid, name, re.ASCII):
            problem = f"is called {name!r}, which the target does not know"
            remedy = f"give {_hint(plan, device, example, processor)}"
            raise InputError(f"device {device!r}", problem, remedy)
        if not shared and of_name.setdefault(name, device) != device:
            problem = f"{of_name[name]!r} and {device!r} are both called {name!r}"
            raise InputError("name", problem, "give them different names")
    return found


def unused(plan: Plan, names: Iterable[str]) -> list[str]:
    """Return a remark for every device that is given a name and not used.

    Raises
    ------
    InputError
        If the cluster is known and has no such device.
    """
    for device in names if plan.types else ():
        if device not in plan.types:
            remedy = choice(device, plan.types)
            raise InputError(f"name {device!r}", "the cluster has no such device", remedy)
    return [
        f"The plan uses no device {device!r}, whose name is ignored."
        for device in names
        if device not in plan.devices
    ]


def _hint(plan: Plan, device: str, example: str, processor: str | None) -> str:
    """Return the option that names a device as the target calls others of its type."""
    known = library.devices().get(device)
    named_so = "CPU" if "cpu" in device.lower() else None
    kind = plan.types.get(device) or (known.type if known else named_so)
    as_other, as_processor = (
        f"--name {to_shell([f'{device}={name}'])}" for name in (example, processor)
    )
    if processor is None or kind not in (None, "CPU"):
        return as_other
    if kind == "CPU":
        return as_processor
    return f"{as_other}, or {as_processor} for a processor"
