"""The native result format, ``optpart-result/1`` (design §5)."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from optpart.base.choices import choice
from optpart.base.errors import FaultsOf, InputError
from optpart.base.files import Kind, of_format, write_text
from optpart.interop.formats.json import keys, pretty, read_json, sequence, text, version
from optpart.problem.graph import CONTROL
from optpart.problem.instance import Instance
from optpart.problem.rational import RationalArray, non_negative, rational
from optpart.solution.claim import Claim
from optpart.solution.goal import BOUND_KEYS
from optpart.solution.names import device_list
from optpart.solution.result import Result, Status
from optpart.solution.schedule import Schedule, Transfers
from optpart.solution.termination import Termination

FORMAT = "optpart-result/1"
KIND = Kind("a result", of_format(FORMAT))

_CLAIMS = (*BOUND_KEYS, *BOUND_KEYS.values())
_TEXTS = ("$schema", "instance", "method", "schedule_by", "bound_by", "reason", "given")
_TOP = {
    *_TEXTS, *_CLAIMS,
    "format", "instance_sha256", "status", "objective", "gap", "seconds", "seed", "workers",
    "versions", "schedule", "termination", "trace", "contiguous", "device_order", "claimed",
}  # fmt: skip
_CLAIMED = {*BOUND_KEYS.values(), "by", "infeasible", "method", "code"}
_SCHEDULE = {"placement", "start", "transfers"}
_TRANSFER = {"tensor", "to", "start", "end"}


def write(result: Result, path: str | Path) -> None:
    """Write a result file, completely or not at all."""
    write_text(path, dumps(result), KIND)


def dumps(result: Result) -> str:
    """Return the document as text."""
    return pretty(to_dict(result))


def _text(value: Fraction | None) -> str | None:
    return None if value is None else str(value)


def to_dict(result: Result) -> dict[str, Any]:
    """Return the document of a result."""
    schedule = result.schedule
    document: dict[str, Any] = {
        "format": FORMAT,
        "instance": result.instance.name,
        "instance_sha256": result.instance.sha256,
        "method": result.method,
        "status": str(result.status),
        "makespan": _text(result.makespan),
        "lower_bound": _text(result.lower_bound),
        "gap": result.gap,
        "traffic": _text(result.traffic),
        "seconds": round(result.seconds, 6),
        "seed": result.seed,
        "workers": result.workers,
        "termination": None if result.termination is None else str(result.termination),
        "reason": result.reason,
        "versions": result.versions,
        "schedule": None if schedule is None else schedule_to_dict(result.instance, schedule),
        "trace": [
            [round(step.seconds, 6), _text(step.objective), _text(step.bound)]
            for step in result.trace
        ],
    }
    if result.objective != "makespan":
        document["objective"] = result.objective
    if result.objective in ("traffic", "lexicographic"):
        document["traffic_bound"] = _text(result.traffic_bound)
    if result.objective == "bottleneck":
        document["bottleneck"] = _text(result.bottleneck)
        document["bottleneck_bound"] = _text(result.bottleneck_bound)
    names = result.instance.cluster.names
    optional = {
        "schedule_by": result.schedule_by,
        "bound_by": result.bound_by,
        "claimed": None if result.claim is None else result.claim.to_dict(),
        "given": result.given,
        "contiguous": result.contiguous,
        "device_order": [names[d] for d in result.device_order],
        "refused": bool(result.refused),
    }
    document |= {key: value for key, value in optional.items() if value}
    return document


def schedule_to_dict(instance: Instance, schedule: Schedule) -> dict[str, Any]:
    """Return the ``schedule`` object of a result."""
    graph, devices = instance.graph, instance.cluster.names
    moves = schedule.transfers
    start, end = moves.start.fractions(), moves.end.fractions()
    transfers = []
    for i, (tensor, target) in enumerate(
        zip(moves.tensor.tolist(), moves.target.tolist(), strict=True)
    ):
        output = int(graph.tensor_output[tensor])
        name = graph.names[graph.tensor_vertex[tensor]]
        transfers.append(
            {
                "tensor": [name, None if output == CONTROL else output],
                "to": devices[target],
                "start": str(start[i]),
                "end": str(end[i]),
            }
        )
    placement = [devices[d] for d in schedule.placement.tolist()]
    starts = [str(time) for time in schedule.start.fractions()]
    return {
        "placement": dict(zip(graph.names, placement, strict=True)),
        "start": dict(zip(graph.names, starts, strict=True)),
        "transfers": transfers,
    }


def read_document(path: str | Path) -> Mapping[str, Any]:
    """Read a result file, without interpreting its schedule.

    Raises
    ------
    InputError
        If the file is not a result, a key is unknown, or a value has the wrong type.
    """
    with FaultsOf(path):
        document = read_json(path)
        version(document, FORMAT)
        _check_kinds(keys(document, _TOP, ""))
    return dict(document)


def _check_kinds(document: Mapping[str, Any]) -> None:
    """Check the types of all values except the schedule, not whether the claims are true."""
    for key in _TEXTS:
        text(document.get(key, ""), key)
    if document.get("instance_sha256") is not None:
        text(document["instance_sha256"], "instance_sha256")
    for key in _CLAIMS:
        if document.get(key) is not None:
            rational(document[key], key)
    if not isinstance(document.get("contiguous", False), bool):
        raise InputError("contiguous", "not true or false", "give true or false")
    for i, name in enumerate(sequence(document.get("device_order", []), "device_order")):
        text(name, f"device_order[{i}]")
    termination(document)
    claim(document)
    for key in ("seed", "workers"):
        if type(document.get(key, 0)) is not int:
            raise InputError(key, "not a whole number", "give a whole number")
    _check_number(document.get("seconds", 0), "seconds")
    if document.get("gap") is not None:
        _check_number(document["gap"], "gap")
    versions = document.get("versions", {})
    if not isinstance(versions, dict):
        raise InputError("versions", "not an object", "give an object")
    for package, number in versions.items():
        text(number, f"versions.{package}")
    for i, step in enumerate(sequence(document.get("trace", []), "trace")):
        if len(sequence(step, f"trace[{i}]")) != 3:
            raise InputError(f"trace[{i}]", "not a triple", "give [seconds, objective, bound]")
        _check_number(step[0], f"trace[{i}]")
        for value in step[1:]:
            if value is not None:
                rational(value, f"trace[{i}]")


def termination(document: Mapping[str, Any]) -> Termination | None:
    """Read why the method ended.

    Files written by optpart before 0.3 do not state this. It is then inferred from a proven status
    or from refused claims, if possible.

    Returns
    -------
    Termination or None
        ``None`` if unknown.

    Raises
    ------
    InputError
        If the value is not a :class:`Termination`.
    """
    value = document.get("termination")
    if value is not None:
        if value not in list(Termination):
            raise InputError("termination", f"unknown {value!r}", choice(value, Termination))
        return Termination(value)
    if document.get("refused") is True:
        return Termination.FAILED
    proven = document.get("status") in (Status.OPTIMAL, Status.INFEASIBLE)
    return Termination.PROVEN if proven else None


def claim(document: Mapping[str, Any]) -> Claim | None:
    """Read what the run took from a file and did not prove; ``None`` if there is nothing."""
    if document.get("claimed") is None:
        return None
    fields = keys(document["claimed"], _CLAIMED, "claimed")

    bounds = {
        measure: non_negative(fields[key], f"claimed.{key}")
        for measure, key in BOUND_KEYS.items()
        if key in fields
    }
    return Claim(
        text(fields.get("by"), "claimed.by"),
        bounds,
        fields.get("infeasible") is True,
        text(fields.get("method", ""), "claimed.method"),
        text(fields.get("code", ""), "claimed.code"),
    )


def _check_number(value: Any, place: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise InputError(place, "not a number", "give a number")


def constraints(document: Mapping[str, Any], instance: Instance) -> tuple[bool, tuple[int, ...]]:
    """Return whether blocks had to be contiguous, and the order of devices that they follow.

    Raises
    ------
    InputError
        If the order names an unknown device, or one twice.
    """
    names = document.get("device_order") or []
    contiguous = document.get("contiguous", False)
    if not isinstance(contiguous, bool):
        raise InputError("contiguous", "not true or false", "give true or false")
    return contiguous, device_list(instance, sequence(names, "device_order")) if names else ()


def read_schedule(path: str | Path, instance: Instance) -> Schedule:
    """Read the schedule of a result file for ``instance``, without verifying it."""
    return read_found(path, instance)[0]


def read_found(path: str | Path, instance: Instance) -> tuple[Schedule, str]:
    """Read the schedule of a result file, as :func:`read_schedule` does, and who found it."""
    document = read_document(path)
    with FaultsOf(path):
        if document.get("schedule") is None:
            raise InputError("schedule", "missing", "give a result with a schedule")
        schedule = schedule_from_dict(document["schedule"], instance)
    return schedule, str(document.get("method", "given"))


def schedule_from_dict(document: Any, instance: Instance) -> Schedule:
    """Build a schedule from the ``schedule`` object of a result."""
    fields = keys(document, _SCHEDULE, "schedule")
    graph, cluster = instance.graph, instance.cluster
    placement = _by_vertex(fields.get("placement"), "schedule.placement", graph.index)
    start = _by_vertex(fields.get("start"), "schedule.start", graph.index)
    devices = [
        _known(device, cluster.index, f"schedule.placement.{graph.names[v]}", "device")
        for v, device in enumerate(placement)
    ]
    tensor_number = {
        (int(v), int(k)): tensor
        for tensor, (v, k) in enumerate(zip(graph.tensor_vertex, graph.tensor_output, strict=True))
    }
    rows = []
    for i, entry in enumerate(sequence(fields.get("transfers", []), "schedule.transfers")):
        place = f"schedule.transfers[{i}]"
        transfer = keys(entry, _TRANSFER, place)
        name = sequence(transfer.get("tensor"), f"{place}.tensor")
        if len(name) != 2:
            raise InputError(f"{place}.tensor", "not a pair", "give [vertex, output index or null]")
        vertex = _known(name[0], graph.index, f"{place}.tensor", "vertex")
        output = name[1]
        known = output is None or (type(output) is int and output >= 0)
        key = vertex, CONTROL if output is None else output
        if not known or key not in tensor_number:
            raise InputError(f"{place}.tensor", "no such output", "name an output of the vertex")
        rows.append(
            (
                tensor_number[key],
                _known(transfer.get("to"), cluster.index, f"{place}.to", "device"),
                rational(transfer.get("start"), f"{place}.start"),
                rational(transfer.get("end"), f"{place}.end"),
            )
        )
    return Schedule(
        np.array(devices, dtype=np.int32),
        RationalArray.from_fractions(
            rational(time, f"schedule.start.{graph.names[v]}") for v, time in enumerate(start)
        ),
        Transfers.of(rows),
    )


def _by_vertex(value: Any, place: str, index: Mapping[str, int]) -> list[Any]:
    fields = keys(value, set(index), place)
    missing = next((name for name in index if name not in fields), None)
    if missing is not None:
        raise InputError(place, f"no entry for {missing!r}", "give one entry per vertex")
    return [fields[name] for name in index]


def _known(name: Any, index: Mapping[str, int], place: str, kind: str) -> int:
    if not isinstance(name, str) or name not in index:
        raise InputError(place, f"no {kind} {name!r}", f"name a {kind} of the instance")
    return index[name]
