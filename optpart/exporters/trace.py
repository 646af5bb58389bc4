"""A schedule as a trace that Perfetto and Chrome's trace viewer show.

The file is JSON in the Trace Event Format (Google, "Trace Event Format", 2016, the JSON object
format). Every device and every link that is used is a process. A device has a thread for what it
runs (under ``sendrecv``, also its sends) and a counter of the memory that it holds. A link has as
many threads as transfers are under way on it at once, so that slices of a thread never overlap.
Every transfer is a flow from its producer over the link to its first consumer there.

Timestamps are microseconds as doubles. They grow with the exact times, and equal times have equal
timestamps, because slices are pairs of a begin and an end (``B``, ``E``) rather than lengths; but
they are rounded, and viewers show whole nanoseconds. The ``args`` of each slice hold the exact
times as strings.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from optpart.base.choices import choice
from optpart.base.errors import ArgumentError, InputError
from optpart.base.files import Kind, begins
from optpart.base.languages import to_json
from optpart.base.rounding import number
from optpart.exporters.plan import Text
from optpart.problem.instance import Instance
from optpart.problem.units import TIME_UNITS
from optpart.solution.memory_use import memory_use
from optpart.solution.schedule import Schedule

#: Later moments are no longer told apart by doubles of microseconds with three decimals.
_LATEST = 2**53

#: The thread of a device that shows its vertices and sends.
_RUNS = 1

KIND = Kind("a trace of optpart's", begins(rb'\{"displayTimeUnit":"ns","otherData":\{"instance":'))

#: Of events at one moment on one thread: what ends, what has no length, what begins.
_ENDS, _INSTANT, _BEGINS = range(3)


@dataclass(frozen=True)
class Scheduled:
    """A schedule, its instance, and the method that found it."""

    instance: Instance
    schedule: Schedule
    method: str


@dataclass(frozen=True)
class _Slice:
    """The slice that a thread shows of a vertex or its tensors, and flows: phase and number."""

    vertex: int
    process: int
    thread: int
    name: str
    category: str
    start: Fraction
    end: Fraction
    args: dict[str, str]
    flows: list[tuple[str, int]]


def trace(scheduled: Scheduled, unit: str | None = None) -> Text:
    """Return a schedule as a trace, and what it does not keep.

    Parameters
    ----------
    unit : {"ns", "us", "ms", "s"}, optional
        The unit of the instance's times; by default, the one that it states, else nanoseconds,
        which a remark then says.

    Raises
    ------
    InputError
        If there is no such unit, or the schedule is too long for timestamps.
    """
    if unit is not None and unit not in TIME_UNITS:
        raise ArgumentError("unit", f"unknown {unit!r}", choice(unit, TIME_UNITS))
    instance, schedule = scheduled.instance, scheduled.schedule
    unit = unit or instance.time_unit
    factor = Fraction(TIME_UNITS[unit or "ns"])
    latest = max((factor * time for time in _all_times(scheduled)), default=Fraction(0))
    if latest >= _LATEST:
        problem = f"ends after {number(latest, up=False)} ns, too late for timestamps of a trace"
        raise InputError("schedule", problem, "name a smaller --unit")
    about = {
        "instance": instance.name,
        "method": scheduled.method,
        "makespan": str(schedule.makespan(instance)),
        "unit": f"1 unit of time of the instance is {factor} ns; times in args are exact",
    }
    events = ",\n".join(
        to_json(event, compact=True)
        for event in [*_metadata(scheduled), *_events(scheduled, factor)]
    )
    head = f'{{"displayTimeUnit":"ns","otherData":{to_json(about, compact=True)},"traceEvents":['
    return Text(f"{head}\n{events}\n]}}\n", _remarks(scheduled, unit))


def _all_times(scheduled: Scheduled) -> Iterator[Fraction]:
    yield scheduled.schedule.makespan(scheduled.instance)
    yield from scheduled.schedule.transfers.end.fractions()


def _remarks(scheduled: Scheduled, unit: str) -> list[str]:
    remarks = []
    if not unit:
        remarks.append(
            "One unit of the instance's time is taken for 1 ns; name another with --unit."
        )
    remarks.append("Timestamps are rounded, and viewers show whole nanoseconds; args are exact.")
    if scheduled.instance.model.memory == "none":
        remarks.append("Memory does not count in this instance; counters show that of refcount.")
    return remarks


def _links(scheduled: Scheduled) -> list[tuple[int, int]]:
    """Return the links that are used, ascending."""
    return sorted({*zip(_senders(scheduled), scheduled.schedule.transfers.target.tolist(),
                        strict=True)})  # fmt: skip


def _senders(scheduled: Scheduled) -> list[int]:
    schedule = scheduled.schedule
    producer = scheduled.instance.graph.tensor_vertex[schedule.transfers.tensor]
    senders: list[int] = schedule.placement[producer].tolist()
    return senders


def _metadata(scheduled: Scheduled) -> Iterator[dict[str, Any]]:
    """Name processes and threads, devices first."""
    cluster = scheduled.instance.cluster
    processes = [*cluster.names]
    processes += [f"{cluster.names[d]} → {cluster.names[e]}" for d, e in _links(scheduled)]
    for process, name in enumerate(processes, 1):
        yield _meta("process_name", process, 0, name=name)
        yield _meta("process_sort_index", process, 0, sort_index=process)
    for d in range(len(cluster)):
        kind, memory = cluster.types[d], cluster.memory[d]
        labels = [*([kind] if kind else []), *([f"memory {memory}"] if memory is not None else [])]
        if labels:
            yield _meta("process_labels", d + 1, 0, labels=", ".join(labels))
        yield _meta("thread_name", d + 1, _RUNS, name="runs")
    threads = sorted({(each.process, each.thread) for each in _transfers(scheduled)})
    for process, thread in threads:
        yield _meta("thread_name", process, thread, name=f"transfers {thread}")


def _meta(name: str, process: int, thread: int, /, **args: Any) -> dict[str, Any]:
    return {"args": args, "ph": "M", "name": name, "pid": process, "tid": thread, "ts": 0}


def _events(scheduled: Scheduled, factor: Fraction) -> list[dict[str, Any]]:
    """Return all events that have a time, in the order of their exact times."""
    found: list[tuple[Fraction, int, int, int, dict[str, Any]]] = []
    slices = [*_vertices(scheduled), *_sends(scheduled), *_transfers(scheduled)]
    # What has no length comes after what it depends on, though both are at the same moment.
    rank = {v: i for i, v in enumerate(scheduled.instance.graph.topological_order.tolist())}
    slices.sort(key=lambda each: rank[each.vertex])
    for i, each in enumerate(slices):
        where = {"pid": each.process, "tid": each.thread}
        instant = each.start == each.end
        first, last = (_INSTANT, _INSTANT) if instant else (_BEGINS, _ENDS)
        begin = {"args": each.args, "ph": "B", "name": each.name, "cat": each.category, **where}
        found.append((each.start, first, i, 0, begin))
        for j, (phase, flow_id) in enumerate(each.flows, 1):
            flow = {"args": {}, "ph": phase, "name": "tensor", "cat": "tensor", "id": flow_id}
            bound = {"bp": "e"} if phase == "f" else {}
            found.append((each.start, first, i, j, {**flow, **where, **bound}))
        end = {"args": {}, "ph": "E", "name": each.name, "cat": each.category, **where}
        found.append((each.end, last, i, len(each.flows) + 1, end))
    for d, steps in enumerate(memory_use(scheduled.instance, scheduled.schedule)):
        for time, amount in steps:
            held = {"held": int(amount) if amount.denominator == 1 else float(amount)}
            where = {"pid": d + 1, "tid": 0}
            found.append((time, _ENDS, -1, d, {"args": held, "ph": "C", "name": "memory", **where}))
    # Whole numbers compare faster than fractions.
    scale = math.lcm(*{time.denominator for time, *_ in found})
    found.sort(key=lambda event: (int(event[0] * scale), *event[1:4]))
    return [{**event, "ts": float(time * factor / 1000)} for time, *_, event in found]


def _vertices(scheduled: Scheduled) -> list[_Slice]:
    instance, schedule = scheduled.instance, scheduled.schedule
    names, starts = instance.graph.names, schedule.start.fractions()
    slices = []
    for v, (start, d) in enumerate(zip(starts, schedule.placement.tolist(), strict=True)):
        end = schedule.end(instance, v)
        args = _exact(start, end)
        slices.append(_Slice(v, d + 1, _RUNS, names[v], "vertex", start, end, args, []))
    for flow, (producer, consumer) in enumerate(_ends_of_flows(scheduled), 1):
        slices[producer].flows.append(("s", flow))
        if consumer is not None:
            slices[consumer].flows.append(("f", flow))
    return slices


def _ends_of_flows(scheduled: Scheduled) -> list[tuple[int, int | None]]:
    """Return the producer of every transfer, and its first consumer where it goes."""
    graph, schedule = scheduled.instance.graph, scheduled.schedule
    first: dict[tuple[int, int], int] = {}
    place = schedule.placement.tolist()
    starts = schedule.start.fractions()
    for tensor, v in zip(graph.edge_tensor.tolist(), graph.edge_target.tolist(), strict=True):
        key = tensor, place[v]
        if key not in first or starts[v] < starts[first[key]]:
            first[key] = v
    moves = schedule.transfers
    pairs = zip(moves.tensor.tolist(), moves.target.tolist(), strict=True)
    return [(int(graph.tensor_vertex[tensor]), first.get((tensor, e))) for tensor, e in pairs]


def _sends(scheduled: Scheduled) -> Iterator[_Slice]:
    """Yield the sends of ``sendrecv``, which occupy the sender."""
    instance, moves = scheduled.instance, scheduled.schedule.transfers
    if instance.model.communication != "sendrecv":
        return
    made_by = instance.graph.tensor_vertex[moves.tensor].tolist()
    for i, (d, e) in enumerate(zip(_senders(scheduled), moves.target.tolist(), strict=True)):
        start, end = moves.start[i], moves.start[i] + instance.send_duration(d)
        name = f"send {_tensor(scheduled, i)} to {instance.cluster.names[e]}"
        args = _exact(start, end)
        yield _Slice(made_by[i], d + 1, _RUNS, name, "send", start, end, args, [])


def _transfers(scheduled: Scheduled) -> list[_Slice]:
    """Return the transfers on the threads of their links; each takes the first that is free."""
    instance, moves = scheduled.instance, scheduled.schedule.transfers
    process = {link: len(instance.cluster) + i for i, link in enumerate(_links(scheduled), 1)}
    links = [*zip(_senders(scheduled), moves.target.tolist(), strict=True)]
    sending = instance.model.communication == "sendrecv"
    rows = []
    for i, (d, _) in enumerate(links):
        rows.append((moves.start[i] + (instance.send_duration(d) if sending else 0), i))
    busy: dict[tuple[int, int], list[tuple[Fraction, int]]] = {}
    free: dict[tuple[int, int], list[int]] = {}
    slices = []
    for start, i in sorted(rows, key=lambda row: (row[0], moves.end[row[1]], row[1])):
        link, end = links[i], moves.end[i]
        running, idle = busy.setdefault(link, []), free.setdefault(link, [])
        while running and running[0][0] <= start:
            heapq.heappush(idle, heapq.heappop(running)[1])
        thread = heapq.heappop(idle) if idle else len(running) + 1
        heapq.heappush(running, (end, thread))
        size = instance.graph.tensor_size[moves.tensor[i]]
        args = {**_exact(start, end), "size": str(size)}
        flows = [("t", i + 1)]
        name, vertex = _tensor(scheduled, i), int(instance.graph.tensor_vertex[moves.tensor[i]])
        where = process[link], thread
        slices.append(_Slice(vertex, *where, name, "transfer", start, end, args, flows))
    return slices


def _tensor(scheduled: Scheduled, transfer: int) -> str:
    tensor = int(scheduled.schedule.transfers.tensor[transfer])
    return scheduled.instance.graph.tensor_name(tensor)


def _exact(start: Fraction, end: Fraction) -> dict[str, str]:
    return {"start": str(start), "end": str(end), "length": str(end - start)}
