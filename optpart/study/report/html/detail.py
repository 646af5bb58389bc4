"""The schedule of a result as data of a page: every vertex, or intervals of many; exact numbers."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from optpart.base.escaping import visible
from optpart.problem.instance import Instance
from optpart.problem.rational import RationalArray
from optpart.solution.metrics import uses_over_time
from optpart.solution.result import Result
from optpart.solution.schedule import Schedule
from optpart.study.report.html.waits import Idle, Waits

#: A number as JSON: a whole one that every double holds, or its exact text and the nearest double.
Encoded = int | list[str | float]

_WHOLE = 2**53

#: What a device holds from each of these times on, ascending; nothing before the first.
Curve = list[tuple[Fraction, Fraction]]

#: Intervals per device into which a schedule is divided that is too large to show every vertex.
_INTERVALS = 400

#: Most points of the memory curve of one device.
_POINTS = 4000

#: Most steps of a path that are listed.
MOST_STEPS = 300


def encoded(value: Fraction) -> Encoded:
    """Return an exact number with what is needed to draw it."""
    if value.denominator == 1 and abs(value.numerator) < _WHOLE:
        return value.numerator
    try:
        near = float(value)
    except OverflowError:
        near = sys.float_info.max if value > 0 else -sys.float_info.max
    return [str(value), near]


def encoded_or_none(value: Fraction | None) -> Encoded | None:
    """Return :func:`encoded`, or ``None`` for no number."""
    return None if value is None else encoded(value)


def encoded_all(values: RationalArray | Iterable[Fraction]) -> list[Encoded]:
    """Return :func:`encoded` of each number."""
    fractions = values.fractions() if isinstance(values, RationalArray) else values
    return [encoded(value) for value in fractions]


def schedule_data(result: Result, *, whole: bool) -> dict[str, Any] | None:
    """Return the data of a result's schedule; ``None`` without one.

    Parameters
    ----------
    whole : bool
        Whether every vertex is listed; otherwise only what runs in equal intervals of time.
    """
    schedule = result.schedule
    if schedule is None:
        return None
    waits = Waits(result.instance, schedule)
    idle = waits.idle()
    data: dict[str, Any] = {
        "devices": _devices(waits, idle),
        "transfers": len(waits.tensor),
        "memory": _memory(result.instance, schedule, waits.makespan),
        "path": _path(waits),
    }
    if whole:
        data["whole"] = {
            "device": waits.device,
            "start": encoded_all(waits.start),
            "end": encoded_all(waits.end),
            "tensor": waits.tensor,
            "to": waits.target,
            "begin": encoded_all(waits.begin),
            "arrival": encoded_all(waits.arrival),
            "idle": [
                [gap.device, *encoded_all((gap.start, gap.end)), gap.cause, gap.next, gap.transfer]
                for gap in idle
            ],
            "path": waits.critical_path(),
        }
    else:
        data["intervals"] = _intervals(waits)
    return data


def _devices(waits: Waits, idle: list[Idle]) -> list[dict[str, Any]]:
    """Return per device how it spends the time until the makespan."""
    k = waits.instance.devices
    spent: list[defaultdict[str, Fraction]] = [defaultdict(Fraction) for _ in range(k)]
    count = [0] * k
    for v, d in enumerate(waits.device):
        count[d] += 1
        spent[d]["busy"] += waits.duration[v]
    for row, total in zip(waits.runs, spent, strict=True):
        for start, end, (kind, _) in row:
            if kind == "transfer":
                total["send"] += end - start
    for gap in idle:
        spent[gap.device][gap.cause] += gap.end - gap.start
    rows = []
    for d, row in enumerate(waits.runs):
        first, last = (row[0][0], max(run[1] for run in row)) if row else (Fraction(0),) * 2
        times = {what: encoded(time) for what, time in spent[d].items()}
        ends = {"first": encoded(first), "last": encoded(last)}
        rows.append({"vertices": count[d], **ends, "spent": times})
    return rows


def _memory(
    instance: Instance, schedule: Schedule, makespan: Fraction
) -> list[dict[str, Any]] | None:
    curves = memory_curves(instance, schedule)
    if curves is None:
        return None
    return [
        {
            "peak": encoded(max(amount for _, amount in curve)),
            "points": [[encoded(t), encoded(amount)] for t, amount in _thinned(curve, makespan)],
            "thinned": len(curve) > _POINTS,
        }
        for curve in curves
    ]


def memory_curves(instance: Instance, schedule: Schedule) -> list[Curve] | None:
    """Return what each device holds under the memory model (design §2); ``None`` if it is none."""
    memory = instance.model.memory
    if memory == "none":
        return None
    on = schedule.placement[[members[0] for members in instance.units]]
    static = instance.static_memory
    curves = [[(Fraction(0), static.sum(np.flatnonzero(on == d)))] for d in range(instance.devices)]
    if memory == "estimate":
        return curves
    moments, uses = uses_over_time(instance, schedule, memory, instance.model.release)
    changes: list[defaultdict[int, int]] = [defaultdict(int) for _ in curves]
    for d, since, until, amount in zip(*(column.tolist() for column in uses), strict=True):
        if since < until:  # half-open: a copy that lives for no time takes no memory
            changes[d][since] += amount
            changes[d][until] -= amount
    for curve, change in zip(curves, changes, strict=True):
        held = curve[0][1]
        for moment in sorted(moment for moment, amount in change.items() if amount):
            held += Fraction(change[moment], instance.graph.tensor_size.denominator)
            if moments[moment] == 0:
                curve.clear()
            curve.append((moments[moment], held))
    return curves


def _thinned(curve: Curve, makespan: Fraction) -> Curve:
    """Return a curve of fewer steps: in each of many equal intervals, the most that is held."""
    if len(curve) <= _POINTS:
        return curve
    width, held, at = makespan / _POINTS, Fraction(0), 0
    most = []
    for i in range(_POINTS):
        most.append((width * i, held))
        while at < len(curve) and curve[at][0] < width * (i + 1):
            held = curve[at][1]
            most[-1] = width * i, max(most[-1][1], held)
            at += 1
    return most


def _path(waits: Waits) -> dict[str, Any]:
    """Return what the critical path is made of, and its first and last steps by name."""
    chain = waits.critical_path()
    spent: dict[str, Fraction] = {"vertex": Fraction(0), "transfer": Fraction(0)}
    start = Fraction(0)
    names = waits.instance.graph.names
    devices = waits.instance.cluster.names
    steps = []
    for i, (kind, number) in enumerate(chain):
        if kind == "vertex":
            begin, end = waits.start[number], waits.end[number]
            what, where = names[number], devices[waits.device[number]]
        else:
            begin = waits.begin[number]
            # A send ends on its device before the tensor arrives; the path may go on from there.
            after = chain[i + 1]
            follows = waits.start[after[1]] if after[0] == "vertex" else waits.begin[after[1]]
            end = min(waits.arrival[number], follows)
            tensor = waits.tensor[number]
            sender = waits.device[waits.producer[tensor]]
            what = waits.instance.graph.tensor_name(tensor)
            where = f"{devices[sender]} → {devices[waits.target[number]]}"
        if not i:
            start = begin
        spent[kind] += end - begin
        if i < MOST_STEPS or i >= len(chain) - 1:
            steps.append([kind, visible(what), visible(where), encoded(begin), encoded(end)])
    return {
        "steps": steps,
        "length": len(chain),
        "start": encoded(start),
        "vertex": encoded(spent["vertex"]),
        "transfer": encoded(spent["transfer"]),
    }


def _intervals(waits: Waits) -> dict[str, Any]:
    """Return which share of each equal interval of time each device is busy."""
    makespan = waits.makespan
    k = waits.instance.devices
    edges = np.linspace(0.0, 1.0, _INTERVALS + 1)
    busy = np.zeros((k, _INTERVALS))
    count = np.zeros((k, _INTERVALS), dtype=np.int64)
    if makespan:
        start = np.array([float(time / makespan) for time in waits.start])
        end = np.array([float(time / makespan) for time in waits.end])
        device = np.array(waits.device)
        first = np.minimum((start * _INTERVALS).astype(np.int64), _INTERVALS - 1)
        last = np.minimum((end * _INTERVALS).astype(np.int64), _INTERVALS - 1)
        np.add.at(count, (device, first), 1)
        for v in range(len(start)):
            for i in range(first[v], last[v] + 1):
                inside = min(end[v], edges[i + 1]) - max(start[v], edges[i])
                busy[device[v], i] += max(0.0, inside) * _INTERVALS
    shares = np.minimum(busy, 1.0).round(4).tolist()
    return {"number": _INTERVALS, "busy": shares, "count": count.tolist()}
