"""Problems of PyJobShop as instances, instances as its problems, and schedules of its solvers.

A machine is a device and a task a vertex, in the same order. A mode is the run time of its task on
its only machine, ``EndBeforeStart`` a control dependency, ``IdenticalResources`` colocation, and
``DifferentResources`` separation. Jobs only group tasks, since the makespan is minimised. PyJobShop
counts time in whole units: in one over the least common denominator of an instance's run times.

Source: [PJS] L. Lan, J. Berkhout: PyJobShop: solving scheduling problems with constraint
programming in Python, 2025.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from itertools import pairwise, product
from operator import index
from typing import Any

import numpy as np

from optpart.base.errors import ArgumentError, InputError, UnsupportedError
from optpart.interop.formats.json import parse_json
from optpart.interop.formats.parsing import check_entries
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.problem.rational import RationalArray, non_negative, shown
from optpart.solution.claim import Claim
from optpart.solution.schedule import Schedule, Transfers, crossings

#: The greatest number of PyJobShop, which stands for never.
_NEVER = 2**42

#: What entries may say: the only value that an instance can express, or anything (``...``).
_KNOWN: dict[str, dict[str, Any]] = {
    "resources": {"type": "machine", "name": ..., "breaks": [], "no_idle": False},
    "jobs": {"name": ..., "tasks": ..., "weight": 1, "release_date": 0, "deadline": _NEVER,
             "due_date": None},
    "tasks": {"name": ..., "job": ..., "earliest_start": 0, "latest_start": _NEVER,
              "earliest_end": 0, "latest_end": _NEVER, "allow_idle": False, "allow_breaks": False,
              "optional": False},
    "modes": dict.fromkeys(("name", "task", "resources", "duration", "demands"), ...),
}  # fmt: skip
_CONSTRAINTS = {"end_before_start", "identical_resources", "different_resources"}


def from_pyjobshop(data: Any, name: str = "pyjobshop") -> Instance:
    """Return a problem of PyJobShop as an instance.

    Parameters
    ----------
    data : pyjobshop.ProblemData or pyjobshop.Model
        Its tasks and machines give their names, unless one lacks a name of its own.

    Raises
    ------
    UnsupportedError
        If the problem has anything that an instance cannot say; it is named.
    """
    try:
        problem = data if hasattr(data, "to_json") else data.data()
        text = problem.to_json(indent=None, default=index)  # also integers of NumPy
    except (AttributeError, TypeError, ValueError) as error:
        remedy = "give a ProblemData or a Model, in whole numbers"
        raise ArgumentError("data", f"cannot be read ({error})", remedy) from None
    return from_dict(parse_json(text), name)


def from_dict(document: Mapping[str, Any], name: str) -> Instance:
    """Build an instance of what PyJobShop's ``to_json`` writes."""
    for place, what in _unsaid(document):
        raise UnsupportedError(place, what, "leave it out")
    tasks, machines = _names(document["tasks"], "task"), _names(document["resources"], "machine")
    check_entries(len(tasks) * len(machines), "run times, tasks times machines")
    durations: list[list[Fraction | None]] = [[None] * len(machines) for _ in tasks]
    for m, mode in enumerate(document["modes"]):
        row, (machine,) = durations[mode["task"]], mode["resources"]
        if row[machine] is not None:
            what = f"is a second mode of {tasks[mode['task']]!r} on {machines[machine]!r}"
            raise UnsupportedError(f"modes[{m}]", what, "leave out the longer one")
        row[machine] = non_negative(mode["duration"], f"modes[{m}].duration")
    builder = GraphBuilder()
    for v, task in enumerate(tasks):
        builder.vertex(task, place=f"tasks[{v}]")
    add: dict[str, Callable[[str, str], object]] = {
        "end_before_start": partial(builder.edge, output=None),
        "identical_resources": builder.colocate,
        "different_resources": builder.separate,
    }
    for kind, rule in add.items():
        for row in document["constraints"][kind]:
            rule(tasks[row["task1"]], tasks[row["task2"]])
    cluster = Cluster.of([Device(machine) for machine in machines])
    return Instance(builder.build(), cluster, durations=durations, name=name, source="PyJobShop")


def _names(entries: list[dict[str, Any]], kind: str) -> list[str]:
    """Return the names of tasks or machines, or numbers if one lacks a name of its own."""
    given = [entry["name"] for entry in entries]
    distinct = all(given) and len({*given}) == len(given)
    return given if distinct else [f"{kind}{i}" for i in range(len(entries))]


