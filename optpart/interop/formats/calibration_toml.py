"""A device whose run times were fitted to measurements, in TOML.

::

    format = "optpart-calibration/1"
    name = "my-gpu"
    type = "GPU"                 # optional
    memory = "24 GiB"            # optional; a number is bytes
    precision = "float32"        # data type that was measured
    source = "where, when"       # optional

    [overall]                    # nanoseconds = constant + per_flop * FLOPs + per_byte * bytes
    constant = 5000.0
    per_flop = 3e-5
    per_byte = 0.0012

    [class.contraction]          # counts for operations of this class, if there is such a table
    constant = 6000.0
    per_flop = 4e-5
    per_byte = 0.001

    [kind.Conv]                  # counts for operations of this kind
    constant = 7000.0
    per_flop = 4e-5
    per_byte = 0.001

A cluster file names it: ``of = "my-gpu.toml"``.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from optpart.base.errors import FaultsOf, InputError
from optpart.base.files import Kind, of_format, read_text, write_text
from optpart.base.languages import to_toml
from optpart.interop.devices.spec import Coefficients, FittedSpec
from optpart.interop.formats.json import keys, text, version
from optpart.interop.formats.toml import exact_decimal, parse_toml
from optpart.problem.rational import non_negative
from optpart.problem.units import quantity

FORMAT = "optpart-calibration/1"
KIND = Kind("a calibrated device", of_format(FORMAT, tomllib.load))
_TOP = {"format", "name", "type", "memory", "precision", "source", "overall", "class", "kind"}
_FIT = ("constant", "per_flop", "per_byte")


def read(path: str | Path) -> FittedSpec:
    """Read a calibration file; every fault is an :class:`InputError` that names file and place."""
    with FaultsOf(path):
        return loads(read_text(path))


def write(spec: FittedSpec, path: str | Path) -> None:
    """Write a calibration file, whole or not at all."""
    write_text(path, dumps(spec), KIND)


def loads(content: str) -> FittedSpec:
    """Build a calibrated device from the text of a file."""
    document = parse_toml(content)
    version(document, FORMAT)
    top = keys(document, _TOP, "")
    for key in ("name", "precision", "overall"):
        if key not in top:
            raise InputError(key, "missing", "give name, precision and [overall]")
    memory = top.get("memory")
    name = text(top["name"], "name")
    if not name:
        raise InputError("name", "empty", "give the device a name")
    return FittedSpec(
        name=name,
        type=text(top["type"], "type") if "type" in top else None,
        memory=None if memory is None else quantity(memory, "size", "memory"),
        precision=text(top["precision"], "precision"),
        overall=_coefficients(top["overall"], "overall"),
        classes=_tables(top.get("class", {}), "class"),
        kinds=_tables(top.get("kind", {}), "kind"),
        source=text(top.get("source", ""), "source"),
    )


def _tables(value: Any, place: str) -> dict[str, Coefficients]:
    if not isinstance(value, dict):
        raise InputError(place, f"{value!r} is no table", f"give tables [{place}.NAME]")
    return {name: _coefficients(table, f"{place}.{name}") for name, table in value.items()}


def _coefficients(value: Any, place: str) -> Coefficients:
    table = keys(value, set(_FIT), place)
    for key in _FIT:
        if key not in table:
            raise InputError(f"{place}.{key}", "missing", f"give {', '.join(_FIT)}")
    return Coefficients(*(non_negative(table[key], f"{place}.{key}") for key in _FIT))


def dumps(spec: FittedSpec) -> str:
    """Return the text of a calibration file: what :func:`loads` reads."""
    lines = [f"format = {to_toml(FORMAT)}", f"name = {to_toml(spec.name)}"]
    if spec.type is not None:
        lines.append(f"type = {to_toml(spec.type)}")
    if spec.memory is not None:
        lines.append(f"memory = {exact_decimal(spec.memory)}")
    lines.append(f"precision = {to_toml(spec.precision)}")
    if spec.source:
        lines.append(f"source = {to_toml(spec.source)}")
    lines += ["", "# nanoseconds = constant + per_flop * FLOPs + per_byte * bytes"]
    tables = [("overall", spec.overall)]
    tables += [(f"class.{to_toml(name)}", fit) for name, fit in spec.classes.items()]
    tables += [(f"kind.{to_toml(name)}", fit) for name, fit in spec.kinds.items()]
    for heading, fit in tables:
        lines.append(f"[{heading}]")
        lines += [f"{key} = {exact_decimal(getattr(fit, key))}" for key in _FIT]
        lines.append("")
    return "\n".join(lines)
