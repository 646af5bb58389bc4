"""Time oracles ([H] §3, §5): the time of an op, by its name.

Measured times come from

- a CSV with the header ``name,time`` and a row per measurement,
- a profile in the Chrome trace format, as TensorFlow writes it: complete events (``"ph": "X"`` with
  ``dur``) and pairs of ``B`` and ``E`` events of one thread; the op of an event is its
  ``args.name`` or else its ``name``; times are in microseconds.

The time of an op is the least of its measured times ([H] §5). The general oracle needs no
measurements ([H] eq. 6).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from optpart.applications.ordering.efficiency import assigned
from optpart.base.errors import FaultsOf, InputError
from optpart.base.files import read_text
from optpart.interop.formats.json import parse_json
from optpart.interop.formats.tables import read_rows
from optpart.kernels.tasks import tasks
from optpart.problem.instance import Instance
from optpart.problem.rational import RationalArray, non_negative, shown
from optpart.strategies.scheduling.transfers import is_transfer

_COLUMNS = ("name", "time")


def least(measured: Iterable[tuple[str, Fraction]]) -> dict[str, Fraction]:
    """Return the least measured time of every op."""
    times: dict[str, Fraction] = {}
    for name, time in measured:
        times[name] = min(time, times.get(name, time))
    return times


def read_times(path: str | Path) -> dict[str, Fraction]:
    """Read a trace if the suffix of the file is ``.json``, else a CSV; see the module."""
    with FaultsOf(path):
        if Path(path).suffix.lower() == ".json":
            return least(_durations(parse_json(read_text(path))))
        rows = read_rows(path, _COLUMNS)
        return least(
            (row["name"], non_negative(row["time"], f"{place}, time")) for place, row in rows
        )


def _durations(document: Any) -> Iterator[tuple[str, Fraction]]:
    events = document.get("traceEvents") if isinstance(document, dict) else document
    if not isinstance(events, list):
        raise InputError("traceEvents", "missing", "give a Chrome trace: a list of events")
    begun: dict[tuple[str, str], list[tuple[str, Fraction]]] = {}
    for i, event in enumerate(events):
        place = f"traceEvents[{i}]"
        if not isinstance(event, dict):
            raise InputError(place, "not an object", "give a Chrome trace: a list of events")
        kind = event.get("ph")
        if kind == "X":
            yield _name(event, place), non_negative(event.get("dur"), f"{place}.dur")
        elif kind in ("B", "E"):
            thread = str(event.get("pid")), str(event.get("tid"))
            at = non_negative(event.get("ts"), f"{place}.ts")
            open_ = begun.setdefault(thread, [])
            if kind == "B":
                open_.append((_name(event, place), at))
                continue
            if not open_:
                raise InputError(place, "an end without a begin", "give the event that begins it")
            name, start = open_.pop()
            if at < start:
                raise InputError(f"{place}.ts", "before the begin event", "sort the events")
            yield name, at - start


def _name(event: dict[str, Any], place: str) -> str:
    arguments = event.get("args")
    name = arguments.get("name") if isinstance(arguments, dict) else None
    name = event.get("name") if name is None else name
    if not isinstance(name, str) or not name:
        raise InputError(f"{place}.name", f"{shown(name)} is not a name", "name the op")
    return name


def general(instance: Instance) -> dict[str, Fraction]:
    """Return the times of the general oracle ([H] eq. 6): 1 for a *recv* op, 0 for any other.

    :func:`~optpart.strategies.scheduling.transfers.is_transfer` defines which ops are *recv* ops.
    """
    found = is_transfer(tasks(instance, assigned(instance)), instance.vertices)
    return {
        name: Fraction(int(is_recv))
        for name, is_recv in zip(instance.graph.names, found, strict=False)
    }


def with_times(instance: Instance, times: Mapping[str, Fraction]) -> Instance:
    """Return an assigned graph whose ops take the times of an oracle.

    Ops that the oracle does not know keep their times, and unknown names of the oracle are ignored:
    a profile contains events of the runtime, and may lack ops that take no time.

    Raises
    ------
    InputError
        If the oracle knows no op of the instance, or some vertex may run on several devices.
    """
    device = assigned(instance)
    names = instance.graph.names
    if instance.vertices and not any(name in times for name in names):
        raise InputError("", "no op of the instance is measured", "use the instance's op names")
    known = dict(times)
    ops = [
        known.get(name, instance.duration(v, d)) * instance.cluster.speed[d]
        for v, (name, d) in enumerate(zip(names, device.tolist(), strict=True))
    ]
    graph = replace(
        instance.graph,
        ops=RationalArray.from_fractions(ops),
        # The durations, which are replaced, may have been all that restricted the device.
        allowed_devices={v: (instance.cluster.names[d],) for v, d in enumerate(device.tolist())},
    )
    return replace(instance, graph=graph, durations=None)
