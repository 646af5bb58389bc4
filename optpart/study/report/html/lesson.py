"""A page on which students place a small graph by hand, and see what their placement leads to.

The page computes the schedule of a placement itself, in whole ticks and in the order of the
scheduler ``pct``; what is proven, the optimum and the bounds, is computed here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from optpart.base.errors import InputError
from optpart.base.escaping import visible
from optpart.base.files import Kind, begins, write_text
from optpart.base.languages import to_json_in_html
from optpart.base.rounding import number
from optpart.kernels.ticks import quantum
from optpart.lower_bounds.best import BOUNDS
from optpart.methods import registry
from optpart.problem.instance import Instance
from optpart.problem.units import with_unit
from optpart.solution.result import Result, Status
from optpart.study.report import text
from optpart.study.report.gantt.colours import QUALITATIVE
from optpart.study.report.html.page import asset, filled, head
from optpart.version import __version__

KIND = Kind("a lesson", begins(rb"(?s)<!DOCTYPE html>.{0,999}<title>optpart lesson</title>"))

#: Most vertices that are worth placing by hand, and devices, one for each colour.
MOST_VERTICES = 40
MOST_DEVICES = len(QUALITATIVE)


def write_lesson(best: Result, path: str | Path) -> None:
    """Write the page, completely or not at all.

    Parameters
    ----------
    best : Result
        Of an instance of which :func:`tick` knows the unit of time.

    Raises
    ------
    InputError
        If the result is not optimal, or the file cannot be written.
    """
    name = best.instance.name
    if best.status is Status.INFEASIBLE:
        raise InputError(name, "has no schedule", "relax what contradicts itself")
    if best.status is not Status.OPTIMAL:
        problem = f"its optimum is not proven within {text.seconds(best.seconds)}"
        raise InputError(name, problem, "give a longer --time-limit or a smaller graph")
    write_text(path, lesson(best), KIND)


def tick(instance: Instance) -> Fraction:
    """Return the unit of which all times of an instance are whole multiples.

    Raises
    ------
    InputError
        If there is none, or a page could not show the schedules of the instance exactly for another
        reason, or it has too many vertices or devices for that.
    """
    rules, name = instance.model, instance.name
    if rules.queues:
        problem = f"is {rules.communication}, whose queues a lesson does not have"
        raise InputError("model.communication", problem, "give an instance with delay", name)
    if rules.timed_memory:
        problem = f"is {rules.memory}, which changes with time"
        raise InputError("model.memory", problem, "give an instance with none or estimate", name)
    for what, count, most in (
        ("vertices", instance.vertices, MOST_VERTICES),
        ("devices", instance.devices, MOST_DEVICES),
    ):
        if not 1 <= count <= most:
            remedy = f"give an instance with 1 to {most}"
            raise InputError(what, f"{count:,} are too {'many' if count else 'few'}", remedy, name)
    step = quantum(instance)
    if step is None:
        problem = "have no common unit of which the longest schedule has few enough"
        raise InputError("times", problem, "round them", name)
    return step


def lesson(best: Result) -> str:
    """Return the page about the instance of an optimal result."""
    parts = {
        "head": head("lesson", asset("page.css") + asset("lesson.css")),
        "data": to_json_in_html(_data(best)),
        "schedule": asset("lesson_schedule.js"),
        "script": asset("lesson.js"),
    }
    return filled("lesson.html", parts)


def _data(best: Result) -> dict[str, Any]:
    instance = best.instance
    scale = 1 / tick(instance)
    graph, cluster, n = instance.graph, instance.cluster, range(instance.vertices)
    devices = range(instance.devices)
    amounts = _needs(instance)
    capacities = cluster.memory if instance.model.memory == "estimate" else [None] * len(devices)
    common = math.lcm(*(x.denominator for x in (*amounts, *capacities) if x is not None))
    edges = zip(graph.edge_source, graph.edge_target, graph.edge_tensor, strict=True)
    heft = registry.get("heft")(instance)
    return {
        "optpart": __version__,
        "name": visible(instance.name),
        "unit": with_unit("", instance.time_unit),
        "tick": [scale.denominator, scale.numerator],
        "memory": common,
        "colours": QUALITATIVE,
        "vertices": [visible(name) for name in graph.names],
        "devices": [visible(name) for name in cluster.names],
        "kinds": [None if kind is None else visible(kind) for kind in graph.device_types],
        "order": graph.topological_order.tolist(),
        "edges": sorted([int(u), int(v), int(tensor)] for u, v, tensor in edges),
        "run": [
            [
                _ticks(instance.duration(v, d), scale) if instance.vertex_allowed[v, d] else None
                for d in devices
            ]
            for v in n
        ],
        "crossing": [
            [[_ticks(instance.delay(tensor, d, e), scale) for e in devices] for d in devices]
            for tensor in range(graph.tensors)
        ],
        "groups": [unit.tolist() for unit in instance.units if len(unit) > 1],
        "apart": [[int(u), int(v)] for u, v in graph.separation],
        "need": [int(amount * common) for amount in amounts],
        "capacity": [None if most is None else math.floor(most * common) for most in capacities],
        **_bounds(best),
        "optimum": _schedule(best, scale),
        "heft": None if heft.schedule is None else _schedule(heft, scale),
    }


def _ticks(time: Fraction | None, scale: Fraction) -> int | None:
    return None if time is None else int(time * scale)


def _schedule(result: Result, scale: Fraction) -> dict[str, Any]:
    schedule, makespan = result.schedule, result.makespan
    assert schedule is not None
    assert makespan is not None
    return {
        "method": visible(result.bound_by or result.method),
        "placement": schedule.placement.tolist(),
        # On the grid, starts that are rounded down are those of a schedule, too (design §3).
        "start": [math.floor(start * scale) for start in schedule.start.fractions()],
        "makespan": int(makespan * scale),
    }


def _needs(instance: Instance) -> list[Fraction]:
    """Return the memory of each vertex under ``estimate``; 0 under ``none``."""
    graph = instance.graph
    if instance.model.memory == "none":
        return [Fraction(0)] * instance.vertices
    needs, sizes = graph.memory.fractions(), graph.tensor_size.fractions()
    held: Iterable[tuple[int, int]] = {
        *zip(graph.tensor_vertex.tolist(), np.arange(graph.tensors).tolist(), strict=True),
        *zip(graph.edge_target.tolist(), graph.edge_tensor.tolist(), strict=True),
    }
    for v, tensor in held:
        needs[v] += sizes[tensor]
    return needs


def _bounds(best: Result) -> dict[str, Any]:
    """Return the bounds of all placements, and in words which of them binds."""
    instance, makespan, unit = best.instance, best.makespan, best.instance.time_unit
    assert makespan is not None
    found = {}
    for name in ("critical-path", "load"):
        value = BOUNDS[name].compute(instance, seconds=1.0, makespan=None)
        assert value is not None  # there is a schedule
        found[name.replace("-", " ")] = value
    (strong, most), (_, least) = sorted(found.items(), key=lambda row: -row[1])
    shown = with_unit(number(makespan, up=True), unit)
    if most == makespan:
        said = f"The {strong} binds: the optimum, {shown}, is no longer."
    else:
        said = f"Neither reaches the optimum, {shown}; "
        said += f"the {strong} is nearer." if most > least else "both say the same."
    rows = [
        {"name": name, "text": number(value, up=value == makespan), "binds": value == most}
        for name, value in found.items()
    ]
    return {"bounds": rows, "binding": said}
