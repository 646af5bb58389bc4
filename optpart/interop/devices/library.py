"""The library of devices and links: the TOML files of this folder, one per family.

Its keys are the attributes of :class:`DeviceSpec` and :class:`LinkSpec`; ``date``, ``type`` and
``overhead`` of a file hold for all its entries that do not give their own.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from optpart.base.choices import choice
from optpart.base.errors import InputError
from optpart.interop.devices.spec import DeviceSpec, LinkSpec
from optpart.problem.rational import rational
from optpart.problem.units import quantity

#: Files of devices, in the order in which they are listed.
FAMILIES = ("nvidia", "amd", "tpu", "board", "cpu")


@cache
def devices() -> Mapping[str, DeviceSpec]:
    """Return all devices of the library by name."""
    found = [
        _device({**document, **entry})
        for document in map(_document, FAMILIES)
        for entry in document["device"]
    ]
    return {spec.name: spec for spec in found}


@cache
def links() -> Mapping[str, LinkSpec]:
    """Return all links of the library by name."""
    document = _document("links")
    found = [_link({**document, **entry}) for entry in document["link"]]
    return {spec.name: spec for spec in found}


def device(name: object, place: str) -> DeviceSpec:
    """Return a device of the library; an unknown name is an error with the nearest names."""
    known = devices()
    if isinstance(name, str) and name in known:
        return known[name]
    raise InputError(place, f"no device {name!r} in the library", nearest(name, known))


def link(name: object, place: str) -> LinkSpec:
    """Return a link of the library; an unknown name is an error with the nearest names."""
    known = links()
    if isinstance(name, str) and name in known:
        return known[name]
    raise InputError(place, f"no link {name!r} in the library", nearest(name, known))


def nearest(name: object, known: Mapping[str, object]) -> str:
    """Return the remedy for an unknown name: those nearest to it, or where all are listed."""
    return choice(name, known, "optpart devices")


def _document(family: str) -> dict[str, Any]:
    path = files("optpart.interop.devices").joinpath(f"{family}.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _device(entry: Mapping[str, Any]) -> DeviceSpec:
    name = entry["name"]
    memory = entry.get("memory")
    return DeviceSpec(
        name=name,
        type=entry["type"],
        peak={key: quantity(rate, "speed", f"{name}.peak") for key, rate in entry["peak"].items()},
        bandwidth=quantity(entry["bandwidth"], "bandwidth", name),
        memory=None if memory is None else quantity(memory, "size", name),
        overhead=quantity(entry["overhead"], "time", name),
        summary=entry["summary"],
        source=entry["source"],
        date=entry["date"],
    )


def _link(entry: Mapping[str, Any]) -> LinkSpec:
    name = entry["name"]
    return LinkSpec(
        name=name,
        nominal=quantity(entry["nominal"], "bandwidth", name),
        efficiency=rational(entry["efficiency"], name),
        latency=quantity(entry["latency"], "time", name),
        summary=entry["summary"],
        source=entry["source"],
        date=entry["date"],
    )
