"""Other names and other units for an instance: nothing that it means may change.

The draws of :mod:`optpart.testing.draw` name vertices ``v0`` and devices ``d0``. Here, names are
numbers, in any script, with spaces, control characters and markup, and times and sizes are
multiplied by numbers far from one.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from optpart.interop.formats import native
from optpart.problem.instance import Instance
from optpart.testing.pick import Draw, seeded

_NAMES = (
    "0", "1", "2", "00", "-1", "1.5", "1e9", "NaN", "inf", "null", "true", "None", " ", "  ", "a b",
    " a", "a ", "\t", "a\nb", "\r", "\x00", "\x1b[31m", "Ω", "größer", "装置", "🙂", "\u202eabc",
    "e\u0301", "é", "\u200b", "İ", "ß", "A", "a", "v0", "v1", "d0", "d1", "a:0", "a:b", "a,b",
    "a;b", "a|b", "a+b", "a/b", "../a", "a\\b", "C:\\a", "'", '"', "''", "`", "$HOME", "%s", "{0}",
    "{}", "[red]", "[/]",
    "[", "]", "<b>", "</script>", "&amp;", "&", "#", "*", "--help", "-m", "=1+1",
    "@", "\\n", "\\textbf{a}", "~", "^", "_", "a" * 300, "?", "file.json", "(control)", "send",
)  # fmt: skip

#: Factors of times and of sizes.
_FACTORS = (
    Fraction(10**12 + 39),
    Fraction(1, 10**9 + 7),
    Fraction(2**61),
    Fraction(1, 2**61),
    Fraction(10) ** 100,
    Fraction(1, 10**100),
    Fraction(10**40 + 1, 3 * 10**20),
)


def renamed(instance: Instance, seed: int) -> Instance:
    """Return the instance with strange names of vertices, devices and types, and of itself."""
    draw = Draw(seeded(seed, "names"))
    document = copy.deepcopy(instance.to_dict())
    vertices = _names(draw, [row["name"] for row in document["vertices"]])
    devices = _names(draw, [row["name"] for row in document["devices"]])
    kinds = sorted({row["type"] for row in document["devices"] if row.get("type") is not None})
    types = _names(draw, kinds)
    for row in document["vertices"]:
        row["name"] = vertices[row["name"]]
        if row.get("devices") is not None:
            row["devices"] = [devices[name] for name in row["devices"]]
        if row.get("device_type") is not None:
            row["device_type"] = types[row["device_type"]]
    for row in document["devices"]:
        row["name"] = devices[row["name"]]
        if row.get("type") is not None:
            row["type"] = types[row["type"]]
    document["edges"] = [[vertices[u], vertices[v], o] for u, v, o in document.get("edges", [])]
    for key in ("colocation", "separation"):
        if key in document:
            document[key] = [[vertices[name] for name in group] for group in document[key]]
    document["name"] = draw.one_of(("", *_NAMES))
    return native.from_dict(document)


def scaled(instance: Instance, seed: int) -> tuple[Instance, Fraction, Fraction]:
    """Return the instance in other units, and the factors of its times and of its sizes."""
    draw = Draw(seeded(seed, "units"))
    time, size = draw.one_of(_FACTORS), draw.one_of(_FACTORS)
    document = copy.deepcopy(instance.to_dict())
    for row in document["vertices"]:
        row["ops"] = _times(row.get("ops", 0), time)
        row["memory"] = _times(row.get("memory", 0), size)
        outputs = []
        for output in row.get("outputs", []):
            given = output if isinstance(output, dict) else {"size": output}
            given["size"] = _times(given.get("size", 0), size)
            given["delay"] = _times(given.get("delay"), time)
            outputs.append(given)
        row["outputs"] = outputs
    for row in document["devices"]:
        row["memory"] = _times(row.get("memory"), size)
    document["bandwidth"] = _times(document.get("bandwidth"), size / time)
    document["latency"] = _times(document.get("latency", 0), time)
    document["durations"] = _times(document.get("durations"), time)
    model = document.get("model", {})
    document["model"] = {**model, "send_ops": _times(model.get("send_ops", 0), time)}
    return native.from_dict(document), time, size


def _names(draw: Draw, names: list[str]) -> Mapping[str, str]:
    """Draw another name for each; now and then, they remain."""
    if draw.chance(8):
        return {name: name for name in names}
    found: dict[str, str] = {}
    for name in names:
        other = draw.one_of(_NAMES)
        while other in found.values():
            other += draw.one_of(_NAMES)
        found[name] = other
    return found


def _times(value: Any, factor: Fraction) -> Any:
    """Multiply a number, or all numbers of a matrix; ``None`` remains."""
    if value is None:
        return None
    if isinstance(value, list):
        return [_times(each, factor) for each in value]
    return str(Fraction(value) * factor)