def _unsaid(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what no instance can express, as place and problem."""
    for kind, known in _KNOWN.items():
        for i, entry in enumerate(document[kind]):
            for key, value in entry.items():
                if key not in known or known[key] not in (..., value):
                    yield f"{kind}[{i}].{key}", f"{shown(value)}, which no instance can say"
    for m, mode in enumerate(document["modes"]):
        if len(mode["resources"]) != 1 or any(mode["demands"]):
            yield f"modes[{m}]", "takes other than one machine, without a demand"
    for kind, rows in document["constraints"].items():
        if rows and kind not in _CONSTRAINTS:
            yield f"constraints.{kind}", "which no instance can say"
    for i, row in enumerate(document["constraints"]["end_before_start"]):
        if row["delay"]:
            yield f"constraints.end_before_start[{i}].delay", "no instance has it on one machine"
    for key, weight in document["objective"].items():
        if weight != (key == "weight_makespan"):
            yield f"objective.{key}", f"is {weight}, but only the makespan counts, once"


def to_pyjobshop(instance: Instance) -> Any:
    """Return a ``ProblemData``: task ``i`` is vertex ``i``, and resource ``i`` is device ``i``.

    Raises
    ------
    InputError
        If PyJobShop is not installed, or cannot say something, such as transfers that take time.
    """
    document = to_dict(instance)
    try:
        from pyjobshop import ProblemData
    except ImportError:
        raise InputError("", "needs the package pyjobshop", "install optpart[pyjobshop]") from None
    return ProblemData.from_json(json.dumps(document))


def to_dict(instance: Instance) -> dict[str, Any]:
    """Return the document that PyJobShop's ``from_json`` reads."""
    for place, what in _unsupported(instance):
        raise UnsupportedError(place, what, "solve it with optpart")
    graph, unit = instance.graph, scale(instance)
    pairs = {
        "end_before_start": dict.fromkeys(graph.pairs()),
        "identical_resources": [pair for group in graph.colocation for pair in pairwise(group)],
        "different_resources": graph.separation,
    }
    return {
        "resources": [{"type": "machine", "name": name} for name in instance.cluster.names],
        "tasks": [{"name": name} for name in graph.names],
        "modes": [
            {"task": v, "resources": [d], "duration": int(unit * instance.duration(v, d))}
            for v, d in np.argwhere(instance.vertex_allowed).tolist()
        ],
        "constraints": {
            kind: [{"task1": u, "task2": v} for u, v in rows] for kind, rows in pairs.items()
        },
        "objective": {"weight_makespan": 1},
    }


def scale(instance: Instance) -> int:
    """Return how many units of PyJobShop's time make one of the instance."""
    pairs = np.argwhere(instance.vertex_allowed).tolist()
    return math.lcm(*(instance.duration(v, d).denominator for v, d in pairs))


def _unsupported(instance: Instance) -> Iterator[tuple[str, str]]:
    """Yield what PyJobShop cannot express, as place and problem."""
    if instance.model.communication != "delay":
        yield "model.communication", f"PyJobShop has no {instance.model.communication!r}"
    if instance.model.memory != "none":
        yield "model.memory", f"PyJobShop has no {instance.model.memory!r}"
    names, unit_of = instance.graph.names, instance.unit_of
    places = [np.flatnonzero(row).tolist() for row in instance.vertex_allowed]
    for v, where in enumerate(places):
        if not where:
            yield f"vertices[{v}]", f"{names[v]!r} has no device, and PyJobShop needs one"
    for u, v, tensor in instance.graph.edges():
        across = () if unit_of[u] == unit_of[v] else product(places[u], places[v])
        if any(instance.delay(tensor, d, e) != 0 for d, e in across):
            yield "edges", f"that from {names[u]!r} to {names[v]!r} takes time, or lacks a link"
    times = ([instance.duration(v, d) for d in where] for v, where in enumerate(places))
    if scale(instance) * sum((max(row) for row in times), Fraction(0)) > _NEVER:
        yield "durations", "in whole units, they exceed the 2^42 to which PyJobShop counts"


def schedule_of(instance: Instance, result: Any) -> Schedule | None:
    """Return the best schedule in a result of PyJobShop, not verified; ``None`` without one."""
    tasks, unit = result.best.tasks, scale(instance)
    if not tasks:
        return None
    remedy = "give a result of the problem of this instance"
    if len(tasks) != instance.vertices:
        raise ArgumentError("result", f"has {len(tasks)} tasks, not {instance.vertices}", remedy)
    for v, task in enumerate(tasks):
        inside = task.present and len(task.resources) == 1
        device = task.resources[0] if inside and task.resources[0] < instance.devices else None
        if device is None or task.end - task.start != unit * instance.duration(v, device):
            what = f"has another run time of {instance.graph.names[v]!r}, or no device of its own"
            raise ArgumentError("result", what, remedy)
    placement = np.array([task.resources[0] for task in tasks], dtype=np.int32)
    ends, producer = [Fraction(task.end, unit) for task in tasks], instance.graph.tensor_vertex
    moves = (
        (tensor, target, ends[producer[tensor]], ends[producer[tensor]])
        for tensor, target in crossings(instance, placement)
    )
    start = RationalArray.from_integers([task.start for task in tasks], unit)
    return Schedule(placement, start, Transfers.of(moves))


def claim_of(instance: Instance, result: Any) -> Claim:
    """Return what PyJobShop claims to have proven."""
    least = Fraction(result.lower_bound if math.isfinite(result.lower_bound) else 0)
    infeasible = result.status.name == "INFEASIBLE"
    return Claim("PyJobShop", {"makespan": least / scale(instance)}, infeasible)
