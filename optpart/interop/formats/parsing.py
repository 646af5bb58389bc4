"""Parsing shared by readers of foreign formats: fields of lines, JSON entries, limits, faults.

Every fault is an :class:`~optpart.base.errors.InputError` that names the place; the readers add the
file.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from fractions import Fraction
from typing import Any, TypeGuard
from xml.etree import ElementTree

from optpart.base import escaping
from optpart.base.errors import InputError
from optpart.problem.rational import non_negative, shown

#: A matrix of vertices by devices, or of devices by devices per tensor, can be huge in memory
#: although the file that asks for it is small.
MOST_ENTRIES = 2_000_000

_MOST = 10**9


class Line:
    """The fields of one line of a file, taken one after the other.

    Attributes
    ----------
    place : str
        ``line 3``, as errors name it.
    fields : sequence of str
        All fields, including those taken.
    """

    def __init__(self, number: int, fields: Sequence[str]) -> None:
        self.place = f"line {number}"
        self.fields = fields
        self._next = 0

    def field(self, what: str) -> str:
        """Take the next field as text; ``what`` names it in the error."""
        if self._next == len(self.fields):
            raise InputError(self.place, f"ends before the {what}", "give a complete line")
        self._next += 1
        return self.fields[self._next - 1]

    def whole(self, what: str, least: int = 0, most: int = _MOST) -> int:
        """Take a whole number from ``least`` to ``most``."""
        text = self.field(what)
        # A longer one exceeds every limit, and a very long one even those of Python.
        if not (text.isascii() and text.isdecimal() and len(text) <= 20):
            raise InputError(self.place, f"the {what} is {shown(text)}", _range_remedy(least, most))
        return checked_range(int(text), least, most, self.place, what)

    def number(self, what: str) -> Fraction:
        """Take an exact number ``≥ 0``."""
        return non_negative(self.field(what), f"{self.place}, {what}")

    def end(self) -> None:
        """Check that no field is left."""
        left = len(self.fields) - self._next
        if left:
            raise InputError(
                self.place,
                f"has {len(self.fields)} fields, {left} too many",
                "remove them, or correct the counts before them",
            )


def lines(text: str) -> list[Line]:
    """Return the lines that have fields, split at blanks; a hash sign begins a comment."""
    found = []
    for number, line in enumerate(text.split("\n"), start=1):
        fields = line.partition("#")[0].split()
        if fields:
            found.append(Line(number, fields))
    return found


def leading_counts(text: str) -> int:
    """Return the number of fields in the first line with any; 0 if the first is not a count."""
    for line in text.split("\n"):
        fields = line.partition("#")[0].split()
        if fields:
            return len(fields) if fields[0].isdecimal() else 0
    return 0


def header_and_rows(text: str) -> tuple[Line, list[Line]]:
    """Return the first line with fields, which has counts, and the others."""
    found = lines(text)
    if not found:
        raise InputError("", "is empty", "give a file whose first line has the counts")
    return found[0], found[1:]


def checked_range(value: int, least: int, most: int, place: str, what: str) -> int:
    """Return ``value`` if it lies between ``least`` and ``most``."""
    if not least <= value <= most:
        raise InputError(place, f"the {what} is {shown(value)}", _range_remedy(least, most))
    return value


def is_whole(value: object, least: int, most: int) -> TypeGuard[int]:
    """Return whether it is a whole number from ``least`` to ``most``."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _range_remedy(least: int, most: int) -> str:
    return f"give a whole number from {least} to {most}" if least < most else f"give {least}"


def check_count(found: Sequence[object], expected: int, what: str) -> None:
    """Check that there are as many lines as an earlier count says."""
    if len(found) != expected:
        raise InputError(
            "", f"{len(found)} {what}", f"give {expected}, or correct the count at the beginning"
        )


def check_entries(entries: int, what: str) -> None:
    """Refuse a matrix that is small in the file but huge in memory."""
    if entries > MOST_ENTRIES:
        raise InputError("", f"{entries} {what}", f"give a file with at most {MOST_ENTRIES}")


def parse_xml(text: str, what: str) -> ElementTree.Element:
    """Parse XML, in which entities are refused before; ``what`` would be right."""
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        line, column = error.position
        place, reason = f"line {line}, column {column}", error.msg.partition(":")[0]
        raise InputError(place, f"not XML ({reason})", f"give {what}") from None


def member(document: Any, key: str, place: str = "") -> Any:
    """Return an entry of a JSON object."""
    if not isinstance(document, dict):
        raise InputError(place, "is not an object", f"give an object with {key!r}")
    if key not in document:
        raise InputError(place, f"no {key!r}", "give the key and its value")
    return document[key]


def whole_member(document: Any, key: str, least: int, most: int) -> int:
    """Return an entry of a JSON object that is a whole number from ``least`` to ``most``."""
    value = member(document, key)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(key, f"{shown(value)}", _range_remedy(least, most))
    return checked_range(value, least, most, key, "number")


def identifier(value: Any, place: str) -> str:
    """Return the JSON identifier of a vertex or class, a whole number or a string, as text."""
    if isinstance(value, bool) or not isinstance(value, (int, str)) or value == "":
        raise InputError(place, f"cannot be {shown(value)}", "give a whole number or a string")
    try:
        return str(value)
    except ValueError:  # more digits than Python converts
        raise InputError(place, "a number with very many digits", "give a shorter one") from None


def known(edge: Any, key: str, names: Container[str], place: str) -> str:
    """Return the vertex named by an entry of an edge."""
    name = identifier(member(edge, key, place), f"{place}.{key}")
    if name not in names:
        raise InputError(f"{place}.{key}", f"no node {shown(name)}", "give the id of a node")
    return name


def listed(names: Collection[str]) -> str:
    """List a few names, in quotation marks."""
    return escaping.listed([repr(name) for name in names], 3)


def named(names: Sequence[str], most: int = 6) -> str:
    """List names as they are, the first few if there are many."""
    return escaping.listed(names, most)
