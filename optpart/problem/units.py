"""Quantities with a unit, such as ``"24 GiB"``, in the fixed units of named devices.

Times are in nanoseconds, sizes in bytes, rates in bytes and in floating-point operations per
nanosecond (so 1 is 1 GB/s and 1 GFLOP/s). Decimal prefixes are powers of 1000, binary ones (``Ki``,
``Mi``, ``Gi``, ``Ti``) powers of 1024.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Literal

from optpart.base.errors import InputError
from optpart.problem.rational import non_negative, shown

Dimension = Literal["time", "size", "bandwidth", "speed"]

_DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_SECOND = 10**9

#: Nanoseconds of the units that the times of an instance may have.
TIME_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": _SECOND}

_SIZES = {f"{prefix}B": Fraction(factor) for prefix, factor in (_DECIMAL | _BINARY).items()}
_BITS = {f"{prefix}bit": Fraction(factor, 8) for prefix, factor in _DECIMAL.items()}

_UNITS: dict[Dimension, dict[str, Fraction]] = {
    "time": {
        "ns": Fraction(1),
        "us": Fraction(1000),
        "µs": Fraction(1000),
        "ms": Fraction(10**6),
        "s": Fraction(_SECOND),
    },
    "size": _SIZES,
    "bandwidth": {f"{name}/s": factor / _SECOND for name, factor in (_SIZES | _BITS).items()},
    # Integer units count operations that are not floating-point; their rate is one all the same.
    "speed": {
        f"{prefix}{name}/s": Fraction(factor, _SECOND)
        for name in ("FLOP", "OP")
        for prefix, factor in _DECIMAL.items()
    },
}
_EXAMPLES: dict[Dimension, str] = {
    "time": '"10 us"',
    "size": '"24 GiB" or "24 GB"',
    "bandwidth": '"31.5 GB/s" or "10 Gbit/s"',
    "speed": '"35.6 TFLOP/s"',
}
_WITH_UNIT = re.compile(r"\s*([0-9.eE+/-]*[0-9.])\s*([^\W\d_][^\s]*)\s*")


def quantity(value: object, dimension: Dimension, place: str) -> Fraction:
    """Read a quantity ``≥ 0``: a number in the fixed unit, or a string with a unit.

    Raises
    ------
    InputError
        If it is not a number, negative, or its unit is unknown or of another dimension.
    """
    match = _WITH_UNIT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return non_negative(value, place)
    number, unit = match.groups()
    factor = _UNITS[dimension].get(unit)
    if factor is None:
        raise InputError(
            place,
            f"{shown(unit)} is no unit of {dimension}",
            f"write, for instance, {_EXAMPLES[dimension]}",
        )
    return non_negative(number, place) * factor


def has_unit(value: str) -> bool:
    """Return whether a text is a number and then letters."""
    return _WITH_UNIT.fullmatch(value) is not None


def written(value: Fraction, dimension: Dimension) -> str:
    """Write a quantity for people, with four significant digits and a decimal prefix."""
    if dimension == "time":
        steps = [(10**9, "s"), (10**6, "ms"), (10**3, "us"), (1, "ns")]
    else:
        name = {"size": "B", "bandwidth": "B/s", "speed": "FLOP/s"}[dimension]
        scale = 1 if dimension == "size" else _SECOND
        value *= scale
        steps = [(factor, prefix + name) for prefix, factor in reversed(_DECIMAL.items())]
    for factor, unit in steps:
        if value >= factor:
            return f"{_digits(value / factor)} {unit}"
    return f"{_digits(value)} {steps[-1][1]}"


def with_unit(text: str, unit: str) -> str:
    """Write a unit of :data:`TIME_UNITS` behind a number; nothing where either is not known."""
    return text if text == "–" else f"{text} {'µs' if unit == 'us' else unit}".strip()


def _digits(value: Fraction) -> str:
    number = float(f"{float(value):.4g}")
    return f"{number:.0f}" if number == int(number) else f"{number:g}"
