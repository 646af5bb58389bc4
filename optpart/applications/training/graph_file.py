"""Training graphs in JSON, ``optpart-training/1``.

::

    {"format": "optpart-training/1",
     "name": "tiny",
     "kinds": ["fast", "slow"],
     "operations": [
       {"name": "a", "role": "forward", "times": [[5, "1/3"], [9, 1]],
        "outputs": [{"layout": "batched", "size": [0, 4096]}]},
       {"name": "a/backward", "role": "backward", "times": [[10, "2/3"], [18, 2]],
        "outputs": [{"layout": "summed", "size": [100, 0]}]},
       {"name": "a/apply", "role": "apply", "times": [[1, 0], [2, 0]]}],
     "edges": [["a", "a/backward", 0], ["a/backward", "a/apply", 0]],
     "parameters": [{"name": "w", "size": 100, "users": ["a", "a/backward", "a/apply"]}]}

A time is ``[α, β]`` for each of the kinds, ``α + β·samples`` nanoseconds; so is a size in bytes. An
edge is a triple of producer, consumer and the output that is read, ``null`` if the consumer only
waits. ``splittable`` of an operation is true, ``source``, ``assumed`` and ``parameters`` are empty
if they are missing. Numbers are exact: an integer, a decimal, or a string such as ``"1/3"``.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from optpart.applications.training.graph import (
    CONTROL,
    Edge,
    Layout,
    Line,
    Operation,
    Output,
    Parameter,
    Role,
    TrainingGraph,
)
from optpart.base.choices import choice
from optpart.base.errors import FaultsOf, InputError
from optpart.base.files import Kind, of_format, read_text, write_text
from optpart.interop.formats.json import (
    flag,
    is_whole,
    keys,
    named,
    parse_json,
    pretty,
    sequence,
    text,
    texts,
    version,
)
from optpart.problem.document import number
from optpart.problem.rational import non_negative, shown

FORMAT = "optpart-training/1"
KIND = Kind("a training graph", of_format(FORMAT))

_TOP = {"$schema", "format", "name", "kinds", "operations", "edges", "parameters"}
_TOP |= {"source", "assumed"}
_OPERATION = {"name", "role", "times", "outputs", "splittable"}
_OUTPUT = {"layout", "size"}
_PARAMETER = {"name", "size", "users"}

_Choice = TypeVar("_Choice", bound=StrEnum)


def read(path: str | Path) -> TrainingGraph:
    """Read a file; every fault is an :class:`InputError` that names file and place."""
    with FaultsOf(path):
        return from_dict(parse_json(read_text(path)))


def write(graph: TrainingGraph, path: str | Path) -> None:
    """Write a file, completely or not at all."""
    write_text(path, dumps(graph), KIND)


def dumps(graph: TrainingGraph) -> str:
    """Return the text of a file, as :func:`read` reads it."""
    return pretty(to_dict(graph))


def to_dict(graph: TrainingGraph) -> dict[str, Any]:
    """Return the document of a graph."""
    names = [operation.name for operation in graph.operations]
    return {
        "format": FORMAT,
        "name": graph.name,
        "source": graph.source,
        "assumed": list(graph.assumed),
        "kinds": list(graph.kinds),
        "operations": [_operation_document(operation) for operation in graph.operations],
        "edges": [
            [names[e.producer], names[e.consumer], None if e.output == CONTROL else e.output]
            for e in graph.edges
        ],
        "parameters": [
            {"name": p.name, "size": number(p.size), "users": [names[u] for u in p.users]}
            for p in graph.parameters
        ],
    }


def _operation_document(operation: Operation) -> dict[str, Any]:
    document: dict[str, Any] = {
        "name": operation.name,
        "role": operation.role.value,
        "times": [_pair(line) for line in operation.times],
    }
    if operation.outputs:
        document["outputs"] = [
            {"layout": output.layout.value, "size": _pair(output.size)}
            for output in operation.outputs
        ]
    if not operation.splittable:
        document["splittable"] = False
    return document


def _pair(line: Line) -> list[int | str]:
    return [number(line.alpha), number(line.beta)]


def from_dict(document: Any) -> TrainingGraph:
    """Build a graph from the parsed document."""
    version(document, FORMAT)
    top = keys(document, _TOP, "", ("name", "kinds", "operations", "edges"))
    text(top.get("$schema", ""), "$schema")
    for key in ("kinds", "operations"):
        if not sequence(top[key], key):
            raise InputError(key, "empty", "give at least one")
    kinds = texts(top["kinds"], "kinds")
    operations = tuple(
        _operation(entry, len(kinds), f"operations[{o}]")
        for o, entry in enumerate(top["operations"])
    )
    index = {operation.name: o for o, operation in enumerate(operations)}
    edges = enumerate(sequence(top["edges"], "edges"))
    parameters = enumerate(sequence(top.get("parameters", []), "parameters"))
    return TrainingGraph(
        text(top["name"], "name"),
        kinds,
        operations,
        tuple(_edge(entry, index, f"edges[{e}]") for e, entry in edges),
        tuple(_parameter(entry, index, f"parameters[{p}]") for p, entry in parameters),
        text(top.get("source", ""), "source"),
        texts(top.get("assumed", []), "assumed"),
    )


def _operation(value: Any, kinds: int, place: str) -> Operation:
    entry = keys(value, _OPERATION, place, ("name", "role", "times"))
    times = sequence(entry["times"], f"{place}.times")
    if len(times) != kinds:
        raise InputError(f"{place}.times", f"{len(times)} lines", f"give {kinds}, one per kind")
    outputs = enumerate(sequence(entry.get("outputs", []), f"{place}.outputs"))
    splittable = flag(entry.get("splittable", True), f"{place}.splittable")
    return Operation(
        text(entry["name"], f"{place}.name"),
        _one_of(Role, entry["role"], f"{place}.role"),
        tuple(_line(each, f"{place}.times[{i}]") for i, each in enumerate(times)),
        tuple(_output(output, f"{place}.outputs[{k}]") for k, output in outputs),
        splittable,
    )


def _output(value: Any, place: str) -> Output:
    entry = keys(value, _OUTPUT, place, ("layout", "size"))
    layout = _one_of(Layout, entry["layout"], f"{place}.layout")
    size = _line(entry["size"], f"{place}.size")
    try:
        return Output(layout, size)
    except InputError as error:
        raise InputError(place, error.problem, error.remedy) from None


def _one_of(choices: type[_Choice], value: Any, place: str) -> _Choice:
    given = text(value, place)
    if given not in list(choices):
        raise InputError(place, f"is {shown(given)}", choice(given, choices))
    return choices(given)


def _line(value: Any, place: str) -> Line:
    parts = sequence(value, place)
    if len(parts) != 2:
        raise InputError(place, f"{len(parts)} numbers", "give [α, β]")
    alpha, beta = (non_negative(part, f"{place}[{i}]") for i, part in enumerate(parts))
    return Line(alpha, beta)


def _edge(value: Any, index: Mapping[str, int], place: str) -> Edge:
    parts = sequence(value, place)
    if len(parts) != 3:
        raise InputError(
            place, "is not a triple", "give [producer, consumer, output index or null]"
        )
    if parts[2] is not None and not is_whole(parts[2], 0):
        raise InputError(place, f"no output {shown(parts[2])}", "give its index, or null to wait")
    producer, consumer = (_named(parts[i], index, f"{place}[{i}]") for i in (0, 1))
    return Edge(producer, CONTROL if parts[2] is None else parts[2], consumer)


def _named(value: Any, index: Mapping[str, int], place: str) -> int:
    return named(value, index, place, "no operation", "name one of the operations")


def _parameter(value: Any, index: Mapping[str, int], place: str) -> Parameter:
    entry = keys(value, _PARAMETER, place, ("name", "size", "users"))
    users = enumerate(texts(entry["users"], f"{place}.users"))
    return Parameter(
        text(entry["name"], f"{place}.name"),
        non_negative(entry["size"], f"{place}.size"),
        tuple(_named(user, index, f"{place}.users[{i}]") for i, user in users),
    )
