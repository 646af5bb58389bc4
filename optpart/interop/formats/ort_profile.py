"""Profiles of ONNX Runtime (``SessionOptions.enable_profiling``).

The file is a list of trace events. Those of the category ``Node`` whose names end in
``_kernel_time`` hold one execution of a node each, ``dur`` in microseconds::

    {"cat": "Node", "ph": "X", "name": "conv1_kernel_time", "dur": 123, "ts": 16402,
     "args": {"op_name": "Conv", "node_index": "0", "provider": "CPUExecutionProvider"}}

A node without a name is called after its kind and its index in the graph, ``Add_2``. Nodes that
the optimizer has fused or inserted have names of its own; with optimizations disabled
(``ORT_DISABLE_ALL``) every node keeps its name.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

from optpart.base.errors import FaultsOf, InputError
from optpart.interop.formats.json import parse_json, sequence
from optpart.interop.formats.parsing import member
from optpart.interop.formats.profile import Profile, read_trace
from optpart.problem.rational import non_negative, shown

_SUFFIX = "_kernel_time"
_MICROSECOND = 1000
_CPU = "CPUExecutionProvider"
_MOST_INDEX = 10**9


def sniff(document: Any) -> bool:
    """Return whether a JSON document is such a profile."""
    return isinstance(document, list) and any(
        isinstance(event, dict) and event.get("cat") in ("Node", "Session") for event in document
    )


def read(path: str | Path) -> Profile:
    """Read a profile; every fault is an :class:`InputError` with the file and the event."""
    with FaultsOf(path):
        return from_document(parse_json(read_trace(path)))


def from_document(document: Any) -> Profile:
    """Read a parsed profile."""
    times: dict[str, list[Fraction]] = {}
    made_up: dict[str, dict[int, str]] = {}
    indices: dict[str, set[int]] = {}
    providers: Counter[str] = Counter()
    for i, event in enumerate(sequence(document, "")):
        if not isinstance(event, dict) or event.get("cat") != "Node":
            continue
        name = event.get("name")
        if not isinstance(name, str) or not name.endswith(_SUFFIX):
            continue
        place = f"event {i}"
        name = name.removesuffix(_SUFFIX)
        time = non_negative(member(event, "dur", place), f"{place}, dur")
        arguments = member(event, "args", place)
        kind = _text(arguments, "op_name", place)
        index = _index(arguments, place) if "node_index" in arguments else None  # of old releases
        if index is not None:
            indices.setdefault(name, set()).add(index)
        if name not in times:
            providers[_text(arguments, "provider", place)] += 1
            if index is not None and name == f"{kind}_{index}":
                made_up.setdefault(kind, {})[index] = name
        times.setdefault(name, []).append(time * _MICROSECOND)
    if not times:
        raise InputError(
            "", "no event of a node", "run the model before the session ends its profiling"
        )
    # A name given to one node and made up for another, or one of several graphs, tells nothing.
    double = {name for name, of_name in indices.items() if len(of_name) > 1}
    return Profile(
        {name: tuple(found) for name, found in times.items() if name not in double},
        {
            kind: tuple(name for _, name in sorted(of_kind.items()) if name not in double)
            for kind, of_kind in made_up.items()
        },
        unmatched=tuple(sorted(double)),
        remarks=_remarks(providers),
    )


def _remarks(providers: Counter[str]) -> tuple[str, ...]:
    remarks = []
    if len(providers) > 1:
        parts = ", ".join(f"{name} {count:,}" for name, count in sorted(providers.items()))
        remarks.append(f"nodes ran with several providers, and all count: {parts}.")
    others = sorted(providers.keys() - {_CPU})
    if others:
        remarks.append(
            f"times with {', '.join(others)} end when the call of the node returns, which may be "
            "before its kernels end."
        )
    return tuple(remarks)


def _text(arguments: Any, key: str, place: str) -> str:
    value = member(arguments, key, f"{place}, args")
    if not isinstance(value, str):
        raise InputError(f"{place}, {key}", f"{shown(value)} is no text", "give a name")
    return value


def _index(arguments: Any, place: str) -> int:
    text = _text(arguments, "node_index", place)
    if not (text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) <= _MOST_INDEX):
        raise InputError(
            f"{place}, node_index", f"{shown(text)} is no index", "give a whole number ≥ 0"
        )
    return int(text)
