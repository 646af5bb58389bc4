"""Classes of operations, and which part of a device's peaks each attains.

The defaults, assumptions all of them, stand in ``efficiency.toml`` beside this module.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from optpart.base.errors import FaultsOf, InputError
from optpart.base.files import read_text
from optpart.interop.formats.json import keys, sequence, text
from optpart.interop.formats.toml import parse_toml
from optpart.problem.rational import rational

#: Operations for which nothing is launched.
FREE = "free"

#: Operations of a kind that no class names.
OTHER = "other"

_CLASS = {"compute", "bandwidth", "kinds"}


@dataclass(frozen=True)
class Efficiency:
    """Attained parts of the peak rate and of the memory bandwidth, both in (0, 1]."""

    compute: Fraction
    bandwidth: Fraction


@dataclass(frozen=True)
class Efficiencies:
    """A table of classes.

    Attributes
    ----------
    classes : mapping from str to Efficiency
        Without ``free``, whose operations take no time.
    kinds : mapping from str to str
        Class by kind of operation, the kind as :func:`plain` returns it.
    """

    classes: Mapping[str, Efficiency]
    kinds: Mapping[str, str]

    def class_of(self, kind: str) -> str:
        """Return the class of a kind of operation; ``other`` if no class names it."""
        return self.kinds.get(plain(kind), OTHER)


def plain(kind: str) -> str:
    """Return a kind without domain, case and underscores: ``ai.onnx.MatMul`` is ``matmul``."""
    return re.split(r"[./:]", kind)[-1].replace("_", "").lower()


@cache
def defaults() -> Efficiencies:
    """Return the table that the package brings."""
    path = files("optpart.interop.costs").joinpath("efficiency.toml")
    return _merged(Efficiencies({}, {}), parse_toml(path.read_text(encoding="utf-8")))


def read(path: str | Path) -> Efficiencies:
    """Read a table of one's own; what it lacks is taken from the defaults.

    Raises
    ------
    InputError
        If it is not such a table, or an efficiency is not in (0, 1].
    """
    with FaultsOf(path):
        return _merged(defaults(), parse_toml(read_text(path)))


def _merged(base: Efficiencies, document: Any) -> Efficiencies:
    classes, kinds = dict(base.classes), dict(base.kinds)
    named: dict[str, str] = {}
    for name, value in document.items():
        table = keys(value, _CLASS, name)
        if name == FREE:
            given = table.keys() & {"compute", "bandwidth"}
            if given:
                raise InputError(f"{name}.{min(given)}", "free takes no time", "leave it out")
        else:
            known = classes.get(name)
            parts = [
                _part(table, key, None if known is None else getattr(known, key), name)
                for key in ("compute", "bandwidth")
            ]
            classes[name] = Efficiency(*parts)
        for i, entry in enumerate(sequence(table.get("kinds", []), f"{name}.kinds")):
            place = f"{name}.kinds[{i}]"
            kind = plain(text(entry, place))
            if named.setdefault(kind, name) != name:
                raise InputError(place, f"{entry!r} is also in {named[kind]}", "give it one class")
    return Efficiencies(classes, kinds | named)


def _part(table: Mapping[str, Any], key: str, known: Fraction | None, name: str) -> Fraction:
    if key not in table:
        if known is None:
            raise InputError(f"{name}.{key}", "missing", "give compute and bandwidth")
        return known
    value = rational(table[key], f"{name}.{key}")
    if not 0 < value <= 1:
        raise InputError(f"{name}.{key}", f"{value}", "give a number above 0 and at most 1")
    return value
