r"""Profiles of networks on one GPU, in the ``graph.txt`` of PipeDream's profiler.

A node is a line; an edge is a line that begins with a tab::

    node1 -- Input -- forward_compute_time=635.9, backward_compute_time=0.0, activation_size=150.0, parameter_size=0.0
    node2 -- Conv2d(3, 64) -- forward_compute_time=2.5, backward_compute_time=4.25, activation_size=800.0, parameter_size=70.0
        node1 -- node2

Times are milliseconds per minibatch, sizes bytes; ``activation_size`` may list several tensors,
``[6.0; 2.0; 2.0]``. As a workload, in bytes and whole nanoseconds:

- a node is a vertex of its name, with ``parameter_size`` resident. An ``Input`` carries the loading
  of data and is dropped with its edges;
- its activations are one output, of their total size as in PipeDream's own optimizer, which every
  successor reads;
- the measured time on ``gpu`` is that of the forward pass; with ``training``, forward and backward
  pass together, since PipeDream places both on one device.

Graphs whose nodes have a ``stage_id``, as the optimizer writes them, are refused.
"""  # noqa: E501

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

from optpart.base.errors import FaultsOf, InputError
from optpart.base.files import read_text
from optpart.base.rounding import number
from optpart.interop.formats.nanoseconds import MILLISECOND, Times
from optpart.problem.graph import GraphBuilder
from optpart.problem.rational import non_negative, shown
from optpart.problem.workload import Workload

#: The device that the times were measured on.
GPU = "gpu"

_KEYS = ("forward_compute_time", "backward_compute_time", "activation_size", "parameter_size")
_INPUT = re.compile(r"Input[0-9]*", re.ASCII)
_NODE = "node -- operator -- " + ", ".join(f"{key}=…" for key in _KEYS)


def sniff(text: str) -> bool:
    """Return whether the first line that is not empty is a node with its times."""
    first = next((line for line in text.split("\n") if line.strip()), "")
    return " -- " in first and f"{_KEYS[0]}=" in first


def read(path: str | Path, *, training: bool = False) -> Workload:
    """Read a profile.

    Parameters
    ----------
    training : bool
        Whether a time is that of the forward and the backward pass.

    Raises
    ------
    InputError
        If a line is no node and no edge, or a number is missing, negative or none.
    """
    with FaultsOf(path):
        return _workload(read_text(path), Path(path).stem, training)


def _workload(text: str, name: str, training: bool) -> Workload:
    builder = GraphBuilder()
    measured: list[Fraction | None] = []
    dropped: dict[str, Fraction] = {}
    edges: list[tuple[str, str, str]] = []
    times = Times(MILLISECOND)
    for i, line in enumerate(text.split("\n"), start=1):
        place = f"line {i}"
        if not line.strip():
            continue
        if line.startswith("\t"):
            source, separator, target = line.strip().partition(" -- ")
            if not separator or not target or " " in source + target:
                raise InputError(place, "no edge", "write a tab and node1 -- node2")
            edges.append((source, target, place))
            continue
        node, operator, values = _node(line, place)
        passes = values[:2] if training else values[:1]
        if _INPUT.fullmatch(operator):
            if node in dropped:
                raise InputError(place, f"a second node {shown(node)}", "make names unique")
            dropped[node] = values[0]
            continue
        builder.vertex(node, memory=values[3], outputs=[values[2]], place=place)
        measured.append(times.whole(passes))
    if not measured:
        raise InputError("", "holds no nodes but inputs", f"give lines such as {_NODE}")
    for source, target, place in edges:
        if target in dropped:
            raise InputError(place, f"an edge into the input {shown(target)}", "remove it")
        if source not in dropped:
            builder.edge(source, target, place=place)
    what = "forward and backward pass" if training else "forward pass"
    return Workload(
        builder.build(),
        measured={GPU: tuple(measured)},
        name=name,
        source=f"profile by PipeDream, {what}",
        assumed=(*times.remarks(), *_remarks(dropped)),
    )


def _remarks(dropped: dict[str, Fraction]) -> list[str]:
    if not dropped:
        return []
    total = number(sum(dropped.values(), Fraction(0)), up=True)
    names = "Input node" if len(dropped) == 1 else "Input nodes"
    return [f"{len(dropped)} {names} dropped, with {total} ms of loading data."]


def _node(line: str, place: str) -> tuple[str, str, list[Fraction]]:
    """Return name, operator and, in the order of ``_KEYS``, the numbers."""
    node, separator, rest = line.partition(" -- ")
    # An operator may hold the separator itself; what follows it may not.
    operator, second, fields = rest.rpartition(" -- ")
    if "stage_id=" in fields:
        raise InputError(
            place, "the node has a stage_id", "give the graph.txt of the profiler, not partitioned"
        )
    if not separator or not second or not node.strip():
        raise InputError(place, "neither a node nor an edge", f"write {_NODE}")
    given: dict[str, str] = {}
    for field in fields.strip().split(", "):
        key, equals, value = field.partition("=")
        if not equals or key in given:
            raise InputError(place, f"{shown(field)} is no key=number", f"write {_NODE}")
        given[key] = value
    if set(given) != set(_KEYS):
        odd = next(key for key in (*given, *_KEYS) if (key in given) != (key in _KEYS))
        problem = f"unknown {shown(odd)}" if odd in given else f"no {odd}"
        raise InputError(place, problem, f"write {_NODE}")
    return node.strip(), operator.strip(), [_number(given[key], f"{place}, {key}") for key in _KEYS]


def _number(text: str, place: str) -> Fraction:
    if place.endswith("activation_size") and text.startswith("[") and text.endswith("]"):
        return sum((non_negative(part, place) for part in text[1:-1].split(";")), start=Fraction(0))
    return non_negative(text, place)
