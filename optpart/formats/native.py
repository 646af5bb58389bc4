"""The native instance format, ``optpart-instance/1`` (design §5)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from optpart.errors import FaultsOf, InputError
from optpart.escaping import visible_json
from optpart.files import read_text, write_text
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import CONTROL, GraphBuilder
from optpart.problem.instance import Instance, Model
from optpart.problem.rational import RationalArray, decimal, rational, shown

FORMAT = "optpart-instance/1"

#: What tells where a key stands, in a text that is known to be JSON.
_TOKEN = re.compile(r'(?P<text>"(?:[^"\\]|\\.)*")\s*(?P<colon>:)?|[{}\[\]]', re.DOTALL)

_TOP = {
    "$schema", "format", "name", "source", "vertices", "edges", "colocation", "separation",
    "devices", "bandwidth", "latency", "durations", "model",
}  # fmt: skip
_VERTEX = {"name", "ops", "memory", "outputs", "device_type", "devices"}
_OUTPUT = {"size", "delay"}
_DEVICE = {"name", "type", "speed", "memory"}
_MODEL = {"communication", "memory", "send_ops", "channels", "release"}


def read(path: str | Path) -> Instance:
    """Read an instance file; every fault is an :class:`InputError` that names file and place."""
    with FaultsOf(path):
        return from_dict(parse_json(read_text(path)))


def write(instance: Instance, path: str | Path) -> None:
    """Write an instance file, whole or not at all."""
    write_text(path, dumps(instance))


def parse_json(text: str) -> Any:
    """Parse JSON with exact decimals: the one door for every JSON file.

    Raises
    ------
    InputError
        If it is not JSON, an object has a key twice, a number is not finite or has too many
        digits, or a text has half a surrogate pair.
    """

    def refuse(constant: str) -> Any:
        raise InputError("", f"{constant} is not a finite number", "give a finite number")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            key, line, column = _second(text)
            raise InputError(
                f"line {line}, column {column}",
                f"the key {shown(key)} for the second time in one object",
                "give every key once",
            )
        return found

    try:
        document = json.loads(
            text, parse_float=decimal, parse_constant=refuse, object_pairs_hook=once
        )
        if "\\ud" in text.lower():  # half a character, which no file could hold again
            json.dumps(document, ensure_ascii=False, default=str).encode()
        return document
    except json.JSONDecodeError as error:
        raise InputError(
            f"line {error.lineno}, column {error.colno}",
            f"not JSON ({error.msg})",
            "give a JSON document",
        ) from None
    except RecursionError:
        raise InputError("", "nested too deeply", "give a JSON document") from None
    except UnicodeEncodeError:
        raise InputError("", "a name with half a surrogate pair", "give valid text") from None
    except ValueError as error:  # a number of too many digits
        raise InputError("", f"not readable ({error})", "give shorter numbers") from None


def _second(text: str) -> tuple[str, int, int]:
    """Return the first key that its object has had already, with its line and column."""
    above: list[set[str] | None] = []  # keys so far; None for a list
    for token in _TOKEN.finditer(text):
        match token[0][0]:
            case "{":
                above.append(set())
            case "[":
                above.append(None)
            case "}" | "]":
                above.pop()
            case _:
                had = above[-1] if above else None
                if token["colon"] is None or had is None:
                    continue
                key = json.loads(token["text"])
                if key in had:
                    start = token.start()
                    line_start = text.rfind("\n", 0, start) + 1
                    return key, text.count("\n", 0, start) + 1, start - line_start + 1
                had.add(key)
    raise AssertionError("no key stands twice")


def keys(value: Any, known: set[str], place: str) -> Mapping[str, Any]:
    """Return ``value`` if it is an object with known keys only."""
    if not isinstance(value, dict):
        raise InputError(place, f"a {_kind(value)}", "give an object")
    if not value.keys() <= known:
        unknown = next(key for key in value if key not in known)
        raise InputError(
            place, f"unknown key {unknown!r}", f"known keys are {', '.join(sorted(known))}"
        )
    return value


def sequence(value: Any, place: str) -> list[Any]:
    """Return ``value`` if it is a list."""
    if not isinstance(value, list):
        raise InputError(place, f"a {_kind(value)}", "give a list")
    return value


def _kind(value: Any) -> str:
    names = {dict: "object", list: "list", str: "string", type(None): "null", bool: "boolean"}
    return names.get(type(value), "number")


def version(document: Any, expected: str) -> None:
    """Check the ``format`` key."""
    if not isinstance(document, dict):
        raise InputError("", f"a {_kind(document)}", f'give an object with "format": "{expected}"')
    if document.get("format") != expected:
        found = repr(document["format"]) if "format" in document else "missing"
        raise InputError("format", f"{found}", f'this version reads "{expected}"')


def from_dict(document: Any) -> Instance:
    """Build an instance from the parsed document."""
    version(document, FORMAT)
    top = keys(document, _TOP, "")
    text(top.get("$schema", ""), "$schema")
    for key in ("vertices", "devices"):
        if key not in top:
            raise InputError(key, "missing", f"give a list of {key}")
    builder = GraphBuilder()
    _read_vertices(sequence(top["vertices"], "vertices"), builder)
    for e, edge in enumerate(sequence(top.get("edges", []), "edges")):
        if not isinstance(edge, list) or len(edge) != 3:
            raise InputError(
                f"edges[{e}]", "not a triple", "give [source, target, output index or null]"
            )
        builder.edge(edge[0], edge[1], edge[2])
    for g, group in enumerate(sequence(top.get("colocation", []), "colocation")):
        builder.colocate(*sequence(group, f"colocation[{g}]"))
    for p, pair in enumerate(sequence(top.get("separation", []), "separation")):
        if len(sequence(pair, f"separation[{p}]")) != 2:
            raise InputError(f"separation[{p}]", f"{len(pair)} vertices", "give a pair")
        builder.separate(*pair)
    return Instance(
        graph=builder.build(),
        cluster=read_cluster(top),
        model=_read_model(top.get("model", {})),
        durations=None if top.get("durations") is None else sequence(top["durations"], "durations"),
        name=text(top.get("name", "unnamed"), "name"),
        source=text(top.get("source", ""), "source"),
    )


def text(value: Any, place: str) -> str:
    """Return ``value`` if it is a string."""
    if not isinstance(value, str):
        raise InputError(place, f"a {_kind(value)}", "give a string")
    return value


def _optional_text(value: Any, place: str) -> str | None:
    return None if value is None else text(value, place)


def _read_vertices(vertices: list[Any], builder: GraphBuilder) -> None:
    for v, entry in enumerate(vertices):
        place = f"vertices[{v}]"
        vertex = keys(entry, _VERTEX, place)
        outputs = sequence(vertex.get("outputs", []), f"{place}.outputs")
        plain = all(type(output) is not dict for output in outputs)
        devices = vertex.get("devices")
        builder.vertex(
            vertex.get("name", ""),
            vertex.get("ops", 0),
            memory=vertex.get("memory", 0),
            outputs=outputs if plain else (),
            device_type=_optional_text(vertex.get("device_type"), f"{place}.device_type"),
            devices=None if devices is None else sequence(devices, f"{place}.devices"),
            place=place,
        )
        for i, output in enumerate(() if plain else outputs):
            if isinstance(output, dict):
                keys(output, _OUTPUT, f"{place}.outputs[{i}]")
                delay = output.get("delay")
                if delay is not None:
                    for j, row in enumerate(sequence(delay, f"{place}.outputs[{i}].delay")):
                        sequence(row, f"{place}.outputs[{i}].delay[{j}]")
                builder.output(vertex["name"], output.get("size", 0), delay)
            else:
                builder.output(vertex["name"], output)


def read_cluster(top: Mapping[str, Any]) -> Cluster:
    """Read the keys ``devices``, ``bandwidth`` and ``latency``."""
    devices = []
    for d, entry in enumerate(sequence(top["devices"], "devices")):
        place = f"devices[{d}]"
        device = keys(entry, _DEVICE, place)
        devices.append(
            Device(
                device.get("name", ""),
                device.get("speed", 1),
                _optional_text(device.get("type"), f"{place}.type"),
                device.get("memory"),
            )
        )
    return Cluster.of(devices, top.get("bandwidth"), top.get("latency", 0))


def _read_model(value: Any) -> Model:
    model = keys(value, _MODEL, "model")
    return Model(**{**model, "send_ops": rational(model.get("send_ops", 0), "model.send_ops")})


def number(value: Fraction) -> int | str:
    """Write a rational as JSON: an integer, or a string such as ``"1/3"``."""
    return value.numerator if value.denominator == 1 else str(value)


def _numbers(values: RationalArray) -> list[int | str]:
    if values.denominator == 1:
        return [int(n) for n in values.numerators.ravel().tolist()]
    return [number(value) for value in values.fractions()]


def _rows(values: list[Any], width: int) -> list[list[Any]]:
    return [values[i : i + width] for i in range(0, len(values), width)]


def to_dict(instance: Instance) -> dict[str, Any]:
    """Return the document of an instance: what :func:`from_dict` reads."""
    graph, cluster = instance.graph, instance.cluster
    k = len(cluster)
    ops, memory = _numbers(graph.ops), _numbers(graph.memory)
    vertices: list[dict[str, Any]] = []
    for v, name in enumerate(graph.names):
        vertex: dict[str, Any] = {"name": name, "ops": ops[v]}
        if memory[v]:
            vertex["memory"] = memory[v]
        if graph.device_types[v] is not None:
            vertex["device_type"] = graph.device_types[v]
        if v in graph.allowed_devices:
            vertex["devices"] = list(graph.allowed_devices[v])
        vertices.append(vertex)
    for tensor, size in enumerate(_numbers(graph.tensor_size)):
        if graph.tensor_output[tensor] == CONTROL:
            continue
        delay = graph.tensor_delay.get(tensor)
        entry: Any = size
        if delay is not None:
            rows = [[None if f is None else number(f) for f in row] for row in delay]
            entry = {"size": size, "delay": rows}
        vertices[graph.tensor_vertex[tensor]].setdefault("outputs", []).append(entry)
    output = graph.tensor_output[graph.edge_tensor].tolist()
    document: dict[str, Any] = {
        "format": FORMAT,
        "name": instance.name,
        "source": instance.source,
        "vertices": vertices,
        "edges": [
            [graph.names[u], graph.names[v], None if k_ == CONTROL else k_]
            for u, v, k_ in zip(
                graph.edge_source.tolist(), graph.edge_target.tolist(), output, strict=True
            )
        ],
        "devices": [_device(cluster, d) for d in range(k)],
        "bandwidth": _rows(
            [
                None if free else rate
                for rate, free in zip(
                    _numbers(cluster.bandwidth), cluster.infinite.ravel().tolist(), strict=True
                )
            ],
            k,
        ),
        "model": _model(instance.model),
    }
    if graph.colocation:
        document["colocation"] = [[graph.names[v] for v in group] for group in graph.colocation]
    if graph.separation:
        document["separation"] = [[graph.names[v] for v in pair] for pair in graph.separation]
    if np.any(cluster.latency.numerators != 0):
        document["latency"] = _rows(_numbers(cluster.latency), k)
    given = instance.given_durations
    if given is not None:
        cells = zip(_numbers(given.times), given.possible.ravel().tolist(), strict=True)
        document["durations"] = _rows([time if can else None for time, can in cells], k)
    return document


def _device(cluster: Cluster, d: int) -> dict[str, Any]:
    device: dict[str, Any] = {"name": cluster.names[d], "speed": number(cluster.speed[d])}
    if cluster.types[d] is not None:
        device["type"] = cluster.types[d]
    memory = cluster.memory[d]
    if memory is not None:
        device["memory"] = number(memory)
    return device


def _model(model: Model) -> dict[str, Any]:
    document: dict[str, Any] = {"communication": model.communication, "memory": model.memory}
    if model.send_ops:
        document["send_ops"] = number(model.send_ops)
    if model.channels != 1:
        document["channels"] = model.channels
    if model.release != "end":
        document["release"] = model.release
    return document


def dumps(instance: Instance) -> str:
    """Write the document, one vertex, edge, group or row a line."""
    return pretty(to_dict(instance))


def pretty(document: dict[str, Any]) -> str:
    """Write JSON with one line per entry of each top-level list, fit to be shown on a terminal."""
    lines = []
    for key, value in document.items():
        if isinstance(value, list) and value:
            entries = ",\n  ".join(json.dumps(entry, ensure_ascii=False) for entry in value)
            lines.append(f"{json.dumps(key)}: [\n  {entries}]")
        else:
            lines.append(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    return visible_json("{" + ",\n ".join(lines) + "}\n")
