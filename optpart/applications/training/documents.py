"""Reading the parts of JSON documents; every fault is an :class:`InputError` with its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from optpart.applications.training.graph import Line
from optpart.base.choices import choice
from optpart.base.errors import InputError
from optpart.interop.formats.json import keys, sequence, text
from optpart.problem.rational import non_negative, shown


def fields_of(
    value: Any, known: set[str], place: str, needed: Sequence[str] = (), remedy: str = ""
) -> Mapping[str, Any]:
    """Return an object that has only known keys, and all that are needed."""
    found = keys(value, known, place)
    for key in needed:
        if key not in found:
            at = f"{place}.{key}" if place else key
            raise InputError(at, "is missing", f"give {remedy or ', '.join(needed)}")
    return found


def mapping(value: Any, place: str) -> Mapping[str, Any]:
    """Return an object with any keys."""
    if not isinstance(value, dict):
        raise InputError(place, "is no object", "give an object")
    return value


def texts(value: Any, place: str) -> tuple[str, ...]:
    """Return a list of strings."""
    return tuple(text(entry, f"{place}[{i}]") for i, entry in enumerate(sequence(value, place)))


def flag(value: Any, place: str) -> bool:
    """Return a boolean."""
    if not isinstance(value, bool):
        raise InputError(place, f"is {shown(value)}", "give true or false")
    return value


def is_whole(value: Any, least: int) -> bool:
    """Return whether a value is an integer of at least so much."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def count(value: Any, place: str) -> int:
    """Return a positive integer."""
    if not is_whole(value, 1):
        raise InputError(place, f"is {shown(value)}", "give a whole number from 1")
    number: int = value
    return number


def line(alpha: Any, beta: Any, place: str) -> Line:
    """Return the line of two numbers ≥ 0; ``place`` says where each is, with ``{}`` for which."""
    return Line(
        non_negative(alpha, place.format(0, "alpha")), non_negative(beta, place.format(1, "beta"))
    )


def named(value: Any, index: Mapping[str, int], place: str, unknown: str, remedy: str = "") -> int:
    """Return the number of a name; ``unknown`` says what there is not."""
    name = text(value, place)
    if name not in index:
        raise InputError(place, f"{unknown} {shown(name)}", remedy or choice(name, index))
    return index[name]
