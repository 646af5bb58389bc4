"""The native instance format, ``optpart-instance/1`` (design §5)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from optpart.base.errors import FaultsOf, InputError
from optpart.base.files import Kind, of_format, write_text
from optpart.interop.formats.json import keys, pretty, read_json, sequence, text, version
from optpart.problem.cluster import Cluster, Device
from optpart.problem.document import FORMAT
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.problem.model import Model
from optpart.problem.rational import rational

KIND = Kind("an instance", of_format(FORMAT))

_TOP = {
    "$schema", "format", "name", "source", "vertices", "edges", "colocation", "separation",
    "devices", "bandwidth", "latency", "durations", "model", "time_unit",
}  # fmt: skip
_VERTEX = {"name", "ops", "memory", "outputs", "device_type", "devices"}
_OUTPUT = {"size", "delay"}
_DEVICE = {"name", "type", "speed", "memory"}
_MODEL = {"communication", "memory", "send_ops", "channels", "release"}


def read(path: str | Path) -> Instance:
    """Read an instance file; every fault is an :class:`InputError` that names file and place."""
    with FaultsOf(path):
        return from_dict(read_json(path))


def write(instance: Instance, path: str | Path) -> None:
    """Write an instance file, completely or not at all."""
    write_text(path, dumps(instance), KIND)


def from_dict(document: Any) -> Instance:
    """Build an instance from the parsed document."""
    version(document, FORMAT)
    top = keys(document, _TOP, "")
    text(top.get("$schema", ""), "$schema")
    for key in ("vertices", "devices"):
        if key not in top:
            raise InputError(key, "is missing", f"give a list of {key}")
    builder = GraphBuilder()
    _read_vertices(sequence(top["vertices"], "vertices"), builder)
    for e, edge in enumerate(sequence(top.get("edges", []), "edges")):
        if not isinstance(edge, list) or len(edge) != 3:
            raise InputError(
                f"edges[{e}]", "is not a triple", "give [source, target, output index or null]"
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
        time_unit=text(top.get("time_unit", ""), "time_unit"),
    )


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


def dumps(instance: Instance) -> str:
    """Write the document with one vertex, edge, group or row per line."""
    return pretty(instance.to_dict())
