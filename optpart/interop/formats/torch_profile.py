"""Profiles of PyTorch (``torch.profiler``, Kineto): Chrome traces.

The complete events (``"ph": "X"``) that count, with ``ts`` and ``dur`` in microseconds:

- ``cpu_op``: an operator such as ``aten::conv2d``, on a thread of the host. It is the call of a
  vertex of its kind (``aten.conv2d``) or, of a graph without kinds, of one that ``torch.fx`` calls
  after it (``conv2d``, ``conv2d_1``), in the order of execution, provided that the graph has just
  as many of them. Those count that no other one of the graph encloses: of a graph of linear layers
  ``aten::linear``, of a decomposed one the ``aten::addmm`` within it;
- ``user_annotation``: a ``record_function`` range, which has its own name; ``ProfilerStep#3`` is
  one step, in which every vertex runs once. Without steps, a file in which most operators ran R
  times as often as the graph has them holds R runs of the model;
- ``kernel``, ``gpu_memcpy``, ``gpu_memset``: work on a device, which a call on the host
  (``cuda_runtime``, ``cuda_driver``) of the same ``correlation`` has launched; where no call has,
  the operator of the same ``External id`` counts.

If there is work on a device, a vertex takes the sum of what was launched in its range. Otherwise it
takes the duration of the range itself.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import zip_longest
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

from optpart.base.errors import FaultsOf, InputError
from optpart.interop.formats.json import parse_json
from optpart.interop.formats.profile import Launched, Profile, Range, check_flat, read_trace
from optpart.problem.rational import non_negative, rational, shown

_MICROSECOND = 1000
_OPERATOR = {"cpu_op", "Operator"}
_ANNOTATION = {"user_annotation"}
_CALL = {"cuda_runtime", "cuda_driver", "Runtime"}
_DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset"}
_STEP = re.compile(r"ProfilerStep#\d+", re.ASCII)
#: What ``torch.fx`` calls a node after the first of an operator.
_NUMBERED = re.compile(r"(.+)_(\d{1,9})", re.ASCII)

Thread: TypeAlias = tuple[str, str]


@dataclass
class _Trace:
    """The events that count, sorted by what they are."""

    operators: dict[Thread, list[Range]] = field(default_factory=dict)
    annotations: dict[Thread, list[Range]] = field(default_factory=dict)
    steps: list[Range] = field(default_factory=list)
    #: By ``correlation`` and by ``External id``: where and when it was.
    calls: dict[str, tuple[Thread, Fraction]] = field(default_factory=dict)
    external: dict[str, tuple[Thread, Fraction]] = field(default_factory=dict)
    #: Correlation, external id and duration.
    work: list[tuple[str | None, str | None, Fraction]] = field(default_factory=list)
    devices: set[str] = field(default_factory=set)


def sniff(document: Any) -> bool:
    """Return whether a JSON document is a Chrome trace with such events."""
    events = document.get("traceEvents") if isinstance(document, dict) else document
    known = _OPERATOR | _ANNOTATION | _CALL | _DEVICE
    return isinstance(events, list) and any(
        isinstance(event, dict) and isinstance(event.get("cat"), str) and event["cat"] in known
        for event in events
    )


def read(path: str | Path, names: Sequence[str], kinds: Sequence[str] = ()) -> Profile:
    """Read a profile; every fault is an :class:`InputError` with the file and the event.

    Parameters
    ----------
    names, kinds : sequence of str
        Those of the vertices; without kinds, names tell them.
    """
    with FaultsOf(path):
        return from_document(parse_json(read_trace(path)), names, kinds)


def from_document(document: Any, names: Sequence[str], kinds: Sequence[str] = ()) -> Profile:
    """Read a parsed profile."""
    trace = _sorted(document)
    named, unmatched = _named(trace, names, kinds)
    for ranges in named.values():
        check_flat(ranges)
    _check_steps(trace.steps, named)
    if not trace.work:
        times: dict[str, list[Fraction]] = {}
        for ranges in named.values():
            for each in ranges:
                times.setdefault(each.name, []).append(Fraction(each.end - each.start))
        remarks = ["times are those of the calls on the host."]
    else:
        times, remarks = _launched(trace, named)
    if trace.steps:
        remarks.append(f"{len(trace.steps)} steps were profiled.")
    elif (runs := max(map(len, times.values()), default=1)) > 1:
        remarks.append(f"no steps are marked; taken as {runs} runs of the model.")
    return Profile(
        {
            name: tuple(time * _MICROSECOND for time in found)
            for name, found in sorted(times.items())
        },
        unmatched=tuple(sorted(unmatched)),
        remarks=tuple(remarks),
    )


def _sorted(document: Any) -> _Trace:
    events = document.get("traceEvents") if isinstance(document, dict) else document
    if not isinstance(events, list):
        raise InputError("traceEvents", "missing", "give a Chrome trace: a list of events")
    trace = _Trace()
    for i, event in enumerate(events):
        if not isinstance(event, dict) or event.get("ph") != "X":
            continue
        category = event.get("cat")
        if not isinstance(category, str):
            continue
        if category in _OPERATOR or category in _ANNOTATION:
            _add_range(trace, event, category in _OPERATOR, f"traceEvents[{i}]")
        elif category in _CALL:
            correlation = _identifier(event, "correlation")
            if correlation is not None:
                begin = rational(event.get("ts"), f"traceEvents[{i}].ts")
                at = trace.calls.get(correlation)
                if at is None or begin < at[1]:
                    trace.calls[correlation] = _thread(event), begin
        elif category in _DEVICE:
            time = non_negative(event.get("dur"), f"traceEvents[{i}].dur")
            trace.work.append(
                (_identifier(event, "correlation"), _identifier(event, "External id"), time)
            )
            trace.devices.add(_identifier(event, "device") or "0")
    if len(trace.devices) > 1:
        raise InputError(
            "traceEvents",
            f"work on devices {', '.join(sorted(trace.devices)[:8])}",
            "profile one device at a time",
        )
    trace.steps.sort(key=lambda each: each.start)
    return trace


def _add_range(trace: _Trace, event: dict[str, Any], is_operator: bool, place: str) -> None:
    name = event.get("name")
    if not isinstance(name, str) or not name:
        raise InputError(f"{place}.name", f"{shown(name)} is no name", "name the event")
    start = rational(event.get("ts"), f"{place}.ts")
    found = Range(start, start + non_negative(event.get("dur"), f"{place}.dur"), name)
    thread = _thread(event)
    if is_operator:
        trace.operators.setdefault(thread, []).append(found)
        external = _identifier(event, "External id")
        if external is not None:
            trace.external[external] = thread, start
    elif _STEP.fullmatch(name):
        trace.steps.append(found)
    else:
        trace.annotations.setdefault(thread, []).append(found)


def _thread(event: dict[str, Any]) -> Thread:
    return shown(event.get("pid")), shown(event.get("tid"))


def _identifier(event: dict[str, Any], key: str) -> str | None:
    arguments = event.get("args")
    if not isinstance(arguments, dict):
        return None
    # Older releases write it in lower case.
    value = arguments.get(key, arguments.get(key.lower()))
    return None if value is None else shown(value)


def _named(
    trace: _Trace, names: Sequence[str], kinds: Sequence[str]
) -> tuple[dict[Thread, list[Range]], set[str]]:
    """Return the ranges of vertices by thread, and the names of all other ones."""
    found: dict[Thread, list[Range]] = {}
    unmatched, wanted = set(), set(names)
    for thread, ranges in trace.annotations.items():
        for each in ranges:
            if each.name in wanted:
                found.setdefault(thread, []).append(each)
            else:
                unmatched.add(each.name)
    named = {
        thread: sorted(ranges, key=lambda each: each.start) for thread, ranges in found.items()
    }
    nodes = _nodes(names, kinds, {each.name for ranges in named.values() for each in ranges})
    calls: dict[str, dict[int, list[tuple[Range, Thread]]]] = {}
    for thread, ranges in trace.operators.items():
        known = _outermost([each for each in ranges if _base(each.name) in nodes])
        starts = [each.start for each in known]
        unmatched |= {
            _base(each.name)
            for each in _outermost(ranges)
            if bisect_left(starts, each.start) == bisect_left(starts, each.end)
            and _base(each.name) not in nodes
        }
        for each in known:
            step = _step_of(each, trace.steps)
            if step is not None and not _within((each, thread), named):
                calls.setdefault(_base(each.name), {}).setdefault(step, []).append((each, thread))
    runs = 1 if trace.steps else _runs(calls, nodes)
    for base, by_step in calls.items():
        expected = nodes[base] * runs
        if len(by_step) != max(1, len(trace.steps)) or any(
            len(of_step) != len(expected) for of_step in by_step.values()
        ):
            unmatched.add(base)
            continue
        for of_step in by_step.values():
            of_step.sort(key=lambda pair: pair[0].start)
            for node, (each, thread) in zip(expected, of_step, strict=True):
                found.setdefault(thread, []).append(Range(each.start, each.end, node))
    return found, unmatched


def _base(operator: str) -> str:
    return operator.rpartition("::")[2]


def _nodes(names: Sequence[str], kinds: Sequence[str], named: set[str]) -> dict[str, list[str]]:
    """Return the vertices that are calls of each operator, without those that have a range."""
    found: dict[str, list[tuple[int, str]]] = {}
    for name, kind in zip_longest(names, kinds, fillvalue=""):
        numbered = _NUMBERED.fullmatch(name)
        if name in named:
            continue
        if "." in kind:  # in the order of the graph
            found.setdefault(kind.rpartition(".")[2], []).append((0, name))
        elif numbered is not None:
            found.setdefault(numbered[1], []).append((int(numbered[2]), name))
        else:
            found.setdefault(name, []).append((0, name))
    return {
        base: [name for _, name in sorted(nodes, key=itemgetter(0))]
        for base, nodes in found.items()
    }


def _within(call: tuple[Range, Thread], named: Mapping[Thread, Sequence[Range]]) -> bool:
    """Return whether a call lies in the range of a vertex, which counts it."""
    each, thread = call
    ranges = named.get(thread, ())
    at = bisect_right(ranges, each.start, key=lambda of: of.start) - 1
    return at >= 0 and each.start < ranges[at].end


def _runs(
    calls: Mapping[str, Mapping[int, Sequence[object]]], nodes: Mapping[str, Sequence[str]]
) -> int:
    """Return how many runs of the model a file without steps holds: what most operators agree on.

    Others have calls that the graph does not have, such as those of constants. One if there is no
    such number, so that only those match which ran as often as the graph has them.
    """
    ratios = Counter(
        Fraction(len(of_step), len(nodes[base]))
        for base, by_step in calls.items()
        for of_step in by_step.values()
    )
    most = [ratio for ratio, count in ratios.items() if count == max(ratios.values())]
    if len(most) == 1 and most[0].denominator == 1:
        return most[0].numerator
    return 1


def _outermost(ranges: list[Range]) -> list[Range]:
    """Return the ranges of a thread that no other one contains."""
    found = []
    end: Fraction | int | None = None
    for each in sorted(ranges, key=lambda each: (each.start, -each.end)):
        if end is None or each.end > end or each.start >= end:
            found.append(each)
            end = each.end
    return found


def _step_of(each: Range, steps: Sequence[Range]) -> int | None:
    """Return the step that a range begins in; 0 if there are none, ``None`` if it is in none."""
    if not steps:
        return 0
    at = bisect_right(steps, each.start, key=lambda step: step.start) - 1
    return at if at >= 0 and each.start < steps[at].end else None


def _check_steps(steps: Sequence[Range], named: Mapping[Thread, Sequence[Range]]) -> None:
    if not steps:
        return
    count = Counter(each.name for ranges in named.values() for each in ranges)
    for name, times in count.items():
        if times != len(steps):
            raise InputError(
                f"range {name!r}",
                f"ran {times} times in {len(steps)} steps",
                "run every vertex once a step, and profile whole steps",
            )


def _launched(
    trace: _Trace, named: Mapping[Thread, Sequence[Range]]
) -> tuple[dict[str, list[Fraction]], list[str]]:
    """Return the sums of what was launched in the ranges, and what to say of the rest."""
    launched = Launched(named)
    for correlation, external, time in trace.work:
        at = None if correlation is None else trace.calls.get(correlation)
        if at is None and external is not None:
            at = trace.external.get(external)
        launched.add(at, time)
    return launched.times(
        "profile the activities CPU and CUDA together", "name no launch in the file"
    )
